"""What the terminal says at the end of a run: the answer and one line for each stage, twice.

Fits 100 columns, reads the same without colours.
"""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pgdyno.analysis import words
from pgdyno.analysis.facts import Facts, StageFacts
from pgdyno.analysis.loads import Load, loads, main_kinds
from pgdyno.model.units import at_least_text, bytes_text
from pgdyno.model.wording import listed, plural
from pgdyno.report import noise
from pgdyno.report.document import Tone
from pgdyno.report.sections.cycles import unlike_text
from pgdyno.report.sections.stages import METRICS, checkpoint_counts
from pgdyno.report.terminal import Name
from pgdyno.report.tone import CONFIDENCES, LIGHTS, verdict_tone

_NAME_LETTERS_MAX = 12  # of stages whose names no other column breaks
_STYLES: dict[Tone, str] = {"good": "green", "bad": "red", "warn": "yellow", "quiet": "dim", "": ""}


def render(facts: Facts) -> RenderableType:
    """The summary of a run, finished or not."""
    parts: list[RenderableType] = [
        "",
        Text(" ".join(facts.answer.plain).replace("`", ""), style="bold"),
        *_confidence(facts),
        "",
        Text(facts.answer.finding.replace("`", "")),
        *(Text(line) for line in noise.lines(facts)),  # who asked for twins asked for this
        "",
        Text(facts.answer.limits.replace("`", "")),
        *(_throughput(facts, load) for load in loads(facts)),
        *_of_ratios(facts),
        *(_latency(kind, stages) for kind, stages in main_kinds(facts).items()),
    ]
    parts += [
        Text(f"trial {t.number} ({t.stage}, round {t.round}) {t.state}: {t.reason}", style="red")
        for t in facts.not_finished
        if t.reason is not None
    ]
    parts += [
        Text(f"{stage.name}: {stage.window_end.fact}", style="yellow")
        for stage in facts.stages
        if stage.window_end is not None and stage.window_end.verdict == "finding"
    ]
    parts += [
        Text(f"{one.stage}: {unlike_text(one.vacuum)}", style="yellow")
        for one in facts.cycles
        if one.vacuum is not None and one.vacuum.unlike
    ]
    parts += [Text(line, style="dim") for line in _risks(facts)]
    parts.append(Text(f"{facts.label}.", style="dim"))
    return Group(*parts)


def _of_ratios(facts: Facts) -> list[Text]:
    """Why a ratio is not that of the two numbers beside it, where there are ratios of several."""
    compared = [one.to_first for one in facts.stages if one.to_first is not None]
    if not any(one.ratio is not None and one.rounds > 1 for one in compared):
        return []
    total = "tpmTotal all transactions that ended"
    meaning = f"{METRICS[facts.headline]}, {total} a minute; both are medians, and {words.RATIO}."
    return [
        Text(meaning, style="dim"),
        *(
            Text(f"{one.name}: its interval does not hold 1; {words.AMONG_SEVERAL}.", style="dim")
            for one in facts.stages
            if one.to_first is not None and words.is_beside_one(one.to_first)
        ),
    ]


def _confidence(facts: Facts) -> list[Text]:
    if not any(one.throughput for one in facts.stages):
        return []  # there is no number that it would be of
    text, meaning = CONFIDENCES[facts.answer.confidence]
    if against := facts.answer.said_simply(grave=True):
        more = plural(len(against) - 1, "more reason")
        rest = f" The page has {more}." if len(against) > 1 else ""
        meaning = f"{meaning.rstrip('.')}: {against[0]}.{rest}"
    said = f"{text}. {meaning}".replace("`", "")
    return [Text(said, style=_STYLES[LIGHTS[facts.answer.confidence]])]


def _risks(facts: Facts) -> list[str]:
    """What each rung in use loses, and all by which stages stand below D1."""
    found = [loss.rung for stage in facts.stages for loss in stage.losses]
    rungs = sorted({*found, *(stage.rung for stage in facts.stages)} - set(words.SAFE))
    reasons: dict[str, list[str]] = {}
    for stage in facts.stages:
        if stage.rung not in words.SAFE:
            reasons.setdefault(stage.rung_reason, []).append(stage.name)
    lines = [words.rung(rung) for rung in rungs]
    return [*lines, *(f"{listed(names)}: {why}" for why, names in reasons.items())]


def _throughput(facts: Facts, load: Load) -> Table:
    """Stages of one load, beside the first of them."""
    share = words.confidence_to_first(load, facts.confidence)
    is_short = max(len(stage.name) for stage in load) <= _NAME_LETTERS_MAX
    table = _table("stage", "rung", is_whole=is_short)
    for head in (facts.headline, "tpmTotal"):
        table.add_column(head, justify="right", no_wrap=True)
    # What gives way on a narrow terminal: an interval on two lines is still whole.
    for head, at_least in (
        (f"to {load[0].name}", "×1.234"), (f"{share} interval", "interval"),
    ):  # fmt: skip
        table.add_column(Name(head), justify="right", overflow="fold", min_width=len(at_least))
    table.add_column("verdict", overflow="fold", min_width=len("undecided,"))
    for stage in load:
        table.add_row(
            Name(stage.name),
            stage.rung,
            words.count(stage.throughput),
            words.count(stage.tpm_total),
            words.ratio(stage.to_first),
            words.interval(stage.to_first),
            Text(words.verdict_of(stage), style=_STYLES[verdict_tone(stage, facts)]),
        )
    return table


def _latency(kind: str, stages: Load) -> Table:
    table = _table(words.kind(kind))
    for head in ("p50", "p95", "p99", "max", "WAL/tx"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("checkpoints", justify="right", overflow="fold")
    for stage in stages:
        wal = stage.per_transaction.get("wal_bytes")
        table.add_row(
            Name(stage.name),
            *_times(stage, kind),
            bytes_text(wal.median) if wal else words.NOTHING,
            checkpoint_counts(stage),
        )
    return table


def _times(stage: StageFacts, kind: str) -> tuple[str, ...]:
    line = stage.percentiles(kind)
    if line is None:
        return (words.NOTHING,) * 4
    times = (line.p50_ns, line.p95_ns, line.p99_ns, line.max_ns)
    return tuple(at_least_text(ns, line.exact_below_ns) for ns in times)


def _table(*names: str, is_whole: bool = False) -> Table:
    """Its first columns are there; the first may be kept whole, which others have to pay for."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), header_style="")
    for number, name in enumerate(names):
        table.add_column(name, overflow="fold", no_wrap=is_whole and number == 0)
    return table
