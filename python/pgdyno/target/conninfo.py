"""What a conninfo means: libpq itself resolves it, with services, password files and variables.

Nothing is parsed here. libpq reads a conninfo to its end before it connects, and shows what it made
of it; an impossible value of the last parameter that it looks at keeps it from connecting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Literal

import psycopg
from psycopg import pq
from psycopg.conninfo import make_conninfo

from pgdyno.model.connection import Connection, Host
from pgdyno.model.errors import PlanError, TargetError
from pgdyno.model.system_errors import TOO_MANY

_NAME_IT = "No server was named: do so with --conninfo, e.g. 'host=/run/postgresql dbname=tpcc'."
_PASSWORDS = (
    "PG* variables, pg_service.conf and ~/.pgpass, or the file that PGPASSFILE names, count as they"
    " do for psql; pgdyno asks for no password."
)
_START_IT = (
    "Start the server, or name the host (a folder of its socket) and port that it listens on."
)
_TLS_THERE = (
    "Turn TLS on there (ssl = on), or ask for less: sslmode=prefer without channel_binding=require."
)
_ANOTHER_KIND = (
    "target_session_attrs asks for another kind of server: name one of that kind, or leave it out."
)
# The first sign that stands in what was said decides.
_HINTS = {
    "root certificate": "Name the file with sslrootcert; sslmode=require does without it, and"
    " takes whatever certificate the server shows.",
    "certificate verify failed": "No authority of sslrootcert signed the server's certificate: name"
    " the file of the one that did.",
    "does not match host name": "Connect by a name that stands in the server's certificate;"
    " hostaddr may say where that is.",
    "does not support SSL": _TLS_THERE,
    "SSL not in use": _TLS_THERE,
    "unexpected eof": "A server before PostgreSQL 17 breaks off so where sslnegotiation=direct is"
    " asked for.",
    "standby mode": _ANOTHER_KIND,
    "session is read-only": _ANOTHER_KIND,
    "session is not read-only": _ANOTHER_KIND,
    "resolve host": "Correct the host's name, or give its address.",
    "translate host": "Correct the host's name, or give its address.",
    "timeout expired": "Nothing answered in time: see whether host and port are right, and whether"
    " a firewall stands in between.",
    "invalid integer": "Write a whole number without a unit.",
    "no pg_hba.conf entry": "Add a line for it to that server's pg_hba.conf, then let the server"
    " read it: SELECT pg_reload_conf().",
    "Peer authentication failed": "Peer takes the user of the system for that of the server:"
    " connect over host=localhost with a password, or add a line to pg_hba.conf.",
    "password authentication failed": "The password is that of pg_service.conf, else of"
    " PGPASSWORD, else of ~/.pgpass or the file that PGPASSFILE names: correct it there, or set the"
    " role's with \\password in psql. PostgreSQL says the same of a role that it does not have.",
    "no password supplied": _PASSWORDS,
    "not permitted to log in": "Give it the right with ALTER ROLE … LOGIN, or name another role.",
    "not currently accepting connections": "It is no database to be driven: name another.",
    'FATAL:  role "': "Create it with createuser, or name another.",
    'FATAL:  database "': "Create it with createdb, or name another.",
    "too many clients": TOO_MANY,
    "Connection refused": _START_IT,
    "No such file or directory": _START_IT,
}
_AS_PSQL = (
    "psql says the same with these parameters: PG* variables, pg_service.conf and ~/.pgpass count"
    " for both."
)
# What libpq refuses before it connects, and what would do.
_ALLOWED = {
    "target_session_attrs": "Allowed are any, read-write, read-only, primary, standby and"
    " prefer-standby.",
    "weak sslmode": "sslrootcert=system takes sslmode=verify-full, which it is without saying so.",
    "sslmode": "Allowed are disable, allow, prefer, require, verify-ca and verify-full.",
    "port numbers": "Give one port for all hosts, or one for each.",
    "service": "Services stand in ~/.pg_service.conf, or in the file that PGSERVICEFILE names.",
}
_LIBPQ = "What a parameter may be is told by PostgreSQL's documentation of libpq's key words."
_STOP = "pgdyno-only-reads"
_LAST = "load_balance_hosts"  # the last one that libpq looks at
_HOST_BY_HOST = ("host", "hostaddr", "port")
_APART = (*_HOST_BY_HOST, "user", "dbname", "password", "application_name", "service")
# What guards a connection in libpq and not in the driver must not look as if it did, unless it
# stands at the value that asks for nothing.
_NOT_FOLLOWED = {
    "gssencmode": ("disable", "prefer"),
    "min_protocol_version": ("3.0",),
    "oauth_client_secret": (),
    "replication": (),
    "require_auth": (),
    "requirepeer": (),
    "scram_client_key": (),
    "scram_server_key": (),
    "sslcertmode": ("allow", "disable"),
    "sslcrl": (),
    "sslcrldir": (),
    "sslpassword": (),
}
_PORTS = 65536
# The driver and the loader are processes of their own, which work in another folder.
_FILES = ("passfile", "sslcert", "sslkey", "sslrootcert")
_NO_FILE = {"sslrootcert": "system"}
_PROBE = b"pgdyno_probe"


def resolve(conninfo: str) -> Connection:
    """Tell what libpq makes of a conninfo, without connecting.

    Raises:
        PlanError: libpq refuses it, or it asks for what the driver cannot do.
    """
    found, _ = _read(conninfo, _LAST)
    other, _ = _read(conninfo, "target_session_attrs")
    found[_LAST] = other[_LAST]
    hosts = _hosts(conninfo, found)
    return Connection(
        hosts[0].host, hosts[0].port, found["user"], found["dbname"], hosts[0].password,
        hosts[0].hostaddr, hosts[1:], tuple(sorted(_parameters(found).items())),
    )  # fmt: skip


def reach(conninfo: str) -> Connection:
    """Resolve a conninfo, connect once, and tell whether a pooler stands in between.

    Raises:
        PlanError: As `resolve`.
        TargetError: No server answers, or all refuse.
    """
    connection = resolve(conninfo)
    try:
        return through(connection)
    except psycopg.Error as error:
        hint = hint_for(str(error)) if conninfo.strip() else f"{_NAME_IT} {_PASSWORDS}"
        raise TargetError(
            f"no connection to {connection.shown()}: {str(error).strip()}", hint
        ) from error


def hint_for(said: str) -> str:
    """What to do, by the words of libpq and of a server that speaks English."""
    return _first(_HINTS, said, _AS_PSQL)


def _first(hints: Mapping[str, str], said: str, otherwise: str) -> str:
    return next((hint for sign, hint in hints.items() if sign in said), otherwise)


def through(connection: Connection) -> Connection:
    """The connection, with what stands in between.

    Raises:
        psycopg.Error: No server answers, or all refuse.
    """
    with psycopg.connect(**connection.arguments()) as session:
        return _through(connection, session.pgconn)


def _read(conninfo: str, stop: str, **changes: str) -> tuple[dict[str, str], pq.abc.PGconn]:
    """All parameters that have a value, and libpq's own object, read to the parameter `stop`."""
    try:
        text = make_conninfo(conninfo, **changes, **{stop: _STOP})
    except psycopg.Error as error:
        # libpq quotes what it does not understand, which may be a piece of a password.
        secret = "password" in conninfo or "@" in conninfo
        why = "" if secret else f": {str(error).strip()}"
        raise PlanError(
            f"conninfo is not understood{why}",
            hint="Write 'host=… port=… user=… dbname=…' or postgresql://user@host:port/dbname.",
        ) from None
    pgconn = pq.PGconn.connect_start(text.encode())
    message = pgconn.error_message.decode(errors="replace").strip()
    if _STOP not in message:
        raise PlanError(
            f"libpq refuses the connection's parameters: {message}",
            hint=_first(_ALLOWED, message, _LIBPQ),
        )
    given = {one.keyword.decode(): one.val for one in pgconn.info if one.val}
    return {name: _text(value, name) for name, value in given.items()}, pgconn


