"""What each stage reaches, against the first stage and against the one before."""

from __future__ import annotations

import re

from pgdyno.analysis import words
from pgdyno.analysis.answer_facts import TailFacts
from pgdyno.analysis.facts import Comparison, Facts, Spread, StageFacts
from pgdyno.analysis.one_device import on_one_device
from pgdyno.analysis.plain import SLOWEST, deepest, in_rounds, to_one_between
from pgdyno.model.looks import LOOKS
from pgdyno.model.units import ratio_text
from pgdyno.model.wording import listed, plural
from pgdyno.report.document import (
    Block,
    Cell,
    Column,
    Figure,
    Points,
    Section,
    Table,
    Text,
    columns,
)
from pgdyno.report.tone import tone, verdict_tone

_NAMED_MOST = 3
"""Comparisons of one warning that are named; of more a reader finds none among the names."""
METRICS = {
    "NOPM": "NOPM counts committed New-Orders a minute",
    "tps": "tps counts committed transactions a second",
}
UNITS = {"NOPM": "orders a minute", "tps": "transactions a second"}


def section(facts: Facts) -> Section:
    """The table that the question is answered with."""
    share = words.confidence_to_first(facts.stages, facts.confidence)
    table = Table(
        f"Medians of the finished rounds, below them the lowest and the highest round; ratios of"
        f" {facts.headline} with {share} interval.",
        (
            Column("stage", align="left"),
            Column(facts.headline),
            Column("tpmTotal"),
            Column(f"to {facts.base}"),
            Column("verdict", align="left"),
            Column("slowest requests", f"to {facts.base}"),
            Column("to the stage before"),
            Column("rounds"),
        ),
        tuple(_row(stage, facts) for stage in facts.stages),
    )
    blocks: list[Block] = [Figure("waterfall"), table]
    if facts.looks:
        blocks.append(Text(_of_looks(facts), "quiet"))
    if warnings := (*on_one_device(facts.stages, facts.host), *_warnings(facts)):
        blocks += [Text("About the comparisons:"), Points(warnings)]
    blocks += _as_benchmarksql(facts)
    blocks.append(
        Text(
            f"{METRICS[facts.headline]}; tpmTotal counts all transactions that came to their end a"
            " minute, rollbacks included. The two are never mixed, and neither is a TPC result.",
            "quiet",
        )
    )
    return Section("stages", "Stages", tuple(blocks))


def _of_looks(facts: Facts) -> str:
    if facts.looks[-1] not in LOOKS:  # the last look of a plan comes after its most rounds
        return (
            f"The run was shortened to {plural(facts.looks[-1], 'round')} of its plan. Intervals"
            " and verdicts are those of a look of the whole plan there, and hold over all of its"
            " looks together: what is not decided here, the whole plan may decide."
        )
    return (
        f"Looks after {listed([str(look) for look in facts.looks])} rounds"
        " were fixed before the first trial; a stage that a look decided"
        " was measured no further. Intervals and verdicts hold over all looks together. What an"
        " early look finds tends to be a little smaller in truth."
    )


def _as_benchmarksql(facts: Facts) -> list[Block]:
    """The other tool's own figures, where its tables were driven."""
    rows = tuple(
        (
            Cell(stage.name),
            Cell(words.count(stage.benchmarksql_orders)),
            Cell(words.count(stage.benchmarksql_total)),
        )
        for stage in facts.stages
        if stage.benchmarksql_orders is not None
    )
    if not rows:
        return []
    heads = columns("stage", "Measured tpmC (NewOrders)", "Measured tpmTOTAL")
    caption = "As BenchmarkSQL 5 would print it: rolled back and failed transactions count too."
    return [Table(caption, heads, rows)]


def _row(stage: StageFacts, facts: Facts) -> tuple[Cell, ...]:
    name = stage.name if stage.twin_of is None else f"{stage.name} (same as {stage.twin_of})"
    folder = f"data in {stage.folder}" if stage.folder and not _names_folder(stage) else None
    pooler = f"through PgBouncer: {stage.pooler}" if stage.pooler else None
    notes = [note for note in (stage.build, folder, pooler, stage.rung_reason) if note]
    return (
        Cell(name, rung=stage.rung, note="; ".join(notes)),
        Cell(words.count(stage.throughput), note=spread_note(stage.throughput)),
        Cell(words.count(stage.tpm_total)),
        Cell(words.ratio(stage.to_first), note=_interval(stage, first=True)),
        Cell(words.verdict_of(stage), verdict_tone(stage, facts)),
        _tail(stage),
        _to_previous(stage),
        Cell(f"{len(stage.rounds)} of {stage.rounds_planned}"),
    )


