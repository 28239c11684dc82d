"""CPU seconds of a server of ours: its postmaster, its children, and those that have ended."""

from __future__ import annotations

from pathlib import Path

from pgdyno.sample.proc_stat import server_cpu_s
from pgdyno.sample.sampler import Column, Sampler, Subject

_COLUMN = Column("server.cpu_s", "s")


def sampler(subject: Subject) -> Sampler | None:
    """None where the server's processes are not known: it is not ours."""
    if (postmaster := subject.postmaster_pid) is None:
        return None
    return Sampler(
        "server cpu", (_COLUMN,), lambda: {_COLUMN.name: server_cpu_s(Path("/proc"), postmaster)}
    )
