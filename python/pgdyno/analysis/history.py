"""Runs of a folder in the order of time: one line a run and stage, and where a level changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, log

from scipy import special

from pgdyno.analysis.answer_facts import BEYOND_MIN, Answer, Confidence, Doubt
from pgdyno.analysis.beside_facts import Gate
from pgdyno.analysis.compared_stages import KnownRun, aspects, known_runs, levels
from pgdyno.analysis.judged import judged, plan_in
from pgdyno.analysis.stored import Stored
from pgdyno.model.errors import PgdynoError
from pgdyno.model.run import TrialRecord, TrialState
from pgdyno.stats.between_runs import session_noise
from pgdyno.stats.change_points import change_points
from pgdyno.stats.window_end import exact_below
from pgdyno.store import RunFile
from pgdyno.store.histogram import merged_quantiles

SCHEMA = "pgdyno.history/1"
CONFIDENCE = 0.95
_P99 = 0.99


@dataclass(frozen=True, slots=True)
class HistoryLine:
    """A stage of a run."""

    series: int  # lines of one series measured the same: plan, stage, load, host
    started_ns: int
    run: str
    file: str
    plan: str
    stage: str
    engine: str  # who drove: pgdyno, or pgbench with its version
    host: str
    build: str
    metric: str  # NOPM, or tps
    rounds: int
    throughput: float | None  # geometric mean of rounds; None: no round finished
    low: float | None  # with the noise between sessions; None: not known
    high: float | None
    p99_ns: int | None  # of the first kind, rounds merged; None: too few requests
    confidence: Confidence  # as its report has it
    doubt: str | None  # what limits that, the gravest first; None: nothing does


@dataclass(frozen=True, slots=True)
class LevelChange:
    """A run from which on a series has another level."""

    series: int
    line: int  # of the first run of the new level, from 0
    ratio: float
    p: float


@dataclass(frozen=True, slots=True)
class HistoryFacts:
    """All that a folder's runs say in their order."""

    schema: str
    lines: tuple[HistoryLine, ...]  # in the order of time
    changes: tuple[LevelChange, ...]
    gates: tuple[Gate, ...]  # none unless a limit was named
    left_out: tuple[str, ...]  # files that are no runs of plans, and why


@dataclass(frozen=True, slots=True)
class RunLines:
    """What one run file adds to a history."""

    lines: tuple[HistoryLine, ...]
    known: tuple[KnownRun, ...]
    series: tuple[tuple[str, ...], ...]  # of each line


def run_lines(run: RunFile) -> RunLines:
    """The stages of a run.

    Raises:
        PlanError: No plan was run.
        StoreError: The file cannot be read.
    """
    info, trials = run.info(), run.trials()
    plan = plan_in(info)
    stored = Stored(run)
    said = judged(run, stored).answer
    known = {one.stage: one for one in known_runs(stored)}
    lines, series = [], []
    for stage in plan.stages:
        if stage.twin_of is not None:  # no stage of the plan: its rounds are the noise of one
            continue
        mine = [one for one in trials if one.stage == stage.name]
        finished = [one for one in mine if one.state is TrialState.FINISHED and one.result]
        of = aspects(info, plan, stage, trials)
        mean = known[stage.name].mean if stage.name in known else None
        doubts = _doubts(said, stage.name)
        lines.append(
            HistoryLine(
                series=0, started_ns=info.started_ns, run=info.ident, file=run.path.name,
                plan=plan.name, stage=stage.name,
                engine=of["measurement"]["engine"] or stage.workload.engine,
                host=of["host"].get("cpu_model", "not told"),
                build=of["build"].get("version", "not told"), metric=stage.workload.headline,
                rounds=len(finished), throughput=exp(mean.log_mean) if mean else None,
                low=None, high=None, p99_ns=_p99(finished),
                confidence=said.confidence, doubt=_told(doubts, stage.name),
            )
        )  # fmt: skip
        of_host = known[stage.name].host if stage.name in known else ()
        of_load = known[stage.name].load if stage.name in known else ()
        series.append((plan.name, stage.name, *of_host, *of_load))
    return RunLines(tuple(lines), tuple(known.values()), tuple(series))


def history(runs: Sequence[RunLines], left_out: Sequence[str] = ()) -> HistoryFacts:
    """Lines in the order of time, with intervals where the noise is known, and changes of level."""
    entries = sorted(
        ((line, key) for run in runs for line, key in zip(run.lines, run.series, strict=True)),
        key=lambda entry: (entry[0].started_ns, entry[0].run),
    )
    numbers: dict[tuple[str, ...], int] = {}
    lines = [
        replace(line, series=numbers.setdefault(key, len(numbers) + 1)) for line, key in entries
    ]
    known = [one for run in runs for one in run.known]
    lines = [_with_interval(line, known) for line in lines]
    changes = [one for number in numbers.values() for one in _changes(number, lines)]
    return HistoryFacts(SCHEMA, tuple(lines), tuple(changes), (), tuple(left_out))


def _with_interval(line: HistoryLine, known: Sequence[KnownRun]) -> HistoryLine:
    """The same with an interval, by runs of the same thing."""
    own = next((k for k in known if k.run == line.run and k.stage == line.stage), None)
    if own is None or line.throughput is None:
        return line
    thing = (own.host, own.load, own.thing)
    alike = [one for one in known if (one.host, one.load, one.thing) == thing]
    try:
        noise = session_noise([[one.mean for one in part] for part in levels(alike)])
    except PgdynoError:
        return line
    half = float(special.stdtrit(noise.freedom, (1 + CONFIDENCE) / 2)) * noise.sd
    return replace(line, low=line.throughput * exp(-half), high=line.throughput * exp(half))


def _changes(series: int, lines: Sequence[HistoryLine]) -> list[LevelChange]:
    places = [
        number for number, line in enumerate(lines) if line.series == series and line.throughput
    ]
    logs = [log(lines[number].throughput or 1.0) for number in places]
    return [LevelChange(series, places[one.place], one.ratio, one.p) for one in change_points(logs)]


def _p99(finished: Sequence[TrialRecord]) -> int | None:
    kinds = [one.result.kinds[0] for one in finished if one.result and one.result.kinds]
    if not kinds or sum(kind.window.timed for kind in kinds) * (1 - _P99) < BEYOND_MIN:
        return None
    first = [kind for kind in kinds if kind.kind == kinds[0].kind]
    ns = merged_quantiles([kind.response for kind in first], [_P99])[0]
    bound = exact_below(kind.response_ns for kind in first)
    return ns if bound is None or ns < bound else None


def _doubts(said: Answer, stage: str) -> tuple[Doubt, ...]:
    """What limits a run's report: the gravest first, and of those what is said of the stage."""

    def order(one: Doubt) -> tuple[bool, bool]:
        return not one.grave, bool(one.stages) and stage not in one.stages

    return tuple(sorted(said.doubts, key=order))


def _told(doubts: Sequence[Doubt], stage: str) -> str | None:
    if not doubts:
        return None
    first, more = doubts[0], len(doubts) - 1
    told = first.text if stage in first.stages or not first.stages else first.whole
    return f"{told}, and {more} more" if more else told
