"""A climb as the staged article of a field report: seen, believed, did, got, now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from rich.console import Group, RenderableType
from rich.text import Text as Line

from pgdyno.analysis import words
from pgdyno.analysis.efficiency import METRICS
from pgdyno.analysis.plain import outcome
from pgdyno.model.climb import Climbed, Effect, Found, Judged, Left, Step, Tried
from pgdyno.model.text import json_document
from pgdyno.model.units import ns_text, seconds_text, times_text
from pgdyno.model.wording import capital, listed, plural
from pgdyno.report.document import (
    Block,
    Cell,
    Document,
    Points,
    Section,
    Table,
    Text,
    Tone,
    columns,
)
from pgdyno.report.html import render_document as render_page
from pgdyno.report.markdown import render_document as render_markdown


@dataclass(frozen=True, slots=True)
class Made:
    """By what a climb was made."""

    ident: str  # of the run
    pgdyno: str  # its version
    server: str  # PostgreSQL's; empty: not told


_TONES: dict[str, Tone] = {"better": "good", "worse": "bad", "equivalent": "quiet"}
_LEFT = (
    "Of the stage that the climb ended at: what each of these would bring if it cost no time, found"
    " by diagnosis and not proved."
)
_ERRORS = (
    "Each step is judged by the plan's own rule, at 5% for all of its comparisons together. What is"
    " kept after many tries looks better than it is, so that only the last rounds, which are fresh,"
    " say what was gained. Each comparison with a profile that people would take instead is judged"
    " at 5% by itself."
)


def render_html(found: Climbed, made: Made) -> str:
    """The page."""
    return render_page(document(found, made), {}, made.pgdyno, made.ident)


def render_md(found: Climbed, made: Made) -> str:
    """The same as Markdown."""
    return render_markdown(document(found, made), made.pgdyno, made.ident)


def render_json(found: Climbed, made: Made) -> str:
    """All of it in base units."""
    kept = asdict(found)
    kept["asked"]["plan"] = found.asked.plan.name
    return json_document({"schema": "pgdyno.experiment.climb/1", "ident": made.ident, **kept})


def summary(found: Climbed) -> RenderableType:
    """What a terminal says at its end."""
    said = (text.replace("`", "") for text in (*sentences(found), *_step_lines(found)))
    return Group(*map(Line, said))


def sentences(found: Climbed) -> Iterator[str]:
    """What was reached, why it ended, what was not asked."""
    first = found.asked.plan.stages[0].name
    kept = listed(list(found.kept))
    if found.stopped is None:
        yield f"The climb was broken off after {plural(len(found.steps), 'step')}."
    elif not found.accepted:
        yield (
            f"Nothing that was tried is shown to be better than {first}." if found.steps
            else "Nothing was tried."
        )  # fmt: skip
        yield from _rivals_alone(found.final)
    elif found.final is None:
        yield f"{capital(kept or listed([o.move for o in found.accepted]))} helped, step by step."
    else:
        yield from _reached(found, found.final, kept)
        yield from _beside_rivals(found.final)
    if found.stopped is not None:
        yield f"The climb ended there: {found.stopped}"
    if errors := [one for one in _off(found) if one is not None]:
        mean = sum(errors) / len(errors)
        yield (
            f"In the mean of {plural(len(errors), 'try', 'tries')}, throughput was {abs(mean):.1%}"
            f" {'less' if mean < 0 else 'more'} than predicted."
        )
    if found.beyond:
        best = found.beyond[0]
        yield (
            f"Below rung {found.asked.limits.lowest}, {best.move} (rung {best.rung}) is predicted"
            f" to bring {best.predicted}; it was not measured."
        )


def document(found: Climbed, made: Made) -> Document:
    """Arrange it for reading."""
    limits = found.asked.limits
    return Document(
        title=f"How far does {found.asked.plan.stages[0].name} climb?",
        kicker=f"Climb of plan {found.asked.plan.name}",
        label="What was gained is told by fresh rounds alone",
        about=(
            f"rung {limits.lowest} or above, {limits.minutes:g} minutes of steps,"
            f" {'the client may change' if limits.client else 'the client stays as it is'}"
            f"{', so may settings of the machine' * limits.host}"
            f"{_pinned(limits.pinned)}",
            made.server,
            f"{plural(len(found.steps), 'step')}, {_spent(found)}",
        ),
        answer=tuple(sentences(found)),
        cards=(),
        sections=(
            *(_section(number, step) for number, step in enumerate(found.steps, 1)),
            *_stripped(found),
            *_last(found),
            *_futile(found),
            *_beyond(found),
            *_left(found),
            Section("method", "Method", (Text(_ERRORS),)),
        ),
    )  # fmt: skip


def _pinned(names: tuple[str, ...]) -> str:
    if not names:
        return ""
    return f"; no stage changes {listed(names)}"


def _reached(found: Climbed, final: Judged, kept: str) -> Iterator[str]:
    first = final.found[0]
    if first.ratio is None or first.low is None or first.high is None:
        yield f"{capital(kept)} were kept, and the last rounds judge nothing: {first.reason}."
        return
    yield from final.plain
    yield (
        f"`{final.stages[1]}` is `{first.base}` with {kept}:"
        f" {times_text(first.ratio, first.low, first.high)} by"
        f" {plural(first.rounds, 'fresh round')}, {first.verdict}."
    )


def _rivals_alone(final: Judged | None) -> Iterator[str]:
    """What people would take instead, beside the first stage, where nothing was reached."""
    if final is None:
        return
    for name, one in zip(final.stages[1:], final.found, strict=True):
        yield _compared(name, one)


def _beside_rivals(final: Judged) -> Iterator[str]:
    """What was reached beside each profile that people would take instead."""
    for one in final.beside:
        yield _compared(final.stages[1], one)


def _compared(stage: str, one: Found) -> str:
    """In plain words, and the ratio with its interval."""
    said = outcome(stage, one.base, one.verdict, one.ratio).removesuffix(".")
    return f"{said}: {_ratio(one)}."


def _off(found: Climbed) -> list[float | None]:
    """Of each try, measured over believed, less one."""
    return [
        None if one.found is None or one.found.ratio is None
        else one.found.ratio / one.predicted.ratio - 1
        for step in found.steps for one in step.tried
    ]  # fmt: skip


def _spent(found: Climbed) -> str:
    """Trials, and the time that they took with all that belongs to them."""
    parts = [one for one in (found.start, *found.steps, found.without, found.final) if one]
    trials, seconds = sum(one.trials for one in parts), sum(one.seconds or 0.0 for one in parts)
    return f"{plural(trials, 'trial')} in {seconds_text(seconds)}"


def _step_lines(found: Climbed) -> Iterator[str]:
    for number, step in enumerate(found.steps, 1):
        for one in step.tried:
            kept = ", kept" if one.move == step.accepted else ""
            yield f"{number}. {one.move}: believed {one.predicted}, {_got(one)}{kept}"


def _ratio(one: Found) -> str:
    if one.ratio is None:
        return "no ratio"
    if one.low is None or one.high is None:
        return f"×{one.ratio:.3f} (no interval)"
    return times_text(one.ratio, one.low, one.high, digits=3)


def _got(one: Tried) -> str:
    return "not measured" if one.found is None else f"got {_ratio(one.found)}, {one.found.verdict}"


def _section(number: int, step: Step) -> Section:
    title = f"{number}. {capital(listed([one.move for one in step.tried]))}"
    effects = tuple(line for one in step.tried if (line := _effects(one)))
    blocks: list[Block] = [
        Text(f"Seen: {step.seen} (stage {step.base})"),
        *_behind(step),
        *(_believed(one) for one in step.tried),
        _table(step),
        *([Points(effects)] if effects else ()),
        Text(_now(step)),
    ]
    return Section(f"step-{number}", title, tuple(blocks))


def _behind(step: Step) -> Iterator[Points]:
    """The figures of what is named, and what it is not."""
    behind = step.behind
    lines = [f"Proof: {one}." for one in behind.proof]
    lines += [f"Cleared: {listed(behind.cleared)}."] if behind.cleared else []
    lines += [f"Not known: {listed(behind.unknown)}."] if behind.unknown else []
    if lines:
        yield Points(tuple(lines))


def _effects(one: Tried) -> str:
    """What a move changed besides throughput; empty where that was not measured."""
    parts = [_effect(effect) for effect in one.effects]
    return f"A transaction with {one.move}: {'; '.join(parts)}." if parts else ""


def _effect(one: Effect) -> str:
    if one.kind:
        return f"p99 of {words.kind(one.kind)} {ns_text(one.after)} (before {ns_text(one.before)})"
    metric = next(each for each in METRICS if each.name == one.name)
    unit = f" {metric.unit}" if metric.unit else ""
    after, before = metric.text(one.after), metric.text(one.before)
    return f"{metric.head} {after}{unit} (before {before}{unit})"


def _believed(one: Tried) -> Points:
    changes = ", ".join(
        f"`{change.name}` = {change.after}" + (f", was {change.before}" if change.before else "")
        for change in one.changes
    )
    return Points(
        (
            f"Believed: {one.why} Against {one.against}: {one.predicted}, rung {one.rung}.",
            f"Did: {changes}.",
        )
    )


def _table(step: Step) -> Table:
    heads = columns("move", "believed", "got", "verdict", "rounds")
    rows = tuple(
        (
            Cell(one.move, rung=one.rung.value),
            Cell(str(one.predicted)),
            Cell(_ratio(one.found) if one.found else ""),
            _verdict(one.found),
            Cell(str(one.found.rounds) if one.found else ""),
        )
        for one in step.tried
    )
    return Table(f"Run {step.run or 'not begun'}, file {step.run_file}", heads, rows)


def _verdict(found: Found | None) -> Cell:
    if found is None:
        return Cell("not measured", tone="quiet")
    return Cell(found.verdict, tone=_TONES.get(found.verdict, "warn"), note=found.reason or None)


def _now(step: Step) -> str:
    if step.seconds is None:
        return "It did not end."
    kept = f"{step.accepted} is kept" if step.accepted else f"{step.base} stays"
    return f"Now: {kept}, after {seconds_text(step.seconds)}."


def _stripped(found: Climbed) -> tuple[Section, ...]:
    if found.without is None:
        return ()
    gone = [one.move for one in found.accepted if one.move not in found.kept]
    said = (
        f"{capital(listed(gone))} is not missed, and left out from here on." if len(gone) == 1
        else f"{capital(listed(gone))} are not missed, and left out from here on." if gone
        else "All of them are missed."
    )  # fmt: skip
    return (
        Section(
            "without", "Without each of them",
            (Text("Of several changes the last may have made an earlier one needless."),
             _judged(found.without), Text(said)),
        ),
    )  # fmt: skip


def _last(found: Climbed) -> tuple[Section, ...]:
    if found.final is None:
        return ()
    left = [
        Text(f"Profile {one.move} is not beside it: {one.why}.") for one in found.final.left_out
    ]
    measured = (_judged(found.final),) if found.final.run_file else ()
    beside = (_beside(found.final),) if found.final.beside else ()
    return (Section("final", "What was reached, on fresh rounds", (*measured, *beside, *left)),)


def _judged(one: Judged) -> Table:
    heads = columns("stage", "to the first", "verdict", "rounds")
    first = (Cell(one.stages[0]), Cell("1"), Cell(""), Cell(""))
    rows = (_judged_row(name, found) for name, found in zip(one.stages[1:], one.found, strict=True))
    return Table(f"Run {one.run}, file {one.run_file}", heads, (first, *rows))


def _beside(final: Judged) -> Table:
    """What was reached, against each profile that people would take instead."""
    heads = columns("profile", f"{final.stages[1]} to it", "verdict", "rounds")
    rows = tuple(_judged_row(found.base, found) for found in final.beside)
    return Table("Beside what people would take instead", heads, rows)


def _judged_row(name: str, found: Found) -> tuple[Cell, ...]:
    return Cell(name), Cell(_ratio(found)), _verdict(found), Cell(str(found.rounds))


def _futile(found: Climbed) -> tuple[Section, ...]:
    rows = tuple(
        (
            Cell(one.move, rung=one.rung.value), Cell(str(number)), Cell(str(one.predicted)),
            Cell(_ratio(one.found) if one.found else ""), _verdict(one.found),
        )
        for number, step in enumerate(found.steps, 1)
        for one in step.tried
        if one.move != step.accepted
    )  # fmt: skip
    if not rows:
        return ()
    heads = columns("move", "step", "believed", "got", "verdict")
    table = Table("All tries that were not kept", heads, rows)
    return (Section("futile", "What was not kept", (table,)),)


def _left(found: Climbed) -> tuple[Section, ...]:
    if not found.left:
        return ()
    lines = tuple(
        f"{capital(one.title)}: without it {one.gain}. {_no_settings(one)}" for one in found.left
    )
    return (
        Section("left", "What takes time in the end, and what no setting reaches",
                (Text(_LEFT), Points(lines))),
    )  # fmt: skip


def _no_settings(one: Left) -> str:
    if not one.no_settings:
        return "Nothing but settings is known to be against it."
    return f"Against it, and no setting of the server: {listed(one.no_settings)}."


def _beyond(found: Climbed) -> tuple[Section, ...]:
    if not found.beyond:
        return ()
    lines = tuple(
        f"{one.move} (rung {one.rung}): {one.why} Believed {one.predicted}, not measured."
        for one in found.beyond
    )
    return (Section("beyond", "What lower rungs would give", (Points(lines),)),)
