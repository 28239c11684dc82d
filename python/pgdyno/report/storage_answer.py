"""What probes of storage learned, in sentences: what warns of it first, then the answer."""

from __future__ import annotations

from collections.abc import Callable

from pgdyno.analysis import words
from pgdyno.analysis.facts import Comparison
from pgdyno.analysis.stages import comparison_facts
from pgdyno.model.floor import Floor, Probed
from pgdyno.model.units import count_text, ns_text
from pgdyno.model.wording import listed, plural
from pgdyno.report.document import Cell, Column, Table
from pgdyno.report.tone import tone
from pgdyno.stats.across_paths import compare_paths
from pgdyno.stats.compare import CONFIDENCE
from pgdyno.stats.flush_figure import FlushFigure, Span, disagreements, flush_figure
from pgdyno.stats.group_commit import flush_limit_per_s
from pgdyno.stats.storage import Doubt, clock_doubts, doubts, iops_knee

_MANY_CLIENTS = 16


def warnings(probed: Probed) -> tuple[str, ...]:
    """What must be known before the figures are read: sources that disagree, claims in doubt."""
    lines = [doubt_text(doubt) for doubt in clock_doubts(probed.clock)]
    for floor in probed.floors:
        flush_ns = flush_figure(floor, probed).flush.mid
        found = (*disagreements(floor, probed), *doubts(floor, flush_ns))
        lines += [f"{floor.path}: {doubt_text(doubt)}" for doubt in found]
    return tuple(lines)


def answer(probed: Probed) -> list[str]:
    """A sentence for each path, then one for each that is compared."""
    return [
        *(_of_path(floor, probed) for floor in probed.floors),
        *(_against(path, found) for path, found in verdicts(probed).items()),
    ]


def verdicts(probed: Probed) -> dict[str, dict[str, Comparison]]:
    """Every path but the first against the first: by path, then by figure."""
    found: dict[str, dict[str, Comparison]] = {}
    for each in compare_paths(probed):
        for one in each.paths:
            found.setdefault(one.stage, {})[each.figure] = comparison_facts(one)
    return found


def flush_text(figure: FlushFigure) -> str:
    """The figure with its spread, e.g. `208 µs (173 µs to 652 µs)`."""
    return f"{ns_text(figure.flush.mid)}{_spread(figure.flush, ns_text)}"


def rates_text(rates: Span) -> str:
    """Rates a second with their spread, e.g. `4,802/s (1,535 to 5,780)`."""
    return f"{count_text(rates.mid)}/s{_spread(rates, count_text)}"


def _spread(span: Span, text: Callable[[float], str]) -> str:
    """From the lowest to the highest; nothing of what was measured once."""
    return "" if span.n == 1 else f" ({text(span.low)} to {text(span.high)})"


def limit(clients: int, figure: FlushFigure) -> Span:
    """The rate that flushes allow so many clients, transactions taking no time at all."""
    flush = figure.flush
    mid, low, high = (flush_limit_per_s(clients, ns) for ns in (flush.mid, flush.high, flush.low))
    return Span(mid, low, high, flush.n)


def verdict_table(probed: Probed) -> tuple[Table, ...]:
    """Every path against the first, figure by figure; none of one path, or without rounds."""
    found = verdicts(probed)
    if not found:
        return ()
    base = probed.floors[0].path
    heads = (
        Column("path", align="left"), Column("rate", align="left"), Column(f"to {base}"),
        Column(f"{words.confidence(CONFIDENCE)} interval"), Column("rounds"),
        Column("verdict", align="left"),
    )  # fmt: skip
    rows = tuple(
        (
            Cell(path), Cell(figure), Cell(words.ratio(one)), Cell(words.interval(one)),
            Cell(str(one.rounds)), Cell(one.verdict, tone(one), note=one.reason),
        )
        for path, figures in found.items()
        for figure, one in figures.items()
    )  # fmt: skip
    return (Table(f"Against {base}: rounds of probes in turn over all paths", heads, rows),)


def doubt_text(doubt: Doubt) -> str:
    """A doubt as a paragraph."""
    return f"{doubt.fact}. {doubt.hint}"


def _of_path(floor: Floor, probed: Probed) -> str:
    figure = flush_figure(floor, probed)
    commits, many = figure.commits, limit(_MANY_CLIENTS, figure)
    found = iops_knee(floor, "random read")
    probes = plural(figure.flush.n, "probe")
    return (
        f"{floor.path}: a flush of one page takes {ns_text(figure.flush.mid)}"
        f" ({ns_text(figure.flush.low)} to {ns_text(figure.flush.high)} in {probes}), so one client"
        f" commits at most {count_text(commits.mid)} times a second ({count_text(commits.low)} to"
        f" {count_text(commits.high)}), {plural(_MANY_CLIENTS, 'client')}"
        f" {count_text(many.mid)} where CPU allows; random reads reach"
        f" {count_text(found.peak.per_s)}/s, near that with {found.knee.outstanding} under way."
    )


def _against(path: str, found: dict[str, Comparison]) -> str:
    """A sentence of verdicts, those that agree together."""
    by_verdict: dict[str, list[str]] = {}
    for figure, one in found.items():
        said = f"{figure} {words.ratio(one)} ({words.interval(one)})"
        by_verdict.setdefault(one.verdict, []).append(said)
    first = next(iter(found.values()))
    told = "; ".join(f"{verdict} in {listed(each)}" for verdict, each in by_verdict.items())
    return (
        f"{path} against {first.base}, {plural(first.rounds, 'round')},"
        f" {words.confidence(first.confidence)} intervals: {told}."
    )
