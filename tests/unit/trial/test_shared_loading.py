"""A load that hosts share: who may, how far it is as a whole, and what is left when one fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pgdyno.api import Data, Fleet
from pgdyno.api.databases import estimate_load
from pgdyno.api.host_names import require_whole
from pgdyno.loader import copy
from pgdyno.loader.copy import How
from pgdyno.model.connection import Connection
from pgdyno.model.errors import DriveError, HostLostError, Interrupted, PlanError
from pgdyno.model.loading import Choice, HostLoaded, LoadReport, PhaseSeconds, TableLoaded
from pgdyno.model.progress import LoadProgress
from pgdyno.trial import shared_loading
from pgdyno.trial.shared_loading import load_from_hosts
from tests.data.workloads import tpcc

SERVER = Connection("10.0.0.5", 5432, "u", "shop")
LEFT = (
    "The tables of the load remain in database shop, incomplete; go on with --resume, or begin"
    " again with --drop-ours, which removes them."
)
BEGUN = LoadReport(
    1, {}, 0.1, (PhaseSeconds("prepare", 0.1, 0.1),), 0, 0, tables=(TableLoaded("stock", 0, 0),),
    steps_done_before=4, units_before=1, disk_bytes=0, client_cpu_seconds=0.5,
    choices=(Choice("copies", "many", "hosts"),),
)  # fmt: skip
PART = replace(
    BEGUN, phases=(PhaseSeconds("prepare", 0.1, 0.1), PhaseSeconds("copy", 2.0, 3.0)), rows=10,
    bytes=100, tables=(TableLoaded("stock", 10, 100),), client_cpu_seconds=2.0,
)  # fmt: skip
ENDED = replace(
    BEGUN, phases=(PhaseSeconds("prepare", 9.0, 9.0), PhaseSeconds("index", 1.0, 1.0)),
    steps_done_before=40, disk_bytes=777, client_cpu_seconds=1.0, choices=(),
)  # fmt: skip
STATE = LoadProgress("copy", 10, 20, 100, 50.0, 1.0, 0.5, work=600)


@pytest.mark.parametrize(
    ("fleet", "fact"),
    [
        (Fleet(()), "0 hosts named, allowed are 1 to 1000"),
        (Fleet(("b",)), "host 'b' is of no known transport"),
        (Fleet(("local:a", "local:a")), "host 'local:a' is named 2 times"),
        (Fleet(("local:a",), degraded=True), "degraded is set, and tables are to be loaded"),
    ],
)
def test_who_cannot_load_is_refused(fleet: Fleet, fact: str) -> None:
    with pytest.raises(PlanError, match=fact):
        require_whole(fleet)


class Hosts:
    """Hosts that fail where they are told to."""

    def __init__(self, fails: dict[str, BaseException]) -> None:
        self._fails = fails

    def __call__(self, _fleet: Fleet, _connection: Connection) -> Hosts:
        return self

    def __enter__(self) -> Hosts:
        self._fail("enter")
        return self

    def __exit__(self, *_: object) -> None: ...

    def _fail(self, where: str) -> None:
        if where in self._fails:
            raise self._fails[where]

    def reach(self, _spec: Any, _connections: int | None) -> None:
        self._fail("reach")

    def copy(
        self, _spec: Any, _connections: int | None, progress: Callable[[LoadProgress], None]
    ) -> tuple[HostLoaded, ...]:
        progress(STATE)
        self._fail("copy")
        progress(replace(STATE, share=1.0))
        return (HostLoaded("local:a", PART), HostLoaded("local:b", PART))


def loaded(
    monkeypatch: pytest.MonkeyPatch, told: list[LoadProgress], **fails: BaseException
) -> tuple[LoadReport, tuple[HostLoaded, ...]]:
    """A load by two hosts, with a core that does nothing."""

    def load(
        _connection: Connection, _workload: Any, how: How, *,
        progress: Callable[[LoadProgress], None], **_: Any,
    ) -> LoadReport:  # fmt: skip
        if how.part == "begin":
            if "begin" in fails:
                raise fails["begin"]
            progress(replace(STATE, phase="done", work=1_000, share=1.0))
            return BEGUN
        assert how.intent == "resume"
        progress(replace(STATE, phase="index", rows=0, share=0.5, work=400))
        progress(replace(STATE, phase="done", rows=0, share=1.0, work=400))
        return ENDED

    ended: list[Connection] = []
    monkeypatch.setattr(shared_loading, "LoadingHosts", Hosts(fails))
    monkeypatch.setattr(copy, "load", load)
    monkeypatch.setattr(shared_loading, "end_load", ended.append)
    try:
        return load_from_hosts(
            Fleet(("local:a", "local:b")), SERVER, tpcc(2), How(), told.append, loaded_at_unix_s=7
        )
    finally:
        assert bool(ended) == bool(fails)


def test_the_report_is_of_all_together(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[LoadProgress] = []
    report, parts = loaded(monkeypatch, told)
    assert [phase.name for phase in report.phases] == ["prepare", "copy", "index"]
    assert report.phases[1].session_seconds == 6.0
    assert (report.rows, report.bytes, report.tables) == (20, 200, (TableLoaded("stock", 20, 200),))
    assert (report.steps_done_before, report.units_before, report.disk_bytes) == (4, 1, 777)
    assert report.client_cpu_seconds == 0.5 + 2.0 + 2.0 + 1.0
    assert report.choices == BEGUN.choices
    assert len(parts) == 2
    assert [one.share for one in told] == [0.3, 0.6, 0.8, 1.0]
    assert [one.rows for one in told] == [10] * 4
    assert told[-1].seconds_left is None


@pytest.mark.parametrize(
    ("where", "error", "fact", "hint"),
    [
        ("enter", HostLostError("host b is away", "ssh b"), "host b is away",
         "ssh b. Nothing was changed."),
        ("reach", DriveError("no way"), "no way", "Nothing was changed."),
        ("begin", DriveError("a table", "Load elsewhere."), "a table", "Load elsewhere."),
        ("copy", HostLostError("host b is gone"), "host b is gone", LEFT),
        ("copy", DriveError("disk full", "Make room."), "disk full", f"Make room. {LEFT}"),
    ],
)  # fmt: skip
def test_what_is_left_is_said(
    monkeypatch: pytest.MonkeyPatch, where: str, error: DriveError, fact: str, hint: str
) -> None:
    with pytest.raises(type(error)) as raised:
        loaded(monkeypatch, [], **{where: error})
    assert (raised.value.fact, raised.value.hint) == (fact, hint)


@pytest.mark.parametrize(("where", "hint"), [("reach", "Nothing was changed."), ("copy", LEFT)])
def test_so_it_is_after_ctrl_c(monkeypatch: pytest.MonkeyPatch, where: str, hint: str) -> None:
    with pytest.raises(Interrupted, match="the load was stopped while hosts had it") as raised:
        loaded(monkeypatch, [], **{where: KeyboardInterrupt()})
    assert raised.value.hint == hint


def test_an_estimate_looks_at_the_names_first() -> None:
    with pytest.raises(PlanError, match="host 'b' is of no known transport"):
        estimate_load(Data(), SERVER, fleet=Fleet(("b",)))
