"""Results of other tools beside our stages: hollow, by tool and version, each without an interval.

Only figures that mean the same stand on one axis. Results of one name share a line of the chart:
there may be a thousand of them, and the section's table has each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from pgdyno.analysis.facts import Facts, Spread, StageFacts
from pgdyno.imports.simultaneous import Together
from pgdyno.model.imported import COMPARABLE, Imported
from pgdyno.model.units import count_text
from pgdyno.model.wording import plural
from pgdyno.report.charts import look
from pgdyno.report.charts.chart import Chart, Key, Mark, Panel

_NAMES_MAX = 24  # lines of others in a chart; the table has all
_SAID_MAX = 4  # figures of a line that are told one by one
_SYMBOLS = {"nopm_committed": "circle-open", "nopm_ended": "square-open",
            "tpm_all_ended": "circle-open", "tps": "circle-open"}  # fmt: skip
_MARKS: dict[str, Mark] = {"circle-open": "ring", "square-open": "frame"}
_SUM = "diamond-open"


@dataclass(frozen=True, slots=True)
class _Axis:
    """Figures that may stand on one axis."""

    title: str
    metrics: tuple[str, ...]  # of others
    headline: str  # of the runs of ours that have it
    of_all_kinds: bool = False

    def ours(self, stage: StageFacts, facts: Facts) -> Spread | None:
        """What a stage has of it."""
        if facts.headline != self.headline:
            return None
        return stage.tpm_total if self.of_all_kinds else stage.throughput


_AXES = (
    _Axis("New-Orders a minute", ("nopm_committed", "nopm_ended"), "NOPM"),
    _Axis("Transactions of all kinds a minute", ("tpm_all_ended",), "NOPM", of_all_kinds=True),
    _Axis("Transactions a second", ("tps",), "tps"),
)


@dataclass(frozen=True, slots=True)
class _Ring:
    """A figure of another tool."""

    value: float
    symbol: str
    hint: str


def _panels(facts: Facts) -> tuple[Panel, ...]:
    return tuple(panel for axis in _AXES if (panel := _panel(axis, facts)) is not None)


def _panel(axis: _Axis, facts: Facts) -> Panel | None:
    ours = [(stage, spread) for stage in facts.stages if (spread := axis.ours(stage, facts))]
    theirs = _lines(axis, facts)
    if not ours or not theirs:
        return None
    shown = dict(list(theirs.items())[:_NAMES_MAX])
    keys = [*(f"ours {stage.name}" for stage, _ in ours), *shown]
    labels = [*(stage.name for stage, _ in ours), *shown]
    most = max(
        *(max(spread.rounds, default=spread.median) for _, spread in ours),
        *(ring.value for rings in shown.values() for ring in rings),
    )
    drawing = look.figure(
        [_rounds(ours), _medians(ours), *map(_rings, shown.items())],
        xaxis=look.axis(range=[0, most * 1.05 or 1], nticks=5, tickformat=",~r"),
        yaxis=look.axis(
            type="category", categoryorder="array", categoryarray=keys,
            range=[len(keys) - 0.5, -0.5], tickfont={"size": look.FONT_PX}, tickvals=keys,
            ticktext=[look.label(label) for label in labels],
        ),
    )  # fmt: skip
    more = len(theirs) - len(shown)
    title = (
        f"{axis.title}, the first {_NAMES_MAX} of {plural(len(theirs), 'tool')}"
        if more
        else axis.title
    )
    return Panel(title, _alt(axis, ours, theirs), drawing)


def _lines(axis: _Axis, facts: Facts) -> dict[str, list[_Ring]]:
    """The figures of others by the name of their line, sums of the importer in lines of their own.

    A line is of one tool, version and database: what others are, a reader must not have to guess.
    """
    lines: dict[str, list[_Ring]] = {}
    for number, one in enumerate(facts.imported, 1):
        if rings := list(_figures(axis, number, one)):
            lines.setdefault(_name(one), []).extend(rings)
    for group in facts.imported_together:
        if rings := list(_sums(axis, group)):
            lines.setdefault(f"○ {group.tool}, added by the importer", []).extend(rings)
    return lines


def _name(one: Imported) -> str:
    database = one.conditions.get("database")
    return f"○ {one.name}" + (f" on {database}" if database else "")


def _figures(axis: _Axis, number: int, one: Imported) -> Iterator[_Ring]:
    for metric in axis.metrics:
        if (value := one.value(metric)) is not None:
            said = f"{number}. {one.name}, {one.source.place}: {count_text(value)}"
            yield _Ring(value, _SYMBOLS[metric], f"{said} {COMPARABLE[metric]}")


def _sums(axis: _Axis, group: Together) -> Iterator[_Ring]:
    for metric in axis.metrics:
        if (value := group.sums.get(metric)) is not None:
            said = f"{plural(len(group.places), 'result')} together: {count_text(value)}"
            yield _Ring(value, _SUM, f"{said} {COMPARABLE[metric]}")


def _rounds(ours: Sequence[tuple[StageFacts, Spread]]) -> go.Scatter:
    dots = [(f"ours {stage.name}", value) for stage, spread in ours for value in spread.rounds]
    return go.Scatter(
        y=[key for key, _ in dots],
        x=[value for _, value in dots],
        mode="markers",
        marker={"size": 5, "color": look.MUTED},
        hoverinfo="skip",
    )


def _medians(ours: Sequence[tuple[StageFacts, Spread]]) -> go.Scatter:
    return go.Scatter(
        y=[f"ours {stage.name}" for stage, _ in ours],
        x=[spread.median for _, spread in ours],
        mode="markers",
        marker={"size": 12, "color": [look.rung_colour(stage.rung) for stage, _ in ours],
                "line": {"width": 1.5, "color": look.SURFACE}},
        text=[f"{look.plain(stage.name)}, ours, median of {plural(len(spread.rounds), 'round')}:"
              f" {count_text(spread.median)}" for stage, spread in ours],
        hovertemplate="%{text}<extra></extra>",
    )  # fmt: skip


def _rings(line: tuple[str, list[_Ring]]) -> go.Scatter:
    name, rings = line
    return go.Scatter(
        y=[name] * len(rings),
        x=[ring.value for ring in rings],
        mode="markers",
        marker={"size": 11, "symbol": [ring.symbol for ring in rings], "color": look.INK,
                "line": {"width": 1.8, "color": look.INK}},
        text=[look.plain(ring.hint) for ring in rings],
        hovertemplate="%{text}<extra></extra>",
    )  # fmt: skip


def _alt(
    axis: _Axis, ours: Sequence[tuple[StageFacts, Spread]], theirs: dict[str, list[_Ring]]
) -> str:
    mine = "; ".join(f"{stage.name} {count_text(spread.median)}" for stage, spread in ours)
    its = "; ".join(f"{name.removeprefix('○ ')} {_said(rings)}" for name, rings in theirs.items())
    return (
        f"Dot plot: {axis.title}. Ours, filled, medians of rounds: {mine}. Those of other tools,"
        f" hollow, each one run without an interval: {its}."
    )


def _said(rings: Sequence[_Ring]) -> str:
    values = [ring.value for ring in rings]
    if len(values) <= _SAID_MAX:
        return ", ".join(map(count_text, values))
    ends = f"from {count_text(min(values))} to {count_text(max(values))}"
    return f"{plural(len(values), 'figure')} {ends}"


def _keys(facts: Facts) -> tuple[Key, ...]:
    there = {
        ring.symbol
        for axis in _axes_of(facts)
        for rings in _lines(axis, facts).values()
        for ring in rings
    }
    if not there:
        return ()
    keys = [
        Key("ours, median of rounds", look.rung_colour(facts.first.rung), "dot"),
        Key("ours, a round", look.MUTED, "dot"),
    ]
    means = {"circle-open": "another tool's, one run", "square-open":
             "another tool's New-Orders however they ended, one run"}  # fmt: skip
    keys += [
        Key(text, look.INK, _MARKS[symbol]) for symbol, text in means.items() if symbol in there
    ]
    if _SUM in there:
        keys.append(
            Key("results that ran at the same time, added by the importer", look.INK, "rhomb")
        )
    return tuple(keys)


def _height(facts: Facts) -> int:
    """Lines of the fullest panel."""
    theirs = [_lines(axis, facts) for axis in _axes_of(facts)]
    return len(facts.stages) + max((min(_NAMES_MAX, len(lines)) for lines in theirs), default=0)


def _axes_of(facts: Facts) -> list[_Axis]:
    """Those on which ours stand."""
    return [axis for axis in _AXES if any(axis.ours(stage, facts) for stage in facts.stages)]


CHART = Chart(
    name="imported",
    title="Other tools' figures beside ours",
    caption=(
        "Filled: our stages. Hollow: what another tool told, or was counted of it, without an"
        " interval. That both stand on one axis says nothing of why they differ: server, host, data"
        " and what a tool counts are others, or not known."
    ),
    height_px=70,
    per_row_px=58,
    rows=_height,
    panels=_panels,
    keys=_keys,
    section="imported",
)