def _to_previous(stage: StageFacts) -> Cell:
    """Nothing of one that begins afresh: it does not build on the stage before."""
    first, before = stage.to_first, stage.to_previous
    if stage.afresh and first and before and before.base != first.base:
        return Cell(words.NOTHING)
    note = _interval(stage, first=False)
    if note and (between := to_one_between(stage)):  # else it stands in the column of verdicts
        note = f"{note}, {words.verdict(between)}"
    return Cell(words.ratio(before), note=note)


def _names_folder(stage: StageFacts) -> bool:
    """Whether what puts a stage on its rung, or is not known of it, says where its data lie."""
    folder = re.escape((stage.folder or "").rstrip("/"))
    return re.search(rf"(?<!\S){folder}(?![^/\s,;:)])", stage.rung_reason) is not None


def _tail(stage: StageFacts) -> Cell:
    """How long the slowest requests take, and the verdict on it."""
    tail = deepest(stage)
    if tail is None or tail.ratio is None:
        return Cell(words.NOTHING)
    interval = words.ends(tail.low, tail.high)
    text = f"{tail.percentile} {_times(tail.ratio)}"
    told = [in_rounds(tail, stage.to_first).strip(), f"{interval}, {tail.verdict}"]
    return Cell(text, tone(tail), note="; ".join(filter(None, told)))


def tail_words(tail: TailFacts, beside: Comparison | None) -> str:
    """The same in a line, e.g. `slowest 1 in 100 New-Order transactions take ×1.240 the time`."""
    ratio = words.NOTHING if tail.ratio is None else _times(tail.ratio)
    slowest = f"slowest {SLOWEST[tail.percentile]} {words.kind(tail.kind)} transactions"
    return f"{slowest} take {ratio} the time{in_rounds(tail, beside)}: {tail.verdict}"


def _times(ratio: float) -> str:
    return ratio_text(ratio).replace("x", "×")


def _interval(stage: StageFacts, *, first: bool) -> str | None:
    comparison = stage.to_first if first else stage.to_previous
    if comparison is None or comparison.ratio is None:
        return None
    return words.interval(comparison)


def spread_note(spread: Spread | None) -> str | None:
    """Lowest and highest round, where there is more than one."""
    if spread is None or len(spread.rounds) < 2:
        return None
    return f"{min(spread.rounds):,.0f} to {max(spread.rounds):,.0f}"


def checkpoint_counts(stage: StageFacts) -> str:
    """Checkpoints of each round, e.g. `2, 2, 1`, or `2 each`."""
    if not stage.checkpoints:
        return words.NOTHING
    counts = [words.NOTHING if n is None else str(n) for n in stage.checkpoints]
    if len(counts) > 1 and len(set(counts)) == 1 and None not in stage.checkpoints:
        return f"{counts[0]} each"
    return ", ".join(counts)


def _warnings(facts: Facts) -> tuple[str, ...]:
    """Reasons and warnings of the comparisons, each told once with all that it is about."""
    about: dict[str, dict[str, list[str]]] = {}  # warning -> base -> stages
    for stage in facts.stages:
        for comparison in _comparisons(stage):
            said = list(comparison.warnings)
            unjudged = comparison.verdict in ("undecided", "not judged")
            if unjudged and comparison.reason not in said:
                said.insert(0, comparison.reason)
            for warning in said:
                stages = about.setdefault(warning, {}).setdefault(comparison.base, [])
                if stage.name not in stages:
                    stages.append(stage.name)
    whose = dict.fromkeys(one for stage in facts.stages for one in stage.credit)
    believed = [one.predicted for one in facts.stages if one.predicted is not None]
    named = (_about(warning, bases) for warning, bases in about.items())
    return (*believed, *named, *whose, *facts.warnings)


def _comparisons(stage: StageFacts) -> list[Comparison]:
    """Those of a stage; with the first stage only once where that is also the one before."""
    return [one for one in (stage.to_first, to_one_between(stage)) if one is not None]


def _about(warning: str, bases: dict[str, list[str]]) -> str:
    """A warning with the comparisons it is about, or of many with their number."""
    pairs = [f"`{stage}` against `{base}`" for base, stages in bases.items() for stage in stages]
    if len(pairs) > _NAMED_MOST:
        return f"{warning} ({plural(len(pairs), 'comparison')})"
    return f"{listed(pairs)}: {warning}"
