r"""What does recording a server's disk cost the load, by a mount and by a preloaded library?

    python benches/recording.py --rounds 5 --load 10
    python benches/recording.py --rounds 1 --load 2          # does it work at all?

Method. In each round, in rotated order, the load that drills record is driven three times on a copy
of the same data: on the plain folder, on a folder that is mounted and recorded, and with the
recording library preloaded into the server. All else is alike: server, settings, checkpoints that
are asked for, ledger. Printed are acknowledged commits by the second, the ratio to the plain folder
within each round, and the bytes of the record. The interval is Student's t of the log ratios.

Limits. The record lies on the disk of the data. The ratio is of this load, which is small and
commits all the time: what reads more, or commits less, pays less.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Literal
from unittest.mock import patch

from measure import Spread, rotated, table
from scipy.special import stdtrit

import pgdyno
from pgdyno.api.experiments.plan import rehearsed_again
from pgdyno.drills import load as drilled
from pgdyno.drills.load import Bench, recorded_load
from pgdyno.target.own_target import OwnTarget
from pgdyno.trial.description import describe_stages
from pgdyno.trial.fixture import make_fixture

RECORDERS: dict[str, Literal["mount", "library"]] = {"mount": "mount", "library": "library"}
ARMS = ("plain", *RECORDERS)
LOADS: dict[str, dict[str, object]] = {
    "tpcb": {"kind": "tpcb", "scale": 10},
    "tpcc": {"kind": "tpcc", "warehouses": 2, "delivery": "inline"},
}


@dataclass
class Unrecorded:
    """Stands where a record would: nothing is written down."""

    environment: Mapping[str, str] = field(default_factory=dict)
    recorded: object = field(default_factory=lambda: SimpleNamespace(full=False, bytes=0, met=None))

    def require_seen(self) -> None:
        """There is nothing to be seen."""


@contextmanager
def plain(*_: object) -> Iterator[Unrecorded]:
    """The data folder as it is."""
    yield Unrecorded()


def plan(load: str) -> pgdyno.Plan:
    """One stage, as it comes."""
    return pgdyno.load_plan({
        "name": "recording",
        "question": "What does recording cost?",
        "workload": LOADS[load] | {"connections": 4, "terminals": 4},
        "protocol": {"rounds": 1, "warmup_s": 1, "window_s": 5},
        "stage": [{"name": "stock", "why": "Recorded."}],
    })  # fmt: skip


def measured(arm: str, made: pgdyno.Plan, bench: Bench, load_s: float) -> tuple[float, int]:
    """Commits a second, and bytes of the record."""
    design = pgdyno.DrillDesign(load_s=load_s, record_max_gib=8, recorder=RECORDERS.get(arm))
    stage = made.record.stages[0]
    if arm == "plain":
        with (
            patch.object(drilled, "recorded", plain),
            recorded_load(made.record, stage, design, bench) as found,
        ):
            return found.told.acknowledged / found.told.seconds, 0
    with recorded_load(made.record, stage, design, bench) as found:
        return found.told.acknowledged / found.told.seconds, found.told.record_bytes


def ratio(values: list[float]) -> str:
    """Geometric mean of ratios, with a 95% interval where there are several."""
    logs = [math.log(one) for one in values]
    middle = statistics.fmean(logs)
    if len(logs) < 2:
        return f"{math.exp(middle):.3f}"
    half = statistics.stdev(logs) / math.sqrt(len(logs)) * float(stdtrit(len(logs) - 1, 0.975))
    return (
        f"{math.exp(middle):.3f} ({math.exp(middle - half):.3f} to {math.exp(middle + half):.3f})"
    )


def main() -> None:
    """Measure all arms in turn, and print what they reach."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--load", type=float, default=10.0, help="seconds of each load")
    parser.add_argument("--workload", choices=list(LOADS), default="tpcb")
    asked = parser.parse_args()
    made = plan(asked.workload)
    per_s: dict[str, list[float]] = {arm: [] for arm in ARMS}
    record_bytes: dict[str, list[int]] = {arm: [] for arm in ARMS}
    with rehearsed_again(made.record, made.record.stages, lambda _: None) as target:
        assert isinstance(target, OwnTarget)
        stage = made.record.stages[0]
        fixture = make_fixture(made.record, target, lambda _: None, stage)
        bench = Bench(target, fixture, describe_stages(made.record)[stage.name], lambda _: None)
        for number in range(asked.rounds):
            for arm in rotated(ARMS, number):
                commits, size = measured(arm, made, bench, asked.load)
                per_s[arm].append(commits)
                record_bytes[arm].append(size)
                print(f"round {number + 1}, {arm}: {commits:,.0f} commits/s", flush=True)
    rows = []
    for arm in ARMS:
        ratios = [mine / base for mine, base in zip(per_s[arm], per_s["plain"], strict=True)]
        record = Spread.of(record_bytes[arm]).times(1e-6)
        rows.append((arm, Spread.of(per_s[arm]).text(0), ratio(ratios), record.text(0)))
    print(f"\n{table((asked.workload, 'commits/s', 'to plain', 'record, MB'), rows)}")


if __name__ == "__main__":
    main()
