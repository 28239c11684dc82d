"""PgBouncer in front of the server: its CPU, who waits for a session, and for how long in all.

`pooler.cpu_s` and `pooler.wait_cpu_s` are of its process, which has one thread: a whole CPU is all
that it can use. `pooler.wait_s` is the time that all clients together waited for a session of the
server. Of the workload's databases together; its console is none.

Source: PgBouncer, doc/usage.md, SHOW POOLS and SHOW STATS; Linux,
Documentation/scheduler/sched-stats.rst. Cost: 250 µs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

from pgdyno.sample.kernel_file import KernelFile
from pgdyno.sample.process_files import parse_schedstat
from pgdyno.sample.sampler import Column, Row, Sampler, Subject

_CONSOLE = "pgbouncer"
_OF_PROCESS = (Column("pooler.cpu_s", "s"), Column("pooler.wait_cpu_s", "s"))
_LEVELS = {"cl_active": "active", "cl_waiting": "waiting", "sv_active": "busy", "sv_idle": "idle"}
_OF_POOLS = (
    Column("pooler.active", "1", "gauge"),  # clients that have a session of the server
    Column("pooler.waiting", "1", "gauge"),  # clients that wait for one
    Column("pooler.busy", "1", "gauge"),  # sessions of the server that a client has
    Column("pooler.idle", "1", "gauge"),
    Column("pooler.longest_s", "s", "gauge"),  # so long the first of those waits already
    Column("pooler.wait_s", "s"),
    Column("pooler.transactions", "1"),
)


def sampler(subject: Subject, proc: Path = Path("/proc")) -> list[Sampler] | None:
    """None where no pooler of ours stands in front of the server."""
    if subject.pooler is None or subject.pooler_pid is None:
        return None
    file, console = KernelFile(proc / str(subject.pooler_pid) / "schedstat"), subject.pooler

    def process() -> Row:
        ran_s, waited_s = parse_schedstat(file.line())
        return {"pooler.cpu_s": ran_s, "pooler.wait_cpu_s": waited_s}

    def pools() -> Row:
        return pools_row(_asked(console, "SHOW POOLS"), _asked(console, "SHOW STATS"))

    return [Sampler("pooler cpu", _OF_PROCESS, process), Sampler("pooler", _OF_POOLS, pools)]


def _asked(console: psycopg.Connection[Any], question: str) -> list[Mapping[str, Any]]:
    with console.cursor(row_factory=dict_row) as cursor:
        return [*cursor.execute(question.encode())]


def pools_row(pools: Sequence[Mapping[str, Any]], stats: Sequence[Mapping[str, Any]]) -> Row:
    """A take, of what the console says of its pools, and has counted since it began."""
    own = [*_of_load(pools)]
    row = {f"pooler.{name}": float(sum(int(one[column]) for one in own))
           for column, name in _LEVELS.items()}  # fmt: skip
    longest = (float(one["maxwait"]) + float(one["maxwait_us"]) / 1e6 for one in own)
    counted = [*_of_load(stats)]
    return row | {
        "pooler.longest_s": max(longest, default=0.0),
        "pooler.wait_s": sum(int(one["total_wait_time"]) for one in counted) / 1e6,
        "pooler.transactions": float(sum(int(one["total_xact_count"]) for one in counted)),
    }


def _of_load(rows: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    return (one for one in rows if one["database"] != _CONSOLE)
