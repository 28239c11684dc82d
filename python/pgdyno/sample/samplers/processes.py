"""A server on this host by roles of its processes: CPU, waiting for one, bytes read and written.

`server.cpu_s` is all of it, those included that have ended. Of a process that ended between two
looks the last part is in no role, but in `process.unseen`, so that CPU time and bytes add up.
Parallel workers count as backends. `wait_cpu_s` needs a kernel with CONFIG_SCHED_INFO (nearly all
have it), the bytes one with CONFIG_TASK_IO_ACCOUNTING and the right to trace the processes. Cost:
450 µs beside a full load, for twenty processes.
"""

from __future__ import annotations

from pathlib import Path

from pgdyno.sample.lacking import not_seen
from pgdyno.sample.process_files import Usage
from pgdyno.sample.process_roles import ROLES, ServerProcesses
from pgdyno.sample.sampler import Column, Found, Missing, Row, Sampler, Subject

_UNITS = {"cpu_s": "s", "wait_cpu_s": "s", "read_bytes": "B", "write_bytes": "B"}
_FILE_OF = {"wait_cpu_s": "schedstat", "read_bytes": "io", "write_bytes": "io"}
_OF_THE_REAPED = ("cpu_s", "read_bytes", "write_bytes")  # that the kernel tells of them
_LACKING = {
    "schedstat": Missing("waiting for a CPU by process", "the kernel keeps no /proc/PID/schedstat",
                         "Use a kernel with CONFIG_SCHED_INFO."),
    "io": Missing("bytes read and written by process", "/proc/PID/io of the server is not readable",
                  "Run pgdyno as root, or as the user that runs the server."),
}  # fmt: skip
_NAME = "processes of the server"
_IO_METHODS = 18  # the first major version with them


def sampler(subject: Subject, proc: Path = Path("/proc")) -> Found:
    """Missing where its processes are not to be seen; None where there is no server."""
    if (postmaster := subject.postmaster_pid) is None:
        if subject.session is None:
            return None
        return not_seen(subject.session, _NAME)
    try:
        processes = ServerProcesses(
            proc, postmaster, subject.own_pids, threads=_has_threads(subject)
        )
    except FileNotFoundError as error:
        return Missing(_NAME, f"the kernel has no {error.filename}",
                       "Use a kernel with CONFIG_PROC_CHILDREN.")  # fmt: skip
    names = processes.names
    fields = [one for one in Usage._fields if one not in _FILE_OF or _FILE_OF[one] in names]
    reaped = [one for one in fields if one in _OF_THE_REAPED]

    def take() -> Row:
        processes.look()
        row: Row = {
            "server.cpu_s": processes.server_cpu_s,
            **{f"process.unseen.{field}": getattr(processes.unseen, field) for field in reaped},
        }
        for role, (count, usage) in processes.by_role().items():
            row[f"process.{role}.count"] = count
            for field in fields:
                row[f"process.{role}.{field}"] = getattr(usage, field)
        return row

    columns = [Column("server.cpu_s", "s")]
    columns += [Column(f"process.unseen.{field}", _UNITS[field]) for field in reaped]
    for role in ROLES:
        columns.append(Column(f"process.{role}.count", "1", "gauge"))
        columns += [Column(f"process.{role}.{field}", _UNITS[field]) for field in fields]
    lacking = [missing for name, missing in _LACKING.items() if name not in names]
    return [Sampler("processes", tuple(columns), take, budget_us=2000.0), *lacking]


def _has_threads(subject: Subject) -> bool:
    """Whether the kernel works for the server's processes in threads of theirs."""
    if subject.session is None or (subject.major or 0) < _IO_METHODS:
        return False
    row = subject.session.execute("SHOW io_method").fetchone()
    return row is not None and row[0] == "io_uring"
