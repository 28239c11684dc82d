r"""Does diagnosis name what was planted? Limits planted in doses, and healthy loads, scored.

    python -m benches.diagnosis --seeds 1,3 --out odd.json      # the half held out: an hour
    python -m benches.diagnosis --seeds 0,2 --out even.json     # the half to set thresholds on
    python -m benches.diagnosis --seeds 1 --bindir /usr/lib/postgresql/15/bin --out 15.json
    python -m benches.diagnosis --seeds 0 --rounds 2 --only held_rows,paced   # does it work at all?
    python -m benches.diagnosis --seeds 0 --keep runs   # again: the same run files by today's rules

Method. Each plant of `tests/cluster/plants.py` is a pair of stages of one plan: with it, and
without; a seed draws its dose. A dose counts as ground truth only where taking the plant away
brings at least 15%, by paired rounds, with the lower end of the 95% interval above 5%; windows of
others are not scored. Of those that are, the class that diagnosis names first is held against the
plant's: named, one of two that tie, another, not known. Of two planted at once either may be named
first, and both must be findings. A healthy load that gets a limit of 10% or more is a false alarm;
the CPUs at the limit of a closed loop are none. Thresholds may be set on even seeds and on
PostgreSQL 18 alone, and the score that counts is that of odd ones, and of 15.

Limits. Planted by settings, statements, sessions of others, neighbours on the host and control
groups of version 1 (as root). Pages that many want and connections are not planted; fewer buffers
for subtransactions were, and taking that away brought nothing. All is on one machine: the client
uses the server's CPUs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

import numpy as np
from scipy import stats
from tests.cluster.plants import HEALTHY, PLANTS, SCALE, Company, Side, healthy

import pgdyno
from pgdyno.analysis.diagnosis_facts import Gain, StageDiagnosis, WindowDiagnosis
from pgdyno.stats.interval import estimate
from pgdyno.target.home import home

LEAST_RATIO, LEAST_LOW = 1.15, 1.05
ALARM = 1.10


def plan(
    folder: Path, name: str, sides: Mapping[str, Side], window_s: int, asked: argparse.Namespace
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
            "protocol": {"rounds": asked.rounds, "warmup_s": 2, "window_s": window_s,
                         "lowest_rung": "D4"},
            "stage": stages,
        },
        bindir=asked.bindir,
    )  # fmt: skip


@dataclass(frozen=True)
class Scored:
    """A dose, or a healthy load: what its windows say, and what taking the plant away brought."""

    name: str
    limits: tuple[str, ...]  # planted; none: healthy
    seed: int  # of its dose; odd ones are held out
    ratio: float | None = None
    low: float | None = None
    outcomes: tuple[str, ...] = ()  # of windows: the classes named, "unknown", "paced", ...
    gains: tuple[float, ...] = ()  # the bound of what each named first
    holds: tuple[bool, ...] = ()  # of bounds: whether the interval, or less, holds what it brought
    found: tuple[bool, ...] = ()  # of windows: whether all that was planted is a finding

    @property
    def counts(self) -> bool:
        """Whether it is ground truth."""
        if not self.limits:
            return True
        return (self.ratio or 0.0) >= LEAST_RATIO and (self.low or 0.0) > LEAST_LOW


def measured(
    folder: Path, name: str, sides: Mapping[str, Side], window_s: int, asked: argparse.Namespace
) -> pgdyno.Run:
    """The run of these stages; one that was kept is asked again."""
    out = folder / f"{name}.sqlite"
    if out.exists():
        return pgdyno.Run(out)
    os.chdir(folder)  # where the scripts lie
    planned = plan(folder, name, sides, window_s, asked)
    with Company(sides, home() / "work" / "data") as listen:
        return pgdyno.run(planned, out=out, on_event=listen)


def planted(folder: Path, name: str, seed: int, asked: argparse.Namespace) -> Scored:
    """One dose of a plant, beside its control."""
    plant = PLANTS[name]
    with_it, without = plant.dose(name, seed)
    sides = {"planted": with_it, "control": without}
    run = measured(folder, f"{name}-{seed}", sides, plant.window_s or asked.window, asked)
    (found,) = [one for one in pgdyno.diagnose(run.path).stages if one.stage == "planted"]
    ratio, low = removed(run)
    # What taking two away brings is held against neither's bound.
    bounded = bounds(found, plant.limits[0]) if len(plant.limits) == 1 else []
    return Scored(
        name,
        plant.limits,
        seed,
        ratio,
        low,
        tuple(map(named, found.windows)),
        tuple(map(bound, found.windows)),
        tuple(ratio is not None and ratio <= gain.high for gain in bounded),
        tuple(
            all(one.answer(limit).verdict == "finding" for limit in plant.limits)
            for one in found.windows
        ),
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


def unplanted(folder: Path, name: str, seed: int, asked: argparse.Namespace) -> Scored:
    """A load that has no limit."""
    sides = {"healthy": healthy(name, seed)}
    run = measured(folder, f"{name}-{seed}", sides, asked.window, asked)
    (found,) = pgdyno.diagnose(run.path).stages
    return Scored(name, (), seed, outcomes=tuple(map(named, found.windows)),
                  gains=tuple(map(bound, found.windows)))  # fmt: skip


def named(window: WindowDiagnosis) -> str:
    """What a window names, in one word or two."""
    return " or ".join(window.limits) if window.limits else window.outcome


def bound(window: WindowDiagnosis) -> float:
    """What the first one named could bring at most; 1: nothing is named."""
    gain = window.answer(window.limits[0]).gain if window.limits else None
    return gain.bound if gain else 1.0


def bounds(found: StageDiagnosis, limit: str) -> list[Gain]:
    """Of a class, as windows tell them; estimates are none."""
    told = [one.answer(limit).gain for one in found.windows]
    return [one for one in told if one is not None and not one.may_save]


def wilson(hits: int, of: int) -> tuple[float, float]:
    """A share's 95% interval."""
    if of == 0:
        return 0.0, 1.0
    found = stats.binomtest(hits, of).proportion_ci(method="wilson")
    return float(found.low), float(found.high)


