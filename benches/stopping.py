r"""What stopping when it is decided says, against all rounds of the same runs.

    python benches/stopping.py plans/demo.toml --runs 10 --out stopping/
    python benches/stopping.py plans/demo.toml --runs 0 --out stopping/     # only the table again

Method. The plan is run with all its rounds (`protocol.stop = "rounds"`), as often as asked, one run
after the other. Each run is then read twice: with all rounds, judged as a plan of that many rounds
is; and as far as the looks of `protocol.stop = "decided"` would have gone. A look sees nothing but
the rounds before it, and a stage is measured the same whether others are still open, so the second
reading is what a run that stops would have said, but for the order of stages in rounds of which one
is measured no more. Times are of the trials' own clocks: from the begin of the run to the end of
the first trial, of the first trial that has a ratio with one before, and of the round whose look
decided all, or was the last.

Limits. What a run that stops would do after its last round (writing the report) is not in the time.
Both readings have their first rounds in common, so that they agree more than two runs would, and
neither is the truth. What a report withholds for want of whole checkpoint cycles is told here all
the same. A run with a failed trial ends the session: whoever leaves it out has to say so. Runs of
one session share their machine's mood: ten that agree are no proof for another machine.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from measure import Command, Failure, Spread, exit_code, table, write_json

from pgdyno.analysis.stopping import at_looks, so_far
from pgdyno.model.looks import LOOKS
from pgdyno.model.manifest import HostManifest
from pgdyno.model.plan import Plan
from pgdyno.model.run import TrialRecord, TrialState
from pgdyno.stats.verdict import Comparison
from pgdyno.store import RunFile

PATIENCE_S = 7200


@dataclass(frozen=True, slots=True)
class Said:
    """A stage of a run, by one of the two ways."""

    stage: str
    verdict: str
    ratio: float
    low: float
    high: float
    rounds: int

    @classmethod
    def of(cls, one: Comparison, rounds: int) -> Said:
        """What a comparison says."""
        return cls(one.stage, one.verdict.value, one.ratio, one.low, one.high, rounds)

    @property
    def text(self) -> str:
        """Verdict, ratio and interval."""
        return f"{self.verdict}, {self.ratio:.3f} ({self.low:.3f} to {self.high:.3f})"


@dataclass(frozen=True, slots=True)
class Replayed:
    """A run by both ways."""

    run: str
    all_rounds: tuple[Said, ...]
    decided: tuple[Said, ...]
    first_trial_s: float
    first_ratio_s: float
    decided_s: float
    all_s: float


def replay(path: Path) -> Replayed:
    """Judge a run that measured all its rounds by both ways.

    Raises:
        Failure: Its plan has no looks.
    """
    with RunFile.read(path) as run:
        info, trials, replaced = run.info(), run.trials(), run.replaced()
    plan = info.plan
    if plan is None or plan.protocol.rounds not in LOOKS:
        raise Failure(
            f"{path} is no run of a plan whose rounds have looks", f"They are {[*LOOKS]}."
        )
    stopping = replace(plan, protocol=replace(plan.protocol, stop="decided"))
    looked = _until_decided(stopping, info.host, trials, replaced)
    rounds = max(one.rounds for one in looked)
    compared = so_far(plan, info.host, trials, replaced)
    ends = {
        (one.stage, one.round): (one.ended_ns - info.started_ns) / 1e9
        for one in trials if one.ended_ns is not None
    }  # fmt: skip
    return Replayed(
        info.ident,
        all_rounds=tuple(Said.of(one, plan.protocol.rounds) for one in compared),
        decided=looked,
        first_trial_s=min(ends.values()),
        first_ratio_s=min(max(ends[one.stage, 1], ends[one.base, 1]) for one in compared),
        decided_s=max(after_s for (_, number), after_s in ends.items() if number <= rounds),
        all_s=max(ends.values()),
    )


def _until_decided(
    plan: Plan,
    host: HostManifest,
    trials: Sequence[TrialRecord],
    replaced: Sequence[TrialRecord],
) -> tuple[Said, ...]:
    """What the looks say, each seeing the rounds before it only."""
    for rounds in plan.protocol.looks:
        seen = [
            one if one.round <= rounds
            else TrialRecord(one.number, one.round, one.stage, one.ident, TrialState.PLANNED)
            for one in trials
        ]  # fmt: skip
        compared = at_looks(plan, host, seen, replaced)
        if all(one.stopped for one in compared):
            break
    return tuple(Said.of(one, one.look or rounds) for one in compared)


def numbered(folder: Path) -> dict[int, Path]:
    """The runs of a session by their numbers, in order; other files of the folder are none."""
    found = {int(one.stem): one for one in folder.glob("*.sqlite") if one.stem.isdecimal()}
    return dict(sorted(found.items()))


def markdown(runs: Sequence[Replayed]) -> str:
    """A row for each stage of each run, and what they have in common."""
    rows, agreed, opposed, used = [], 0, 0, []
    for one in runs:
        for fixed, looked in zip(one.all_rounds, one.decided, strict=True):
            agreed += fixed.verdict == looked.verdict
            opposed += {fixed.verdict, looked.verdict} == {"better", "worse"}
            used.append(looked.rounds)
            rows.append([
                one.run, fixed.stage, fixed.text, looked.text, f"{looked.rounds}",
                f"{one.first_trial_s:.0f}", f"{one.first_ratio_s:.0f}", f"{one.decided_s:.0f}",
                f"{one.all_s:.0f}",
            ])  # fmt: skip
    head = ("run", "stage", "all rounds", "decided", "rounds", "first trial, s", "first ratio, s",
            "decided, s", "all, s")  # fmt: skip
    times = Spread.of([one.decided_s for one in runs])
    return (
        f"{table(head, rows)}\n\n{agreed} of {len(rows)} verdicts agree, {opposed} contradict each"
        f" other; rounds used: {Spread.of(used).text(0)}; seconds until the look that decided, or"
        f" the last: {times.text(0)}."
    )


def compare(wanted: argparse.Namespace) -> None:
    """Run the plan as often as asked; each run is a file of its own."""
    wanted.out.mkdir(parents=True, exist_ok=True)
    for _ in range(wanted.runs):
        if left := sorted(wanted.out.glob("*.unfinished")):
            raise Failure(
                f"{left[0]} is a run that was broken off, or in which a trial failed",
                "Say so where its session is told, and remove it.",
            )
        number = max(numbered(wanted.out), default=0) + 1
        log, path = wanted.out / f"{number}.log", wanted.out / f"{number}.unfinished"
        words = ["run", str(wanted.plan), "--set", "protocol.stop=rounds", "--out", str(path)]
        with Command([sys.executable, "-m", "pgdyno", *words], log, os.environ) as command:
            if command.wait(PATIENCE_S) != 0:
                raise command.failure("the run failed")
        path = path.rename(path.with_suffix(".sqlite"))
        print(f"run {number}: {'; '.join(one.text for one in replay(path).decided)}", flush=True)
    runs = [replay(path) for path in numbered(wanted.out).values()]
    if not runs:
        raise Failure(f"{wanted.out} holds no runs", "Make some: --runs 1.")
    found: dict[str, Any] = {"plan": str(wanted.plan), "runs": [asdict(one) for one in runs]}
    write_json(wanted.out / "stopping.json", found)
    print(f"\n{markdown(runs)}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line and compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("plan", type=Path)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--out", type=Path, required=True, help="folder of the run files")
    wanted = parser.parse_args(arguments)
    return exit_code(lambda: compare(wanted))


if __name__ == "__main__":
    raise SystemExit(main())
