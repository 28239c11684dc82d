"""What limits each stage: a sentence first, then its proof, what was cleared, what is not known."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from pgdyno.analysis.diagnosis_facts import (
    Figure,
    Gain,
    RuleAnswer,
    StageDiagnosis,
    StatementShare,
    TimePart,
    WindowDiagnosis,
)
from pgdyno.analysis.facts import Facts
from pgdyno.analysis.words import NOTHING
from pgdyno.model.units import bytes_text, digits_text, ns_text, share_text
from pgdyno.model.wording import listed, plural
from pgdyno.report.document import Block, Cell, Column, Links, Section, Table, Text, columns

_SEE = (
    ("sessions", "What sessions did"), ("resources", "Resources"), ("time", "Over time"),
)  # fmt: skip
"""Sections with the charts that a proof is read beside."""


def section(facts: Facts) -> Section | None:
    """A part for each stage; None: nobody asked what limits them."""
    if not facts.diagnosis:
        return None
    blocks = [block for one in facts.diagnosis for block in _stage(one)]
    blocks += _of_waits(facts)
    there = _sections(facts)
    blocks.append(Links("Sections to read beside", tuple(one for one in _SEE if one[0] in there)))
    return Section("limits", "What limits each stage", tuple(blocks))


def _sections(facts: Facts) -> Collection[str]:
    """Those of them that this report has."""
    found = {
        "time": any(one.timeline for one in facts.trials),
        "sessions": bool(facts.sessions),
        "resources": bool(facts.resources or facts.processes),
    }
    return [name for name, there in found.items() if there]


def _stage(one: StageDiagnosis) -> Iterator[Block]:
    yield Text(f"`{one.stage}`: {one.sentence}")
    window = one.window
    if window is None:
        return
    if window.deciding:
        yield Text(window.deciding, "quiet")
    if window.parts:
        yield time_table(one.stage, window)
    if findings := [each for each in window.answers if each.verdict == "finding"]:
        yield findings_table(one.stage, findings)
    if window.statements:
        yield statements_table(one.stage, window.statements)
    reasons = {each.fact for each in window.answers if each.verdict == "unknown"}
    if len(reasons) == 1 and all(each.verdict == "unknown" for each in window.answers):
        yield Text(
            f"Whether any of {plural(len(window.answers), 'class', 'classes')} of limits holds is"
            f" not known: {reasons.pop()}.",
            "quiet",
        )
    else:
        yield answers_table(one.stage, window)


AT_HOLDERS = (
    "At its holders: a wait for a lock counts as what the head of its queue did, where that was met"
    " ten times doing anything but wait, else it stays; a request between client and server counts"
    " as wanting a CPU, as far as the driver's threads wanted one of the same host; a wait for a"
    " latch does where sessions want CPUs."
)
"""What the figures of this name are."""


def _of_waits(facts: Facts) -> Iterator[Block]:
    if any(one.window and one.window.parts for one in facts.diagnosis):
        yield Text(
            "Session time: how long sessions ran and wanted a CPU is the kernel's count, where the"
            " server's processes are known; else both are sampled as one. A session that was woken"
            " and has no CPU yet is still met at its wait, and so is one that copies the page that"
            " it has read. That time is taken from the waits here, which are therefore shorter than"
            f" in what sessions did. {AT_HOLDERS}",
            "quiet",
        )


def time_table(stage: str, window: WindowDiagnosis) -> Table:
    """Session time by what sessions did, before and after waits are moved to their holders."""
    return Table(
        f"{stage}, round {window.round}: where the time of"
        f" {digits_text(window.sessions or 0)} sessions went.",
        columns("session time", "share", "95% interval", "at its holders"),
        tuple(_part(one) for one in window.parts),
    )


def _part(one: TimePart) -> tuple[Cell, ...]:
    low, high = f"{one.low:.1%}", f"{one.high:.1%}"
    interval = NOTHING if low == high else f"{low} to {high}"  # the kernel's word is not sampled
    return (
        Cell(one.title), Cell(f"{one.share:.1%}"), Cell(interval, "quiet"),
        Cell(f"{one.root:.1%}"),
    )  # fmt: skip


def findings_table(stage: str, findings: Sequence[RuleAnswer]) -> Table:
    """What was found, that with the highest bound first, with what proves and what changes it."""
    ordered = sorted(findings, key=lambda one: -(one.gain.bound if one.gain else 0))
    rows = tuple(
        (
            Cell(one.title, note=one.fact),
            Cell(gain_text(one.gain)),
            Cell(NOTHING if one.chance is None else f"{one.chance:.0%}"),
            Cell(figures_text(one.figures), note=f"Looks alike: {' '.join(one.confounders)}"),
            Cell(knobs_text(one)),
        )
        for one in ordered
    )
    heads = (
        *columns("limit", "without it", "comes first"), Column("proof", align="left"),
        Column("what could be changed", align="left"),
    )  # fmt: skip
    title = f"{stage}: what was found, and what its absence could bring; not proved."
    return Table(title, heads, rows)


def statements_table(stage: str, statements: Sequence[StatementShare]) -> Table:
    """Connections with a statement under way, and sessions that were met with it."""
    rows = tuple(
        (
            Cell(" · ".join(part for part in (one.kind, one.statement) if part)),
            Cell(NOTHING if one.in_flight is None else f"{one.in_flight:.2f}"),
            Cell(NOTHING if one.active is None else f"{one.active:.2f}"),
            Cell(one.most or NOTHING),
        )
        for one in statements
    )
    heads = columns("statement", "under way", "met in the server", "there mostly")
    caption = f"{stage}: sessions by statement, on average."
    if any(one.active is None for one in statements):
        caption += " The server meets what is sent at once (+) as single statements."
    return Table(caption, heads, rows, folded=True)


def answers_table(stage: str, window: WindowDiagnosis) -> Table:
    """Every class with its answer."""
    rows = tuple(
        (Cell(one.title), Cell(one.verdict, "" if one.verdict == "finding" else "quiet"),
         Cell(one.fact))
        for one in window.answers
    )  # fmt: skip
    cleared = sum(one.verdict == "clear" for one in window.answers)
    unknown = sum(one.verdict == "unknown" for one in window.answers)
    caption = f"{stage}: all classes; {cleared} cleared, {unknown} not known."
    heads = tuple(Column(head, align="left") for head in ("class", "answer", "why"))
    return Table(caption, heads, rows, folded=True)


def gain_text(gain: Gain | None) -> str:
    """What its absence could bring, with the interval: a bound, or about so much."""
    if gain is None:
        return NOTHING
    return f"about {gain.text}, or more" if gain.may_save else f"at most {gain.text}"


def figures_text(figures: Sequence[Figure]) -> str:
    """Evidence in one line, e.g. `waiting for locks 68% (66% to 70%, limit 15%)`."""
    return "; ".join(map(_figure, figures))


def _figure(one: Figure) -> str:
    beside = []
    if one.low is not None and one.high is not None:
        low, high = _value(one.low, one.unit), _value(one.high, one.unit)
        beside += [f"{low} to {high}"] if low != high else []
    if one.limit is not None:
        beside.append(f"limit {_value(one.limit, one.unit)}")
    more = f" ({', '.join(beside)})" if beside else ""
    return f"{one.name} {_value(one.value, one.unit)}{more}"


def _value(value: float, unit: str) -> str:
    match unit:
        case "share":
            return share_text(value)
        case "s":
            return ns_text(value * 1e9)
        case "B/s":
            return f"{bytes_text(value)}/s"
        case "1/s":
            return f"{digits_text(value)} a second"
        case "times":
            return f"{value:.2f} times"
        case _:
            return digits_text(value)


def knobs_text(answer: RuleAnswer) -> str:
    """What could be changed, by rung: `shared_buffers, huge_pages (D0); ...`."""
    rungs: dict[str, list[str]] = {}
    for knob in answer.knobs:
        rungs.setdefault(knob.rung, []).append(knob.name)
    return "; ".join(f"{rung}: {listed(names)}" for rung, names in sorted(rungs.items()))