def print_score(title: str, scored: Sequence[Scored]) -> None:
    """How often plants were named, of those doses that count."""
    counting = [one for one in scored if one.limits and one.counts]
    windows = [
        ({*one.limits}, {*outcome.split(" or ")}) for one in counting for outcome in one.outcomes
    ]
    first = sum(told <= there for there, told in windows)
    among = sum(bool(told & there) for there, told in windows)
    unknown = sum(told == {"unknown"} for _, told in windows)
    low, high = wilson(first, len(windows))
    doses = sum(bool(one.limits) for one in scored)
    print(f"{title}: {len(counting)} of {doses} doses count;"
          f" of {len(windows)} windows {first} name the plant alone"
          f" ({low:.0%} to {high:.0%}), {among} it or another one, of {unknown} nothing is known"
          )  # fmt: skip
    both = [found for one in counting if len(one.limits) > 1 for found in one.found]
    if both:
        print(f"{title}: of two planted at once both are findings in {sum(both)} of {len(both)}")
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
        (outcome, gain) for one in scored if not one.limits
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
    words.add_argument("--seeds", default="0,1,2,3", help="of doses, with commas; odd: held out")
    words.add_argument("--only", help="names of plants and healthy loads, with commas")
    words.add_argument("--bindir", type=Path, help="an installed PostgreSQL instead of the wheel's")
    words.add_argument("--keep", type=Path, help="a folder for the run files, which it may hold")
    words.add_argument("--out", type=Path, help="a file for the scores, as JSON")
    asked = words.parse_args()
    known = [*PLANTS, *HEALTHY]
    chosen = asked.only.split(",") if asked.only else known
    if strangers := set(chosen) - set(known):
        sys.exit(f"not known: {', '.join(sorted(strangers))}; known: {', '.join(known)}")
    out = asked.out.absolute() if asked.out else None
    major = pgdyno.load_plan("faces", bindir=asked.bindir).server.major
    scored: list[Scored] = []
    with tempfile.TemporaryDirectory(prefix="pgdyno-bench-") as scratch:
        folder = (asked.keep or Path(scratch)).absolute()
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)  # servers run as another user
        for name, seed in product(chosen, map(int, asked.seeds.split(","))):
            if name in PLANTS and major < PLANTS[name].since:
                continue
            one = (planted if name in PLANTS else unplanted)(folder, name, seed, asked)
            scored.append(one)
            print(f"{name} {seed}: {', '.join(one.outcomes)}"
                  + (f"; removal brings ×{one.ratio:.2f} (from {one.low:.2f})"
                     if one.ratio and one.low else ""), flush=True)  # fmt: skip
            if out is not None:
                out.write_text(json.dumps([asdict(each) for each in scored], indent=1))
    print_score("all", scored)
    print_score("held out", [one for one in scored if one.seed % 2])
    print_confusion(scored)
    print_alarms(scored)


if __name__ == "__main__":
    main()
