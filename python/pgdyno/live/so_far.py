"""What a run has found so far: its run file's finished trials, by the analysis of the report.

The words, cards and tables are those of the report's own sections, so that the page says nothing
that the report would not say of the same trials.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from pgdyno.analysis import words
from pgdyno.analysis.answer_facts import TailFacts
from pgdyno.analysis.facts import Comparison, Facts, StageFacts, TrialFacts
from pgdyno.analysis.plain import deepest, plain
from pgdyno.analysis.run import analyse
from pgdyno.live.tables import devices_table, events_table
from pgdyno.live.telemetry import Telemetry, telemetry
from pgdyno.model.record_json import JsonObject
from pgdyno.model.run import TrialRecord, TrialState
from pgdyno.model.units import count_text
from pgdyno.model.wording import listed, plural
from pgdyno.report.compose import compose
from pgdyno.report.document import Document, Table
from pgdyno.report.tone import tone
from pgdyno.store.run_file import as_written
from pgdyno.store.unlocked import read_unlocked

_DEVICES = "Block devices in the window of this trial."
_TABLES = ("stages", "latency", "sessions")  # sections whose first table is shown


@dataclass(frozen=True, slots=True)
class SoFar:
    """A run file at a moment."""

    facts: Facts
    trials: tuple[TrialRecord, ...]  # of the plan, those not measured yet included
    replaced: tuple[TrialRecord, ...]  # that another took the place of
    last: TrialRecord | None  # the last that ended with numbers
    telemetry: Telemetry | None  # of the last

    @property
    def ever(self) -> tuple[TrialRecord, ...]:
        """All trials: what is counted of them never falls, whichever is measured again."""
        return (*self.trials, *self.replaced)


def look(path: Path) -> SoFar:
    """Read a run file that is being written, without making its writer wait.

    Raises:
        PgdynoError: It cannot be read, or holds no plan.
    """
    with read_unlocked(path) as run, as_written(path):
        facts, trials = analyse(run), run.trials()
        measured = [one for one in trials if one.result is not None]
        last = max(measured, key=lambda one: one.ended_ns or 0, default=None)
        seen = telemetry(last) if last else None
        return SoFar(facts, tuple(trials), tuple(run.replaced()), last, seen)


def parts(found: SoFar) -> JsonObject:
    """Parts of the page, by name, as JSON has them."""
    document = compose(found.facts)
    return {
        "head": _head(found.facts, document),
        "trials": [_trial(one) for one in found.trials],
        "found": _found(found.facts, document),
        "last": _last(found),
    }


def _head(facts: Facts, document: Document) -> JsonObject:
    return {
        "question": document.title, "plan": facts.plan, "kicker": document.kicker,
        "label": document.label, "about": [*document.about], "run": facts.ident,
        "stages": [{"name": one.name, "why": one.why, "rung": one.rung} for one in facts.stages],
        "rounds": max((one.round for one in facts.trials), default=0),
    }  # fmt: skip


def _trial(trial: TrialRecord) -> JsonObject:
    result = trial.result if trial.state is TrialState.FINISHED else None
    return {
        "number": trial.number, "round": trial.round, "stage": trial.stage,
        "state": trial.state.value, "reason": trial.reason,
        "value": count_text(result.throughput) if result else None,
        "unit": result.headline if result else None,
    }  # fmt: skip


def _found(facts: Facts, document: Document) -> JsonObject | None:
    """Stages so far; None before the first finished trial."""
    if not facts.trials_finished:
        return None
    return {
        "finished": facts.trials_finished,
        "planned": facts.trials_planned,
        "answer": [*plain(facts.stages)],  # without what to do next: it is being done
        "light": asdict(document.light) if document.light else None,
        "cards": [asdict(one) for one in document.cards],
        "ratios": [_ratio(one, facts) for one in facts.stages if one.twin_of is None],
        "tails": [_tail(one, facts) for one in facts.stages if one.twin_of is None],
        "tables": [asdict(one) for one in _tables(document)],
        "caution": _caution(facts),
    }


def _ratio(stage: StageFacts, facts: Facts) -> JsonObject:
    """A stage against the first of its load, in throughput."""
    one = stage.to_first
    words_of = {
        "of": "", "text": words.ratio(one), "interval": words.interval(one),
        "verdict": words.verdict_of(stage),
    }  # fmt: skip
    return {"stage": stage.name, "base": facts.base_of(stage).name, **_compared(one), **words_of}


def _tail(stage: StageFacts, facts: Facts) -> JsonObject:
    """The same in its slowest requests: of the deepest percentile that is known."""
    one = deepest(stage)
    words_of = {
        "of": f"{words.kind(one.kind)} {one.percentile}" if one else "",
        "text": words.ratio(one),
        "interval": words.ends(one.low, one.high) if one else words.NOTHING,
        "verdict": one.verdict if one else words.NOTHING,
    }  # fmt: skip
    return {"stage": stage.name, "base": facts.base_of(stage).name, **_compared(one), **words_of}


def _compared(one: Comparison | TailFacts | None) -> JsonObject:
    return {
        "ratio": one.ratio if one else None,
        "low": one.low if one else None,
        "high": one.high if one else None,
        "tone": tone(one),
    }


def _tables(document: Document) -> list[Table]:
    found = []
    for section in document.sections:
        if section.ident in _TABLES:
            found += [one for one in section.blocks if isinstance(one, Table)][:1]
    return found


def _caution(facts: Facts) -> str:
    """What a look before the end is worth."""
    if facts.looks:
        return (
            f"Verdicts come from looks after {listed([str(one) for one in facts.looks])} rounds,"
            " fixed before the first trial; what stands here between them decides nothing."
        )
    return (
        "These are figures of a run before its end. Each interval holds for one look: who looks"
        " often and stops when it pleases will find differences that are not there."
    )


def _last(found: SoFar) -> JsonObject | None:
    """The last trial with numbers, over time."""
    if found.last is None:
        return None
    facts: Mapping[int, TrialFacts] = {one.number: one for one in found.facts.trials}
    trial = facts.get(found.last.number)
    timeline = trial.timeline if trial else None
    seen = found.telemetry
    return {
        "number": found.last.number,
        "stage": found.last.stage,
        "round": found.last.round,
        "state": found.last.state.value,
        "timeline": asdict(timeline) if timeline else None,
        "devices": asdict(devices_table(_DEVICES, seen.devices)) if seen and seen.devices else None,
        "events": asdict(_events(seen)) if seen and seen.events else None,
    }


def _events(seen: Telemetry) -> Table:
    left_out = seen.events_left_out
    earlier = plural(left_out, "earlier one is", "earlier ones are", thousands=True)
    before = f"; {earlier} left out" if left_out else ""
    caption = f"Events of this trial, as the server's log has them{before}."
    return events_table(caption, "s in the window", seen.events)
