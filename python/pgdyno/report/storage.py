"""What probes of storage learned, as a document: paths side by side, claims beside measurements."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict

from rich.console import Group, RenderableType
from rich.text import Text as Line

from pgdyno.analysis import words
from pgdyno.model.floor import PATTERNS, PAUSES_US, Floor, Pattern, Probed
from pgdyno.model.text import ascii_json
from pgdyno.model.units import bytes_text, count_text, ns_text
from pgdyno.model.wording import plural
from pgdyno.report.document import (
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
from pgdyno.report.storage_answer import (
    answer,
    flush_text,
    limit,
    rates_text,
    verdict_table,
    verdicts,
    warnings,
)
from pgdyno.report.storage_charts import drawings
from pgdyno.report.terminal import printed
from pgdyno.stats.flush_figure import (
    PROGRAMS,
    Span,
    disagreements,
    flush_figure,
    measured_flush,
    mixed_windows,
    rest_factors,
)
from pgdyno.stats.group_commit import Transaction, commit_delay_us, commit_rate_per_s
from pgdyno.stats.storage import DEFAULT_METHOD, best_sync, cap, doubts, iops_knee

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
        "schema": "pgdyno.experiment.storage/2",
        "measured": asdict(probed),
        "derived": [_derived(floor, probed) for floor in probed.floors],
    }
    return ascii_json(json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)) + "\n"


def summary(probed: Probed) -> RenderableType:
    """What was found, and the tables, for a terminal."""
    parts: list[RenderableType] = [
        Line(f"Warning: {one}", style="yellow") for one in warnings(probed)
    ]
    parts += [Line(sentence, style="bold") for sentence in answer(probed)]
    parts += [printed(table) for table in tables(probed)]
    parts += [Line(f"- {item}", style="dim") for item in limits(probed)]
    return Group(*parts)


def document(probed: Probed) -> Document:
    """Arrange it for reading."""
    return Document(
        title="What can this storage do?",
        kicker=f"pgdyno storage · {words.moment(probed.started_ns)}",
        label="Own measurement",
        about=_about(probed),
        warnings=warnings(probed),
        answer=tuple(answer(probed)),
        cards=(),
        sections=(
            Section("paths", "Side by side", (*tables(probed), Points(tuple(limits(probed))))),
            Section("grid", "Requests under way", (Figure("grid"), Figure("latency"))),
            Section("flush", "Flushes", (Figure("methods"), _sync_table(probed))),
            Section("commits", "Commits", (Figure("commits"), _prediction_text())),
            Section("windows", "All windows", (_grid_table(probed),)),
        ),
    )


def tables(probed: Probed) -> tuple[Table, ...]:
    """Claims, measurements, predictions: a column for each path."""
    return (
        *verdict_table(probed),
        _side_by_side(probed, "What storage claims", _claims()),
        _side_by_side(probed, "What it does", _deeds(probed)),
        _side_by_side(
            probed, "Synchronous commits that flushes allow, with CPU enough", _predictions(probed)
        ),
        *_with_transactions(probed),
    )


def limits(probed: Probed) -> list[str]:
    """What the numbers do not say."""
    lines = [
        f"reading the clock takes {ns_text(probed.clock.loop_ns)}"
        f" ({probed.programs['PostgreSQL']}, {probed.programs['fio']})"
    ]
    for floor in probed.floors:
        lines.append(f"{floor.path}: {cap(floor, probed).fact}")
        lines += _slower_after_rest(floor, probed)
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
    lines += _on_one_device(probed) if probed.floors else []
    if probed.wish.quick:
        lines.append("shortened by --quick: windows of a second show no cache that fills up")
    return lines


def _slower_after_rest(floor: Floor, probed: Probed) -> list[str]:
    """How much longer flushes take that do not follow each other at once; [] where they do not."""
    factors = zip(PAUSES_US, rest_factors(floor, probed), strict=False)
    pause_us, most = max(factors, key=lambda each: each[1].mid, default=(0, None))
    if most is None or most.mid < _MUCH_LONGER:
        return []
    return [
        f"{floor.path}: after {pause_us} µs of rest a flush takes {most.mid:.2f} times as long as"
        f" right after another ({most.low:.2f} to {most.high:.2f} in {plural(most.n, 'round')}), so"
        " few clients stay further below the limits than many"
    ]


def _on_one_device(probed: Probed) -> list[str]:
    """That paths differ by chance alone; [] where they are apart."""
    base, *others = probed.floors
    return [
        f"{one.path} and {base.path} lie on one file system: what differs between them is chance,"
        " or where on it their files lie"
        for one in others
        if one.device_number == base.device_number
    ]


def _about(probed: Probed) -> tuple[str, ...]:
    wish = probed.wish
    return (
        plural(len(wish.paths), "path"),
        f"a file of {bytes_text(wish.size_bytes)} on each, written in full first",
        f"windows of {wish.seconds} s",
        f"{plural(len(probed.rounds), 'round')} of probes in turn"
        if wish.rounds
        else "each path probed once",
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
        ("a flush of one page", lambda f: flush_text(flush_figure(f, probed))),
        ("commits of one client, at most", lambda f: rates_text(flush_figure(f, probed).commits)),
        *(_program_row(index, probed) for index in range(len(PROGRAMS))),
        ("  fio, under a checkpoint", lambda f: rates_text(_under(f, probed))),
        ("  its random writes", lambda f: rates_text(_beside(f, probed))),
        *(_rested_row(index, probed) for index in range(len(PAUSES_US))),
        (f"{DEFAULT_METHOD}, two pages", lambda f: _method(f, "two-writes", DEFAULT_METHOD)),
        ("fastest method, one page", lambda f: best_sync(f, "one-write").method),
        ("fastest method, two pages", lambda f: best_sync(f, "two-writes").method),
    ]
    for pattern in PATTERNS:
        rows += _pattern_rows(pattern)
    return [*rows, ("random reads capped by", lambda f: cap(f, probed).by)]


def _program_row(index: int, probed: Probed) -> Row:
    def rates(floor: Floor) -> str:
        return rates_text(flush_figure(floor, probed).programs[index].as_rates())

    return (f"  {PROGRAMS[index]}, {DEFAULT_METHOD}", rates)


def _under(floor: Floor, probed: Probed) -> Span:
    return Span.of(one.under.per_s for one in mixed_windows(floor, probed))


def _beside(floor: Floor, probed: Probed) -> Span:
    return Span.of(one.writes.per_s for one in mixed_windows(floor, probed))


def _pattern_rows(pattern: Pattern) -> list[Row]:
    def peak(floor: Floor) -> str:
        best = iops_knee(floor, pattern).peak
        return f"{count_text(best.per_s)}/s, {bytes_text(best.bytes_per_s)}/s"

    def knee(floor: Floor) -> str:
        at = iops_knee(floor, pattern).knee
        delay = f"p50 {ns_text(at.latency.p50_ns)}, p99 {ns_text(at.latency.p99_ns)}"
        return f"{at.depth} × {at.jobs}: {delay}"

    return [(pattern, peak), ("  knee, depth × jobs", knee)]


def _rested_row(index: int, probed: Probed) -> Row:
    def text(floor: Floor) -> str:
        factors = rest_factors(floor, probed)
        if not factors:
            return "not measured"
        one = factors[index]
        spread = f" ({one.low:.2f} to {one.high:.2f})" if one.n > 1 else ""
        return f"×{one.mid:.2f}{spread}"

    return (f"  a flush after {PAUSES_US[index]} µs of rest", text)


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
    flush = measured_flush(floor, probed)
    transaction = Transaction(cpu_ns=1000.0 * probed.wish.transaction_us)
    return commit_rate_per_s(clients, flush, transaction, probed.cpus)


def _predictions(probed: Probed) -> list[Row]:
    def delay(floor: Floor) -> str:
        return f"{commit_delay_us(_flush_ns(floor, probed))} µs"

    rows: list[Row] = [(_clients(clients), _limit(clients, probed)) for clients in CLIENTS]
    return [*rows, ("commit_delay to try", delay)]


def _clients(number: int) -> str:
    return plural(number, "client")


def _limit(clients: int, probed: Probed) -> Callable[[Floor], str]:
    return lambda floor: rates_text(limit(clients, flush_figure(floor, probed)))


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
    figure = flush_figure(floor, probed)
    found = verdicts(probed).get(floor.path, {})
    return {
        "path": floor.path,
        "flush_ns": asdict(figure.flush),
        "flush_ns_by_program": {
            name: asdict(span) for name, span in zip(PROGRAMS, figure.programs, strict=True)
        },
        "commits_per_s_at_most": {n: asdict(limit(n, figure)) for n in CLIENTS},
        "commits_per_s": {n: _rate(n, floor, probed) for n in CLIENTS},
        "commit_delay_us": commit_delay_us(figure.flush.mid),
        "capped_by": asdict(cap(floor, probed)),
        "knees": {pattern: asdict(knee) for pattern, knee in knees.items()},
        "disagreements": [asdict(doubt) for doubt in disagreements(floor, probed)],
        "doubts": [asdict(doubt) for doubt in doubts(floor, figure.flush.mid)],
        "against_first": {name: asdict(one) for name, one in found.items()},
    }


def _flush_ns(floor: Floor, probed: Probed) -> float:
    return flush_figure(floor, probed).flush.mid


def _method(floor: Floor, test: str, method: str) -> str:
    found = floor.sync(test, method)
    if found is None or found.ns is None:
        return "not here"
    return f"{count_text(found.per_s or 0)}/s, {ns_text(found.ns)}"


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
