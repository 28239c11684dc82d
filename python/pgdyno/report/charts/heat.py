"""Response times of every trial: where they lie, how many modes they have, whether they drift."""

from __future__ import annotations

import plotly.graph_objects as go

from pgdyno.analysis import words
from pgdyno.analysis.facts import Facts, TrialFacts
from pgdyno.analysis.latency_shares import EDGES_NS
from pgdyno.model.units import ns_text
from pgdyno.report.charts import look
from pgdyno.report.charts.chart import Chart, Key, Panel

MS_NS = 1e6
_COLOUR = look.stage_colour(0)
_PALE = "var(--line)"


def _trials(facts: Facts) -> list[TrialFacts]:
    """Finished trials, stage by stage."""
    order = {stage.name: index for index, stage in enumerate(facts.stages)}
    measured = [one for one in facts.trials if one.state == "finished" and any(one.latency_shares)]
    return sorted(measured, key=lambda one: (order[one.stage], one.round))


def _panels(facts: Facts) -> tuple[Panel, ...]:
    trials = _trials(facts)
    if not trials:
        return ()
    used = [index for index in range(len(EDGES_NS) - 1) if any(_at(trials, index))]
    rows = range(used[0], used[-1] + 1)
    edges_ms = [float(EDGES_NS[index]) / MS_NS for index in (*rows, rows[-1] + 1)]
    name = words.kind(facts.main_kind)
    stages = _stages(trials)
    drawing = look.figure(
        [_map(trials, rows, edges_ms)],
        xaxis=look.axis(
            showgrid=False,
            tickvals=[_middle(trials, stage) for stage in stages],
            ticktext=[look.label(stage, len(stages)) for stage in stages],
            ticklabeloverflow="allow",  # else a name that ends beyond the chart is left out
        ),
        yaxis=look.log_axis_between("ms", edges_ms[0], edges_ms[-1]),
        shapes=[_border(trials, stage) for stage in stages[1:]],
    )
    summary = "; ".join(f"{stage} {_mode(trials, stage)}" for stage in stages)
    return (Panel(name, f"Where most requests of {name} lie in each stage: {summary}.", drawing),)


def _map(trials: list[TrialFacts], rows: range, edges_ms: list[float]) -> go.Heatmap:
    texts = [
        [
            f"{look.plain(one.stage)}, round {one.round}:"
            f" {one.latency_shares[row]:.1%} of requests<br>"
            f"{_between(row)}"
            for one in trials
        ]
        for row in rows
    ]
    return go.Heatmap(
        x=list(range(len(trials))),
        y=edges_ms,
        z=[[100 * share or None for share in _at(trials, row)] for row in rows],
        zmin=0,
        text=texts,
        hovertemplate="%{text}<extra></extra>",
        hoverongaps=False,
        xgap=1,
        showscale=False,
        colorscale=[[0, _PALE], [1, _COLOUR]],
    )


def _at(trials: list[TrialFacts], row: int) -> list[float]:
    return [one.latency_shares[row] for one in trials]


def _stages(trials: list[TrialFacts]) -> list[str]:
    return list(dict.fromkeys(one.stage for one in trials))


def _columns(trials: list[TrialFacts], stage: str) -> list[int]:
    return [index for index, one in enumerate(trials) if one.stage == stage]


def _middle(trials: list[TrialFacts], stage: str) -> float:
    columns = _columns(trials, stage)
    return (columns[0] + columns[-1]) / 2


def _border(trials: list[TrialFacts], stage: str) -> dict[str, object]:
    """A line before the first trial of a stage."""
    at = _columns(trials, stage)[0] - 0.5
    line = {"color": look.MUTED, "width": 1}
    return {"type": "line", "yref": "paper", "x0": at, "x1": at, "y0": 0, "y1": 1, "line": line}


def _mode(trials: list[TrialFacts], stage: str) -> str:
    """Where most of a stage's requests lie."""
    of_stage = [one.latency_shares for one in trials if one.stage == stage]
    means = [sum(shares) / len(of_stage) for shares in zip(*of_stage, strict=True)]
    row = max(range(len(means)), key=means.__getitem__)
    return f"{_between(row)} ({means[row]:.0%})"


def _between(row: int) -> str:
    low, high = (ns_text(round(float(EDGES_NS[edge]))) for edge in (row, row + 1))
    return f"{low} to {high}"


def _keys(facts: Facts) -> tuple[Key, ...]:
    shown = _trials(facts)
    return (Key("the darker, the more requests", _COLOUR, "bar"),) if shown else ()


CHART = Chart(
    name="heat",
    title="Response times of every trial",
    caption=(
        "Each column is a finished trial, rounds of a stage side by side; each cell the share of"
        " its requests between two times. Two dark bands are two modes; a column unlike its"
        " neighbours is a round that something disturbed. Logarithmic axis."
    ),
    height_px=320,
    panels=_panels,
    keys=_keys,
    section="latency",
)
