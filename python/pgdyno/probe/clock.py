"""pg_test_timing: what reading the clock costs, as EXPLAIN ANALYZE and track_io_timing do it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from pgdyno.model.errors import TargetError
from pgdyno.model.floor import Clock
from pgdyno.model.numbers import finite
from pgdyno.probe.others import children_s
from pgdyno.probe.program import run_probe
from pgdyno.shell import postgres_user

_LOOP = re.compile(r"^Per loop time including overhead: ([\d.]+) ns", re.MULTILINE)
_BUCKET = re.compile(r"^ *(\d+) +[\d.]+ +(\d+)$", re.MULTILINE)


def measure_clock(program: Path, seconds: int) -> Clock:
    """Read the clock for some seconds.

    Args:
        program: pg_test_timing.
        seconds: How long.

    Raises:
        TargetError: It failed.
    """
    before_s = children_s()
    said = run_probe(
        [program, "-d", str(seconds)], timeout_s=30.0 + 2 * seconds, what="test of the clock",
        user=postgres_user(),
    )  # fmt: skip
    return on_cpu(parse_clock(said), children_s() - before_s)


def on_cpu(clock: Clock, cpu_s: float) -> Clock:
    """The same without the time in which the program waited for a CPU that others had.

    pg_test_timing divides the time that passed by the readings, so that on a busy machine the
    clock would seem slow.
    """
    readings = sum(count for _, count in clock.below_us)
    if not readings or not cpu_s:
        return clock
    return replace(clock, loop_ns=min(clock.loop_ns, 1e9 * cpu_s / readings))


def parse_clock(text: str) -> Clock:
    """What pg_test_timing (12 to 18) printed.

    Raises:
        TargetError: It holds no time of a loop.
    """
    loop = _LOOP.search(text)
    if loop is None:
        raise TargetError(f"pg_test_timing printed no time per loop: {text[-300:]!r}")
    try:
        found = _BUCKET.findall(text)
        buckets = tuple((finite(bound), int(finite(count))) for bound, count in found)
        return Clock(finite(loop.group(1)), buckets)
    except ValueError as error:
        raise TargetError(f"pg_test_timing's output is not understood: {error}") from error
