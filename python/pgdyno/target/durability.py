"""What a trial may lose, read back from where its load runs, in sessions as the driver's.

Settings as these sessions have them, with who set them: server, database, role or connection;
unlogged tables; standbys; the storage below the server's folders, if the server is on this host.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg

from pgdyno.catalog import knobs
from pgdyno.model.connection import Connection
from pgdyno.model.durability import Durability, Loss, together
from pgdyno.model.errors import TargetError
from pgdyno.model.settings import Rung, ServerKnob
from pgdyno.model.system_errors import reason
from pgdyno.model.workload import Workload
from pgdyno.plan.settings.durability import settings_losses, workload_losses
from pgdyno.target.server_host import is_backend
from pgdyno.target.storage_durability import storage_losses

_LAYERS = {  # of `source` in pg_settings
    "database": "database",
    "user": "role",
    "database user": "role",
    "client": "session",
    "session": "session",
}
_SETTINGS = "SELECT name, setting, source FROM pg_settings WHERE name = ANY(%s)"
_FURTHER = ("synchronous_commit", "synchronous_standby_names")
_UNLOGGED = """
SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
WHERE relpersistence = 'u' AND relkind IN ('r', 'm') AND nspname !~ '^pg_' ORDER BY 1
"""
_STANDBYS = """
SELECT count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')),
       count(*) FILTER (WHERE sync_state IS NULL)
FROM pg_stat_replication
"""
_WHERE = """
SELECT pg_backend_pid(), current_user,
       (SELECT extract(epoch FROM backend_start)::float8 FROM pg_stat_activity
        WHERE pid = pg_backend_pid()),
       (SELECT setting FROM pg_settings WHERE name = 'data_directory'),
       ARRAY(SELECT pg_tablespace_location(oid) FROM pg_tablespace
             WHERE pg_tablespace_location(oid) <> '' ORDER BY 1)
