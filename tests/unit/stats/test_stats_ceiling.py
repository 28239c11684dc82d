"""Ceilings from rounds, and the one that fits a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pgdyno.model.calibration import Ceiling, Estimate, Machine, Round
from pgdyno.model.errors import PgdynoError
from pgdyno.stats.ceiling import ceiling_per_s, fitting, limit, typical

MACHINE = Machine("a processor", 4, "6.1")
ROUND = Round(1000, 13_000.0, 2.0, 1.9, 0.97, 0.6)
VALUE = Estimate(1000.0, 900.0, 1100.0, 5, 0.95)
CEILING = Ceiling(
    workload="tpcc", face="statement", connections=8, threads=2, transactions_per_s=VALUE,
    round_trips_per_s=VALUE, cpu_s_per_transaction=replace(VALUE, centre=0.0005),
    cpu_s_per_round_trip=VALUE, round_trips_per_transaction=13.0, driver_wanted=0.98,
    server_wanted=0.5, limit="driver", driver_cpus=(0, 1), server_cpus=(2, 3), window_s=3.0,
    machine=MACHINE, pgdyno="0.1.0", measured_unix_ns=1,
)  # fmt: skip


def test_the_typical_value_lies_between_the_rounds() -> None:
    found = typical([100.0, 110.0, 105.0, 102.0, 108.0])

    assert found.low is not None
    assert found.high is not None
    assert 95 < found.low < 102 < found.centre < 108 < found.high < 115
    assert (found.n, found.confidence) == (5, 0.95)


def test_one_round_has_no_interval() -> None:
    assert typical([3.0]) == Estimate(3.0, None, None, 1, 0.95)


@pytest.mark.parametrize("values", [[], [1.0, 0.0]])
def test_what_is_no_rate_is_refused(values: list[float]) -> None:
    with pytest.raises(PgdynoError, match="above 0 expected"):
        typical(values)


def test_who_was_the_limit() -> None:
    waiting = replace(ROUND, driver_wanted=0.7)
    assert limit([ROUND, ROUND, waiting]) == "driver"
    assert limit([replace(waiting, server_wanted=0.99)] * 3) == "null server"
    assert limit([waiting] * 3) == "latency"
    assert limit([replace(waiting, server_wanted=None)]) == "latency"


def test_the_fitting_ceiling_is_the_nearest_then_the_newest() -> None:
    near = replace(CEILING, connections=16, measured_unix_ns=5)
    newer = replace(near, measured_unix_ns=9)

    assert fitting([CEILING, near, newer], MACHINE, "tpcc", "statement", 20) == newer
    assert fitting([CEILING, near], MACHINE, "tpcc", "statement", 8) == CEILING


@pytest.mark.parametrize(
    "other",
    [
        {"limit": "latency"},
        {"face": "pipeline"},
        {"workload": "tpcb"},
        {"machine": replace(MACHINE, cpus=2)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_other_ceilings_do_not_fit(other: dict[str, Any]) -> None:
    assert fitting([replace(CEILING, **other)], MACHINE, "tpcc", "statement", 8) is None


def test_ceilings_scale_with_threads_and_tell_of_a_second_of_cpu() -> None:
    assert ceiling_per_s(CEILING, 3) == pytest.approx(1500)
    assert CEILING.per_core_s == pytest.approx(2000)
