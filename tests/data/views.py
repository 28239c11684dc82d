"""What the server's views told and who blocked whom, made up: for pages that have all of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from pgdyno.analysis.facts import Facts
from pgdyno.analysis.session_facts import Blocking, Queue
from pgdyno.analysis.view_facts import (
    AioRow,
    BufferRow,
    BufferUse,
    FreezeRow,
    FreezeUse,
    IndexRow,
    IndexUse,
    IoRow,
    IoUse,
    Level,
    LevelRow,
    ProgressRow,
    ProgressUse,
    ServerViews,
    SlotRow,
    SlotUse,
    SlruRow,
    SlruUse,
    StandbyRow,
    StandbyUse,
)

Use = TypeVar("Use")
LONG = "wal_compression_and_full_page_writes_with_checksums_of_the_second"
READS = IoUse(
    {"reads": 1_234.0, "writes": 567.8, "extends": 12.3, "fsyncs": 0.04, "evictions": 1_111.0,
     "reuses": 321.0, "hits": 123_456.0},
    {"reads": 10.1e6, "writes": 4.65e6, "extends": 100_762.0},
    {"reads": 0.000123, "writes": 0.0000456, "fsyncs": 0.00789},
)  # fmt: skip
LOST = IoUse({"reads": 0.0, "writes": 0.0}, {}, {})


def views(stages: int) -> ServerViews:
    """Rows of every view; of the last stage some were not read."""

    def each(use: Use) -> tuple[Use | None, ...]:
        return (*(use,) * (stages - 1), None) if stages > 1 else (use,)

    return ServerViews(
        io=tuple(
            IoRow(process, of, context, (READS,) * (stages - 1) + (LOST,))
            for process, of, context in (
                ("client backend", "relation", "normal"),
                ("autovacuum worker", "relation", "vacuum"), ("walwriter", "wal", "normal"),
            )
        ),
        slru=(SlruRow("multixact_member", each(SlruUse(12_345.0, 12.3, 0.45))),),
        buffers=tuple(
            BufferRow(f"{LONG}_{number}" if number else "", "index" if number else "unused",
                      each(BufferUse(100_000.0, 123_456.0, 0.123, 4_567.0, 3.4)))
            for number in range(20)
        ),
        indexes=tuple(
            IndexRow(f"{LONG}_pkey_{number}", LONG,
                     each(IndexUse(12_345.0 * number, 23_456.0 * number, 1.2e9, 3.4e6,
                                   2_345.0 * number)))
            for number in range(3)
        ),
        levels=(
            LevelRow("sessions", "sessions idle in a transaction", "1", each(Level(1.23, None))),
            LevelRow("sessions", "oldest transaction", "s", each(Level(12.3, 3_456.0))),
            LevelRow("sessions", "prepared transactions", "1", each(Level(0.0, 0.0))),
            LevelRow("sessions", "WAL inserted and not flushed", "B", each(Level(1e5, 2e6))),
            LevelRow("replication", "WAL that a slot keeps", "B", each(Level(3e8, 6e9))),
        ),
        slots=(SlotRow(LONG, "physical", each(SlotUse("reserved, active", 3e9, 6e7, 1_234.0))),),
        standbys=(
            StandbyRow(LONG, each(StandbyUse("streaming, async", 0.001, 0.02, None, 0.0, 3e7))),
        ),
        progress=(
            ProgressRow("create_index", each(ProgressUse(
                34.0, ((LONG, "building index: scanning table", 21.0), ("", "", 13.0)), 0.83))),
        ),
        aio=(AioRow("readv", "SUBMITTED", "smgr", each(0.56)),),
        freeze=(
            FreezeRow("", each(FreezeUse(123_456_789.0, 2e8))),
            FreezeRow(LONG, each(FreezeUse(12_345.0, None))),
        ),
        read=("pg_stat_io", "buffers", "indexes", "slots", "standbys", "progress", "aio"),
    )  # fmt: skip


def with_views(facts: Facts) -> Facts:
    """The facts with all views, statements that lead, and queues for locks in the first stage."""
    waits = Blocking(
        "payment", LONG, "transactionid", "ShareLock", f"pgdyno.{LONG}", "new_order",
        LONG, "idle in transaction", {"client": 0.7, "cpu_wait": 0.3}, 0.5, 0.4, 0.7, 1_234.5, 4,
    )  # fmt: skip
    first, *others = facts.sessions
    queue = Queue(17, 2, 14.2, ("client", "cpu_wait"))
    return replace(
        facts,
        views=views(len(facts.stages)),
        sessions=(replace(first, blocking=(waits,), deepest=queue), *others),
        statements=tuple(
            replace(one, leads={"calls": 1, "WAL": 3, "blocks read": 2}) for one in facts.statements
        ),
    )