"""
_SWALLOWS = "eatmydata"
_NAMED = 3  # unlogged tables that are named; of more, the number is told


def read_durability(
    databases: Sequence[Connection], workload: Workload, *, guarded: bool = False
) -> Durability:
    """What the sessions of a trial may lose.

    Args:
        databases: Those that are driven, as the driver connects.
        workload: What is driven: statements may set things for themselves.
        guarded: Whether a guard repairs what it can.

    Raises:
        TargetError: A database does not answer.
    """
    parts = []
    try:
        for number, database in enumerate(databases):
            with psycopg.connect(**database.arguments(), autocommit=True) as session:
                parts.append(_of_session(session, database, guarded))
                if number == 0:
                    parts += [_of_standbys(session), _of_folders(session)]
                    parts.append(Durability(workload_losses(workload, _known(session))))
    except psycopg.Error as error:
        raise TargetError(f"what may be lost cannot be read back: {str(error).strip()}") from error
    return together(*parts)


def _of_session(
    session: psycopg.Connection[Any], database: Connection, guarded: bool
) -> Durability:
    names = [name for name, knob in knobs().items() if knob.fall]
    rows = session.execute(_SETTINGS, ([*names, *_FURTHER],)).fetchall()
    values = {name: (setting, source) for name, setting, source in rows}

    def read(name: str) -> tuple[str, str, str] | None:
        if name not in values:
            return None
        word, source = values[name]
        layer = _LAYERS.get(source, "server")
        where = f"database {database.database}, user {database.user}"
        return word, layer, f"pg_settings in a session as the driver's ({where}; from {source})"

    unlogged = [name for (name,) in session.execute(_UNLOGGED).fetchall()]
    losses = list(settings_losses(read, guarded=guarded))
    if unlogged:
        more = f" and {len(unlogged) - _NAMED} more" if len(unlogged) > _NAMED else ""
        losses.append(
            Loss(
                Rung.D6,
                f"unlogged tables: {', '.join(unlogged[:_NAMED])}{more}",
                "a crash of the server empties them",
                "tables",
                f"pg_class of database {database.database}",
            )
        )
    hidden = [name for name in ("fsync", "full_page_writes") if name not in values]
    return Durability(tuple(losses), tuple(f"setting {name}" for name in hidden))


def _of_standbys(session: psycopg.Connection[Any]) -> Durability:
    """Whether the standbys that commits are to wait for are there."""
    rows = dict(
        session.execute("SELECT name, setting FROM pg_settings WHERE name = ANY(%s)",
                        (list(_FURTHER),)).fetchall()
    )  # fmt: skip
    names = rows.get("synchronous_standby_names")
    if names is None:
        return Durability((), ("whether commits are to wait for a standby",))
    if not names or rows.get("synchronous_commit") in ("off", "local"):
        return Durability()
    row = session.execute(_STANDBYS).fetchone()
    assert row is not None
    there, hidden = row
    if there:
        return Durability()
    if hidden:
        return Durability((), (f"whether a standby of {names} is synchronous",))
    what = f"synchronous_standby_names = {names}, and no such standby is connected"
    loses = "commits are on one machine only: a failover may lose the last of them"
    return Durability((Loss(Rung.D2, what, loses, "server", "pg_stat_replication"),))


def _known(session: psycopg.Connection[Any]) -> dict[str, ServerKnob]:
    """The settings that statements may fall with."""
    rows = session.execute(
        "SELECT name, vartype, enumvals FROM pg_settings WHERE name = ANY(%s)",
        ([name for name, knob in knobs().items() if knob.fall],),
    ).fetchall()
    return {
        name: ServerKnob(name, vartype, None, "user", None, None, tuple(values or ()), None)
        for name, vartype, values in rows
    }


def _of_folders(session: psycopg.Connection[Any]) -> Durability:
    """The storage below the data folder, pg_wal and every tablespace: without one, none starts."""
    row = session.execute(_WHERE).fetchone()
    assert row is not None
    pid, user, started_s, data, tablespaces = row
    if started_s is None:
        return Durability((), (f"the server's storage: {user} may not see when a session began",))
    if not is_backend(pid, user, started_s):
        return Durability((), ("the server's storage: it does not run on this host",))
    if data is None:
        return Durability((), (f"the server's storage: {user} may not read where it is",))
    if (unseen := _unseen(pid)) is not None:
        return Durability((), (f"the server's storage: {unseen}",))
    folders = [("data folder", Path(data)), ("pg_wal", Path(data, "pg_wal"))]
    folders += [("tablespace", Path(location)) for location in tablespaces]
    return together(*_of_process(pid), *(_of_folder(what, path) for what, path in folders))


def _unseen(pid: int) -> str | None:
    """Why the server's folders are not what we see under their names; None: they are."""
    try:
        if os.readlink(f"/proc/{pid}/ns/mnt") != os.readlink("/proc/self/ns/mnt"):
            return "it runs in a mount namespace of its own"
    except OSError as error:
        return f"its process may not be looked at ({reason(error)})"
    return None


def _of_process(pid: int) -> Iterator[Durability]:
    """A library that swallows flushes, whatever the settings say."""
    try:
        mapped = Path(f"/proc/{pid}/maps").read_text(errors="replace")
    except OSError as error:
        yield Durability((), (f"whether a library swallows flushes ({reason(error)})",))
        return
    if _SWALLOWS in mapped:
        loses = "a crash of the machine loses the cluster: no flush reaches the kernel"
        what = f"the server runs with lib{_SWALLOWS}"
        yield Durability((Loss(Rung.D6, what, loses, "process", f"/proc/{pid}/maps"),))


def _of_folder(what: str, path: Path) -> Durability:
    try:
        real = path.resolve(strict=True)
    except OSError as error:
        return Durability((), (f"what {what} {path} lies on ({reason(error)})",))
    if what == "pg_wal" and real == path:
        return Durability()  # on the storage of the data folder, of which it is told
    return storage_losses(real, what)
