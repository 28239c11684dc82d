"""Settings as the running server has them, against what was asked for; a difference is an error."""

from __future__ import annotations

from collections.abc import Sequence

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

_QUERY = """
SELECT name, vartype, unit, context, min_val, max_val, enumvals, reset_val, setting,
       current_setting(name) AS shown, source
FROM pg_settings ORDER BY name
"""


def read_back(connection: Connection, wanted: Sequence[Setting]) -> tuple[Effective, ...]:
    """Read all settings back, and check those that were asked for.

    Returns:
        The settings that were asked for, those that initdb wrote, and huge_pages_status.

    Raises:
        TargetError: A setting has another value than asked for, or does not exist.
    """
    with psycopg.connect(**connection.arguments()) as session:
        rows = session.execute(_QUERY).fetchall()
    server = {row[0].lower(): (knob_of_row(row[:8]), row[8], row[9], row[10]) for row in rows}
    asked = {setting.name.lower(): setting for setting in wanted}
    wrong = [text for setting in wanted if (text := _difference(setting, server))]
    if wrong:
        raise TargetError(
            "the running server differs from the stage: " + "; ".join(wrong),
            hint="Does the installation's or the database's own configuration override it?",
        )
    result = []
    for name, (knob, _raw, shown, source) in server.items():
        if knob.name in _VOLATILE:
            continue
        if setting := asked.get(name):
            origin, detail = setting.origin.kind.value, setting.origin.detail
            result.append(Effective(knob.name, shown, origin, detail))
        elif _worth_keeping(knob, source):
            result.append(Effective(knob.name, shown, OriginKind.INITDB.value, source))
    return tuple(result)


def server_words(connection: Connection) -> str:
    """What the running server calls itself: version and compiler, by version()."""
    with psycopg.connect(**connection.arguments()) as session:
        row = session.execute("SELECT version()").fetchone()
    return str(row[0]) if row else "unknown"


def _difference(
    setting: Setting, server: dict[str, tuple[ServerKnob, str, str, str]]
) -> str | None:
    found = server.get(setting.name.lower())
    if found is None:
        return f"{setting.name} does not exist there"
    knob, raw, shown, source = found
    if same_value(knob, setting.value, raw):
        return None
    return f"{setting.name} was set to {setting.value}, the server has {shown} (from {source})"


def _worth_keeping(knob: ServerKnob, source: str) -> bool:
    return source not in ("default", "client", "session") or knob.name == "huge_pages_status"
