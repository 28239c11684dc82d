r"""How fast is WAL read, beside `pg_waldump` on the same files?

    python benches/wal.py data/pg_wal 0/1000028 0/41000000 --pg-waldump BIN/pg_waldump
    python benches/wal.py data/pg_wal 0/1000028 0/3000000 --rounds 3        # does it work at all?

Method. In each round, in turn: `pgdyno.wal` in this process, `pg_waldump --stats=record`, and
`pg_waldump` with its lines into /dev/null, and with none (it reads, checks and tells nothing: how
fast reading is), all on the same range. Files are read once before, so
that they are in the page cache. Printed are bytes of WAL by the second of wall clock and by the
second of CPU, medians and extremes over rounds, and the ratio to pgdyno within each round.

Limits. A `pg_waldump` that starts takes some milliseconds, which ranges of 100 MB and more hide; so
does the import of pgdyno, which is left out. `pgdyno.wal` also keeps first touches, which none of
the others does.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from measure import Command, Failure, Spread, exit_code, rotated, table

import pgdyno

_PATIENCE_S = 3600.0
_MB = 1e6


def cpu_s() -> float:
    """CPU seconds of this process and of its children that ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def dump(program: str, asked: argparse.Namespace, output: Path, *options: str) -> None:
    """Let `pg_waldump` read the range."""
    words = [program, *options, "-p", str(asked.wal), "-s", asked.first, "-e", asked.last]
    with Command(words, output, os.environ) as command:
        if command.wait(_PATIENCE_S) != 0:
            raise command.failure("failed")


def timed(call: Callable[[], object]) -> tuple[float, float]:
    """Seconds of wall clock and of CPU."""
    began, used = time.perf_counter(), cpu_s()
    call()
    return time.perf_counter() - began, cpu_s() - used


def compare(asked: argparse.Namespace) -> None:
    """All rounds, then the table."""
    program = asked.pg_waldump or shutil.which("pg_waldump")
    if program is None:
        raise Failure("there is no pg_waldump in PATH", "Name it with --pg-waldump.")
    with tempfile.TemporaryDirectory() as folder:
        output, nowhere = Path(folder) / "stats", Path(os.devnull)
        calls: dict[str, Callable[[], object]] = {
            "pgdyno.wal": lambda: pgdyno.wal(asked.wal, asked.first, asked.last),
            "pg_waldump --stats=record": lambda: dump(program, asked, output, "--stats=record"),
            "pg_waldump": lambda: dump(program, asked, nowhere),
            "pg_waldump --quiet": lambda: dump(program, asked, nowhere, "--quiet"),
        }
        found = pgdyno.wal(asked.wal, asked.first, asked.last)
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
        for number in range(asked.rounds):
            for name in rotated(list(calls), number):
                times[name].append(timed(calls[name]))
    print(f"{found.bytes} bytes, {found.records} records, PostgreSQL {found.major}\n")
    print(table(["", "MB/s of clock", "MB/s of CPU", "CPU to pgdyno's"], rows(found.bytes, times)))


def rows(bytes_: int, times: dict[str, list[tuple[float, float]]]) -> Sequence[Sequence[str]]:
    """A line for each of them."""
    ours = [cpu for _, cpu in times["pgdyno.wal"]]
    lines = []
    for name, pairs in times.items():
        clock = Spread.of([bytes_ / seconds / _MB for seconds, _ in pairs])
        cpu = Spread.of([bytes_ / seconds / _MB for _, seconds in pairs])
        ratio = Spread.of([theirs / our for (_, theirs), our in zip(pairs, ours, strict=True)])
        lines.append([name, clock.text(0), cpu.text(0), ratio.text(2)])
    return lines


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("wal", type=Path, help="folder of segments")
    parser.add_argument("first", help="begin of the range, e.g. 0/1000028")
    parser.add_argument("last", help="end of the range")
    parser.add_argument("--pg-waldump", help="of the same major")
    parser.add_argument("--rounds", type=int, default=9)
    asked = parser.parse_args()
    return exit_code(lambda: compare(asked))


if __name__ == "__main__":
    sys.exit(main())
