r"""Do anchors and short rounds tell what half an hour of whole checkpoint cycles does?

    python benches/cycles.py --profile pgtune --profile tuned --cycle-s 120 --warehouses 20 \
        --runs .
    python benches/cycles.py --timeout 120 --timeout 240 --out cycles.json
    python benches/cycles.py --timeout 101 --truth-s 101 --rounds 3 --warehouses 1 --connections 1 \
        --shared-buffers 128MB --window 10          # does it work at all?

Method. One configuration for each `--timeout` (checkpoint_timeout in seconds), all else alike;
max_wal_size is so large that time ends each cycle. Or one for each `--profile`, without huge pages;
with `--cycle-s` they have checkpoint_timeout and max_wal_size alike, so that what is compared are
their other settings.
Two plans are run on the same fixture, one after the other:

* truth: one trial of each configuration whose window holds whole cycles for at least `--truth-s`,
  after two others. Its error is that of the mean of its cycles, from their spread;
* estimate: `--rounds` interleaved rounds, the first `--anchors` of them 1.3 cycles long. A
  configuration with cycles up to about 100 s has whole ones in each window instead.

Printed are, for each configuration, the throughput of whole cycles by the truth, by anchors joined
to short rounds, and by short windows alone, and for each further configuration the same of its
ratio to the first. The rows are for docs/numbers.md.

Limits. The truth is one run of one day: between two such runs lie the noise of this machine, and
the drift of a database that grows. Vacuum falls into both as it falls.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from pathlib import Path

import numpy as np

from pgdyno.analysis.facts import Facts
from pgdyno.analysis.run import analyse
from pgdyno.model.run import TrialRecord
from pgdyno.shell import run
from pgdyno.store import RunFile

NS = 1e9
SHORT_S = (15, 75)  # after a CHECKPOINT, as plans have it by default
_PATIENCE_S = 86_400.0
PLAN = """
name = "cycles-{what}"
question = "What is the throughput of whole checkpoint cycles?"

[workload]
kind = "tpcc"
warehouses = {warehouses}
connections = {connections}
face = "pipeline"
home = "random"

[protocol]
rounds = {rounds}
warmup_s = 15
window_s = {window_s}
{protocol}
"""
PROFILE = """
[[stage]]
name = "{profile}"
why = "Profile {profile}, without huge pages."
afresh = true
profile = "{profile}"
settings = {{ huge_pages = "off"{alike} }}
"""
ALIKE = ', max_wal_size = "{wal}", checkpoint_timeout = "{timeout}s"'
STAGE = """
[[stage]]
name = "timeout-{timeout}"
why = "Checkpoints every {timeout} s."
[stage.settings]
shared_buffers = "{buffers}"
max_wal_size = "{wal}"
checkpoint_timeout = "{timeout}s"
"""


@dataclass(frozen=True)
class Row:
    """One configuration, or its ratio to the first: truth, and how far off the others are."""

    what: str
    truth: float
    truth_error: float  # standard error as a share
    cycles: int
    estimate: float
    low: float | None  # of the ratio
    high: float | None
    short: float
    verdict: str | None

    @property
    def text(self) -> str:
        """For docs/numbers.md."""
        digits = ".3f" if self.low is not None else ",.0f"
        interval = "" if self.low is None else f" ({self.low:.3f} to {self.high:.3f})"
        return (
            f"| {self.what} | {self.truth:{digits}} ±{self.truth_error:.1%} | {self.cycles}"
            f" | {self.estimate:{digits}}{interval} | {self.estimate / self.truth - 1:+.1%}"
            f" | {self.short:{digits}} | {self.short / self.truth - 1:+.1%}"
            f" | {self.verdict or '–'} |"
        )


def run_plan(options: argparse.Namespace, what: str, protocol: str, folder: Path) -> Path:
    """Carry out one of the two plans.

    Returns:
        The run file.
    """
    window_s = options.truth_s if what == "truth" else options.window
    text = PLAN.format(
        what=what, warehouses=options.warehouses, connections=options.connections,
        rounds=1 if what == "truth" else options.rounds, window_s=window_s, protocol=protocol,
    )  # fmt: skip
    wal = options.max_wal_size
    alike = ALIKE.format(wal=wal, timeout=options.cycle_s) if options.cycle_s else ""
    for profile in options.profile:
        text += PROFILE.format(profile=profile, alike=alike)
    for timeout in options.timeout:
        text += STAGE.format(timeout=timeout, buffers=options.shared_buffers, wal=wal)
    plan, out = folder / f"{what}.toml", folder / f"{what}.sqlite"
    if out.exists():  # of a measurement that was broken off in its second half
        return out
    plan.write_text(text)
    command = [sys.executable, "-m", "pgdyno", "run", str(plan), "--out", str(out)]
    run(command, timeout_s=_PATIENCE_S)
    return out


def per_cycle(trial: TrialRecord, file: RunFile) -> list[float]:
    """NOPM of each whole cycle of a trial's window."""
    assert trial.result is not None, trial.reason
    assert trial.result.followed is not None
    committed = file.series(trial.number)["driver.committed.new_order"]
    sums = np.concatenate([[0.0], np.cumsum(committed.values)])
    edges = np.concatenate([committed.unix_ns, [committed.unix_ns[-1] + int(NS)]])
    begin, end = trial.result.window_ns
    begins = [at for at in trial.result.followed.begins_ns if begin - 2 * NS <= at <= end + 2 * NS]
    at = np.interp(np.array(begins, dtype=np.float64), edges, sums)
    return [
        60 * NS * float(more) / (after - before)
        for more, before, after in zip(np.diff(at), begins[:-1], begins[1:], strict=True)
    ]


