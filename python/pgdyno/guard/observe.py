"""One look at each server of a pair, in SQL that PostgreSQL 12 to 18 know."""

from __future__ import annotations

import psycopg

from pgdyno.guard.answers import Answers
from pgdyno.guard.columns import FLAG, NUMBER, TEXT, maybe
from pgdyno.guard.configured import SINCE, Configured
from pgdyno.guard.facts import Contents, PrimaryFacts, Slot, StandbyFacts
from pgdyno.guard.rights import CHECKPOINT_ROLE_MAJOR, STANDBY_FUNCTIONS
from pgdyno.model.connection import Connection
from pgdyno.model.guard import Life

NAME = "pgdyno guard"
"""What others see of its sessions in pg_stat_activity."""

_GRACE_S = 10.0  # for a statement that the server ends by itself in time
_PRIMARY = f"""
SELECT (SELECT system_identifier::text FROM pg_control_system()), pg_is_in_recovery(),
       timeline_id, (redo_lsn - '0/0'::pg_lsn)::bigint, full_page_writes,
       (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()
             ELSE pg_current_wal_flush_lsn() END - '0/0'::pg_lsn)::bigint,
       {SINCE},
       current_setting('is_superuser') = 'on' OR EXISTS (
         SELECT FROM pg_roles WHERE rolname = 'pg_checkpoint' AND pg_has_role(oid, 'USAGE'))
FROM pg_control_checkpoint()
"""  # noqa: S608  a constant
_OF_PRIMARY = (TEXT, FLAG, NUMBER, NUMBER, FLAG, NUMBER, TEXT, FLAG)
# PostgreSQL 12 has no wal_status; where there is one, a slot that keeps no WAL any more has NULL.
_SLOTS = """
SELECT slot_name, active, restart_lsn IS NOT NULL,
       coalesce(to_jsonb(one) ->> 'wal_status',
                CASE WHEN to_jsonb(one) ? 'wal_status' THEN 'lost' ELSE 'reserved' END)
FROM pg_replication_slots AS one WHERE slot_type = 'physical' ORDER BY slot_name
"""
_TABLESPACES = "SELECT oid::bigint, spcname FROM pg_tablespace WHERE oid >= 16384"
_EMPTY = "template0"  # as initdb made it
_DATABASES = "SELECT datname, datallowconn FROM pg_database ORDER BY datname"
# Handlers of PostgreSQL's own have numbers below those of anything that is created.
_METHODS = """
SELECT amname, coalesce(extname, '') FROM pg_am
LEFT JOIN pg_depend ON classid = 'pg_am'::regclass AND objid = pg_am.oid AND deptype = 'e'
LEFT JOIN pg_extension ON refclassid = 'pg_extension'::regclass AND pg_extension.oid = refobjid
WHERE pg_am.oid >= 16384 ORDER BY 1
"""
_UNLOGGED = """
SELECT nspname || '.' || relname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE relpersistence = 'u' AND relkind IN ('r', 'm', 'S') ORDER BY 1
"""
# As an extension creates them: these change pages by GenericXLog, which names each.
_KNOWN_METHODS = {("bloom", "bloom"), ("ivfflat", "vector"), ("hnsw", "vector"), ("rum", "rum")}
_STANDBY = f"""
SELECT (SELECT system_identifier::text FROM pg_control_system()), pg_is_in_recovery(),
       coalesce((SELECT received_tli FROM pg_stat_wal_receiver), timeline_id),
       (redo_lsn - '0/0'::pg_lsn)::bigint,
       (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()
             ELSE pg_current_wal_flush_lsn() END - '0/0'::pg_lsn)::bigint,
       (SELECT status FROM pg_stat_wal_receiver), (SELECT slot_name FROM pg_stat_wal_receiver),
       CASE WHEN pg_is_in_recovery() THEN pg_is_wal_replay_paused() ELSE false END,
       {SINCE},
       inet_server_addr() IS NOT DISTINCT FROM inet_client_addr(),
       current_setting('is_superuser') = 'on' OR EXISTS (
         SELECT FROM pg_roles WHERE rolname = 'pg_checkpoint' AND pg_has_role(oid, 'USAGE'))
FROM pg_control_checkpoint()
"""  # noqa: S608  a constant
_OF_STANDBY = (
    TEXT, FLAG, NUMBER, NUMBER, maybe(NUMBER), maybe(TEXT), maybe(TEXT), FLAG, TEXT, FLAG, FLAG,
)  # fmt: skip
TARGET = """
SELECT name, setting FROM pg_settings WHERE setting <> '' AND name IN
  ('recovery_target', 'recovery_target_lsn', 'recovery_target_name', 'recovery_target_time',
   'recovery_target_xid')
ORDER BY name LIMIT 1
"""
"""Where recovery of a standby is to end."""
OF_TARGET = (TEXT, TEXT)
_RIGHTS = "SELECT f FROM unnest($1::text[]) AS f WHERE NOT has_function_privilege(f, 'EXECUTE')"
_LINKS = """
SELECT name::bigint FROM pg_ls_dir('pg_tblspc', true, false) AS name WHERE name ~ '^[0-9]+$'
"""
_LIFE = """
SELECT extract(epoch FROM pg_postmaster_start_time())::text,
       pg_has_role('pg_read_server_files', 'USAGE') AND has_function_privilege(
         'pg_read_binary_file(text, bigint, bigint, boolean)', 'EXECUTE')
"""
_BOOT = """
SELECT trim(convert_from(
  pg_read_binary_file('/proc/sys/kernel/random/boot_id', 0, 64, true), 'UTF8'), E' \\n')
"""


