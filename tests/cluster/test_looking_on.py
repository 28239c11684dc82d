"""Glances at a trial that runs: for those alone who have a use for them, until the load is over."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from pgdyno.model.glance import Glance
from pgdyno.sample.recorder import Recorder
from pgdyno.sample.sampler import Column, Sampler, Tally
from pgdyno.sample.samplers.server_sessions import SESSIONS
from pgdyno.target.server_log import LogTail
from pgdyno.trial import looking_on as module
from pgdyno.trial.looking_on import Glances, looking_on
from tests.waiting import until

pytestmark = pytest.mark.cluster
KEY = ("backend", "cpu", "", "active", "new_order", "", "")
CHECKPOINT = b"2026-11-21 08:00:00.000 UTC [7] LOG:  checkpoint starting: time\n"
ERROR = b"2026-11-21 08:00:01.000 UTC [8] ERROR:  no\n"


def recorder() -> Recorder:
    counted = iter(range(1_000_000))
    columns = (Column("device.vda.reads", "1"), Column("wal.bytes", "B"))
    return Recorder(
        [
            Sampler("disk", columns, lambda: {one.name: next(counted) for one in columns}, 0.01),
            Tally("sessions", SESSIONS, lambda: [KEY], 0.01),
        ]
    )


class Looks:
    def __init__(self) -> None:
        self.seen: list[Glance] = []

    def __call__(self, event: object) -> None:
        raise AssertionError(f"nothing happened: {event}")

    def glance(self, seen: Glance) -> None:
        self.seen.append(seen)


def test_who_has_no_use_for_it_is_shown_nothing() -> None:
    before = threading.active_count()
    with looking_on(lambda _: None, [recorder()], None):
        assert threading.active_count() == before


def test_who_looks_on_is_shown_what_is_sampled_until_it_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "PACE_S", 0.01)
    looks = Looks()
    with recorder() as one, looking_on(looks, [one], None):
        until(lambda: any(glance.grown for glance in looks.seen), "growth")
        until(lambda: any(glance.met for glance in looks.seen), "sessions")
    shown = len(looks.seen)
    names = {name for one in looks.seen for grown in one.grown for name in grown.columns}

    assert names == {"device.vda.reads"}, "what is not shown is not told"
    assert not any(glance.follows_log for glance in looks.seen)
    assert len({glance.began_ns for glance in looks.seen}) == 1
    assert [one.taken_s for one in looks.seen] == sorted(one.taken_s for one in looks.seen)
    assert all(one.name != "pgdyno onlooker" for one in threading.enumerate())
    assert len(looks.seen) == shown


def test_the_log_is_told_from_when_the_load_begins(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w+b", buffering=0) as file:
        file.write(ERROR)
        glances = Glances([], LogTail(file.fileno()))
        assert (glances.next().ended, glances.next().counts) == ((), {})
        file.write(CHECKPOINT + ERROR * 70)
        first, second = glances.next(), glances.next()

    assert [one.kind for one in first.under_way] == ["checkpoint"]
    assert len(first.ended) == 60
    assert first.counts == {"error": 69}, "more of the last message may come"
    assert second.counts == {"error": 1}
    assert first.follows_log


def test_a_failure_of_the_load_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PACE_S", 0.01)
    with pytest.raises(ValueError, match="gave up"), looking_on(Looks(), [], None):
        raise ValueError("it gave up")
    assert all(one.name != "pgdyno onlooker" for one in threading.enumerate())