def _text(value: bytes, what: str) -> str:
    """What libpq has of a connection, as text; no piece of it is told where it is none."""
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise PlanError(
            f"{what} of the connection is not UTF-8: byte {error.start} is wrong",
            hint="It may come from a PG* variable, pg_service.conf or ~/.pgpass.",
        ) from None


def _hosts(conninfo: str, found: Mapping[str, str]) -> tuple[Host, ...]:
    """The servers of the lists, whose lengths libpq has checked, each with its own password."""
    names, addresses, ports = (found.get(name, "").split(",") for name in _HOST_BY_HOST)
    hosts = []
    for name, address, port in zip_longest(names, addresses, ports):
        one = {"host": name or "", "hostaddr": address or "", "port": port or ports[0]}
        _, pgconn = _read(conninfo, _LAST, **one)
        password = _text(pgconn.password, "password") or None
        number = pgconn.port.decode()
        if not (number.isascii() and number.isdigit() and 0 < int(number) < _PORTS):
            raise PlanError(f"port is {number!r}, allowed are 1 to {_PORTS - 1}")
        hosts.append(Host(_text(pgconn.host, "host"), int(number), password, address or None))
    return tuple(hosts)


def _parameters(found: dict[str, str]) -> dict[str, str]:
    """What differs from libpq's defaults, and the files that it would look for by itself."""
    for name, harmless in _NOT_FOLLOWED.items():
        if name in found and found[name] not in harmless:
            raise PlanError(
                f"the connection asks for {name}, which the driver does not know",
                hint="docs/guides/connect.md in the sources of pgdyno lists those that it refuses.",
            )
    compiled = {one.keyword.decode(): one.compiled for one in pq.Conninfo.get_defaults()}
    given = {
        name: value
        for name, value in found.items()
        if name not in _APART and (name == "sslmode" or value.encode() != compiled.get(name))
    }
    for name in _FILES:
        if name in given and given[name] != _NO_FILE.get(name):
            given[name] = str(Path(given[name]).absolute())
    if given["sslmode"] == "disable":
        return given
    folder = Path("~/.postgresql").expanduser()
    if (roots := folder / "root.crt").is_file():
        given.setdefault("sslrootcert", str(roots))
    if given.get("sslcertmode") == "disable":
        given.pop("sslcert", None)
        given.pop("sslkey", None)
    elif "sslcert" in given or (folder / "postgresql.crt").is_file():
        given.setdefault("sslcert", str(folder / "postgresql.crt"))
        given.setdefault("sslkey", str(folder / "postgresql.key"))
    return given


def _through(connection: Connection, pgconn: pq.abc.PGconn) -> Connection:
    """The connection, with what stands in between.

    A pooler shows the number of no backend. PgBouncer from 1.21 on can follow names of statements:
    it gives them others on the server, so that ours is not found there.
    """
    pgconn.exec_(b"BEGIN")
    backend = pgconn.exec_(b"SELECT pg_backend_pid()").get_value(0, 0)
    pooled = backend is not None and int(backend) != pgconn.backend_pid
    prepare: Literal["named", "unnamed"] = "named"
    if pooled:
        pgconn.prepare(_PROBE, b"SELECT 1")
        seen = pgconn.exec_(b"SELECT FROM pg_prepared_statements WHERE name = '" + _PROBE + b"'")
        if seen.ntuples:
            pgconn.exec_(b"DEALLOCATE " + _PROBE)
            prepare = "unnamed"
    pgconn.exec_(b"ROLLBACK")
    return replace(connection, pooled=pooled, prepare=prepare)
