"""What a process of PostgreSQL does, by the title it gives itself.

Titles are those of `ps` (PostgreSQL documentation, chapter "Monitoring Database Activity"):
`postgres: checkpointer`, with a cluster's name `postgres: main: checkpointer`, of a session
`postgres: user database host activity`. A role's name may be any of these words, but is followed
by a database.
"""

from __future__ import annotations

import re
from pathlib import Path

BACKEND = "backend"
OTHER = "other"
POSTMASTER = "postmaster"
_PREFIX = "postgres: "
_ROLES = (
    ("checkpointer", re.compile(r"checkpointer( process)?")),
    ("background_writer", re.compile(r"(background writer|writer process)")),
    ("wal_writer", re.compile(r"(walwriter|wal writer process)")),
    ("io_worker", re.compile(r"io worker \d+")),
    ("autovacuum", re.compile(r"autovacuum (launcher|worker)\b.*")),
    ("walsender", re.compile(r"walsender\b.*")),
    ("startup", re.compile(r"startup\b.*")),
    (BACKEND, re.compile(r"(bgworker: )?parallel worker for PID \d+.*")),
    (
        OTHER,
        re.compile(
            r"(stats collector|logical replication|logger|archiver|walreceiver|walsummarizer|"
            r"slotsync worker|slot sync worker|bgworker:)\b.*"
        ),
    ),
)
_SESSION = re.compile(r"\S+ \S+ \S.*")


def role_of(title: str) -> str:
    """The role of a process with this title; what is none of PostgreSQL's titles is `other`."""
    if not title.startswith(_PREFIX):
        return OTHER
    text = title.removeprefix(_PREFIX).strip()
    _, has_name, rest = text.partition(": ")
    for body in (text, rest.strip()) if has_name else (text,):
        for role, pattern in _ROLES:
            if pattern.fullmatch(body):
                return role
    return BACKEND if _SESSION.fullmatch(text) else OTHER


def title_of(proc: Path, pid: int) -> str:
    """The title of a process, as `ps` shows it; empty if it has ended.

    Raises:
        OSError: It may not be read.
    """
    try:
        raw = (proc / str(pid) / "cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return raw.replace(b"\0", b" ").decode(errors="replace").strip()


def children_of(proc: Path, pid: int) -> list[int]:
    """The processes that all threads of one have started and that still run."""
    found: list[int] = []
    try:
        threads = list((proc / str(pid) / "task").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return found
    for thread in threads:
        try:
            found += map(int, (thread / "children").read_text().split())
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def server_roles(proc: Path, postmaster: int) -> dict[int, str]:
    """The roles of a server's processes, by number, the postmaster's included."""
    roles = {postmaster: POSTMASTER}
    for child in children_of(proc, postmaster):
        title = title_of(proc, child)
        if title:
            roles[child] = role_of(title)
    return roles
