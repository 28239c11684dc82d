"""Whole checkpoint cycles of each stage: how long they are, what holds them, what anchors tell.

Times are seconds since the start of a trial's load. Which stages may be judged without them is
decided here, by what they change (`plan.cycles.shapes_cycle`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean

import numpy as np
import numpy.typing as npt

from pgdyno.analysis.changes import effective_of
from pgdyno.analysis.cycle_facts import AnchorFacts, CycleFacts
from pgdyno.analysis.episodes import episodes
from pgdyno.analysis.judge import checkpoint_cycle
from pgdyno.analysis.only_reads import only_reads
from pgdyno.analysis.seen import SeriesByTrial
from pgdyno.analysis.snapshots import SnapshotsByTrial
from pgdyno.analysis.stored import Stored
from pgdyno.analysis.trials import COUNTED, per_second
from pgdyno.analysis.vacuum import vacuum_facts
from pgdyno.model.counters import growth
from pgdyno.model.errors import PgdynoError
from pgdyno.model.plan import Plan, Stage
from pgdyno.model.run import Event, Series, TrialRecord, TrialResult, TrialState
from pgdyno.model.wording import listed, plural
from pgdyno.plan.settings.checkpoints import changed_in_cycle, changed_in_vacuum
from pgdyno.stats import cycle_checks
from pgdyno.stats.anchor import Anchor, anchor
from pgdyno.stats.double_sampling import ANCHORS_MIN, Cycles
from pgdyno.stats.interval import FloatArray
from pgdyno.stats.table import table_of
from pgdyno.stats.vacuum import late_tables

NS = 1e9
DEFAULTS = {  # of PostgreSQL 12 to 18, as SHOW prints them; others differ with the version
    "checkpoint_timeout": "5min", "checkpoint_flush_after": "256kB", "max_wal_size": "1GB",
    "min_wal_size": "80MB", "full_page_writes": "on", "wal_compression": "off",
    "bgwriter_delay": "200ms", "bgwriter_lru_maxpages": "100", "bgwriter_lru_multiplier": "2",
    "bgwriter_flush_after": "512kB",
}  # fmt: skip
NO_CYCLE = "the windows hold no whole checkpoint cycle"
_WITH_CYCLES = 'measure it with protocol.checkpoints = "cycles"'
_OF_WINDOWS = "ratio and interval are of the windows only"
_FOLLOWERS = {"archiving": "archive.behind_bytes", "a standby": "replication.behind_bytes"}
_FORCED = ("force", "immediate", "shutdown", "end-of-recovery")


@dataclass(frozen=True, slots=True)
class Load:
    """One finished trial with its series, on the axis of its load."""

    record: TrialRecord
    result: TrialResult
    series: Mapping[str, Series]
    headline: str

    @property
    def begin_ns(self) -> int:
        """Begin of the warm-up."""
        begins = [int(one.unix_ns[0]) for name, one in self.series.items()
                  if name.startswith(COUNTED) and one.unix_ns.size]  # fmt: skip
        return min([*begins, self.result.window_ns[0]])

    def at(self, unix_ns: float) -> float:
        """An instant since the start of the load, seconds."""
        return (unix_ns - self.begin_ns) / NS

    @property
    def end_s(self) -> float:
        """End of the window."""
        return self.at(self.result.window_ns[1])

    @property
    def checkpoints(self) -> list[Event]:
        """Spread checkpoints of the log."""
        return [
            one for one in self.result.checkpoints or ()
            if not any(word in (one.detail.cause or "") for word in _FORCED)
        ]  # fmt: skip

    @property
    def begins_s(self) -> list[float]:
        """When checkpoints began while the load ran: by the log, else as they were noticed."""
        known = [one.start_ns for one in self.checkpoints]
        if not known and self.result.followed is not None:
            known = list(self.result.followed.begins_ns)
        return [at for at in map(self.at, sorted(known)) if 0 < at <= self.end_s]

    @property
    def is_anchor(self) -> bool:
        """Whether it was to hold 1.3 cycles."""
        return self.result.followed is not None and self.result.followed.cycles is None

    @property
    def holds_cycles(self) -> bool:
        """Whether the window is made of whole cycles, and the first one lies before it."""
        if self.is_anchor:
            return False
        begin_s = self.at(self.result.window_ns[0])
        _, judged = checkpoint_cycle(self.result)
        return judged.verdict == "clear" and any(at <= begin_s for at in self.begins_s)

    def per_s(self) -> FloatArray:
        """The metric of the headline in each second: New-Orders, or all that committed."""
        return self._each_second()[1]

    def ended_by(self, instants_s: FloatArray) -> FloatArray:
        """Of the metric of the headline, how many had ended by these instants; within the load."""
        starts_ns, counts = self._each_second()
        edges = np.append((starts_ns - self.begin_ns) / NS, self.at(starts_ns[-1]) + 1)
        done = np.concatenate(([0.0], np.cumsum(counts)))
        return np.asarray(np.interp(instants_s, edges, done), dtype=np.float64)

    def _each_second(self) -> tuple[npt.NDArray[np.int64], FloatArray]:
        wanted = "driver.committed." + ("new_order" if self.headline == "NOPM" else "")
        return per_second(self.series, (wanted,))

    @property
    def scale(self) -> float:
        """From a second to the unit of the headline."""
        return 60.0 if self.headline == "NOPM" else 1.0


@dataclass(frozen=True, slots=True)
class StageCycles:
    """What is known of one stage."""

    facts: CycleFacts
    short: dict[int, float] = field(default_factory=dict)  # round -> short window of an anchor
    whole: dict[int, float] = field(default_factory=dict)  # round -> whole cycle of an anchor


def stage_cycles(
    plan: Plan,
    stage: Stage,
    trials: Sequence[TrialRecord],
    series: SeriesByTrial,
    snapshots: SnapshotsByTrial,
) -> StageCycles:
    """Look at all finished trials of a stage.

    Args:
        plan: The resolved plan.
        stage: One of its stages.
        trials: All trials of the plan.
        series: Those of each trial, by its number.
        snapshots: Likewise, of the ends of its window.
    """
    loads = [
        Load(one, one.result, series.get(one.number, {}), plan.workload.headline)
        for one in trials
        if one.stage == stage.name and one.state is TrialState.FINISHED and one.result is not None
    ]
    known, short, problems = _anchors(plan, [one for one in loads if one.is_anchor])
    problems += _invalid(loads, known)
    seen = tuple(length for load in loads if (length := _cycle_s(load)) is not None)
    rates = [rate for load in loads if (rate := _wal_rate(load)) is not None]
    reads = bool(loads) and all(
        only_reads(one.record, snapshots.get(one.record.number, ())) for one in loads
    )
    facts = CycleFacts(
        stage=stage.name,
        follows=stage.checkpoints,
        cycles_s=seen,
        expected_s=_expected_s(loads, rates),
        wal_bytes_per_s=fmean(rates) if rates else None,
        whole_windows=sum(load.holds_cycles for load in loads),
        windows=len(loads),
        anchors=tuple(
            _anchor_facts(number, load, known[number])
            for number, load in enumerate(loads)
            if number in known
        ),
        invalid=tuple(dict.fromkeys(problems)),
        only_reads=reads,
        vacuum=vacuum_facts(
            [(one.record.round, one.result, one.series, (one.begin_ns, one.end_ns))
             for one in map(_Ends, loads)],
            only_reads=reads,
        ),
    )  # fmt: skip
    whole = {} if facts.invalid else {
        load.record.round: known[number].whole * load.scale
        for number, load in enumerate(loads) if number in known
    }  # fmt: skip
    return StageCycles(facts, short, whole)


class _Ends:
    """A load with both ends on the calendar."""

    def __init__(self, load: Load) -> None:
        self.record, self.result, self.series = load.record, load.result, load.series
        self.begin_ns, self.end_ns = load.begin_ns, load.result.window_ns[1]


def _anchors(
    plan: Plan, loads: Sequence[Load]
) -> tuple[dict[int, Anchor], dict[int, float], list[str]]:
    """Anchors by their place, their short windows by round, and why some tell nothing."""
    known, short, problems = {}, {}, []
    span = (plan.protocol.warmup_s, plan.protocol.warmup_s + plan.protocol.window_s)
    for number, load in enumerate(loads):
        assert load.result.followed is not None
        per_s = load.per_s()[: int(load.end_s)]
        inside = per_s[round(span[0]) : round(span[1])]
        if inside.size:
            short[load.record.round] = float(inside.mean()) * load.scale
        if not load.begins_s:
            problems.append("no checkpoint began in an anchor")
            continue
        try:
            known[number] = anchor(
                per_s, load.begins_s[0],
                writing_share=load.result.followed.spacing.completion_target, short_s=span,
            )  # fmt: skip
        except PgdynoError as error:
            problems.append(error.fact)
    return known, short, problems


def _invalid(loads: Sequence[Load], anchors: Mapping[int, Anchor]) -> list[str]:
    """Why the anchors of a stage do not tell what whole cycles do."""
    held = [load for load in loads if load.is_anchor]
    if not held:
        return []
    spacing = held[0].result.followed.spacing if held[0].result.followed else None
    checks = [
        cycle_checks.backends_write(*_pages_written(held)),
        cycle_checks.saturated(
            [one for load in loads for one in _ended(load)],
            spacing.completion_target if spacing else 0.9,
        ),
        cycle_checks.drifting(list(anchors.values())),
        cycle_checks.unequal_cycles([one.cycle_s for one in anchors.values()]),
        cycle_checks.late_vacuum(_late(held)),
        *(_behind(load, what, name) for load in held for what, name in _FOLLOWERS.items()),
    ]  # fmt: skip
    return [text for text in checks if text is not None]


def _pages_written(loads: Sequence[Load]) -> tuple[float, float, float]:
    """By sessions, the checkpointer and the background writer, of loads of which all is known."""
    known = []
    for grown in (load.result.deltas for load in loads):
        by_sessions = grown.get("backend.buffers", grown.get("io.client_writes"))
        each = (by_sessions, grown.get("checkpoints.buffers"), grown.get("bgwriter.buffers"))
        known += [tuple(one for one in each if one is not None)] if None not in each else []
    sums = [sum(column) for column in zip(*known, strict=True)]
    return (sums[0], sums[1], sums[2]) if sums else (0.0, 0.0, 0.0)


def _behind(load: Load, what: str, name: str) -> str | None:
    """Whether what follows the WAL fell behind from the start of a load to its end."""
    levels, written = load.series.get(name), load.series.get("wal.bytes")
    if levels is None or written is None or not levels.values.size or not written.values.size:
        return None
    # Over the time in which both were looked at.
    begin = max(int(one.unix_ns[0]) for one in (levels, written))
    end = min(int(one.unix_ns[-1]) for one in (levels, written))
    inside = levels.values[(levels.unix_ns >= begin) & (levels.unix_ns <= end)]
    wal = growth(written, (begin, end)) if inside.size > 1 else None
    if wal is None:
        return None
    return cycle_checks.falling_behind(what, float(inside[-1] - inside[0]), wal)


def _late(loads: Sequence[Load]) -> tuple[str, ...]:
    found: list[str] = []
    for load in loads:
        if load.begins_s:
            span = (load.begin_ns / NS, load.begin_ns / NS + load.end_s)
            found += late_tables(episodes(load.result), span, load.begins_s[0])
    return tuple(dict.fromkeys(found))


def _ended(load: Load) -> list[cycle_checks.Ended]:
    """Spread checkpoints that ended, with the cycle that each had for its writes."""
    found = []
    for one, after in pairwise(load.checkpoints):
        if one.end_ns is not None and one.detail.total_s is not None:
            cycle = (after.start_ns - one.start_ns) / NS
            sync = one.detail.sync_s or 0.0
            found.append(cycle_checks.Ended(one.detail.total_s, sync, cycle))
    return found


def _cycle_s(load: Load) -> float | None:
    """Mean length of the cycles of one load, the one that begins with it where no other is known.

    The load's own begin is that of a cycle: the CHECKPOINT before it left nothing to do.
    """
    begins = load.begins_s
    if len(begins) > 1:
        return (begins[-1] - begins[0]) / (len(begins) - 1)
    return begins[0] if begins else None


def _wal_rate(load: Load) -> float | None:
    written = load.result.deltas.get("wal.bytes")
    return written / load.result.window_s if written is not None else None


def _expected_s(loads: Sequence[Load], rates: Sequence[float]) -> float | None:
    """What the settings make of the rate of WAL that was seen."""
    spacing = next((one.result.followed.spacing for one in loads if one.result.followed), None)
    if spacing is None or not rates:
        return None
    return spacing.cycle_s(fmean(rates))


def _anchor_facts(number: int, load: Load, one: Anchor) -> AnchorFacts:
    return AnchorFacts(
        trial=load.record.number,
        round=load.record.round,
        cycle_s=one.cycle_s,
        whole=one.whole * load.scale,
        short=one.short * load.scale,
        writes_leave=one.ratio,
        curve=tuple(value * load.scale for value in one.curve),
    )


@dataclass(frozen=True, slots=True)
class PlanCycles:
    """What is known of the cycles of all stages of a plan."""

    stages: dict[str, StageCycles]
    compared: Cycles  # what comparisons need of it

    @property
    def facts(self) -> tuple[CycleFacts, ...]:
        """For the report, in plan order."""
        return tuple(one.facts for one in self.stages.values())

    @property
    def short(self) -> dict[tuple[str, int], float]:
        """Short windows of anchors by stage and round."""
        return {
            (name, round_): value
            for name, one in self.stages.items()
            for round_, value in one.short.items()
        }

    def anchored(self, stage: str) -> CycleFacts | None:
        """The cycles of a stage whose whole cycles are known from anchors; None: they are not."""
        one = self.stages[stage]
        return one.facts if len(one.whole) >= ANCHORS_MIN else None


def plan_cycles(plan: Plan, trials: Sequence[TrialRecord], stored: Stored) -> PlanCycles:
    """Look at the cycles of all stages.

    Args:
        plan: The resolved plan.
        trials: All trials.
        stored: What they stored.
    """
    series = {one.number: stored.series(one.number) for one in trials}
    snapshots = {one.number: stored.snapshots(one.number) for one in trials}
    stages = {
        stage.name: stage_cycles(plan, stage, trials, series, snapshots) for stage in plan.stages
    }
    guard = Guard(plan, trials, {name: one.facts for name, one in stages.items()})
    rounds = {(trial.stage, trial.round): None for trial in trials}
    whole: dict[tuple[str, int], float | None] = {
        (name, round_): stages[name].whole.get(round_) for name, round_ in rounds
    }
    return PlanCycles(stages, Cycles(table_of(whole, list(stages)), guard.reason))


class Guard:
    """Says which comparisons are not judged, for want of whole cycles."""

    def __init__(
        self, plan: Plan, trials: Sequence[TrialRecord], cycles: Mapping[str, CycleFacts]
    ) -> None:
        self._cycles = cycles
        machine = {one.name: one.default or "" for stage in plan.stages for one in stage.host}
        self._measured = {one.stage for one in trials if one.state is TrialState.FINISHED}
        self._settings = {
            stage.name: DEFAULTS | machine | stage.values | effective_of(stage.name, trials)
            for stage in plan.stages
        }

    def reason(self, stage: str, base: str) -> str | None:
        """Why the comparison is not judged; None: it is, or there is nothing to compare yet.

        What a stage that was not measured had is not known: of a planned one only what it sets.
        """
        if not {stage, base} <= self._measured:
            return None
        if why := self._vacuum(stage, base):
            return why
        changed = changed_in_cycle(self._settings[stage], self._settings[base])
        if not changed or all(self._cycles[name].only_reads for name in (stage, base)):
            return None
        for name in (stage, base):
            if missing := lacking(self._cycles[name]):
                named = ", ".join(changed[:3]) + (", ..." if len(changed) > 3 else "")
                whose = missing if name == stage else f"of {base}: {missing}"
                return f"{whose}, and {named} {differ(changed)}; {_OF_WINDOWS}"
        return None

    def _vacuum(self, stage: str, base: str) -> str | None:
        """Why stages that vacuum otherwise are not judged: their windows do not hold its work."""
        changed = changed_in_vacuum(self._settings[stage], self._settings[base])
        for name in (stage, base) if changed else ():
            vacuum = self._cycles[name].vacuum
            if vacuum is not None and vacuum.unlike:
                return (
                    f"the windows of {name} hold another share of autovacuum's work than its load,"
                    f" and {listed(changed[:3])} {differ(changed)}; {_OF_WINDOWS}"
                )
        return None


def differ(changed: Sequence[str]) -> str:
    """What is said of settings that do: one of them differs."""
    return "differs" if len(changed) == 1 else "differ"


def lacking(cycles: CycleFacts) -> str | None:
    """What a stage lacks to be judged over whole cycles."""
    if cycles.follows == "anchors":
        if cycles.invalid:
            return f"{cycles.invalid[0]}: {_WITH_CYCLES}"
        if len(cycles.anchors) < ANCHORS_MIN:
            return (
                f"{len(cycles.anchors)} of {plural(ANCHORS_MIN, 'anchor')} that are needed at least"
            )
        return None
    if cycles.windows and cycles.whole_windows == cycles.windows:
        return None
    if cycles.whole_windows:
        without = cycles.windows - cycles.whole_windows
        return f"{without} of {plural(cycles.windows, 'window')} hold no whole checkpoint cycle"
    return NO_CYCLE
