"""What probes of storage learned, in sentences: what warns of it first, then the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pgdyno.analysis import words
from pgdyno.analysis.facts import Comparison
from pgdyno.analysis.storage_facts import PathFacts, StorageFacts
from pgdyno.model.floor import ROUNDS_MAX
from pgdyno.model.floor_figures import FlushFigure, Span
from pgdyno.model.shared_storage import CHANCE, FEELS
from pgdyno.model.units import count_text, ns_text
from pgdyno.model.wording import deciding_rounds, listed, plural
from pgdyno.report.document import Cell, Column, Table
from pgdyno.report.tone import tone

_MANY_CLIENTS = 16


def warnings(facts: StorageFacts) -> tuple[str, ...]:
    """What must be known before the figures are read: sources that disagree, claims in doubt."""
    alike: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for path in facts.paths:
        for one in (*path.disagreements, *path.doubts):
            alike.setdefault((one.what, one.hint), []).append((path.path, one.detail))
    return (
        *((_unfinished(facts),) if facts.left else ()),
        *(f"{doubt.fact}. {doubt.hint}" for doubt in (*facts.busy_doubts, *facts.clock_doubts)),
        *(_of_paths(what, each, hint) for (what, hint), each in alike.items()),
    )


def _unfinished(facts: StorageFacts) -> str:
    """That it is not whole: who stops it leaves word, who goes on or was killed does not."""
    if facts.measured.ended:
        return (
            f"it was stopped ({facts.measured.ended}): {facts.left} were measured. `pgdyno resume`"
            " measures the rest."
        )
    return (
        f"it had not ended when this was written: {facts.left} were measured. If it still runs, it"
        " writes its page at its end; if it was killed, `pgdyno resume` measures the rest."
    )


def _of_paths(what: str, each: Sequence[tuple[str, str]], hint: str) -> str:
    """One warning of all paths that it is true of, with what each of them shows."""
    paths = [path for path, _ in each]
    if len(each) == 1:
        return f"{paths[0]}: {what}: {each[0][1]}. {hint}"
    details = "; ".join(f"{path}: {detail}" for path, detail in each)
    return f"{listed(paths)}: {what} ({details}). {hint}"


def answer(facts: StorageFacts) -> list[str]:
    """A sentence for each path, then one for each that is compared."""
    if not facts.paths:
        return ["Nothing is known yet: no path was measured in full."]
    return [
        *(_of_path(path) for path in facts.paths),
        *(_against(path, facts.paths[0]) for path in _compared(facts)),
    ]


def _compared(facts: StorageFacts) -> tuple[PathFacts, ...]:
    return tuple(path for path in facts.paths if path.against_first)


def flush_text(figure: FlushFigure) -> str:
    """The figure with its spread, e.g. `208 µs (173 µs to 652 µs)`."""
    return f"{ns_text(figure.flush.mid)}{_spread(figure.flush, ns_text)}"


def rates_text(rates: Span) -> str:
    """Rates a second with their spread, e.g. `4,802/s (1,535 to 5,780)`."""
    return f"{count_text(rates.mid)}/s{_spread(rates, count_text)}"


def from_row(rates: Span, in_a_row: float | None) -> str:
    """The same; from commits back to back on, where the figure is of faster ones."""
    begin = "" if in_a_row is None else f"{count_text(in_a_row)} to "
    return f"{begin}{rates_text(rates)}"


def _spread(span: Span, text: Callable[[float], str]) -> str:
    """From the lowest to the highest; nothing of what was measured once."""
    return "" if span.n == 1 else f" ({text(span.low)} to {text(span.high)})"


def verdict_table(facts: StorageFacts) -> tuple[Table, ...]:
    """Every path against the first, figure by figure; none of one path, or without rounds."""
    compared = _compared(facts)
    if not compared:
        return ()
    base = facts.paths[0].path
    first = next(iter(compared[0].against_first.values()))
    heads = (
        Column("path", align="left"), Column("rate", align="left"), Column(f"to {base}"),
        Column(f"{words.confidence(first.confidence)} interval"), Column("rounds"),
        Column("verdict", align="left"),
    )  # fmt: skip
    rows = tuple(
        (
            Cell(path.path), Cell(figure), Cell(words.ratio(one)), Cell(words.interval(one)),
            Cell(str(one.rounds)),
            Cell(one.verdict, tone(one), note=one.reason),
        )
        for path in compared
        for figure, one in path.against_first.items()
    )  # fmt: skip
    return (Table(f"Against {base}: rounds of probes in turn over all paths", heads, rows),)


def _of_path(path: PathFacts) -> str:
    figure = path.flush
    commits, many = figure.commits, path.of_clients(_MANY_CLIENTS).at_most
    probes = plural(figure.flush.n, "probe")
    row = ""
    if figure.faster_otherwise:
        slower = count_text(figure.in_a_row.as_rates().mid)
        fewer = count_text(path.of_clients(_MANY_CLIENTS).at_most_in_a_row or 0)
        row = f" That is {figure.otherwise}: back to back it commits {slower} times a second"
        row += f" and {plural(_MANY_CLIENTS, 'client')} {fewer}."
    return (
        f"{path.path}: a flush of one page takes {ns_text(figure.flush.mid)}"
        f" ({ns_text(figure.flush.low)} to {ns_text(figure.flush.high)} in {probes}), so one client"
        f" commits at most {count_text(commits.mid)} times a second ({count_text(commits.low)} to"
        f" {count_text(commits.high)}) and {plural(_MANY_CLIENTS, 'client')}"
        f" {count_text(many.mid)}, where CPU allows.{row}{_reads(path)}"
    )


def _reads(path: PathFacts) -> str:
    """Of random reads, by single windows; rounds measure the heaviest load more than once."""
    many = path.many_times.get("random read")
    once = " each load was measured once."
    if many is not None:
        once += f" In rounds the heaviest reached {rates_text(many.many)}."
    return f" Random reads reach {_reached(path)};{once}"


def _reached(path: PathFacts) -> str:
    """Without a load beyond the knee nothing is said of what would come there."""
    reads = path.of_pattern("random read")
    peak, knee = reads.found.peak, reads.found.knee
    if knee.outstanding == reads.fastest[-1].outstanding:
        return (
            f"{count_text(knee.per_s)}/s with {knee.outstanding} under way, the most that was tried"
        )
    if path.cap.by == "not known":
        return f"{count_text(peak.per_s)}/s, and whether they stop there is not known"
    if knee.per_s == peak.per_s:
        return f"{count_text(peak.per_s)}/s with {knee.outstanding} under way, and no more beyond"
    return f"{count_text(peak.per_s)}/s, and nearly that with {knee.outstanding} under way"


def _needed(one: Comparison) -> str:
    """How many rounds would decide what is not decided; nothing where that is not within reach."""
    if one.verdict != "undecided":
        return ""
    if one.rounds_needed is None:
        return "; more rounds than are practical would decide it"
    chance = "; that leaves out 1, and among so many comparisons it may be chance"
    leaves_out_1 = (one.low or 0.0) > 1 or (one.high or 2.0) < 1
    beyond = f" (more than --rounds takes, {ROUNDS_MAX})" * (one.rounds_needed > ROUNDS_MAX)
    return f"{chance * leaves_out_1}; {deciding_rounds(one.rounds_needed, beyond)}"


def _against(path: PathFacts, base: PathFacts) -> str:
    """A sentence of verdicts, those that agree together; of one file system nothing is foretold."""
    found, alike = path.against_first, path.on_first_device
    by_verdict: dict[str, list[str]] = {}
    for figure, one in found.items():
        said = f"{figure} {words.ratio(one)} ({words.interval(one)}{_needed(one)})"
        by_verdict.setdefault(one.verdict, []).append(said)
    first = next(iter(found.values()))
    told = "; ".join(f"{verdict} in {listed(each)}" for verdict, each in by_verdict.items())
    chance = f" Both lie on one file system: {CHANCE}." if alike else ""
    if both := [disk for disk in base.claims.disks if disk in path.claims.disks and not alike]:
        chance = f" Both lie on {listed(both)}: {FEELS}."
    return (
        f"{path.path} against {first.base}, {plural(first.rounds, 'round')},"
        f" {words.confidence(first.confidence)} intervals: {told}.{chance}"
    )
