r"""What does it take to import a log of 1 GB: memory, seconds, and what is said meanwhile?

    python benches/imports.py                   # a log of pgbench, a result.csv of BenchmarkSQL
    python benches/imports.py --mb 8 --rounds 1 # does it work at all?

Method. A file of each size has the form of the tool's own: a block of 100,000 transactions
of 64 clients, their latencies around 5 ms with a long tail, one in a thousand failed, again and
again. `pgdyno import FILE --format json` reads it in a process of its own, whose greatest resident
set and CPU seconds the kernel counts. The small file tells what the program takes by itself: memory
is constant if the long one takes as much. What was counted is held against what was written: the
bench fails if they differ. Printed are medians and extremes over rounds.

Limits. The file is in the page cache if memory allows. A real log may have more latencies that
differ than the block has: it then takes more CPU.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from measure import Command, Failure, Spread, exit_code, table

_PATIENCE_S = 4 * 3600.0
_MB = 10**6
_MIB = 1 << 20
_SMALL_MB = 10
_SEED = 18
_CLIENTS = 64
_BLOCK = 100_000  # transactions
_FAILED = 1000  # one transaction in so many
_KINDS = ("NEW_ORDER",) * 45 + ("PAYMENT",) * 43 + ("ORDER_STATUS", "STOCK_LEVEL", "DELIVERY") * 4
_BEGAN_S = 1_795_348_700
_RATE = 20_000  # transactions a second
_PROGRAM = """\
import atexit, resource, runpy, sys
def tell():
    used = resource.getrusage(resource.RUSAGE_SELF)
    peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
    print(used.ru_utime + used.ru_stime, peak, file=sys.stderr)
atexit.register(tell)
sys.stdout = open(sys.argv[1], "w")
sys.argv = ["pgdyno", *sys.argv[2:]]
runpy.run_module("pgdyno", run_name="__main__")
"""
"""The command line, telling at its end what it used; `ru_maxrss` would hold its parent's too."""


Counted = Callable[[dict[str, object]], tuple[int, int]]
"""Transactions and failures of a result as it was imported."""


@dataclass(frozen=True, slots=True)
class Form:
    """A kind of file: how it is written, and what an import of it must have counted."""

    name: str
    head: str
    lines: Callable[[Sequence[int]], Iterator[str]]  # of latencies, µs
    counted: Counted


@dataclass(frozen=True, slots=True)
class Written:
    """A file, and what it holds."""

    path: Path
    size_bytes: int
    ended: int
    failed: int


@dataclass(frozen=True, slots=True)
class Taken:
    """What one import took."""

    clock_s: float
    cpu_s: float
    resident_bytes: int
    said: int  # lines of progress


