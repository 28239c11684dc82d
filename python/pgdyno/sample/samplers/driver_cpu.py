"""The processes of this host that make the load: CPU of all threads, waits for one, their number.

Before it runs it has used nothing; what a thread used until it was last seen stays when it ends.
Where all had ended before any of them was seen, nothing is known, and there is no sample.
Source: Linux, Documentation/scheduler/sched-stats.rst. Cost: 110 µs beside a full load.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from pgdyno.sample.followed import Followed
from pgdyno.sample.process_files import parse_schedstat
from pgdyno.sample.sampler import Column, Missing, Row, Sampler, Subject

_COLUMNS = (
    Column("driver.cpu_s", "s"),
    Column("driver.wait_cpu_s", "s"),
    Column("driver.threads", "1", "gauge"),
)


def _threads(proc: Path, pids: Sequence[int]) -> Iterator[str]:
    """Their files."""
    for pid in pids:
        with suppress(OSError):  # the process has ended
            yield from [_thread(proc, pid, name) for name in os.listdir(f"{proc}/{pid}/task")]


def _thread(proc: Path, pid: int, thread: int | str) -> str:
    return f"{proc}/{pid}/task/{thread}/schedstat"


def sampler(subject: Subject, proc: Path = Path("/proc")) -> Sampler | Missing | None:
    """None where no server is driven, or none from here; missing without schedstat."""
    if subject.session is None or (pids := subject.driver_pids) is None:
        return None
    if not (proc / "self" / "schedstat").exists():
        return Missing("CPU of the driver while it runs", "the kernel keeps no /proc/PID/schedstat",
                       "Use a kernel with CONFIG_SCHED_INFO.")  # fmt: skip
    threads = Followed(parse_schedstat)

    def take() -> Row:
        begun = pids()
        # A process's first thread is there as long as it is; its number may be a stranger's then.
        own = [pid for pid in begun if _thread(proc, pid, pid) not in threads.ended]
        threads.look(_threads(proc, own))
        if begun and not threads.there and not threads.ended:
            return {}
        values = (*threads.used, threads.there)
        return {column.name: value for column, value in zip(_COLUMNS, values, strict=True)}

    return Sampler("driver cpu", _COLUMNS, take)
