r"""Does diagnosis name what was planted? Limits planted in doses, and healthy loads, scored.

    python benches/diagnosis.py --rounds 3 --out diagnosis.json    # about an hour and a half
    python benches/diagnosis.py --rounds 3 --out 15.json --bindir /usr/lib/postgresql/15/bin
    python benches/diagnosis.py --rounds 2 --only row_locks,paced            # does it work at all?

Method. Each plant is a pair of stages of one plan: with it, and without. A dose counts as ground
truth only where taking the plant away brings at least 15%, by paired rounds, with the lower end
of the 95% interval above 5%; windows of others are not scored. Of those that are, the class that
diagnosis names first is held against the plant's: named, one of two that tie, another, not known.
A healthy load that gets a limit of 10% or more is a false alarm; the CPUs at the limit of a closed
loop are none. Doses are even or odd: thresholds may be set on the even ones and on PostgreSQL 18
alone, and the score that counts is that of the odd ones, and of 15.

Limits. Planted by settings, statements and neighbours on the host: what takes a library, a control
group or a device of its own is not here. All is on one machine: the client uses the server's CPUs.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

import pgdyno
from pgdyno.analysis.diagnosis_facts import WindowDiagnosis
from pgdyno.model.progress import Event, PhaseBegun, TrialEnded
from pgdyno.stats.interval import estimate

LEAST_RATIO, LEAST_LOW = 1.15, 1.05
ALARM = 1.10
READ = "\\set id random(1, 100000)\nSELECT abalance FROM pgbench_accounts WHERE aid = :id;\n"
UPDATE = (
    "\\set id random(1, 100000)\n"
    "UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :id;\n"
)
OFF = {"synchronous_commit": "off"}


@dataclass(frozen=True)
class Side:
    """A stage: what its sessions send, how many there are, what the server is set to."""

    script: str
    connections: int
    settings: Mapping[str, str] = field(default_factory=dict)
    client: Mapping[str, Any] = field(default_factory=dict)
    spinners: int = 0  # processes of others that want CPUs while it is measured


@dataclass(frozen=True)
class Plant:
    """A limit in doses; the control is the same without it."""

    limit: str  # the class that is to be named
    doses: tuple[tuple[Side, Side], ...]  # with it, without it


def _held(ms: int) -> str:
    """A row that all want, held while the client sleeps."""
    return (
        "BEGIN;\nUPDATE pgbench_branches SET bbalance = bbalance + 1 WHERE bid = 1;\n"
        f"\\sleep {ms} ms\nCOMMIT;\n"
    )


def _spread(ms: int) -> str:
    """The same, of rows that nobody else wants."""
    return (
        "\\set id random(1, 100000)\nBEGIN;\n"
        "UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :id;\n"
        f"\\sleep {ms} ms\nCOMMIT;\n"
    )


def _computing(steps: int) -> str:
    """A client that computes before it asks."""
    lines = "\n".join(f"\\set id permute(:id % 100000, 100003, {n})" for n in range(steps))
    read = "SELECT abalance FROM pgbench_accounts WHERE aid = :id % 100000 + 1;"
    return "\n".join(("\\set id random(1, 100000)", lines, read, ""))


def _summing(rows: int) -> str:
    """A statement that takes CPU time alone."""
    return "SELECT sum(n) FROM generate_series(1, ROWS) AS n;\n".replace("ROWS", str(rows))


_FEW_BUFFERS = {"shared_buffers": "16MB", "debug_io_direct": "data"}
_MANY_BUFFERS = {"shared_buffers": "2GB", "debug_io_direct": "data"}
PLANTS: dict[str, Plant] = {
    "flush": Plant("flush", tuple(
        (Side(UPDATE, n), Side(UPDATE, n, OFF)) for n in (2, 1, 4, 3)
    )),
    "row_locks": Plant("row_locks", tuple(
        (Side(_held(ms), n, OFF), Side(_spread(ms), n, OFF))
        for ms, n in ((20, 8), (50, 6), (10, 12), (100, 8))
    )),
    "client": Plant("client", tuple(
        (Side(_computing(steps), 4, client={"threads": 1}), Side(READ, 4, client={"threads": 1}))
        for steps in (2000, 4000, 1000, 3000)
    )),
    "cpu": Plant("cpu", tuple(
        (Side(_summing(rows), n), Side(_summing(rows // 4), n))
        for rows, n in ((4000, 8), (8000, 6), (20000, 12), (12000, 10))
    )),
    "reads": Plant("reads", tuple(
        (Side(READ.replace("100000", str(100_000 * scale)), n, _FEW_BUFFERS),
         Side(READ.replace("100000", str(100_000 * scale)), n, _MANY_BUFFERS))
        for scale, n in ((50, 4), (50, 2), (40, 6), (30, 4))
    )),
    "neighbours": Plant("neighbours", tuple(
        (Side(READ, n, spinners=spinners), Side(READ, n))
        for n, spinners in ((2, 6), (4, 8), (2, 10), (3, 8))
    )),
}  # fmt: skip
HEALTHY: dict[str, tuple[Side, ...]] = {
    "paced": tuple(
        Side(script, 4, OFF, {"arrivals": {"rate": rate}})
        for script in (READ, UPDATE) for rate in (100, 200, 300, 400)
    ),
    "slept": tuple(
        Side(f"{script}\\sleep {ms} ms\n", 4, OFF)
        for script in (READ, UPDATE) for ms in (10, 20, 50, 100)
    ),
}  # fmt: skip
"""Loads that have no limit: their pace is that of their schedule, or of clients that sleep."""
SCALE = 50


def plan(
    folder: Path, name: str, sides: Mapping[str, Side], asked: argparse.Namespace
) -> pgdyno.Plan:
    """A plan whose stages are these."""
    stages = []
    for stage, side in sides.items():
        (folder / f"{stage}.sql").write_text(side.script)
        stages.append({
            "name": stage, "why": "Planted, or its control.", "afresh": True,
            "settings": {"checkpoint_timeout": "1h", "max_wal_size": "16GB", **side.settings},
            "client": {"file": [f"{stage}.sql"], "connections": side.connections, **side.client},
        })  # fmt: skip
    return pgdyno.load_plan(
        {
            "name": name, "question": "What is the limit?",
            "workload": {"kind": "script", "data": "tpcb", "scale": SCALE, "connections": 1,
                         "file": [f"{next(iter(sides))}.sql"]},
            "protocol": {"rounds": asked.rounds, "warmup_s": 2, "window_s": asked.window,
                         "lowest_rung": "D2"},
            "stage": stages,
        },
        bindir=asked.bindir,
    )  # fmt: skip


def _spin() -> None:
    while True:
        pass


@contextmanager
def crowd(sides: Mapping[str, Side]) -> Iterator[Callable[[Event], None]]:
    """A listener that has others want CPUs while stages with spinners are measured."""
    running: list[multiprocessing.Process] = []

    def leave() -> None:
        while running:
            one = running.pop()
            one.kill()
            one.join()

    def listen(event: Event) -> None:
        if isinstance(event, PhaseBegun) and event.trial is not None and event.name == "drive":
            for _ in range(sides[event.trial.stage].spinners):
                running.append(multiprocessing.Process(target=_spin, daemon=True))
                running[-1].start()
        elif isinstance(event, TrialEnded):
            leave()

    try:
        yield listen
    finally:
        leave()


@dataclass(frozen=True)
class Scored:
    """A dose, or a healthy load: what its windows say, and what taking the plant away brought."""

    name: str
    limit: str  # planted; empty: healthy
    dose: int  # from 0; odd ones are held out
    ratio: float | None = None
    low: float | None = None
    outcomes: tuple[str, ...] = ()  # of windows: the classes named, "unknown", "paced", ...
    gains: tuple[float, ...] = ()  # the bound of what each named first
    holds: tuple[bool, ...] = ()  # whether the bound's interval, or less, holds what it brought

    @property
    def counts(self) -> bool:
        """Whether it is ground truth."""
        if not self.limit:
            return True
        return (self.ratio or 0.0) >= LEAST_RATIO and (self.low or 0.0) > LEAST_LOW


def measured(
    folder: Path, name: str, sides: Mapping[str, Side], asked: argparse.Namespace
) -> pgdyno.Run:
    """The run of these stages."""
    out = folder / f"{name}.sqlite"
    os.chdir(folder)  # where the scripts lie
    with crowd(sides) as listen:
        return pgdyno.run(plan(folder, name, sides, asked), out=out, on_event=listen)


def planted(folder: Path, name: str, dose: int, asked: argparse.Namespace) -> Scored:
    """One dose of a plant, beside its control."""
    plant = PLANTS[name]
    with_it, without = plant.doses[dose]
    run = measured(folder, f"{name}-{dose}", {"planted": with_it, "control": without}, asked)
    (found,) = [one for one in pgdyno.diagnose(run.path).stages if one.stage == "planted"]
    ratio, low = removed(run)
    return Scored(
        name,
        plant.limit,
        dose,
        ratio,
        low,
        tuple(map(named, found.windows)),
        tuple(map(bound, found.windows)),
        tuple(ratio is not None and ratio <= top(one, plant.limit) for one in found.windows),
    )


def removed(run: pgdyno.Run) -> tuple[float | None, float | None]:
    """What taking the plant away brought: a ratio, and the lower end of its interval."""
    by_round: dict[int, dict[str, float]] = {}
    for row in run.trials().rows():
        by_round.setdefault(row["round"], {})[row["stage"]] = row["tps"]
    logs = [
        float(np.log(one["control"] / one["planted"]))
        for one in by_round.values()
        if {"control", "planted"} <= one.keys() and min(one.values()) > 0
    ]
    if len(logs) < 2:
        return None, None
    found = estimate(np.array([logs]), 0.95)
    return float(np.exp(found.centre[0])), float(np.exp(found.low[0]))


def healthy(folder: Path, name: str, dose: int, asked: argparse.Namespace) -> Scored:
    """A load that has no limit."""
    run = measured(folder, f"{name}-{dose}", {"healthy": HEALTHY[name][dose]}, asked)
    (found,) = pgdyno.diagnose(run.path).stages
    return Scored(name, "", dose, outcomes=tuple(map(named, found.windows)),
                  gains=tuple(map(bound, found.windows)))  # fmt: skip


def named(window: WindowDiagnosis) -> str:
    """What a window names, in one word or two."""
    return " or ".join(window.limits) if window.limits else window.outcome


def bound(window: WindowDiagnosis) -> float:
    """What the first one named could bring at most; 1: nothing is named."""
    gain = window.answer(window.limits[0]).gain if window.limits else None
    return gain.bound if gain else 1.0


def top(window: WindowDiagnosis, limit: str) -> float:
    """The upper end of the bound of a class, as a window tells it."""
    gain = window.answer(limit).gain
    return gain.high if gain else 1.0


def wilson(hits: int, of: int) -> tuple[float, float]:
    """A share's 95% interval."""
    if of == 0:
        return 0.0, 1.0
    found = stats.binomtest(hits, of).proportion_ci(method="wilson")
    return float(found.low), float(found.high)


