"""Takes a share of one CPU from everybody, in short slices, at a real-time priority.

Run as `python -m pgdyno.intervention.thief CPU SHARE`. Whoever computes on the CPU meanwhile takes
1 / (1 - SHARE) as long, however many others want it: that is what a quota or a busy neighbour of
ordinary priority does not give. All thieves begin their slices at the same moments, so that no task
escapes to another CPU. Devices go on.

Standard input: lines of `take`, `rest` and `tell`; a line of JSON answers each, with what was taken
until now. The end of standard input ends it.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time

PERIOD_NS = 2_000_000
PRIORITY = 1  # above all that is not real-time
_NS = 1_000_000_000


def main() -> int:
    """Take CPU time until nobody asks any more.

    Returns:
        The exit code: 0.
    """
    cpu, share = int(sys.argv[1]), float(sys.argv[2])
    os.sched_setaffinity(0, {cpu})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    slice_ns, takes, taken_ns, since_ns = round(PERIOD_NS * share), False, 0, time.monotonic_ns()
    _say(0, 0)  # it runs
    while True:
        wait_s = 0.0 if takes else None
        if select.select([sys.stdin], [], [], wait_s)[0]:
            word = sys.stdin.readline().strip()
            if not word:
                return 0
            if word != "tell":
                takes = word == "take"
            _say(taken_ns, time.monotonic_ns() - since_ns)
        if takes:
            taken_ns += _take(slice_ns)


def _take(slice_ns: int) -> int:
    """Sleep to the next period, and take its first part; returns what was taken."""
    begin_ns = (time.monotonic_ns() // PERIOD_NS + 1) * PERIOD_NS
    time.sleep((begin_ns - time.monotonic_ns()) / _NS)
    before_ns = time.thread_time_ns()
    while time.monotonic_ns() < begin_ns + slice_ns:
        pass
    return time.thread_time_ns() - before_ns


def _say(taken_ns: int, elapsed_ns: int) -> None:
    print(json.dumps({"taken_ns": taken_ns, "elapsed_ns": elapsed_ns}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
