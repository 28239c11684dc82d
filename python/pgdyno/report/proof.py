"""A proof by intervention: as a page, as Markdown, as JSON, in a terminal."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table as Printed
from rich.text import Text as Line

from pgdyno.analysis.proof_facts import ProbeFacts, ProofFacts
from pgdyno.model.proof import Ratio
from pgdyno.model.text import json_document
from pgdyno.model.units import count_text, times_text
from pgdyno.model.wording import often, plural, small
from pgdyno.report.bars import Bar, height_px, interval_bars
from pgdyno.report.charts import Panel, look
from pgdyno.report.document import (
    Block,
    Cell,
    Document,
    Figure,
    Points,
    Section,
    Table,
    Text,
    Tone,
    columns,
)
from pgdyno.report.html import Drawing
from pgdyno.report.html import render_document as render_page
from pgdyno.report.markdown import render_document as render_markdown

_WORDS: dict[str, tuple[str, Tone]] = {
    "limits": ("limits", "warn"),
    "cleared": ("cleared", "good"),
    "gains": ("would bring that", "warn"),
    "costs": ("costs that", "warn"),
    "nothing": ("changes nothing", "good"),
    "unsettled": ("not settled", "quiet"),
    "unused": ("not used by the load", "quiet"),
    "noise": ("noise", "quiet"),
    "unknown": ("not known: too few pairs", "quiet"),
}


def render_html(facts: ProofFacts) -> str:
    """The page."""
    return render_page(document(facts), _drawings(facts), facts.pgdyno, facts.ident)


def render_md(facts: ProofFacts) -> str:
    """The same as Markdown, without its charts."""
    return render_markdown(document(facts), facts.pgdyno, facts.ident)


def render_json(facts: ProofFacts) -> str:
    """All of it in base units; ratios and elasticities are plain numbers."""
    return json_document({"schema": "pgdyno.experiment.prove/1", **asdict(facts)})


def summary(facts: ProofFacts) -> RenderableType:
    """Its probes and what they amount to, for a terminal."""
    table = Printed("probe", "ratio", "95%", "elasticity", "95%", "n", "", box=None,
                    pad_edge=False)  # fmt: skip
    for one in facts.probes:
        table.add_row(one.probe.name, *_figures(one), _WORDS[one.state][0])
    return Group(table, *(Line(text) for text in (*facts.sentences, *facts.doubts)))


def document(facts: ProofFacts) -> Document:
    """Arrange it for reading."""
    design = facts.design
    return Document(
        title=f"What limits stage {facts.stage}?",
        kicker="Proof by intervention",
        label="Prices, not stages: what is free here loses data",
        about=(
            f"stage {facts.stage} of run {facts.run}",
            f"{plural(facts.sittings, 'sitting')}, {plural(design.pairs, 'pair')} of each probe in"
            f" each, blocks of {design.block_s} s of which {design.dropped_s} s are dropped",
            facts.server,
        ),
        answer=facts.sentences,
        cards=(),
        sections=(
            Section("prices", "Prices", (Figure("free"), Figure("dearer"), _table(facts))),
            *_prices(facts),
            Section("probes", "What was done", tuple(_done(facts))),
            *_believed(facts),
        ),
        warnings=facts.doubts,
    )


def _table(facts: ProofFacts) -> Table:
    heads = columns("probe", "throughput", "95%", "elasticity", "95%", "n", "used", "factor", "")
    rows = tuple(
        (
            Cell(one.probe.name, note=one.probe.resource),
            *(Cell(text) for text in _figures(one)),
            Cell(_used(one)),
            Cell(_factor(one)),
            Cell(_WORDS[one.state][0], tone=_WORDS[one.state][1]),
        )
        for one in facts.probes
    )
    caption = (
        "Throughput with a probe / without it; elasticity: 1 where throughput follows the price of"
        " the resource wholly, 0 where it does not care. Used: flushes or reads a second without"
        " the probe. Factor: by which the resource was dearer, as measured."
    )
    return Table(caption, heads, rows)


def _figures(one: ProbeFacts) -> tuple[str, str, str, str, str]:
    effect, follows = one.effect, one.elasticity
    return (
        f"×{effect.ratio:.3f}" if effect else "",
        f"{effect.low:.3f} to {effect.high:.3f}" if effect else "",
        f"{follows.value:.2f}" if follows else "",
        f"{follows.low:.2f} to {follows.high:.2f}" if follows else "",
        str(effect.pairs) if effect else "",
    )


def _used(one: ProbeFacts) -> str:
    if one.effect is None or one.effect.units_per_s is None or one.probe.name == "cpu":
        return ""
    return f"{count_text(one.effect.units_per_s)}/s"


def _factor(one: ProbeFacts) -> str:
    if one.probe.means != "dearer" or one.effect is None or one.effect.factor is None:
        return ""
    return f"×{one.effect.factor:.3f}"


def _done(facts: ProofFacts) -> list[Block]:
    blocks: list[Block] = [
        Text(
            "Each probe is switched on and off while the load runs on one server, in pairs of"
            " blocks in random order; pairs of all probes take turns. Every sitting has a fresh"
            " copy of the loaded data, which is thrown away."
        ),
        Points(tuple(_line(one) for one in facts.probes)),
    ]
    if facts.left_out:
        blocks.append(Text("Left out:"))
        blocks.append(Points(tuple(f"`{one.probe}`: {one.why}" for one in facts.left_out)))
    return blocks


def _line(one: ProbeFacts) -> str:
    loses = f" On a real server this risks: {small(one.probe.loses)}" if one.probe.loses else ""
    return f"`{one.probe.name}`: {one.probe.how} {one.probe.misleads}{loses}"


def _prices(facts: ProofFacts) -> tuple[Section, ...]:
    """What each free resource is worth among the others."""
    if facts.prices is None:
        return ()
    named = {one.probe.name: one.probe.resource for one in facts.probes}
    rows = tuple(
        (
            Cell(one.probe, note=named[one.probe]),
            *(Cell(_ratio(each)) for each in (one.first, one.last, one.share)),
            Cell(named[one.exposes] if one.exposes else "none",
                 note=_ratio(one.exposed) if one.exposed else None),
        )
        for one in facts.prices.each
    )  # fmt: skip
    caption = (
        f"All combinations of what is free, {often(facts.prices.repetitions)}: a resource"
        " free alone, free after all others, and its mean over all orders in which they could"
        " become free; these multiply to what all of them bring. Exposed: what is worth most once"
        " this one is free. 95% intervals."
    )
    heads = columns("probe", "alone", "last", "share", "exposed")
    return (Section("combinations", "Prices together", (Table(caption, heads, rows),)),)


def _ratio(one: Ratio) -> str:
    return times_text(one.value, one.low, one.high, digits=3)


def _believed(facts: ProofFacts) -> tuple[Section, ...]:
    if facts.believed is None:
        return ()
    text = Text(f"Of the windows of run {facts.run} `pgdyno diagnose` says: {facts.believed}")
    return (Section("believed", "What was believed before", (text,)),)


def _drawings(facts: ProofFacts) -> dict[str, Drawing]:
    free = [one for one in facts.probes if one.probe.means == "free" and one.effect]
    dearer = [one for one in facts.probes if one.elasticity]
    return {
        "free": Drawing(
            "If it were free", "Throughput without the price of a resource, as a multiple of what"
            " it is; 95% intervals.",
            height_px(len(free)), 1, (), (_free(free),),
        ),
        "dearer": Drawing(
            "What throughput follows", "Elasticity: by how many per cent throughput falls where the"
            " resource gets a per cent dearer; 95% intervals.",
            height_px(len(dearer)), 1, (), (_dearer(dearer),),
        ),
    }  # fmt: skip


def _free(rows: list[ProbeFacts]) -> Panel:
    values = [
        (one, one.effect.ratio, one.effect.low, one.effect.high) for one in rows if one.effect
    ]
    return _panel(values, 1.0, "times the throughput")


def _dearer(rows: list[ProbeFacts]) -> Panel:
    values = [
        (one, one.elasticity.value, one.elasticity.low, one.elasticity.high)
        for one in rows
        if one.elasticity
    ]
    return _panel(values, 0.0, "elasticity")


def _panel(values: list[tuple[ProbeFacts, float, float, float]], zero: float, unit: str) -> Panel:
    bars = sorted(
        (Bar(one.probe.resource, *rest) for one, *rest in values), key=lambda bar: bar.value
    )
    rule: dict[str, Any] = {
        "type": "line", "yref": "paper", "y0": 0, "y1": 1, "x0": zero, "x1": zero,
        "line": {"color": look.MUTED, "width": 1},
    }  # fmt: skip
    alt = "; ".join(
        f"{bar.name}: {bar.value:.2f} ({bar.low:.2f} to {bar.high:.2f})" for bar in reversed(bars)
    )
    return interval_bars(
        bars, zero=zero, unit=unit, alt=alt or "Nothing was measured.", rules=[rule],
        shown=lambda bar: f"{bar.value:.3f} ({bar.low:.3f} to {bar.high:.3f})",
    )  # fmt: skip