def truths(path: Path) -> dict[str, list[float]]:
    """NOPM of each whole cycle, by stage."""
    with RunFile.read(path) as file:
        return {trial.stage: per_cycle(trial, file) for trial in file.trials()}


def short_windows(file: RunFile) -> dict[str, list[float]]:
    """NOPM that a window by the clock would have shown in each trial, by stage."""
    found: dict[str, list[float]] = {}
    for trial in file.trials():
        per_s = file.series(trial.number)["driver.committed.new_order"].values
        found.setdefault(trial.stage, []).append(60 * float(per_s[SHORT_S[0] : SHORT_S[1]].mean()))
    return found


def geometric(values: Sequence[float]) -> float:
    """Their geometric mean."""
    return float(np.exp(np.mean(np.log(values))))


def rows(truth: dict[str, list[float]], short: dict[str, list[float]], facts: Facts) -> list[Row]:
    """What is printed: configurations, then ratios."""
    found: list[Row] = []
    means = {name: float(np.mean(values)) for name, values in truth.items()}
    errors = {
        name: float(np.std(values, ddof=1)) / sqrt(len(values)) / means[name]
        if len(values) > 1
        else float("nan")
        for name, values in truth.items()
    }
    cycles = {one.stage: one for one in facts.cycles}
    shorts = {name: geometric(values) for name, values in short.items()}
    for stage in facts.stages:
        name, anchors = stage.name, cycles[stage.name].anchors
        assert stage.throughput is not None, f"{name} has no finished trial"
        if anchors:
            estimate = shorts[name] * geometric([one.whole / one.short for one in anchors])
        else:  # all windows hold whole cycles already
            estimate = stage.throughput.median
        found.append(
            Row(name, means[name], errors[name], len(truth[name]), estimate, None, None,
                shorts[name], None)
        )  # fmt: skip
    base = facts.stages[0].name
    for stage in facts.stages[1:]:
        told = stage.to_first
        assert told is not None
        assert told.ratio is not None
        both = sqrt(errors[stage.name] ** 2 + errors[base] ** 2)
        found.append(
            Row(f"{stage.name} to {base}", means[stage.name] / means[base], both,
                len(truth[stage.name]), told.ratio, told.low, told.high,
                shorts[stage.name] / shorts[base], told.verdict)
        )  # fmt: skip
    return found


def main() -> int:
    """Run both plans, print the rows.

    Returns:
        The exit code.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--timeout", type=int, action="append", default=[])
    parser.add_argument("--profile", action="append", default=[])
    parser.add_argument("--truth-s", type=float, default=1800.0)
    parser.add_argument("--window", type=float, default=60.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--anchors", type=int, default=2)
    parser.add_argument("--warehouses", type=int, default=10)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--shared-buffers", default="6GB")
    parser.add_argument("--max-wal-size", default="24GB")
    parser.add_argument("--cycle-s", type=int, help="of all profiles: checkpoint_timeout")
    parser.add_argument(
        "--runs",
        type=Path,
        help="keep plans and run files here; what is there is not measured again",
    )
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if len(options.timeout) + len(options.profile) < 2:
        parser.error("two configurations at least: --profile or --timeout")
    with tempfile.TemporaryDirectory(prefix="pgdyno-cycles-") as name:
        folder = options.runs or Path(name)
        long = 'checkpoints = "cycles"\ncycles = 2'
        truth = truths(run_plan(options, "truth", long, folder))
        joined = f'checkpoints = "anchors"\nanchors = {options.anchors}'
        with RunFile.read(run_plan(options, "estimate", joined, folder)) as file:
            found = rows(truth, short_windows(file), analyse(file))
    print(
        "| | whole cycles | cycles | anchors, short rounds | off | short windows | off | verdict |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---|")
    for row in found:
        print(row.text)
    if options.out:
        options.out.write_text(json.dumps([asdict(row) for row in found], indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
