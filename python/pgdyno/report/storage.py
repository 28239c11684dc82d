"""What probes of storage learned, as a document: paths side by side, claims beside measurements."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict

from rich.console import Group, RenderableType
from rich.text import Text as Line

from pgdyno.analysis import words
from pgdyno.model.floor import PATTERNS, PAUSES_US, Commits, Floor, Pattern, Probed
from pgdyno.model.text import ascii_json
from pgdyno.model.units import bytes_text, count_text, ns_text
from pgdyno.report.document import (
    Block,
    Cell,
    Column,
    Document,
    Figure,
    Points,
    Section,
    Table,
    Text,
)  # fmt: skip
from pgdyno.report.html import render_document as render_page
from pgdyno.report.markdown import render_document as render_markdown
from pgdyno.report.storage_charts import drawings
from pgdyno.report.terminal import printed
from pgdyno.stats.group_commit import (
    Flush,
    Transaction,
    commit_delay_us,
    commit_rate_per_s,
    flush_limit_per_s,
)
from pgdyno.stats.storage import (
    DEFAULT_METHOD,
    Doubt,
    best_sync,
    cap,
    clock_doubts,
    doubts,
    flush_rate,
    iops_knee,
)  # fmt: skip

CLIENTS = (1, 2, 4, 8, 16, 32, 64)
_MUCH_LONGER = 1.5
_NOT_TOLD = "not told"
Row = tuple[str, Callable[[Floor], str]]


def render_html(probed: Probed) -> str:
    """The page."""
    return render_page(document(probed), drawings(probed), probed.pgdyno, probed.ident)


def render_md(probed: Probed) -> str:
    """The same as Markdown, without charts."""
    return render_markdown(document(probed), probed.pgdyno, probed.ident)


def render_json(probed: Probed) -> str:
    """What was measured, and what it means, in base units."""
    document = {
        "schema": "pgdyno.experiment.storage/1",
        "measured": asdict(probed),
        "derived": [_derived(floor, probed) for floor in probed.floors],
    }
    return ascii_json(json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)) + "\n"


def summary(probed: Probed) -> RenderableType:
    """What was found, and the tables, for a terminal."""
    parts: list[RenderableType] = [Line(sentence, style="bold") for sentence in answer(probed)]
    parts += [printed(table) for table in tables(probed)]
    for block in remarks(probed):
        assert isinstance(block, Points)
        style = "yellow" if block.tone == "warn" else "dim"
        parts += [Line(f"- {item}", style=style) for item in block.items]
    return Group(*parts)


def document(probed: Probed) -> Document:
    """Arrange it for reading."""
    return Document(
        title="What can this storage do?",
        kicker=f"pgdyno storage · {words.moment(probed.started_ns)}",
        label="Own measurement",
        about=_about(probed),
        answer=tuple(answer(probed)),
        cards=(),
        sections=(
            Section("paths", "Side by side", (*tables(probed), *remarks(probed))),
            Section("grid", "Requests under way", (Figure("grid"), Figure("latency"))),
            Section("flush", "Flushes", (Figure("methods"), _sync_table(probed))),
            Section("commits", "Commits", (Figure("commits"), _prediction_text())),
            Section("windows", "All windows", (_grid_table(probed),)),
        ),
    )


def answer(probed: Probed) -> list[str]:
    """A sentence for each path."""
    return [
        f"{floor.path}: a flush of one page takes {ns_text(_flush_ns(floor))}, so one client"
        f" commits at most {count_text(flush_limit_per_s(1, _flush_ns(floor)))} times a second,"
        f" 16 clients {count_text(flush_limit_per_s(16, _flush_ns(floor)))} where CPU allows;"
        f" {_knee(floor)}."
        for floor in probed.floors
    ]


def tables(probed: Probed) -> tuple[Table, ...]:
    """Claims, measurements, predictions: a column for each path."""
    return (
        _side_by_side(probed, "What storage claims", _claims()),
        _side_by_side(probed, "What it does", _deeds(probed)),
        _side_by_side(
            probed, "Synchronous commits that flushes allow, with CPU enough", _predictions()
        ),
        *_with_transactions(probed),
    )


def remarks(probed: Probed) -> tuple[Block, ...]:
    """Doubts, and how far the numbers go."""
    lines = [_doubt_text(doubt) for doubt in clock_doubts(probed.clock)]
    lines += [f"{f.path}: {_doubt_text(doubt)}" for f in probed.floors for doubt in doubts(f)]
    blocks: list[Block] = [Points(tuple(lines), tone="warn")] if lines else []
    return (*blocks, Points(tuple(limits(probed))))


def limits(probed: Probed) -> list[str]:
    """What the numbers do not say."""
    lines = [
        f"reading the clock takes {ns_text(probed.clock.loop_ns)}"
        f" ({probed.programs['PostgreSQL']}, {probed.programs['fio']})"
    ]
    for floor in probed.floors:
        lines.append(f"{floor.path}: {cap(floor, probed).fact}")
        lines += _slower_after_rest(floor)
        size, memory = floor.prepared.size_bytes, floor.prepared.memory_bytes
        if not floor.prepared.direct:
            lines.append(
                f"{floor.path}: {floor.claims.file_system} refuses direct I/O, so the page cache"
                " is measured, and the number of requests under way means little"
            )
        if not floor.prepared.beyond_memory:
            lines.append(
                f"{floor.path}: the file of {bytes_text(size)} fits into memory"
                f" ({bytes_text(memory)}); what lies below this kernel may have cached it"
            )
    if probed.wish.quick:
        lines.append("shortened by --quick: windows of a second show no cache that fills up")
    return lines


def _slower_after_rest(floor: Floor) -> list[str]:
    """How much longer flushes take that do not follow each other at once; [] where they do not."""
    if not floor.rested:
        return []
    alone, by_pause = floor.mixed.alone, zip(PAUSES_US, floor.rested, strict=True)
    pause_us, most = max(by_pause, key=lambda each: each[1].ns)
    if most.ns < _MUCH_LONGER * alone.ns:
        return []
    return [
        f"{floor.path}: a flush takes {ns_text(most.ns)} after {pause_us} µs of rest and"
        f" {ns_text(alone.ns)} right after another, so few clients stay further below the limits"
        " than many"
    ]


def _about(probed: Probed) -> tuple[str, ...]:
    wish = probed.wish
    return (
        f"{len(wish.paths)} {'path' if len(wish.paths) == 1 else 'paths'}",
        f"a file of {bytes_text(wish.size_bytes)} on each, written in full first",
        f"windows of {wish.seconds} s",
        f"{probed.cpus} CPUs",
        *probed.programs.values(),
    )


def _side_by_side(probed: Probed, caption: str, rows: Sequence[Row]) -> Table:
    heads = (Column("", align="left"), *(Column(floor.path) for floor in probed.floors))
    cells = tuple(
        (Cell(name), *(Cell(value(floor)) for floor in probed.floors)) for name, value in rows
    )
    return Table(caption, heads, cells)


def _claims() -> list[Row]:
    return [
        ("file system", lambda f: f.claims.file_system),
        ("block device", lambda f: _known(f.claims.block_device, f.claims.device)),
        ("rotates", lambda f: _yes(f.claims.rotational)),
        ("write cache", lambda f: _known(f.claims.write_cache)),
        ("volatile cache", _volatile),
        ("FUA", lambda f: _yes(f.claims.fua)),
        ("atomic writes", lambda f: _atomic(f.claims.atomic_write_bytes)),
        ("scheduler", lambda f: _known(f.claims.scheduler)),
    ]


def _deeds(probed: Probed) -> list[Row]:
    rows: list[Row] = [
        (f"{DEFAULT_METHOD}, one page", lambda f: _method(f, "one-write", DEFAULT_METHOD)),
        (f"{DEFAULT_METHOD}, two pages", lambda f: _method(f, "two-writes", DEFAULT_METHOD)),
        ("fastest, one page", lambda f: best_sync(f, "one-write").method),
        ("fastest, two pages", lambda f: best_sync(f, "two-writes").method),
    ]
    for pattern in PATTERNS:
        rows += _pattern_rows(pattern)
    rows += [
        ("commits alone", lambda f: _commits(f.mixed.alone)),
        ("under a checkpoint", lambda f: _commits(f.mixed.under)),
        ("its random writes", lambda f: f"{count_text(f.mixed.writes.per_s)}/s"),
        *(_rested_row(index) for index in range(len(PAUSES_US))),
        ("random reads capped by", lambda f: cap(f, probed).by),
    ]
    return rows


def _pattern_rows(pattern: Pattern) -> list[Row]:
    def peak(floor: Floor) -> str:
        best = iops_knee(floor, pattern).peak
        return f"{count_text(best.per_s)}/s, {bytes_text(best.bytes_per_s)}/s"

    def knee(floor: Floor) -> str:
        at = iops_knee(floor, pattern).knee
        delay = f"p50 {ns_text(at.latency.p50_ns)}, p99 {ns_text(at.latency.p99_ns)}"
        return f"{at.depth} × {at.jobs}: {delay}"

    return [(pattern, peak), ("  knee, depth × jobs", knee)]


def _rested_row(index: int) -> Row:
    def text(floor: Floor) -> str:
        return ns_text(floor.rested[index].ns) if floor.rested else "not measured"

    return (f"a flush after {PAUSES_US[index]} µs of rest", text)


def _with_transactions(probed: Probed) -> tuple[Table, ...]:
    """What CPUs and flushes allow together, where the time of a transaction was told."""
    if probed.wish.transaction_us is None:
        return ()
    caption = (
        f"Synchronous commits with {probed.wish.transaction_us} µs of CPU a transaction,"
        f" {probed.cpus} CPUs"
    )

    def rate(clients: int) -> Callable[[Floor], str]:
        return lambda floor: f"{count_text(_rate(clients, floor, probed) or 0)}/s"

    rows: list[Row] = [(_clients(clients), rate(clients)) for clients in CLIENTS]
    return (_side_by_side(probed, caption, rows),)


def _rate(clients: int, floor: Floor, probed: Probed) -> float | None:
    """Commits a second with transactions; None: their time was not told."""
    if probed.wish.transaction_us is None:
        return None
    flush = Flush.measured(floor.mixed.alone, floor.rested)
    transaction = Transaction(cpu_ns=1000.0 * probed.wish.transaction_us)
    return commit_rate_per_s(clients, flush, transaction, probed.cpus)


def _predictions() -> list[Row]:
    rows: list[Row] = [(_clients(clients), _limit(clients)) for clients in CLIENTS]
    rows.append(("commit_delay to try", lambda f: f"{commit_delay_us(_flush_ns(f))} µs"))
    return rows


def _clients(number: int) -> str:
    return f"{number} {'client' if number == 1 else 'clients'}"


def _limit(clients: int) -> Callable[[Floor], str]:
    return lambda floor: f"{count_text(flush_limit_per_s(clients, _flush_ns(floor)))}/s"


def _prediction_text() -> Text:
    return Text(
        "One flush is under way at a time; commits that come meanwhile share the next. So one"
        " client reaches one commit a flush, n clients n / 2, as long as CPU allows. commit_delay"
        " is half a flush of one page, PostgreSQL's own advice; the kernel's timer slack (50 µs by"
        " default) is added to it."
    )


def _sync_table(probed: Probed) -> Table:
    first = probed.floors[0].syncs if probed.floors else ()
    names = [(one.test, one.method) for one in first]
    rows: list[Row] = [
        (f"{test}: {method}", lambda f, t=test, m=method: _method(f, t, m))  # type: ignore[misc]
        for test, method in names
    ]
    return _side_by_side(probed, "All of pg_test_fsync", rows)


def _grid_table(probed: Probed) -> Table:
    heads = tuple(
        Column(head, unit, "left" if head in ("path", "pattern") else "right")
        for head, unit in (
            ("path", None), ("pattern", None), ("depth", None), ("jobs", None), ("rate", "1/s"),
            ("p50", None), ("p95", None), ("p99", None), ("p99.9", None), ("max", None),
            ("CPU a job", "%"),
        )
    )  # fmt: skip
    rows = tuple(
        (
            Cell(floor.path), Cell(point.pattern), Cell(str(point.depth)), Cell(str(point.jobs)),
            Cell(count_text(point.per_s)),
            *(
                Cell(ns_text(ns))
                for ns in (
                    point.latency.p50_ns, point.latency.p95_ns, point.latency.p99_ns,
                    point.latency.p999_ns, point.latency.max_ns,
                )
            ),
            Cell(f"{point.cpu_share:.0%}".rstrip("%")),
        )
        for floor in probed.floors
        for point in floor.grid
    )  # fmt: skip
    return Table("Windows of fio, 8 KiB requests", heads, rows, folded=True)


def _derived(floor: Floor, probed: Probed) -> dict[str, object]:
    knees = {pattern: iops_knee(floor, pattern) for pattern in PATTERNS}
    return {
        "path": floor.path,
        "commits_per_s_at_most": {n: flush_limit_per_s(n, _flush_ns(floor)) for n in CLIENTS},
        "commits_per_s": {n: _rate(n, floor, probed) for n in CLIENTS},
        "commit_delay_us": commit_delay_us(_flush_ns(floor)),
        "capped_by": asdict(cap(floor, probed)),
        "knees": {pattern: asdict(knee) for pattern, knee in knees.items()},
        "doubts": [asdict(doubt) for doubt in doubts(floor)],
    }


def _flush_ns(floor: Floor) -> float:
    return flush_rate(floor).ns or 0.0


def _knee(floor: Floor) -> str:
    found = iops_knee(floor, "random read")
    return (
        f"random reads reach {count_text(found.peak.per_s)}/s, near that with"
        f" {found.knee.outstanding} under way"
    )


def _doubt_text(doubt: Doubt) -> str:
    return f"{doubt.fact}. {doubt.hint}"


def _method(floor: Floor, test: str, method: str) -> str:
    found = floor.sync(test, method)
    if found is None or found.ns is None:
        return "not here"
    return f"{count_text(found.per_s or 0)}/s, {ns_text(found.ns)}"


def _commits(found: Commits) -> str:
    flush = f"flush p50 {ns_text(found.flush.p50_ns)}, p99 {ns_text(found.flush.p99_ns)}"
    return f"{count_text(found.per_s)}/s, {flush}"


def _known(value: str | None, otherwise: str = _NOT_TOLD) -> str:
    return value or otherwise


def _yes(value: bool | None) -> str:
    return _NOT_TOLD if value is None else "yes" if value else "no"


def _volatile(floor: Floor) -> str:
    cache = floor.claims.write_cache
    return _NOT_TOLD if cache is None else _yes(cache == "write back")


def _atomic(size_bytes: int | None) -> str:
    if size_bytes is None:
        return _NOT_TOLD
    return f"up to {bytes_text(size_bytes)}" if size_bytes else "none promised"
