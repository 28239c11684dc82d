"""Settings as the running server has them, against what was asked for; a difference is an error."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import psycopg

from pgdyno.model.connection import Connection
from pgdyno.model.errors import TargetError
from pgdyno.model.run import Effective
from pgdyno.model.settings import OriginKind, ServerKnob, Setting
from pgdyno.plan.settings.server import knob_of_row
from pgdyno.plan.settings.values import same_value

# Differ from start to start without meaning anything.
_VOLATILE = frozenset({
    "config_file", "data_directory", "hba_file", "ident_file", "external_pid_file",
    "unix_socket_directories", "port", "application_name", "server_version", "server_version_num",
    "transaction_isolation", "transaction_read_only", "transaction_deferrable", "is_superuser",
    "session_authorization", "client_encoding", "DateStyle", "TimeZone", "lc_messages",
    "shared_memory_size", "shared_memory_size_in_huge_pages", "num_os_semaphores",
})  # fmt: skip
# What a reader asks for first of a server that somebody else configured, even where it is default.
_DECISIVE = frozenset({
    "archive_mode", "autovacuum", "bgwriter_lru_maxpages", "checkpoint_completion_target",
    "checkpoint_timeout", "commit_delay", "data_checksums", "effective_cache_size",
    "effective_io_concurrency", "fsync", "full_page_writes", "huge_pages", "io_method", "jit",
    "maintenance_work_mem", "max_connections", "max_parallel_workers", "max_wal_size",
    "min_wal_size", "random_page_cost", "server_encoding", "shared_buffers",
    "shared_preload_libraries", "synchronous_commit", "synchronous_standby_names", "temp_buffers",
    "wal_buffers", "wal_compression", "wal_level", "wal_sync_method", "work_mem",
})  # fmt: skip

_OF_A_DATABASE = ("database", "database user")  # as `source` in pg_settings
# Settings whose text may hold a password or a key: whoever configured them did not mean a report.
_SECRET = re.compile(r"conninfo|command|passphrase|passw(?!ord_encryption)|secret|token|credential")
_HIDDEN = "(not stored: it may hold a secret)"

_QUERY = """
SELECT name, vartype, unit, context, min_val, max_val, enumvals, reset_val, setting,
       current_setting(name) AS shown, source, sourcefile, sourceline
FROM pg_settings ORDER BY name
"""


def read_back(
    connection: Connection, wanted: Sequence[Setting], *, ours: bool = True
) -> tuple[Effective, ...]:
    """Read all settings back, and check those that were asked for.

    Args:
        connection: A database of the trial.
        wanted: What was asked for.
        ours: Whether the cluster is; the configuration of another one is told as such.

    Returns:
        The settings that were asked for, those that initdb (or whoever configured the server)
        wrote, and huge_pages_status; of a server that is not ours also those that decide most.

    Raises:
        TargetError: A setting has another value than asked for, or does not exist.
    """
    with psycopg.connect(**connection.arguments()) as session:
        rows = session.execute(_QUERY).fetchall()
    server = {row[0].lower(): _Found(knob_of_row(row[:8]), *row[8:]) for row in rows}
    asked = {setting.name.lower(): setting for setting in wanted}
    wrong = [text for setting in wanted if (text := _difference(setting, server))]
    if wrong:
        raise TargetError(
            "the running server differs from the stage: " + "; ".join(wrong),
            hint="Does the installation's or the database's own configuration override it?",
        )
    result = []
    for name, found in server.items():
        if found.knob.name in _VOLATILE:
            continue
        if setting := asked.get(name):
            origin, detail = setting.origin.kind.value, setting.origin.detail
            result.append(Effective(found.knob.name, found.shown, origin, detail))
        elif ours and found.is_worth_keeping:
            kind, shown = OriginKind.INITDB, found.shown
            result.append(Effective(found.knob.name, shown, kind.value, found.source))
        elif found.is_worth_keeping or name in _DECISIVE:
            kind, shown = OriginKind.SERVER, _HIDDEN if _SECRET.search(name) else found.shown
            result.append(Effective(found.knob.name, shown, kind.value, found.where))
    return tuple(result)


def configured(connection: Connection) -> tuple[Effective, ...]:
    """What a server that is not ours has set, without what this one database has for itself."""
    found = read_back(connection, (), ours=False)
    return tuple(one for one in found if one.detail not in _OF_A_DATABASE)


def server_words(connection: Connection) -> str:
    """What the running server calls itself: version and compiler, by version()."""
    with psycopg.connect(**connection.arguments()) as session:
        row = session.execute("SELECT version()").fetchone()
    return str(row[0]) if row else "unknown"


@dataclass(frozen=True, slots=True)
class _Found:
    """A setting as the server has it."""

    knob: ServerKnob
    raw: str
    shown: str
    source: str
    file: str | None  # None: it is set by no file, or our role may not know
    line: int | None

    @property
    def is_worth_keeping(self) -> bool:
        return (
            self.source not in ("default", "client", "session")
            or self.knob.name == "huge_pages_status"
        )

    @property
    def where(self) -> str:
        """Who set it, for people: a file with the line, or the server's word for it."""
        return f"{self.file}:{self.line}" if self.file else self.source


def _difference(setting: Setting, server: dict[str, _Found]) -> str | None:
    found = server.get(setting.name.lower())
    if found is None:
        return f"{setting.name} does not exist there"
    if same_value(found.knob, setting.value, found.raw):
        return None
    return (
        f"{setting.name} was set to {setting.value}, the server has {found.shown}"
        f" (from {found.source})"
    )