def session(connection: Connection, answer_s: float) -> Answers:
    """A session of the guard's, whose statements end in time and whose dead peer is noticed.

    Raises:
        psycopg.Error: The server does not let it in.
    """
    opened = asking_within(answer_s)
    try:
        connect(opened, connection, answer_s)
    except BaseException:
        opened.close()
        raise
    return opened


def asking_within(answer_s: float) -> Answers:
    """What `connect` gives a session, again and again."""
    return Answers(name=NAME, patience_s=answer_s + _GRACE_S)


def connect(asked: Answers, connection: Connection, answer_s: float) -> None:
    """A session in place of the one before, as `session` makes it.

    Raises:
        psycopg.Error: The server does not let it in.
    """
    seconds = str(max(round(answer_s), 2))
    given = dict(connection.parameters)
    patience = {
        "connect_timeout": seconds, "keepalives_idle": seconds, "keepalives_interval": "1",
        "keepalives_count": "3", "tcp_user_timeout": str(round(answer_s * 1000)),
    }  # fmt: skip
    asked.reach(connection.with_parameters(patience | given))
    asked.row("SELECT set_config('statement_timeout', $1, false)", (TEXT,), (f"{answer_s}s",))


def look_at_primary(
    asked: Answers, redo_oldest_lsn: int | None, configured: Configured | None = None
) -> PrimaryFacts:
    """The primary at this moment.

    Args:
        asked: A session there.
        redo_oldest_lsn: See `PrimaryFacts`.
        configured: Of the look before; None: there was none.

    Raises:
        psycopg.Error: It does not answer.
    """
    row = asked.row(_PRIMARY, _OF_PRIMARY)
    configured = configured or Configured()
    configured.look(asked, row[6])
    return PrimaryFacts(
        version_num=asked.version,
        system_identifier=row[0],
        is_in_recovery=row[1],
        timeline=row[2],
        redo_lsn=row[3],
        redo_oldest_lsn=redo_oldest_lsn,
        redo_full_pages=row[4],
        flush_lsn=row[5],
        settings=configured.settings,
        full_pages_source=configured.sources.get("full_page_writes", ""),
        slots=tuple(Slot(*row) for row in asked.rows(_SLOTS, (TEXT, FLAG, FLAG, TEXT))),
        tablespaces=dict(asked.rows(_TABLESPACES, (NUMBER, TEXT))),
        foreign_managers=configured.managers,
        may_checkpoint=row[7],
    )


def look_into_databases(asked: Answers, connection: Connection, answer_s: float) -> Contents:
    """What the primary's databases hold; the session enters one after the other, and comes back.

    Args:
        asked: The session.
        connection: Where it came from.
        answer_s: As for `connect`.

    Raises:
        psycopg.Error: The primary does not answer.
    """
    methods: set[str] = set()
    unlogged: list[str] = []
    unseen: list[str] = []
    for name, may_connect in list(asked.rows(_DATABASES, (TEXT, FLAG))):
        if not may_connect:
            if name != _EMPTY:
                unseen.append(f"{name} (it allows no connections)")
            continue
        try:
            connect(asked, connection.to(name), answer_s)
            methods |= {
                f"{name}.{method}"
                for method, extension in asked.rows(_METHODS, (TEXT, TEXT))
                if (method, extension) not in _KNOWN_METHODS
            }
            unlogged += [f"{name}.{relation}" for (relation,) in asked.rows(_UNLOGGED, (TEXT,))]
        except psycopg.Error as error:
            unseen.append(f"{name} ({first_line(error)})")
    connect(asked, connection, answer_s)  # nobody who drops a database is to find us there
    return Contents(tuple(sorted(methods)), tuple(unlogged), tuple(unseen))


def look_at_standby(asked: Answers, configured: Configured | None = None) -> StandbyFacts:
    """The standby at this moment.

    Args:
        asked: A session there.
        configured: Of the look before; None: there was none.

    Raises:
        psycopg.Error: It does not answer.
    """
    row = asked.row(_STANDBY, _OF_STANDBY)
    version = asked.version
    configured = configured or Configured()
    configured.look(asked, row[8])
    missing = [name for (name,) in asked.rows(_RIGHTS, (TEXT,), [list(STANDBY_FUNCTIONS)])]
    may_list = not any(one.startswith("pg_ls_dir") for one in missing)
    if not row[10]:
        older = version < CHECKPOINT_ROLE_MAJOR * 10_000
        missing.append("CHECKPOINT (as superuser)" if older else "CHECKPOINT (as pg_checkpoint)")
    target = asked.row_or_none(TARGET, OF_TARGET)
    return StandbyFacts(
        version_num=version,
        system_identifier=row[0],
        is_in_recovery=row[1],
        timeline=row[2],
        redo_lsn=row[3],
        replay_lsn=row[4] or 0,
        receiver=row[5] or "",
        slot=row[6] or "",
        is_paused=row[7],
        delay_ms=configured.delay_ms,
        recovery_target=(target[0], target[1]) if target else None,
        settings=configured.settings,
        tablespaces=_links(asked) if may_list else None,
        missing_rights=tuple(missing),
        life=life_of(asked),
        is_by_loopback=row[9],
    )


def _links(asked: Answers) -> frozenset[int]:
    return frozenset(oid for (oid,) in asked.rows(_LINKS, (NUMBER,)))


def life_of(asked: Answers) -> Life:
    """Of the server and its machine.

    Raises:
        psycopg.Error: It does not answer.
    """
    started, may_read = asked.row(_LIFE, (TEXT, FLAG))
    boot = asked.row(_BOOT, (maybe(TEXT),)) if may_read else (None,)
    return Life(boot[0] or "", started)


def first_line(error: psycopg.Error) -> str:
    """What a server said, in one line."""
    lines = str(error).strip().splitlines()
    return lines[0].strip() if lines else type(error).__name__
