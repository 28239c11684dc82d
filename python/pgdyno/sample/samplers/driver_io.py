"""The processes of this host that make the load: bytes that they read from disks and write there.

What they say to a server over a socket is not in it: this is what they take of the disks beside
the server, e.g. pgbench for its log. Before it runs it has used nothing; what a process had used
when it was last seen stays when it ends; of one that ended before it was ever seen nothing is
known, and there is no sample from then on. Source: proc_pid_io(5). A kernel has it with
CONFIG_TASK_IO_ACCOUNTING. Cost: 10 µs a process.
"""

from __future__ import annotations

from pathlib import Path

from pgdyno.sample.followed import Followed
from pgdyno.sample.process_files import parse_io
from pgdyno.sample.sampler import Column, Missing, Row, Sampler, Subject

_COLUMNS = (Column("driver.read_bytes", "B"), Column("driver.write_bytes", "B"))


def sampler(subject: Subject, proc: Path = Path("/proc")) -> Sampler | Missing | None:
    """None where no server is driven, or none from here; missing where the kernel has none."""
    if subject.session is None or (pids := subject.driver_pids) is None:
        return None
    if not (proc / "self" / "io").exists():
        return Missing("bytes read and written by the driver", "the kernel keeps no /proc/PID/io",
                       "Use a kernel with CONFIG_TASK_IO_ACCOUNTING.")  # fmt: skip
    processes = Followed(parse_io)

    def take() -> Row:
        paths = [f"{proc}/{pid}/io" for pid in pids()]
        # A number that is given to a new process is none of the driver's.
        processes.look(path for path in paths if path not in processes.ended)
        if processes.unseen:
            return {}
        return {c.name: float(value) for c, value in zip(_COLUMNS, processes.used, strict=True)}

    return Sampler("driver io", _COLUMNS, take)
