r"""What does the guard take of a machine, while it watches a pair under load?

    python benches/guard_cost.py --seconds 60 --out guard.json
    python benches/guard_cost.py --seconds 12                           # does it work at all?

Method. `pgdyno run` drives TPC-B against a guarded stage, without telemetry. Meanwhile the CPU time
of `pgdyno guard watch`, of the processes that it starts, and of the server's sessions in database
`postgres` of primary and standby, which are the guard's, is read from /proc every second that the
load is driven. The cost is that CPU time by all of the machine's: with no CPU idle, so much of the
throughput; with idle ones, less.

Limits. What reading a heartbeat does to caches is in none of it. The standby itself is no part of
the guard's cost: who has a guard has one anyway.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
from measure import Command, Failure, keep, table
from package import package_exit_code
from scipy import stats

from pgdyno.store.run_file import RunFile

PLAN = """
name = "guard-cost"
question = "What does watching take?"

[target]
kind = "embedded"

[workload]
kind = "tpcb"
scale = 20
connections = 8

[protocol]
rounds = 1
warmup_s = 5
window_s = {seconds}
telemetry = "none"

[[stage]]
name = "guarded"
why = "It is watched."
guard = true
settings = {{ full_page_writes = false }}
"""
DAEMON, SESSIONS = "daemon", "its sessions"


@dataclass(frozen=True, slots=True)
class Second:
    """CPU seconds that a second of the load took."""

    ended_ns: int  # by the clock of the run file
    seconds: float
    daemon: float
    sessions: float
    all: float  # of the machine, idle ones left out


def watchers() -> list[psutil.Process]:
    """`pgdyno guard watch`, and what it started."""
    found = [
        one for one in psutil.process_iter(["cmdline"])
        if {"guard", "watch"} <= set(one.info["cmdline"] or ())
    ]  # fmt: skip
    return [*found, *(child for one in found for child in one.children(recursive=True))]


def sessions() -> list[psutil.Process]:
    """Of servers, in database `postgres`: the load has one of its own."""
    return [
        one for one in psutil.process_iter(["cmdline"])
        if " ".join(one.info["cmdline"] or ()).startswith("postgres: postgres postgres ")
    ]  # fmt: skip


def cpu_s(processes: Sequence[psutil.Process]) -> dict[tuple[int, float], float]:
    """CPU time of those that still run, by identity."""
    found = {}
    for one in processes:
        try:
            times = one.cpu_times()
            found[one.pid, one.create_time()] = times.user + times.system
        except psutil.Error:
            continue
    return found


def grown(before: dict[tuple[int, float], float], now: dict[tuple[int, float], float]) -> float:
    """CPU seconds since; of a process that is new, all of them."""
    return sum(value - before.get(key, 0.0) for key, value in now.items())


def busy_s() -> float:
    """CPU time of the machine that was not idle."""
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - times.iowait - times.guest - times.guest_nice)


def watched(command: Command) -> Iterator[Second]:
    """Each second in which the guard and its sessions are there."""
    before, at = None, time.monotonic()
    while command.wait(1.0) is None:
        now = cpu_s(watchers()), cpu_s(sessions()), busy_s()
        passed, at = time.monotonic() - at, time.monotonic()
        if before is not None and now[0] and now[1]:
            yield Second(time.time_ns(), passed, grown(before[0], now[0]), grown(before[1], now[1]),
                         now[2] - before[2])  # fmt: skip
        before = now if now[0] else None


def shown(found: Sequence[Second]) -> str:
    """Means with intervals, of one CPU and of the machine."""
    cpus = os.cpu_count() or 1
    rows = []
    for name, values in (
        (DAEMON, [one.daemon / one.seconds for one in found]),
        (SESSIONS, [one.sessions / one.seconds for one in found]),
        ("both", [(one.daemon + one.sessions) / one.seconds for one in found]),
        ("all of the machine", [one.all / one.seconds for one in found]),
    ):
        mean = float(np.mean(values))
        half = float(stats.sem(values) * stats.t.ppf(0.975, len(values) - 1))
        low, high = mean - half, mean + half
        rows.append([name, f"{mean:.2%} ({low:.2%} to {high:.2%})",
                     f"{mean / cpus:.2%} ({low / cpus:.2%} to {high / cpus:.2%})"])  # fmt: skip
    head = ["CPU time", "of one CPU (95 %)", f"of {cpus} CPUs (95 %)"]
    return table(head, rows) + f"\n\nOver {len(found)} seconds, of which each is one value."


def measure(asked: argparse.Namespace) -> None:
    """Run the load, read what is taken, say it.

    Raises:
        Failure: The run failed, or the guard was seen too seldom.
    """
    with tempfile.TemporaryDirectory() as folder:
        plan = Path(folder) / "plan.toml"
        plan.write_text(PLAN.format(seconds=asked.seconds))
        words = [sys.executable, "-m", "pgdyno", "run", str(plan), "--out", f"{folder}/run.sqlite"]
        with Command(words, Path(folder) / "output", os.environ) as command:
            found = list(watched(command))
            if command.code() != 0:
                raise command.failure("failed")
        with RunFile.read(Path(folder) / "run.sqlite") as run:
            result = run.trials()[0].result
    if result is None:
        raise Failure("the trial has no numbers", "Run the plan of this file by hand.")
    begin_ns, end_ns = result.window_ns
    kept = [one for one in found if begin_ns <= one.ended_ns - one.seconds * 1e9
            and one.ended_ns <= end_ns]  # fmt: skip
    if len(kept) < asked.seconds / 2:
        raise Failure(
            f"the guard was seen in {len(kept)} seconds of {asked.seconds}",
            "Was another one being watched?",
        )
    print(shown(kept))
    keep(asked, "seconds", kept)


def main(given: Sequence[str] | None = None) -> int:
    """Read the command line, measure, say what came out."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=int, default=60, help="of the window")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args(given)
    return package_exit_code(lambda: measure(asked))


if __name__ == "__main__":
    sys.exit(main())