def pgbench_lines(latencies_us: Sequence[int]) -> Iterator[str]:
    """Lines of `pgbench --log`; one in `_FAILED` is of a failure."""
    for number, us in enumerate(latencies_us):
        took = "failed" if is_failed(number) else str(us)
        at_s, at_us = divmod(number * 1_000_000 // _RATE, 1_000_000)
        client, nth = number % _CLIENTS, number // _CLIENTS
        yield f"{client} {nth} {took} 0 {_BEGAN_S + at_s} {at_us}\n"


def benchmarksql_lines(latencies_us: Sequence[int]) -> Iterator[str]:
    """Rows of `result.csv` of BenchmarkSQL 5."""
    for number, us in enumerate(latencies_us):
        ms, kind = us // 1000, _KINDS[number % len(_KINDS)]
        at_ms, failed = number * 1000 // _RATE, int(is_failed(number))
        yield f"7,{at_ms},{ms},{ms},{kind},0,0,{failed}\n"


def is_failed(number: int) -> bool:
    """Whether a transaction is to fail."""
    return number % _FAILED == _FAILED - 1


def write(path: Path, size_mb: int, form: Form) -> Written:
    """A file of that size: its head, then one block again and again."""
    latencies_us = np.random.default_rng(_SEED).lognormal(1.6, 0.8, _BLOCK) * 1000
    block = "".join(form.lines([int(us) for us in latencies_us]))
    times = max(size_mb * _MB // len(block), 1)
    failed = sum(is_failed(number) for number in range(_BLOCK))
    with path.open("w") as file:
        file.write(form.head)
        for _ in range(times):
            file.write(block)
    return Written(path, path.stat().st_size, times * _BLOCK, times * failed)


def of_pgbench(found: dict[str, object]) -> tuple[int, int]:
    """Transactions and failures as they were imported."""
    counts, failed = found["counts"], found["failed"]
    assert isinstance(counts, dict)
    assert isinstance(failed, int)
    return int(counts["transactions"]) + failed, failed


def of_benchmarksql(found: dict[str, object]) -> tuple[int, int]:
    """The same; rows of failures are among those of their kinds."""
    counts, failed = found["counts"], found["failed"]
    assert isinstance(counts, dict)
    assert isinstance(failed, int)
    return sum(counts.get(f"rows of {kind}", 0) for kind in set(_KINDS)), failed


def imported(written: Written, folder: Path, counted: Counted) -> Taken:
    """Import it by the command line.

    Raises:
        Failure: It failed, or counted something else than was written.
    """
    result = folder / "result.json"
    words = ["import", str(written.path), "--format", "json"]
    began = time.monotonic()
    with Command(
        [sys.executable, "-c", _PROGRAM, str(result), *words], folder / "said", os.environ
    ) as command:
        if command.wait(_PATIENCE_S) != 0:
            raise command.failure("failed")
        took_s = time.monotonic() - began
        *said, used = command.text().splitlines()
    cpu_s, resident_kib = used.split()
    numbers = counted(json.loads(result.read_text())["results"][0])
    if numbers != (written.ended, written.failed):
        raise Failure(
            f"{written.path.name} holds {written.ended} transactions, {written.failed} of them"
            f" failed; imported were {numbers[0]} and {numbers[1]}",
            "The importer or this bench is wrong.",
        )
    return Taken(took_s, float(cpu_s), int(resident_kib) * 1024, len(said))


_FORMS = (
    Form("pgbench, log", "", pgbench_lines, of_pgbench),
    Form(
        "BenchmarkSQL 5, result.csv", "run,elapsed,latency,dblatency,ttype,rbk,dskipped,error\n",
        benchmarksql_lines, of_benchmarksql,
    ),
)  # fmt: skip


def compare(asked: argparse.Namespace) -> None:
    """All files, each imported so often, then the table."""
    rows = []
    with tempfile.TemporaryDirectory(dir=asked.folder) as name:
        folder = Path(name)
        room = shutil.disk_usage(folder).free
        if room < 2 * asked.mb * _MB:
            raise Failure(
                f"{folder.parent} has {room // _MB} MB free, two files of {asked.mb} MB are written"
                " one after the other",
                "Name another folder with --folder.",
            )
        for form in _FORMS:
            for size_mb in sorted({min(_SMALL_MB, asked.mb), asked.mb}):
                path = folder / "log"
                written = write(path, size_mb, form)
                taken = [imported(written, folder, form.counted) for _ in range(asked.rounds)]
                path.unlink()
                rows.append(row(form.name, written, taken))
    heads = ["", "bytes", "transactions", "MiB", "s of CPU", "s of clock", "lines of progress"]
    print(table(heads, rows))


def row(form: str, written: Written, taken: Sequence[Taken]) -> Sequence[str]:
    """A line for one file."""
    return [
        form, f"{written.size_bytes:,}", f"{written.ended:,}",
        Spread.of([one.resident_bytes / _MIB for one in taken]).text(0),
        Spread.of([one.cpu_s for one in taken]).text(1),
        Spread.of([one.clock_s for one in taken]).text(1),
        str(taken[0].said),
    ]  # fmt: skip


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--mb", type=int, default=1000, help="megabytes of each long file")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where files are made, and removed")
    asked = parser.parse_args()
    return exit_code(lambda: compare(asked))


if __name__ == "__main__":
    sys.exit(main())
