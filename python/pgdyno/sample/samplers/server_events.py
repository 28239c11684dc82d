"""Events of the server's log: checkpoints, autovacuums, waits for locks, temporary files, errors.

The log of a server of ours is read once, when a trial ends: see `server_log`. That of another one
is read by SQL where the role may, as the snapshot `log`: see `logged`. Here is said where nobody
will, and which events a server does not write into it: such events are not on the axis of time
then; that does not mean there were none.
"""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import psycopg

from pgdyno.sample.logged import SNAPSHOT, Logged
from pgdyno.sample.sampler import Column, Found, Label, Missing, Snapshot, Subject
from pgdyno.sample.table_query import IN_TEMPLATE

_NAME = "events of the server's log"
_FUNCTIONS = (
    "pg_current_logfile(text)", "pg_ls_logdir()",
    "pg_read_binary_file(text, bigint, bigint, boolean)",
)  # fmt: skip
_BUDGET_US = 500_000
_COLUMNS = (
    Label("kind"), Column("start_ns", "ns", "gauge"), Column("end_ns", "ns", "gauge"),
    Label("detail"),
)  # fmt: skip
_ASKED = """
SELECT quote_ident(current_user), lacking, granted,
       current_setting('logging_collector')::boolean
         AND current_setting('log_destination') ~ 'stderr',
       current_setting('log_line_prefix') LIKE '\\%%m [\\%%p] %%',
       current_setting('lc_messages'), current_setting('log_timezone')
FROM (SELECT coalesce(array_agg(f) FILTER (WHERE NOT has_function_privilege(f, 'EXECUTE')
                AND NOT has_function_privilege('pg_monitor', f, 'EXECUTE')), '{}') AS lacking,
             coalesce(bool_and(has_function_privilege(f, 'EXECUTE')
                OR NOT has_function_privilege('pg_monitor', f, 'EXECUTE')), true) AS granted
      FROM unnest(%s::text[]) f) rights"""
"""Functions that neither the role nor pg_monitor may execute; whether it has those that it may."""


_TOLD_BY = {
    "log_checkpoints": ("checkpoints", "on"),
    "log_autovacuum_min_duration": ("autovacuums", "0"),
    "log_lock_waits": ("waits for locks", "on"),
    "log_temp_files": ("temporary files", "0"),
}
"""Which events a setting has the server write, and by which value all of them."""
_SET = "SELECT name, current_setting(name) FROM unnest(%s::text[]) AS name"
_NONE = ("off", "-1")


def sampler(subject: Subject) -> Found:
    """The snapshot, or why there is none; where the log is ours to read, what is not in it."""
    if (session := subject.session) is None:
        return None
    if subject.log is not None or subject.ours:
        return _unwritten(session)
    lacking, zone = _lacking(session)
    if lacking is not None:
        return lacking
    assert zone is not None
    read = Snapshot(SNAPSHOT, _COLUMNS, Logged(session, zone).rows, budget_us=_BUDGET_US)
    return [read, *_unwritten(session)]


def _unwritten(session: psycopg.Connection[Any]) -> list[Missing]:
    """Events that the server leaves out of its log, all or the small ones."""
    found = []
    for name, value in session.execute(_SET, (list(_TOLD_BY),)).fetchall():
        what, tells_all = _TOLD_BY[name]
        if value == tells_all:
            continue
        reason = f"{name} is {value}"
        if value not in _NONE:
            reason += ", and less is not written"
        found.append(Missing(f"{what} in the log", reason, f"Set {name} = {tells_all}."))
    return found


def _lacking(session: psycopg.Connection[Any]) -> tuple[Missing | None, ZoneInfo | None]:
    """Why the log cannot be read by SQL; else the time zone of its lines."""
    row = session.execute(_ASKED, (list(_FUNCTIONS),)).fetchone()
    assert row is not None
    role, functions, watches, is_file, begins, language, zone_name = row

    def missing(reason: str, remedy: str) -> tuple[Missing, None]:
        return Missing(_NAME, reason, remedy), None

    grants = [] if watches else [f"GRANT pg_monitor TO {role};"]
    if functions:
        execute = f"GRANT EXECUTE ON FUNCTION {', '.join(functions)} TO {role};"
        grants.append(f"{execute} -- {IN_TEMPLATE}")
    if not is_file:  # first: without a file the rights show nothing
        then = f" Then: {' '.join(grants)}" if grants else ""
        return missing("the server writes no file of its log that SQL could read",
                       "Set logging_collector = on with log_destination = 'stderr', which needs a"
                       f" restart.{then}")  # fmt: skip
    if grants:
        return missing(
            f"it lies on the server's host, and the role {role} may not read it by SQL",
            " ".join(grants),
        )
    if not begins:
        return missing("log_line_prefix does not begin with '%m [%p] '",
                       "Set log_line_prefix = '%m [%p] ', as PostgreSQL comes.")  # fmt: skip
    if language not in ("C", "POSIX", "") and not language.startswith(("en", "C.")):
        return missing(f"its messages are not English: lc_messages is {language}",
                       "Set lc_messages = 'C'.")  # fmt: skip
    try:
        return None, ZoneInfo(zone_name)
    except (ZoneInfoNotFoundError, ValueError):
        return missing(f"this host does not know the time zone of its lines, {zone_name}",
                       "Set log_timezone = 'UTC'.")  # fmt: skip
