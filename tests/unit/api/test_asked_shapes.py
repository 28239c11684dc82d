"""What is asked for in a few words: searches, looks at storage, data, a window that is stopped."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import pgdyno
from pgdyno import api
from pgdyno.api import databases, windows
from pgdyno.api.experiments import plan as of_plan
from pgdyno.api.planning import _instead
from pgdyno.model.connection import Connection
from pgdyno.model.errors import Interrupted, PlanError, StoreError
from pgdyno.model.floor import QUICK, USUAL
from pgdyno.model.workload import Partitions, Workload

SHORT: dict[str, Any] = {
    "name": "p", "question": "?", "workload": {"kind": "tpcb", "scale": 1},
    "protocol": {"rounds": 1, "window_s": 1}, "stage": [{"name": "one", "why": "."}],
}  # fmt: skip
CONNECTION = Connection("/nowhere", 1, "u", "d")


def test_a_search_of_rates_may_begin_below_one() -> None:
    search = api.Search.of(50, start=0.2, most=10)
    assert (search.limit_p99_ns, search.low, search.start, search.high) == (
        50_000_000,
        0.2,
        0.2,
        10,
    )
    assert not search.whole
    assert api.Search.of(50).low == 1.0


def test_a_search_of_terminals_tries_whole_ones() -> None:
    search = api.Search.of(0.5, by="terminals", start=0.3, most=9.6)
    assert (search.limit_p99_ns, search.low, search.start, search.high) == (500_000, 1, 1, 10)
    assert search.whole


def test_a_search_that_starts_above_its_end_is_refused() -> None:
    with pytest.raises(PlanError, match="the first load is 20, the highest is 10"):
        api.Search.of(1, start=20, most=10)


def test_a_quick_look_at_storage_differs_in_what_nobody_named(tmp_path: Path) -> None:
    usual, quick = api.Wish.of(tmp_path), api.Wish.of(tmp_path, quick=True)
    assert usual.paths == quick.paths == (str(tmp_path),)
    assert (usual.size_bytes, usual.seconds, usual.jobs) == (4 << 30, 5, (1, 4))
    assert (quick.size_bytes, quick.seconds, quick.jobs) == (256 << 20, 1, (1,))
    assert usual.depths == quick.depths == USUAL.depths == QUICK.depths
    named = api.Wish.of(tmp_path, quick=True, seconds=7, depths=(4, 1, 4), jobs=[2])
    assert (named.seconds, named.depths, named.jobs) == (7, (1, 4), (2,))


def test_what_probing_takes_is_told_in_a_sentence(tmp_path: Path) -> None:
    said = api.storage_cost(api.Wish.of(tmp_path, quick=True, size_bytes=64 << 20)).sentence
    assert said.startswith("1 × 145 MiB on disk, the file of 64.0 MiB and smaller ones for flushes")
    assert "less than 1 s of it to write the files" in said
    assert "on each path" not in said
    assert "at an assumed 300 MB/s" in said


def test_paths_of_one_file_system_are_told_before_anything_is_measured(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.mkdir()
    second.mkdir()
    assert api.storage_cost(api.Wish.of(first, quick=True)).shared == ()
    assert api.storage_cost(api.Wish.of(first, second, quick=True)).shared == (
        f"{first} and {second} lie on one file system: what differs between them is chance, or"
        " where on it their files lie",
    )


def test_a_run_file_that_a_probe_would_refuse_is_refused_by_its_dry_run(tmp_path: Path) -> None:
    wish, there = api.Wish.of(tmp_path), tmp_path / "there.sqlite"
    there.touch()
    for out in (there, tmp_path / "page.html"):
        with pytest.raises(StoreError, match=out.name):
            api.require_storage_free(wish, out)


@pytest.mark.parametrize("count", [0, 3])
def test_partitions_that_would_stay_empty_are_refused(count: int) -> None:
    data = api.Data("tpcc", scale=2, partitions=Partitions("hash", count))
    with pytest.raises(PlanError, match=f"partitions are {count}, allowed are 1 to 2"):
        data.record()


def test_a_target_beside_a_plan_becomes_its_keys(tmp_path: Path) -> None:
    assert _instead(tmp_path, None, "pgbench") == {
        "workload.engine": "pgbench", "target.kind": "installed", "target.bindir": str(tmp_path),
    }  # fmt: skip
    assert _instead(None, "host=a", None) == {"target.kind": "running", "target.conninfo": "host=a"}
    with pytest.raises(PlanError, match="both given") as caught:
        api.load_plan("demo", bindir=tmp_path, conninfo="host=a")
    assert "give one of them" in str(caught.value.hint)


def test_an_engine_beside_a_plan_drives_it() -> None:
    plan = api.load_plan(SHORT, engine="pgbench")
    assert plan.record.workload.engine == "pgbench"


def test_a_file_of_ones_own_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "first.toml").write_text("mine")
    with pytest.raises(PlanError, match=r"first\.toml exists"):
        api.FirstPlan().write(tmp_path / "first.toml")
    assert (tmp_path / "first.toml").read_text() == "mine"


def test_a_setting_that_is_none_is_answered_with_the_nearest() -> None:
    with pytest.raises(PlanError, match="'synchronous_comit'") as caught:
        api.knob("synchronous_comit")
    assert "synchronous_commit" in str(caught.value.hint)
    assert api.knob("wal_sync_method").lines()[0] == ("knob", "wal_sync_method")
    assert {one.layer for one in api.knobs("sysctl").values()} == {"sysctl"}
    with pytest.raises(PlanError, match="no layer is called 'sysctls'"):
        api.knobs("sysctls")


@pytest.mark.parametrize(
    ("asked", "meant"),
    [("SHARED_BUFFERS", "shared_buffers"), ("timezone", "TimeZone"), ("Sysctl", "sysctl")],
)
def test_a_setting_in_other_letters_is_answered_with_its_own(asked: str, meant: str) -> None:
    with pytest.raises(PlanError, match=asked) as caught:
        api.knob(asked)
    assert caught.value.hint == f"Did you mean {meant}?"


def test_lint_counts_what_it_found(tmp_path: Path) -> None:
    (tmp_path / "postgresql.conf").write_text("fsync = off\ncheckpoint_segments = 64\n")
    linted = pgdyno.lint([tmp_path / "postgresql.conf"])
    assert linted.sentence.startswith("2 settings in 1 file: 1 dangerous")
    (tmp_path / "postgresql.conf").write_text("work_mem = 8MB\n")
    assert pgdyno.lint([tmp_path / "postgresql.conf"]).sentence == "1 setting in 1 file: fine"


def test_ctrl_c_in_a_window_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(windows, "workload_of", lambda *_: (Workload("tpcb", 1), None))
    monkeypatch.setattr(windows, "in_use", lambda *_, **__: nullcontext())
    monkeypatch.setattr(windows, "drive_alone", pressed)
    with pytest.raises(Interrupted, match="stopped") as caught:
        pgdyno.bench(api.Asked("tpcb"), CONNECTION)
    assert "nothing is still running" in str(caught.value.hint)


def test_ctrl_c_before_a_trial_says_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pressed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    plan = api.load_plan(SHORT)
    monkeypatch.setattr(of_plan, "require_rehearsed", pressed)
    with pytest.raises(Interrupted, match="stopped before a trial began") as caught:
        pgdyno.run(plan, out=tmp_path / "run.sqlite")
    assert caught.value.hint == "Nothing was measured, and nothing is left of it."
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_while_conditions_are_checked_is_an_error_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def pressed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    described = type("Loaded", (), {"described": lambda _: type("D", (), {"conditions": ()})})()
    monkeypatch.setattr(databases, "loaded_workload", lambda _: described)
    monkeypatch.setattr(databases, "check_conditions", pressed)
    with pytest.raises(Interrupted, match="stopped while conditions were checked"):
        pgdyno.check(CONNECTION)
