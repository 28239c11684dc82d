"""The probes: what each does to a running server, and how it can mislead.

Those that are free lose data, or would at a power cut: they run on copies that are thrown away, and
are prices, no stages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import psycopg

from pgdyno.intervention import shim as preloaded
from pgdyno.intervention import thieves
from pgdyno.intervention.intervention import Intervention, Nothing
from pgdyno.intervention.setting import Reloaded
from pgdyno.intervention.shim import Shim, Skipped, Slower
from pgdyno.model.proof import DEARER, ROUND_TRIP_NS, WRITES_THAT_FLUSH, Probe
from pgdyno.model.units import ns_text

_SLOWER = f"{DEARER:.0%}"

PROBES = (
    Probe(
        "nothing", "nothing at all", "nothing",
        "Nothing is changed.",
        "What its blocks differ by is noise: no other answer is finer.",
    ),
    Probe(
        "cpu", "CPU time", "dearer",
        f"A process of real-time priority takes a slice of each CPU, so that all work takes"
        f" {_SLOWER} longer; devices go on.",
        "Server, kernel and driver share the CPUs: their prices come as one.",
        counts=True,
    ),
    Probe(
        "client", "the client's CPU time", "dearer",
        f"The driver computes {_SLOWER} longer for each exchange with the server.",
        "On a host that both share it takes that from the server, too; `cpu` has it as well.",
    ),
    Probe(
        "round-trip", "round trips", "added",
        f"The driver sends each exchange {ns_text(ROUND_TRIP_NS)} later.",
        "Its price is of that time, not of what a round trip takes here.",
    ),
    Probe(
        "wal-flush", "flushes of WAL", "dearer",
        f"A preloaded library makes each flush of WAL {_SLOWER} longer.",
        "More commits share a flush that takes longer, so that more sessions care less.",
        counts=True,
    ),
    Probe(
        "read", "reads", "dearer",
        f"A preloaded library makes each read of data {_SLOWER} longer.",
        "A read that the kernel's cache answers is mostly CPU time, which `cpu` has as well.",
        counts=True,
    ),
    Probe(
        "wal-flush-free", "flushes of WAL", "free",
        "A preloaded library leaves flushes of WAL out.",
        "It also saves the system calls, and leaves the device to others.",
        "Every commit since the last flush by somebody else, and perhaps the whole cluster.",
    ),
    Probe(
        "data-flush-free", "flushes of data at checkpoints", "free",
        "A preloaded library leaves flushes of data files out.",
        "It shows only where a checkpoint is under way in the blocks.",
        "The whole cluster, perhaps.",
    ),
    Probe(
        "commit-free", "waits of commits", "free",
        "synchronous_commit is off by a reload.",
        "It also saves the switching between processes that waiting takes.",
        "The last commits, up to three times wal_writer_delay.",
    ),
    Probe(
        "page-images-free", "full page images", "free",
        "full_page_writes is off by a reload.",
        "Most images fall right after a checkpoint begins, few before the next one.",
        "Pages torn by a power cut.",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Setting:
    name: str
    value: str
    idle: str  # why nothing is to be seen of it


_RELOADED = {
    "commit-free": _Setting(
        "synchronous_commit", "off", "synchronous_commit is off already: commits do not wait."
    ),
    "page-images-free": _Setting(
        "full_page_writes", "off", "full_page_writes is off already: there are no page images."
    ),
}
_PRELOADED: Mapping[str, Callable[[Shim], Intervention]] = {
    "wal-flush": partial(Slower, kind=preloaded.WAL),
    "read": partial(Slower, kind=preloaded.READ),
    "wal-flush-free": partial(Skipped, kind=preloaded.WAL),
    "data-flush-free": partial(Skipped, kind=preloaded.DATA),
}
_OF_DRIVER = ("client", "round-trip")
_FLUSHES = ("wal-flush", "wal-flush-free", "data-flush-free")


class Bench:
    """What interventions are made of, begun when the first of them needs it; ended together."""

    def __init__(
        self, held: ExitStack, shim: Shim | None, session: psycopg.Connection[Any]
    ) -> None:
        self._held = held
        self._shim = shim
        self._session = session

    @cached_property
    def _thieves(self) -> thieves.Thieves:
        return self._held.enter_context(thieves.thieves())

    def intervention(self, probe: str) -> Intervention:
        """What a probe does.

        Raises:
            PgdynoError: It cannot be begun.
        """
        if probe == "nothing" or is_of_driver(probe):
            return Nothing()
        if probe == "cpu":
            return self._thieves
        if probe in _RELOADED:
            return Reloaded(self._session, _RELOADED[probe].name, _RELOADED[probe].value)
        assert self._shim is not None, "a probe was not left out that needs the library"
        return _PRELOADED[probe](self._shim)


def is_of_driver(probe: str) -> bool:
    """Whether it is the driver that changes, by a timetable of its own."""
    return probe in _OF_DRIVER


def needs_library(probe: str) -> bool:
    """Whether a server must be started with the preloaded library for a probe."""
    return probe in _PRELOADED


def idle(probe: str, settings: Mapping[str, str]) -> str | None:
    """Why a probe has nothing to touch on a server with these settings; None: it has.

    Args:
        probe: Its name.
        settings: Values as SHOW prints them.
    """
    if probe in _RELOADED and settings.get(_RELOADED[probe].name) == "off":
        return _RELOADED[probe].idle
    if probe in _FLUSHES and settings.get("fsync") == "off":
        return "fsync is off: nothing is flushed."
    if probe == "wal-flush" and settings.get("synchronous_commit") == "off":
        return "synchronous_commit is off: sessions do not wait for flushes."
    method = settings.get("wal_sync_method")
    if probe in ("wal-flush", "wal-flush-free") and method in WRITES_THAT_FLUSH:
        return f"wal_sync_method is {method}: writes flush themselves, which no library can touch."
    return None
