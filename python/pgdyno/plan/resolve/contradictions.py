"""Settings that are right one by one, but not together.

The server would not start with them, or would run with something else than was asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgdyno.catalog import knobs
from pgdyno.model.settings import HostFacts
from pgdyno.model.wording import plural
from pgdyno.plan.estimate.needs import huge_pages_needed
from pgdyno.plan.settings.configured import Configured
from pgdyno.plan.settings.initdb import segment_mb
from pgdyno.plan.settings.rights import OWN_CONNECTIONS


def contradictions(
    config: Configured, connections: int, host: HostFacts | None, initdb: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """The settings that contradict each other, as (setting, what is wrong).

    Args:
        config: The stage's settings over the server's defaults.
        connections: Sessions of the workload.
        host: The machine of the server; None where it is not known.
        initdb: Arguments of initdb, which decide the size of WAL segments.
    """
    yield from _wal_level(config)
    yield from _at_most(config)
    yield from _connections(config, connections)
    yield from _segments(config, initdb)
    if host is not None:
        yield from _huge_pages(config, host)


def _wal_level(config: Configured) -> Iterator[tuple[str, str]]:
    if config.word("wal_level") != "minimal":
        return
    for name, needed in (
        ("max_wal_senders", "0"),
        ("archive_mode", "off"),
        ("summarize_wal", "off"),
    ):
        if config.word(name) not in (needed, None):
            text = f"minimal needs {name} = {needed}, it is {config.shown(name)}"
            yield "wal_level", text


def _at_most(config: Configured) -> Iterator[tuple[str, str]]:
    for name, knob in knobs().items():
        for other in knob.at_most:
            value, bound = config.size(name), config.size(other)
            if value is not None and bound is not None and value > bound:
                text = f"{config.shown(name)} is more than {other} = {config.shown(other)}"
                yield name, text


def _connections(config: Configured, connections: int) -> Iterator[tuple[str, str]]:
    limit = config.number("max_connections")
    if limit is None:
        return
    reserved = {
        name: int(config.number(name) or 0)
        for name in ("superuser_reserved_connections", "reserved_connections")
        if config.number(name)
    }
    needed = connections + OWN_CONNECTIONS + sum(reserved.values())
    if needed > limit:
        parts = [f"{connections} of the workload", f"{OWN_CONNECTIONS} of pgdyno"]
        parts += [f"{count} of {name}" for name, count in reserved.items()]
        total = " + ".join(parts)
        yield (
            "max_connections",
            f"{config.shown('max_connections')} is too few: {total} are {needed}",
        )


def _segments(config: Configured, initdb: Sequence[str]) -> Iterator[tuple[str, str]]:
    segment = segment_mb(initdb)
    for name in ("min_wal_size", "max_wal_size"):
        size = config.size(name)
        if size is not None and size < 2 * segment << 20:
            yield name, f"{config.shown(name)} is less than two WAL segments of {segment}MB"


def _huge_pages(config: Configured, host: HostFacts) -> Iterator[tuple[str, str]]:
    if config.word("huge_pages") != "on" or (config.number("huge_page_size") or 0) > 0:
        return
    needed = huge_pages_needed(config, host)
    if needed > host.huge_pages_free:
        yield (
            "huge_pages",
            f"on needs {plural(needed, 'huge page')} of {host.huge_page_bytes >> 10}kB,"
            f" {host.huge_pages_free} are free",
        )
