"""Numbers that nothing can come of: the API refuses them, whoever asks, with both values."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest

import pgdyno
from pgdyno import api
from pgdyno.api.experiments.calibration import split_cores
from pgdyno.catalog.contract import limits, most
from pgdyno.model.bounds import require_within
from pgdyno.model.connection import Connection
from pgdyno.model.errors import PlanError
from pgdyno.model.floor import SECONDS_MAX, TRANSACTION_US_MAX
from tests.data.imported import FOLDER

NOWHERE = Connection("/nowhere", 1, "u", "d")


@pytest.mark.parametrize(
    ("value", "least", "most", "fact"),
    [
        (0, 1, 9, "rounds is 0, allowed are 1 to 9"),
        (10_000_001.0, 0.001, 10_000_000, "rounds is 10000001, allowed are 0.001 to 10000000"),
        (-1, 0, None, "rounds is -1, allowed is 0 or more"),
        (10, None, 9, "rounds is 10, allowed is 9 or less"),
        (math.nan, 1, None, "rounds is nan, allowed is 1 or more"),
        (math.nan, None, 9, "rounds is nan, allowed is 9 or less"),
    ],
)
def test_a_refusal_has_both_values(
    value: float, least: float | None, most: float | None, fact: str
) -> None:
    with pytest.raises(PlanError) as caught:
        require_within("rounds", value, least, most, "It is so.")
    assert (caught.value.fact, caught.value.hint) == (fact, "It is so.")


@pytest.mark.parametrize("value", [1, 5, 9, 1.0])
def test_a_number_at_its_limit_is_allowed(value: float) -> None:
    require_within("rounds", value, 1, 9, "It is so.")
    require_within("rounds", value, None, None, "It is so.")


ASKED: dict[str, tuple[str, str]] = {
    "connections": ("DriveSpec", "connections"),
    "terminals": ("DriveSpec", "terminals"),
    "threads": ("DriveSpec", "threads"),
    "requests": ("DriveSpec", "requests_max"),
    "keying": ("TpccSpec", "keying_multiplier"),
    "think": ("TpccSpec", "think_multiplier"),
    "scale": ("PgbenchSpec", "scale"),
}


@pytest.mark.parametrize(("name", "key"), ASKED.items())
def test_a_wish_beyond_the_core_is_refused_with_both_limits(
    name: str, key: tuple[str, str]
) -> None:
    low, high = limits(*key)
    assert low is not None
    assert high is not None
    of_kind = {"kind": "script", "file": Path("a.sql")} if name == "scale" else {"kind": "tpcc"}
    for beyond in (low - 1, high + 1):
        with pytest.raises(PlanError, match=rf"^{name} is .*, allowed are {low} to {high}$"):
            api.Asked(**of_kind, **{name: beyond}).refuse_strangers()  # type: ignore[arg-type]


@pytest.mark.parametrize("databases", [0, most("DriveSpec", "parts") + 1])
def test_so_many_databases_are_driven_as_the_core_has_parts(databases: int) -> None:
    with pytest.raises(PlanError, match=f"databases is {databases}, allowed are 1 to"):
        api.Asked("tpcb", databases=databases).refuse_strangers()


def test_a_seed_is_not_below_zero() -> None:
    with pytest.raises(PlanError, match="seed is -1, allowed is 0 or more"):
        api.Asked("tpcb", seed=-1).refuse_strangers()


@pytest.mark.parametrize("wrong", [{"seconds": 0.5}, {"warmup": -1}, {"seconds": math.nan}])
def test_a_window_that_tells_nothing_is_refused_before_a_server_is_asked(
    wrong: dict[str, float],
) -> None:
    [name] = wrong
    with pytest.raises(PlanError, match=f"^{name} is "):
        pgdyno.bench(api.Asked("tpcb"), NOWHERE, **wrong)  # type: ignore[arg-type]
    windows = api.Windows(wrong.get("warmup", 0), wrong.get("seconds", 1))
    with pytest.raises(PlanError, match=f"^{name} is "):
        pgdyno.knee(api.Asked("tpcb"), NOWHERE, api.Search.of(50), windows=windows)


@pytest.mark.parametrize(
    "wrong",
    [{"p99_ms": 0.001}, {"start": 0}, {"most": 0.01}, {"width": 0}, {"repeats": 0}, {"points": 1}],
)
def test_a_search_that_comes_to_no_end_is_refused(wrong: dict[str, float]) -> None:
    [name] = wrong
    with pytest.raises(PlanError, match=f"^{name} is .*, allowed is "):
        api.Search.of(**({"p99_ms": 50} | wrong))  # type: ignore[arg-type]


def test_rows_that_the_core_does_not_make_are_refused(tmp_path: Path) -> None:
    for data, name in (
        (api.Data(scale=0), "warehouses"), (api.Data("tpcb", 0), "scale"),
        (api.Data("tpcb", 1_000_000), "scale"), (api.Data(seed=-1), "seed"),
    ):  # fmt: skip
        with pytest.raises(PlanError, match=f"^{name} is .*, allowed "):
            data.record()
    with pytest.raises(PlanError, match="connections is 0, allowed are 1 to"):
        api.estimate_load(api.Data("tpcb", 1), NOWHERE, connections=0)
    for wrong in ({"warehouses": 0}, {"seed": -1}):
        with pytest.raises(PlanError, match="allowed "):
            pgdyno.export(tmp_path / "rows", **wrong)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_first_plan_has_warehouses() -> None:
    with pytest.raises(PlanError, match="warehouses is 0, allowed are 1 to"):
        api.FirstPlan(warehouses=0)


def test_results_have_warehouses() -> None:
    with pytest.raises(PlanError, match="warehouses is 0, allowed is 1 or more"):
        pgdyno.import_results([FOLDER / "hammerdb-3.2-console.txt"], warehouses=0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"seconds": 0}, {"seconds": SECONDS_MAX + 1}, {"rounds": 1}, {"rounds": 101},
        {"transaction_us": 0}, {"transaction_us": TRANSACTION_US_MAX + 1}, {"depths": (0, 4)},
        {"jobs": (0,)},
    ],
)  # fmt: skip
def test_storage_is_not_measured_for_no_time(tmp_path: Path, wrong: dict[str, int]) -> None:
    [name] = wrong
    with pytest.raises(PlanError, match=rf"^{name} is \d+, allowed "):
        api.storage_cost(api.Wish.of(tmp_path, **wrong))  # type: ignore[arg-type]


@pytest.mark.parametrize("rounds", [1, 101])
def test_a_hint_answers_both_ends_of_what_is_allowed(tmp_path: Path, rounds: int) -> None:
    """`--rounds 200` was told that one alone tells nothing of the spread, and no more."""
    with pytest.raises(PlanError) as refused:
        api.storage_cost(api.Wish.of(tmp_path, rounds=rounds))
    assert refused.value.hint == "One alone tells nothing of the spread, and each takes its time."


def test_storage_is_not_measured_on_an_empty_file(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="the size is 0") as refused:
        api.storage_cost(api.Wish.of(tmp_path, size_bytes=0))
    assert refused.value.hint is not None
    assert "A number alone counts bytes" in refused.value.hint, "what `--size 64` asks for"


@pytest.mark.parametrize("wrong", [{"postgres": 99}, {"postgres": 11}, {"memory_gib": 0.0}])
def test_files_are_not_linted_for_a_server_that_nobody_has(wrong: dict[str, float]) -> None:
    [name] = wrong
    with pytest.raises(PlanError, match=f"^{name} is .*, allowed "):
        pgdyno.lint([], **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [{"seconds": 0.4}, {"rounds": 0}, {"rounds": 1001}])
def test_a_ceiling_takes_windows(tmp_path: Path, wrong: dict[str, float]) -> None:
    [name] = wrong
    out = tmp_path / "c.sqlite"
    with pytest.raises(PlanError, match=f"^{name} is .*, allowed "):
        pgdyno.calibrate(out=out, **wrong)  # type: ignore[arg-type]
    assert not out.exists()


def test_no_thread_is_not_any_number_of_threads() -> None:
    with pytest.raises(PlanError, match="--threads is 0, allowed are 1 to 3"):
        split_cores([0, 1, 2, 3], 0)


def test_a_build_compiles_a_file_at_least(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="jobs is 0, allowed is 1 or more"):
        api.builds.build(tmp_path, api.builds.Recipe(), jobs=0)


def test_timelines_begin_with_the_first(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="timeline is 0, allowed is 1 or more"):
        pgdyno.wal(tmp_path, timeline=0)


@pytest.mark.parametrize(
    ("record", "wrong"),
    [
        (api.GuardLimits, {"lag_bytes": 0}), (api.GuardLimits, {"lag_s": 0.5}),
        (api.GuardLimits, {"silence_s": 0}), (api.GuardLimits, {"hold_s": -1}),
        (api.GuardLimits, {"checkpoint_timeout_s": 29}),
        (api.ClimbLimits, {"minutes": 0.5}), (api.ClimbLimits, {"at_once": 5}),
        (api.DrillDesign, {"seed": -1}), (api.DrillDesign, {"record_max_gib": 0.01}),
        (api.Design, {"seed": -1}),
    ],
)  # fmt: skip
def test_a_record_of_what_is_asked_for_has_its_limits(
    record: Callable[..., object], wrong: dict[str, float]
) -> None:
    [(name, value)] = wrong.items()
    with pytest.raises(PlanError, match=f"^{name} is {value}, allowed ") as caught:
        record(**wrong)
    assert caught.value.hint