def print_score(title: str, scored: Sequence[Scored]) -> None:
    """How often plants were named, of those doses that count."""
    counting = [one for one in scored if one.limit and one.counts]
    windows = [(one.limit, outcome) for one in counting for outcome in one.outcomes]
    first = sum(outcome == limit for limit, outcome in windows)
    among = sum(limit in outcome.split(" or ") for limit, outcome in windows)
    unknown = sum(outcome == "unknown" for _, outcome in windows)
    low, high = wilson(first, len(windows))
    doses = sum(bool(one.limit) for one in scored)
    print(f"{title}: {len(counting)} of {doses} doses count;"
          f" of {len(windows)} windows {first} name the plant alone"
          f" ({low:.0%} to {high:.0%}), {among} it or another one, of {unknown} nothing is known"
          )  # fmt: skip
    holds = [hold for one in counting for hold in one.holds]
    if holds:
        low, high = wilson(sum(holds), len(holds))
        print(f"{title}: the bound holds what removal brought in {sum(holds)} of {len(holds)}"
              f" ({low:.0%} to {high:.0%})")  # fmt: skip


def print_confusion(scored: Sequence[Scored]) -> None:
    """What windows named, by what was planted."""
    for name in dict.fromkeys(one.name for one in scored):
        mine = [one for one in scored if one.name == name and one.counts]
        counted = Counter(outcome for one in mine for outcome in one.outcomes)
        shown = ", ".join(f"{outcome} {count}" for outcome, count in counted.most_common())
        print(f"  {name}: {shown or 'no dose counts'}")


