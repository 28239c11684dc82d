"""The servers that the workload was divided over: what each held, did and counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pgdyno.analysis import words
from pgdyno.analysis.facts import Facts
from pgdyno.analysis.server_facts import ServerRow, ServersFacts
from pgdyno.model.units import at_least_text, bytes_text, count_text, share_text
from pgdyno.model.wording import plural
from pgdyno.report.document import Block, Cell, Column, Section, Table, Text
from pgdyno.report.sections.shape import TIMES

_HOW = {
    "alike": "Each server had the data, connections and terminals of the workload for itself, and"
    " terminals of its own numbers.",
    "block": "One TPC-C was divided: each server had a block of the warehouses, with their"
    " terminals and an even part of the connections. What is remote was drawn among the warehouses"
    " of the same server, so that no transaction reached two: see the deviations.",
}


def section(facts: Facts) -> Section | None:
    """By stage and server; None: there was one."""
    if facts.servers is None:
        return None
    return Section("servers", "Servers", tuple(_blocks(facts, facts.servers)))


def _blocks(facts: Facts, servers: ServersFacts) -> Iterator[Block]:
    yield Text(
        f"{_HOW[servers.share]} Counts of all servers are added up, and percentiles of the report"
        " are those of all requests; each server was sampled and checked for itself."
    )
    yield Table(
        f"What was asked of each server: medians of rounds; response times of"
        f" {words.kind(facts.main_kind)}, rounds merged.",
        (Column("stage", align="left"), Column("server", align="left"),
         Column("holds", align="left"), Column(facts.headline), Column("of all"),
         *(Column(name) for name in TIMES)),
        tuple(_asked(row) for row in servers.rows),
    )  # fmt: skip
    yield Table(
        f"What each server counted itself, {_whose_commits(servers)}, and what its data were found"
        " to be.",
        (Column("stage", align="left"), Column("server", align="left"),
         Column("version", align="left"), Column("commits", "per s"), Column("WAL", "per s"),
         Column("WAL a transaction"), Column("checkpoints"), Column("consistency", align="left")),
        tuple(_counted(row) for row in servers.rows),
    )  # fmt: skip
    if servers.unlike:
        yield Table(
            "Settings that the servers have otherwise than each other.",
            (Column("setting", align="left"), *(Column(name) for name in servers.names)),
            tuple(
                (Cell(one.name), *(Cell(words.NOTHING if value is None else value)
                                   for value in one.values))
                for one in servers.unlike
            ),
            folded=True,
        )  # fmt: skip


def _whose_commits(servers: ServersFacts) -> str:
    if any(row.commits_are_most and row.commits_per_s is not None for row in servers.rows):
        return (
            "commits without those of pgdyno's own sessions, or, where it is not known how many"
            " these were, as the most that they can have been (≤)"
        )
    return "commits without those of pgdyno's own sessions"


def _asked(row: ServerRow) -> tuple[Cell, ...]:
    times = row.percentiles_ns
    return (
        Cell(row.stage),
        Cell(row.server),
        Cell(row.held),
        Cell(count_text(row.throughput)),
        Cell(share_text(row.share)),
        *(
            Cell(words.NOTHING if times is None else at_least_text(times[at], row.exact_below_ns))
            for at in range(len(TIMES))
        ),
    )


def _counted(row: ServerRow) -> tuple[Cell, ...]:
    return (
        Cell(row.stage),
        Cell(row.server),
        Cell(row.version),
        Cell(_or_nothing(row.commits_per_s, _most_text if row.commits_are_most else count_text)),
        Cell(_or_nothing(row.wal_bytes_per_s, bytes_text)),
        Cell(_or_nothing(row.wal_bytes_per_transaction, bytes_text)),
        Cell(_or_nothing(row.checkpoints, count_text)),
        _consistency(row),
    )


def _most_text(value: float) -> str:
    return f"≤ {count_text(value)}"


def _or_nothing(value: float | None, text: Callable[[float], str]) -> str:
    return words.NOTHING if value is None else text(value)


def _consistency(row: ServerRow) -> Cell:
    if not row.checked:
        return Cell("not checked")
    rounds = plural(row.checked, "round")
    if row.violations:
        return Cell(f"violated by {plural(row.violations, 'row')} in {rounds}", "warn")
    return Cell(f"held in {rounds}")
