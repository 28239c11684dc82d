"""What probes of storage learned, as a document: paths side by side, claims beside measurements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict

from rich.console import Group, RenderableType
from rich.text import Text as Line

from pgdyno.analysis.storage_advice import delay_to_try_us, not_known, storage_advice
from pgdyno.analysis.storage_facts import PathFacts, StorageFacts
from pgdyno.analysis.words import RATIO
from pgdyno.model.floor import COMPARED, NO_DISK_KNOWN, PATTERNS, PAUSES_US, Pattern
from pgdyno.model.floor_figures import DEFAULT_METHOD, NEAR_PEAK, PROGRAMS, Doubt
from pgdyno.model.shared_storage import CHANCE, FEELS
from pgdyno.model.text import json_document
from pgdyno.model.units import bytes_text, count_text, ends_text, moment_text, ns_text
from pgdyno.model.wording import listed, plural
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
from pgdyno.report.storage_advice import advice_section, before_advice, doubtful, sentences
from pgdyno.report.storage_answer import (
    answer,
    flush_text,
    from_row,
    rates_text,
    verdict_table,
    warnings,
)
from pgdyno.report.storage_charts import drawings
from pgdyno.report.terminal import printed

_MUCH_LONGER = 1.5
_UNKNOWN = "unknown"
Row = tuple[str, Callable[[PathFacts], str]]


def render_html(facts: StorageFacts) -> str:
    """The page."""
    return render_page(document(facts), drawings(facts), facts.pgdyno, facts.ident)


def render_md(facts: StorageFacts) -> str:
    """The same as Markdown, without charts."""
    return render_markdown(document(facts), facts.pgdyno, facts.ident)


def render_json(facts: StorageFacts) -> str:
    """What was measured, and what it means, in base units."""
    document = {
        "schema": "pgdyno.experiment.storage/2",
        "measured": asdict(facts.measured),
        "derived": [_derived(path) for path in facts.paths],
        "advice": [asdict(one) for one in storage_advice(facts)],
        "not_known": [asdict(one) for one in not_known(facts)],
    }
    return json_document(document)


def summary(facts: StorageFacts) -> RenderableType:
    """What was found, and the tables, for a terminal."""
    parts: list[RenderableType] = [
        Line(f"Warning: {one}", style="yellow") for one in warnings(facts)
    ]
    parts += [Line(sentence, style="bold") for sentence in answer(facts)]
    parts += [printed(table) for table in tables(facts)]
    parts += [Line(f"- {item}", style="dim") for item in limits(facts)]
    if follows := (*sentences(facts), *doubtful(facts)):
        parts += [Line("What follows, to try:", style="bold")]
        parts += [Line(one, style="dim") for one in before_advice(facts)]
        parts += [Line(f"- {item.replace('`', '')}") for item in follows]
    return Group(*parts)


def document(facts: StorageFacts) -> Document:
    """Arrange it for reading."""
    return Document(
        title="What can this storage do?",
        kicker=f"pgdyno storage · {moment_text(facts.started_unix_ns)}",
        label="Own measurement",
        about=_about(facts),
        warnings=warnings(facts),
        answer=tuple(answer(facts)),
        cards=(),
        sections=_sections(facts),
    )


def _sections(facts: StorageFacts) -> tuple[Section, ...]:
    """All of a run in which a path was measured in full; of others what they were made with."""
    made = Points(tuple(limits(facts)))
    if not facts.paths:
        return (Section("paths", "How it is measured", (made,)),)
    return (
        Section("paths", "Side by side", (*tables(facts), made)),
        Section("grid", "Requests under way", (Figure("grid"), Figure("latency"))),
        Section("flush", "Flushes", (Figure("methods"), _sync_table(facts))),
        Section("commits", "Commits", (Figure("commits"), _prediction_text())),
        Section("windows", "All windows", (_grid_table(facts),)),
        advice_section(facts),
    )


def tables(facts: StorageFacts) -> tuple[Table, ...]:
    """Claims, measurements, predictions: a column for each path."""
    if not facts.paths:
        return ()
    return (
        *verdict_table(facts),
        _side_by_side(facts, "Reported by the kernel", _claims()),
        _side_by_side(facts, "Measured", _measured()),
        _side_by_side(
            facts, "Synchronous commits that flushes allow, with CPU enough", _predictions(facts)
        ),
        *_with_transactions(facts),
    )


def limits(facts: StorageFacts) -> list[str]:
    """What the numbers do not say."""
    lines = [
        f"pg_test_fsync and pg_test_timing are those of {facts.programs['PostgreSQL']}; fio is"
        f" {facts.programs['fio']}; reading the clock takes {ns_text(facts.clock.loop_ns)}",
        f"commits are pages brought to storage by {DEFAULT_METHOD}, one after the other; a flush"
        " after rest is told in times of what fio's take back to back",
        f"a knee is the first load that reaches {NEAR_PEAK:.0%} of the highest rate: requests that"
        " each job has under way × jobs",
    ]
    if facts.rounds > 1:
        lines.append(f"{RATIO} beside it")
    for path in facts.paths:
        lines.append(f"{path.path}: {path.cap.fact}")
        lines += _slower_after_rest(path)
        size, memory = path.prepared.size_bytes, path.prepared.memory_bytes
        lines += _through_the_page_cache(path)
        if not path.claims.disks and not path.claims.in_memory:
            lines.append(f"{path.path}: {NO_DISK_KNOWN}")
        if not path.prepared.beyond_memory:
            lines.append(
                f"{path.path}: the file of {bytes_text(size)} fits into memory"
                f" ({bytes_text(memory)}); what lies below this kernel may have cached it"
            )
    lines += _on_one_device(facts) if facts.paths else []
    if facts.wish.quick:
        lines.append("shortened by --quick: windows of a second show no cache that fills up")
    return lines


def _through_the_page_cache(path: PathFacts) -> list[str]:
    """Where the cache is measured, though the probes ask to bypass it; [] where they do."""
    claims = path.claims
    if not path.prepared.direct:
        return [
            f"{path.path}: {claims.file_system} refuses direct I/O, so the page cache is measured,"
            " and the number of requests under way means little"
        ]
    if claims.cached_file and not claims.in_memory:
        return [
            f"{path.path}: the file of {claims.block_device} is used through this kernel's page"
            " cache, whatever the probes ask for, so that reads may come from memory;"
            " `losetup --direct-io=on` makes the device bypass the cache"
        ]
    return []


def _slower_after_rest(path: PathFacts) -> list[str]:
    """How much longer flushes take that do not follow each other at once; [] where they do not."""
    factors = zip(PAUSES_US, path.rest_times, strict=False)
    # The figure of the table, whose middle is the median: one thing is told by one figure.
    pause_us, most = max(factors, key=lambda each: each[1].many.mid, default=(0, None))
    if most is None or most.many.mid < _MUCH_LONGER:
        return []
    told = (
        f"{path.path}: after {pause_us} µs of rest a flush takes {most.many.mid:.2f} times as long"
        " as back to back"
    )
    if most.low is None or most.high is None:
        told += ", measured once"
    else:
        spread = ends_text(most.many.low, most.many.high, 2)
        told += f" ({spread} in {plural(most.many.n, 'round')})"
        if most.faster is None:
            ends = ends_text(most.low, most.high, 2)
            return [f"{told}; its interval, {ends}, holds 1, so that the two cannot be told apart"]
    return [f"{told}, so few clients stay further below the limits than many"]


def _on_one_device(facts: StorageFacts) -> list[str]:
    """Paths that share what they are measured by; [] where they are apart."""
    base, *others = facts.paths
    lines = [
        f"{one.path} and {base.path} lie on one file system: {CHANCE}"
        for one in others
        if one.on_first_device
    ]
    apart = [base, *(one for one in others if not one.on_first_device)]
    for disk in dict.fromkeys(disk for one in apart for disk in one.claims.disks):
        sharing = [one for one in apart if disk in one.claims.disks]
        if len(sharing) > 1:
            places = "; ".join(f"{one.path} {one.claims.place}" for one in sharing)
            lines.append(
                f"{listed([one.path for one in sharing])} share the disk {disk} ({places}): {FEELS}"
            )
    return lines


def _about(facts: StorageFacts) -> tuple[str, ...]:
    wish = facts.wish
    return (
        plural(len(wish.paths), "path"),
        f"a file of {bytes_text(wish.size_bytes)}{' on each' if len(wish.paths) > 1 else ''},"
        " written in full first",
        f"windows of {wish.seconds} s",
        f"{plural(facts.rounds, 'round')} of probes in turn"
        if wish.rounds
        else "each path probed once",
        plural(facts.cpus, "CPU"),
        *facts.programs.values(),
    )


def _side_by_side(facts: StorageFacts, caption: str, rows: Sequence[Row]) -> Table:
    heads = (Column("", align="left"), *(Column(path.path) for path in facts.paths))
    cells = tuple(
        (Cell(name), *(Cell(value(path)) for path in facts.paths)) for name, value in rows
    )
    return Table(caption, heads, cells)


def _claims() -> list[Row]:
    return [
        ("file system", lambda f: f.claims.file_system),
        ("block device", _device),
        ("rotates", lambda f: _yes(f.claims.rotational)),
        ("write cache", lambda f: _known(f.claims.write_cache)),
        ("volatile cache", _volatile),
        ("FUA", lambda f: _yes(f.claims.fua)),
        ("atomic writes", lambda f: _atomic(f.claims.atomic_write_bytes)),
        ("scheduler", lambda f: _known(f.claims.scheduler)),
    ]


def _measured() -> list[Row]:
    rows: list[Row] = [
        ("a flush of one page", lambda f: flush_text(f.flush)),
        ("commits of one client, at most", _at_most(1)),
        *(_program_row(index) for index in range(len(PROGRAMS))),
        ("commits by fio under a checkpoint", lambda f: rates_text(f.under_checkpoint)),
        ("random writes beside these", lambda f: rates_text(f.beside_commits)),
        *(_rested_row(index) for index in range(len(PAUSES_US))),
        (f"two pages by {DEFAULT_METHOD}", lambda f: _method(f, "two-writes", DEFAULT_METHOD)),
        ("fastest method for one page", lambda f: f.fastest_methods["one-write"]),
        ("fastest method for two pages", lambda f: f.fastest_methods["two-writes"]),
    ]
    for pattern in PATTERNS:
        rows += _pattern_rows(pattern)
    return [*rows, ("cap of random reads", lambda f: f.cap.by)]


def _program_row(index: int) -> Row:
    def rates(path: PathFacts) -> str:
        return rates_text(path.flush.programs[index].as_rates())

    return (f"commits by {PROGRAMS[index]}", rates)


def _pattern_rows(pattern: Pattern) -> list[Row]:
    def peak(path: PathFacts) -> str:
        best = path.of_pattern(pattern).found.peak
        return f"{count_text(best.per_s)}/s, {bytes_text(best.bytes_per_s)}/s"

    def knee(path: PathFacts) -> str:
        at = path.of_pattern(pattern).found.knee
        delay = f"p50 {ns_text(at.latency.p50_ns)}, p99 {ns_text(at.latency.p99_ns)}"
        return f"{at.depth} × {at.jobs}: {delay}"

    rows: list[Row] = [(f"{pattern}, fastest window of the grid", peak)]
    if pattern in COMPARED:
        rows.append((f"{pattern}s in rounds, the heaviest load", _in_rounds(pattern)))
    return [*rows, (f"knee of {pattern}", knee)]


def _in_rounds(pattern: Pattern) -> Callable[[PathFacts], str]:
    """What paths are compared by."""

    def rates(path: PathFacts) -> str:
        found = path.heaviest.get(pattern)
        return "not measured" if found is None else rates_text(found)

    return rates


def _rested_row(index: int) -> Row:
    def text(path: PathFacts) -> str:
        if not path.rest_factors:
            return "not measured"
        one = path.rest_factors[index]
        spread = f" ({ends_text(one.low, one.high, 2)})" if one.n > 1 else ""
        return f"×{one.mid:.2f}{spread}"

    return (f"flush after {PAUSES_US[index]} µs of rest", text)


def _with_transactions(facts: StorageFacts) -> tuple[Table, ...]:
    """What CPUs and flushes allow together, where the time of a transaction was told."""
    if facts.wish.transaction_us is None:
        return ()
    caption = (
        f"Synchronous commits with {facts.wish.transaction_us} µs of CPU a transaction,"
        f" {plural(facts.cpus, 'CPU')}"
    )

    def rate(clients: int) -> Callable[[PathFacts], str]:
        def text(path: PathFacts) -> str:
            found = path.of_clients(clients)
            return _UNKNOWN if found.per_s is None else from_row(found.per_s, found.per_s_in_a_row)

        return text

    rows: list[Row] = [(_clients(clients), rate(clients)) for clients in facts.clients]
    return (_side_by_side(facts, caption, rows),)


def _predictions(facts: StorageFacts) -> list[Row]:
    rows: list[Row] = [(_clients(clients), _at_most(clients)) for clients in facts.clients]
    return [*rows, ("commit_delay to try", _delay)]


def _delay(path: PathFacts) -> str:
    delay_us = delay_to_try_us(path)
    if delay_us is None:  # of memory nothing follows below
        return "not known" if path.claims.in_memory else "not known, see below"
    return f"{delay_us} µs" if delay_us else "none, flushes are too short"


def _clients(number: int) -> str:
    return plural(number, "client")


def _at_most(clients: int) -> Callable[[PathFacts], str]:
    def text(path: PathFacts) -> str:
        found = path.of_clients(clients)
        return from_row(found.at_most, found.at_most_in_a_row)

    return text


def _prediction_text() -> Text:
    return Text(
        "One flush is under way at a time; commits that come meanwhile share the next. So one"
        " client reaches one commit a flush, n clients n / 2, as long as CPU allows. commit_delay"
        " is half a flush of one page, PostgreSQL's own advice; the kernel's timer slack (50 µs by"
        " default) is added to it."
    )


def _sync_table(facts: StorageFacts) -> Table:
    first = facts.paths[0].syncs if facts.paths else ()
    names = [(one.test, one.method) for one in first]
    rows: list[Row] = [
        (f"{test}: {method}", lambda f, t=test, m=method: _method(f, t, m))  # type: ignore[misc]
        for test, method in names
    ]
    return _side_by_side(facts, "All of pg_test_fsync", rows)


def _grid_table(facts: StorageFacts) -> Table:
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
            Cell(path.path), Cell(point.pattern), Cell(str(point.depth)), Cell(str(point.jobs)),
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
        for path in facts.paths
        for point in path.grid
    )  # fmt: skip
    return Table("Windows of fio, 8 KiB requests", heads, rows, folded=True)


def _derived(path: PathFacts) -> dict[str, object]:
    return {
        "path": path.path,
        "flush_ns": asdict(path.flush.flush),
        "flush_ns_by_program": {
            name: asdict(span) for name, span in zip(PROGRAMS, path.flush.programs, strict=True)
        },
        "commits_per_s_at_most": {one.clients: asdict(one.at_most) for one in path.commits},
        "commits_per_s_at_most_in_a_row": {
            one.clients: one.at_most_in_a_row for one in path.commits
        },
        "commits_per_s": {one.clients: one.per_s and one.per_s.mid for one in path.commits},
        "commits_per_s_spread": {
            one.clients: one.per_s and asdict(one.per_s) for one in path.commits
        },
        "commits_per_s_in_a_row": {one.clients: one.per_s_in_a_row for one in path.commits},
        "commit_delay_us": path.commit_delay_us,
        "capped_by": asdict(path.cap),
        "knees": {one.pattern: asdict(one.found) for one in path.patterns},
        "disagreements": [_doubt(doubt) for doubt in path.disagreements],
        "doubts": [_doubt(doubt) for doubt in path.doubts],
        "against_first": {name: asdict(one) for name, one in path.against_first.items()},
    }


def _doubt(doubt: Doubt) -> dict[str, str]:
    return {"fact": doubt.fact, "hint": doubt.hint}


def _method(path: PathFacts, test: str, method: str) -> str:
    found = path.sync(test, method)
    if found is None or found.ns is None:
        return "not here"
    return f"{count_text(found.per_s or 0)}/s, {ns_text(found.ns)}"


def _known(value: str | None, otherwise: str = _UNKNOWN) -> str:
    return value or otherwise


def _yes(value: bool | None) -> str:
    return _UNKNOWN if value is None else "yes" if value else "no"


def _device(path: PathFacts) -> str:
    claims = path.claims
    name = _known(claims.block_device, claims.device)
    if claims.backed_by_memory:
        return f"{name}, a file in memory"
    if claims.in_memory:
        return "none"
    return (
        f"{name}, a file on {listed(claims.disks)}"
        if claims.backing_file and claims.disks
        else name
    )


def _volatile(path: PathFacts) -> str:
    cache = path.claims.write_cache
    return _UNKNOWN if cache is None else _yes(cache == "write back")


def _atomic(size_bytes: int | None) -> str:
    if size_bytes is None:
        return _UNKNOWN
    return f"up to {bytes_text(size_bytes)}" if size_bytes else "none promised"