def print_alarms(scored: Sequence[Scored]) -> None:
    """How often a healthy load was said to have a limit."""
    windows = [
        (outcome, gain) for one in scored if not one.limit
        for outcome, gain in zip(one.outcomes, one.gains, strict=True)
    ]  # fmt: skip
    alarms = sum(gain >= ALARM and outcome != "cpu" for outcome, gain in windows)
    low, high = wilson(alarms, len(windows))
    print(f"healthy: {alarms} alarms in {len(windows)} windows ({low:.0%} to {high:.0%})")


def main() -> None:
    """Measure, and print the score."""
    words = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    words.add_argument("--rounds", type=int, default=3)
    words.add_argument("--window", type=int, default=12, help="seconds, at least 11")
    words.add_argument("--only", help="names of plants and healthy loads, with commas")
    words.add_argument("--bindir", type=Path, help="an installed PostgreSQL instead of the wheel's")
    words.add_argument("--out", type=Path, help="a file for the scores, as JSON")
    asked = words.parse_args()
    chosen = asked.only.split(",") if asked.only else [*PLANTS, *HEALTHY]
    if strangers := set(chosen) - {*PLANTS, *HEALTHY}:
        sys.exit(
            f"not known: {', '.join(sorted(strangers))}; known: {', '.join([*PLANTS, *HEALTHY])}"
        )
    scored: list[Scored] = []
    with tempfile.TemporaryDirectory(prefix="pgdyno-bench-") as scratch:
        folder = Path(scratch)
        folder.chmod(0o755)  # servers run as another user
        for name in chosen:
            doses = PLANTS[name].doses if name in PLANTS else HEALTHY[name]
            for dose in range(len(doses)):
                if name == "reads" and asked.bindir is not None:
                    continue  # direct I/O came with 16
                one = (planted if name in PLANTS else healthy)(folder, name, dose, asked)
                scored.append(one)
                print(f"{name} {dose}: {', '.join(one.outcomes)}"
                      + (f"; removal brings ×{one.ratio:.2f} (from {one.low:.2f})"
                         if one.ratio and one.low else ""), flush=True)  # fmt: skip
                if asked.out is not None:
                    asked.out.write_text(json.dumps([asdict(each) for each in scored], indent=1))
    print_score("all", scored)
    print_score("held out", [one for one in scored if one.dose % 2])
    print_confusion(scored)
    print_alarms(scored)


if __name__ == "__main__":
    main()
