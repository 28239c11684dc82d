"""A session of a server of ours that asks for more memory than there is.

Only that session is put into a memory cgroup of its own, below that of its server, so that nobody
else on the machine is short of memory. What takes it is the kernel's own OOM killer.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

from pgdyno.folders import failing
from pgdyno.model.errors import TargetError
from pgdyno.model.system_errors import reason
from pgdyno.model.units import bytes_text
from pgdyno.session import own_session
from pgdyno.target.interface import Ready

_PREFIX = "pgdyno-"
_ROOM_BYTES = 64 << 20
_ASKS = "SELECT length(string_agg(repeat('x', 1024), '')) FROM generate_series(1, 900000)"
_LEAVE_S = 10.0
_HINT = "Drill `kill-backend` instead: the server gets the same signal."
_LIMITS = (("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"),
           ("memory.max", "memory.swap.max"))  # fmt: skip
"""Memory, and memory with swap, in version 1 of cgroups and in version 2."""
_KILLED = ("memory.oom_control", "memory.events")


def require_memory_cgroup() -> None:
    """Refuse what cannot work, before anything is begun.

    Raises:
        TargetError: The kernel gives this process no memory cgroup to divide.
    """
    above = _own_cgroup("self")
    if not os.access(above, os.W_OK):
        raise TargetError(f"the memory cgroup {above} cannot be divided here", _HINT)


def starve(ready: Ready) -> None:
    """Let a session ask for more memory than it may have, until the kernel kills it.

    Args:
        ready: Its server, which is ours.

    Raises:
        TargetError: The kernel kills nothing.
    """
    assert ready.postmaster_pid is not None, "only servers of ours are drilled"
    with _cgroup(_own_cgroup(str(ready.postmaster_pid))) as cgroup:
        try:
            with own_session(ready.connection) as session:
                row = session.execute("SELECT pg_backend_pid()").fetchone()
                assert row is not None
                (cgroup / "cgroup.procs").write_text(str(row[0]))
                session.execute(_ASKS)
        except OSError as error:
            fact = f"a session cannot be put into a memory cgroup: {reason(error)}"
            raise TargetError(fact, _HINT) from error
        except psycopg.Error as error:
            if _killed(cgroup):
                return
            raise TargetError(
                f"a session that asked for more than {bytes_text(_ROOM_BYTES)} ended otherwise than"
                f" by the kernel: {' '.join(str(error).split())}",
                _HINT,
            ) from error
    raise TargetError(f"a session got more than the {bytes_text(_ROOM_BYTES)} of its cgroup", _HINT)


def _own_cgroup(process: str) -> Path:
    """The folder of the memory cgroup that a process is in.

    Raises:
        TargetError: There is none, or it is not mounted.
    """
    with failing(f"read the cgroups of process {process}"):
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
        groups = Path(f"/proc/{process}/cgroup").read_text().splitlines()
    mounted: dict[str, Path] = {}
    for line in mounts:
        fields, _, rest = line.partition(" - ")
        kind, _, options = rest.partition(" ")
        if kind == "cgroup" and "memory" in options.rpartition(" ")[2].split(","):
            mounted["memory"] = Path(fields.split()[4])
        elif kind == "cgroup2":
            mounted.setdefault("", Path(fields.split()[4]))
    for line in sorted(groups, reverse=True):
        _, names, path = line.split(":", 2)
        for wanted in ("memory", ""):
            if wanted in names.split(",") and wanted in mounted:
                found = mounted[wanted] / path.lstrip("/")
                if (found / "cgroup.procs").exists():
                    return found
    raise TargetError("the kernel offers no memory cgroup here", _HINT)


@contextmanager
def _cgroup(above: Path) -> Iterator[Path]:
    """A cgroup with little room, which is gone afterwards."""
    for left in above.glob(f"{_PREFIX}*"):  # of a run that was killed
        with suppress(OSError):
            left.rmdir()
    cgroup = above / f"{_PREFIX}{os.getpid()}"
    try:
        cgroup.mkdir()
        for limit, with_swap in _LIMITS:
            if (cgroup / limit).exists():
                (cgroup / limit).write_text(str(_ROOM_BYTES))
                room = 0 if with_swap == "memory.swap.max" else _ROOM_BYTES
                if (cgroup / with_swap).exists():
                    (cgroup / with_swap).write_text(str(room))
                break
        else:
            raise TargetError(f"the kernel offers no memory cgroup below {above}", _HINT)
    except OSError as error:
        raise TargetError(f"no memory cgroup can be made: {reason(error)}", _HINT) from error
    try:
        yield cgroup
    finally:
        deadline = time.monotonic() + _LEAVE_S
        while cgroup.exists() and time.monotonic() < deadline:
            try:
                cgroup.rmdir()
            except OSError:  # whom the kernel killed is still being waited for
                time.sleep(0.05)


def _killed(cgroup: Path) -> bool:
    """Whether the kernel killed somebody in it for want of memory."""
    for name in _KILLED:
        if (cgroup / name).exists():
            lines = (line.split() for line in (cgroup / name).read_text().splitlines())
            return any(words[0] == "oom_kill" and int(words[1]) > 0 for words in lines)
    return False
