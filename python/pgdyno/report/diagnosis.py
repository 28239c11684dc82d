"""A diagnosis alone: in plain sentences for a terminal, or as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from textwrap import fill

from pgdyno.analysis.diagnosis_facts import RuleAnswer, StageDiagnosis, TimePart, WindowDiagnosis
from pgdyno.model.text import json_document, visible
from pgdyno.model.units import digits_text
from pgdyno.model.wording import listed, plural
from pgdyno.report.sections.diagnosis import AT_HOLDERS, figures_text, gain_text, knobs_text

SCHEMA = "pgdyno.diagnosis/1"
_WIDTH = 96
_PARTS_MAX = 6


def text(stages: Sequence[StageDiagnosis]) -> str:
    """A paragraph first, then its proof; lines fit 100 columns."""
    return "\n".join(line for one in stages for line in (*_stage(one), ""))


def json(stages: Sequence[StageDiagnosis], ident: str) -> str:
    """The records field by field, with the run's ident; null means not known."""
    return json_document(
        {"schema": SCHEMA, "ident": ident, "stages": [asdict(one) for one in stages]}
    )


def _stage(one: StageDiagnosis) -> Iterator[str]:
    yield visible(one.stage)
    yield _line(one.sentence, 2)
    window = one.window
    if window is None:
        return
    if window.deciding:
        yield _line(window.deciding, 2)
    yield ""
    yield from _proof(window)
    yield from _others(window)


def _proof(window: WindowDiagnosis) -> Iterator[str]:
    if window.parts:
        shown_parts = _first(window.parts)
        shown = [_part(part) for part in shown_parts]
        yield _line(
            f"Session time of round {window.round}, {digits_text(window.sessions or 0)} sessions on"
            f" average: {'; '.join(shown)}.", 2,
        )  # fmt: skip
        if any(map(_is_moved, shown_parts)):
            yield _line(AT_HOLDERS, 4)
    for answer in _findings(window):
        yield _line(f"Found: {answer.title}: {answer.fact}.", 2)
        yield _line(f"Without it: {gain_text(answer.gain)}.", 4)
        yield _line(f"Proof: {figures_text(answer.figures)}.", 4)
        yield _line(f"Looks alike: {' '.join(answer.confounders)}", 4)
        yield _line(f"Could be changed: {knobs_text(answer)}.", 4)


def _findings(window: WindowDiagnosis) -> list[RuleAnswer]:
    """Those that are named first, then by what they could bring."""
    found = [one for one in window.answers if one.verdict == "finding"]
    return sorted(
        found,
        key=lambda one: (one.name not in window.limits, -(one.gain.bound if one.gain else 0)),
    )


def _others(window: WindowDiagnosis) -> Iterator[str]:
    cleared = [one for one in window.answers if one.verdict == "clear"]
    unknown = [one for one in window.answers if one.verdict == "unknown"]
    if cleared:
        yield _line(f"Cleared ({len(cleared)}):", 2)
        yield from (_line(f"{one.title}: {one.fact}.", 4) for one in cleared)
    # What one lack hides is told once.
    reasons: dict[str, list[str]] = {}
    for one in unknown:
        reasons.setdefault(one.fact, []).append(one.title)
    if reasons:
        yield _line(f"Not known ({plural(len(unknown), 'class', 'classes')}):", 2)
        yield from (_line(f"{listed(titles)}: {why}.", 4) for why, titles in reasons.items())


def _first(parts: tuple[TimePart, ...]) -> tuple[TimePart, ...]:
    """The largest of them, and all else as one, so that they add up."""
    rest = parts[_PARTS_MAX:]
    if len(rest) < 2:
        return parts
    share, root = sum(one.share for one in rest), sum(one.root for one in rest)
    return (*parts[:_PARTS_MAX], TimePart.all_else(share, root))


def _part(one: TimePart) -> str:
    moved = f", {one.root:.0%} at its holders" if _is_moved(one) else ""
    return f"{one.title} {one.share:.0%}{moved}"


def _is_moved(one: TimePart) -> bool:
    return abs(one.root - one.share) >= 0.005


def _line(words: str, indent: int) -> str:
    blank = " " * indent
    return fill(
        visible(words), _WIDTH, initial_indent=blank, subsequent_indent=blank + "  ",
        break_on_hyphens=False,
    )  # fmt: skip
