"""What the processes of a server do, by their titles, and what those of each role used together.

Titles are those of `ps`, as every version from 12 to 18 sets them, whatever `update_process_title`
says. The sums only grow: what a process used until it was last seen stays when it ends.

Source: PostgreSQL, src/backend/utils/misc/ps_status.c, and GetBackendTypeDesc of miscinit.c.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from pgdyno.sample.kernel_file import KernelFile
from pgdyno.sample.process_files import (
    ProcessFiles,
    Usage,
    descriptors_to_keep,
    parse_stat,
)

OTHER = "other"
_BACKEND, _TELEMETRY = "backend", "telemetry"
ROLES = (_BACKEND, "checkpointer", "background_writer", "wal_writer", "io_worker", "autovacuum",
         "walsender", "startup", _TELEMETRY, OTHER)  # fmt: skip
"""`telemetry`: sessions of ours that look on; `other`: the postmaster and whoever has no role."""
_TITLES = {
    "checkpointer": "checkpointer", "background writer": "background_writer",
    "walwriter": "wal_writer", "io worker": "io_worker", "autovacuum": "autovacuum",
    "startup": "startup", "parallel worker": "backend",
}  # fmt: skip
_HEAD = re.compile(r"postgres: (?:[^ ].*?: )?")  # with cluster_name, where it is set
_CLIENT = re.compile(r" (?:\[local\]|\S+\(\d+\))(?: |$)")  # where a session comes from


def role_of(title: str) -> str | None:
    """The role of a process; None as long as it has no title of its own."""
    if (head := _HEAD.match(title)) is None:
        return None
    words = title[head.end() :]
    if words.startswith("walsender"):
        return "walsender"
    if _CLIENT.search(words):
        return _BACKEND
    return next((role for start, role in _TITLES.items() if words.startswith(start)), OTHER)


class ServerProcesses:
    """The postmaster and its children, as they come and go."""

    def __init__(
        self, proc: Path, postmaster: int, own: Collection[int] = (), *, threads: bool = False
    ) -> None:
        """Look for the first time.

        Args:
            proc: /proc.
            postmaster: Its number.
            own: Sessions of ours that look on.
            threads: Its processes may have more than one.

        Raises:
            OSError: It is gone, or the kernel does not list the children of a process.
        """
        self._proc = proc
        self._looking = own
        self._own = Usage()  # of the postmaster
        folder = proc / str(postmaster)
        self._children = KernelFile(folder / "task" / str(postmaster) / "children")
        self._stat = KernelFile(folder / "stat")
        self.names = _names_of(folder, threads)
        self._keep = descriptors_to_keep() // len(self.names)
        self._there: dict[int, tuple[str, ProcessFiles]] = {}
        self._last: dict[int, Usage] = {}
        self._ended = dict.fromkeys(ROLES, Usage())
        self._before_known: dict[int, Usage] = {}  # of sessions of ours, as backends
        self._postmaster = ProcessFiles(folder, self.names, keep=True)
        _, self._before = self._read_postmaster()
        self._seen = Usage()  # what those had used that have ended, when they were last seen
        self.unseen = Usage()  # what they used after that
        self.server_cpu_s = 0.0

    def look(self) -> None:
        """Read all of them.

        Raises:
            OSError: The postmaster is gone.
        """
        # First of all: what is reaped by now has ended for all that follows.
        own, reaped = self._read_postmaster()
        for child in self._children.text().split():
            if (pid := int(child)) not in self._there:
                self._meet(pid)
        for pid, (role, files) in list(self._there.items()):
            if role == _BACKEND and pid in self._looking:
                self._is_ours(pid, files)
            try:
                self._last[pid] = files.usage()
            except OSError:
                self._end(pid, role)
        # Who ends between two lines of this function is missing until the next look.
        unseen = reaped.beyond(self._before).beyond(self._seen)
        self.unseen = self.unseen.at_least(unseen)
        living_s = own.cpu_s + sum(usage.cpu_s for usage in self._last.values())
        self.server_cpu_s = max(self.server_cpu_s, reaped.cpu_s + living_s)
        self._own = own

    def _read_postmaster(self) -> tuple[Usage, Usage]:
        """What it used itself, and what its children had used that it waited for.

        The kernel adds the bytes of the latter to its own, which are next to nothing.
        """
        reaped_s = parse_stat(self._stat.line()).reaped_s
        usage = self._postmaster.usage()
        reaped = Usage(reaped_s, 0.0, usage.read_bytes, usage.write_bytes)
        return usage._replace(read_bytes=0, write_bytes=0), reaped

    def _meet(self, pid: int) -> None:
        folder = self._proc / str(pid)
        try:
            role = role_of((folder / "cmdline").read_text(errors="replace"))
            if role is None:  # it was forked a moment ago
                return
            files = ProcessFiles(folder, self.names, keep=len(self._there) < self._keep)
        except OSError:
            return
        self._there[pid] = (_TELEMETRY if pid in self._looking else role, files)

    def _is_ours(self, pid: int, files: ProcessFiles) -> None:
        """A session was met before it was known to look on: what it used so far stays a backend's.

        No role's sum may fall, or how much it grew would not be known.
        """
        usage = self._last.get(pid, Usage())
        self._there[pid] = (_TELEMETRY, files)
        self._before_known[pid] = usage
        self._ended[_BACKEND] = self._ended[_BACKEND].plus(usage)

    def _of_its_role(self, pid: int, usage: Usage) -> Usage:
        before = self._before_known.get(pid)
        return usage if before is None else usage.beyond(before)

    def _end(self, pid: int, role: str) -> None:
        del self._there[pid]
        usage = self._last.pop(pid, Usage())
        own = self._of_its_role(pid, usage)
        self._before_known.pop(pid, None)
        told = Usage(usage.cpu_s, 0.0, usage.read_bytes, usage.write_bytes)
        self._seen = self._seen.plus(told)
        self._ended[role] = self._ended[role].plus(own)

    def living(self) -> dict[int, str]:
        """The roles of the postmaster's children at the last look, by their numbers."""
        return {pid: role for pid, (role, _) in self._there.items()}

    def by_role(self) -> dict[str, tuple[int, Usage]]:
        """How many there are of each role, and what those used together that are or were."""
        counts = dict.fromkeys(ROLES, 0) | {OTHER: 1}  # the postmaster
        sums = self._ended | {OTHER: self._ended[OTHER].plus(self._own)}
        for pid, usage in self._last.items():
            role, _ = self._there[pid]
            counts[role] += 1
            sums[role] = sums[role].plus(self._of_its_role(pid, usage))
        return {role: (counts[role], sums[role]) for role in ROLES}


def _names_of(folder: Path, threads: bool) -> tuple[str, ...]:
    """The files of a process that this kernel has, we may read, and that are worth it."""
    found = []
    for name in ("schedstat", "io"):
        try:
            if KernelFile(folder / name).line():
                found.append(name)
        except OSError:
            continue
    return (*found, "stat") if threads or "schedstat" not in found else tuple(found)
