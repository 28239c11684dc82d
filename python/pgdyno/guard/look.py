"""A look at a pair and its machine, once: what `check` and `arm` judge by."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgdyno.folders import Folder
from pgdyno.guard.boot import boot_id
from pgdyno.guard.closing import closed_by
from pgdyno.guard.data_directory import DataDirectory
from pgdyno.guard.facts import LocalFacts, Pair, Seen
from pgdyno.guard.include_file import include_path, require_makeable, run_folder_of
from pgdyno.guard.interlock import (
    configuration_of,
    existing_above,
    included,
    kind_below,
    require_changeable,
    stray_configuration,
)
from pgdyno.guard.observe import (
    first_line,
    look_at_primary,
    look_at_standby,
    look_into_databases,
    session,
)
from pgdyno.model.connection import Connection
from pgdyno.model.errors import PlanError, TargetError
from pgdyno.model.guard import GuardLimits
from pgdyno.target.conninfo import resolve

_SECRETS = ("password", "sslpassword")
_NOWHERE = "/dev/null/none"  # where no file can be
_WITHOUT_SECRETS = {"passfile": _NOWHERE, "sslcertmode": "disable", "gssencmode": "disable"}
_DATABASE = "postgres"
_UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A pair as a person names it, and under which limits."""

    primary: str  # conninfo; empty: by postmaster.pid
    standby: str
    limits: GuardLimits
    run_folder: Path


def without_passwords(conninfo: str) -> str:
    """A conninfo that may be kept and shown.

    Raises:
        PlanError: libpq does not understand it.
    """
    try:
        values = conninfo_to_dict(conninfo)
    except psycopg.Error:
        resolve(conninfo)  # words it, without what may be secret
        raise
    return make_conninfo("", **{name: value for name, value in values.items()
                                if name not in _SECRETS})  # fmt: skip


def require_no_password(conninfo: str) -> None:
    """Refuse a conninfo that will stand in a configuration file, and has a password.

    Raises:
        PlanError: It has, or libpq does not understand it.
    """
    if conninfo_to_dict(without_passwords(conninfo)) != conninfo_to_dict(conninfo):
        raise PlanError(
            "the conninfo that a standby is to follow has a password",
            "Put it into the ~/.pgpass of the server's user.",
        )


def primary_connection(directory: DataDirectory, conninfo: str) -> Connection:
    """How the primary is reached: as said, or by its pid file as the role of the server's user.

    That user can write the file, so root shows no password or certificate of its own where it
    leads.

    Raises:
        PlanError: The conninfo cannot be used.
        TargetError: No server runs, or it has not said yet where it listens.
    """
    if conninfo:
        return resolve(conninfo)
    with directory.server() as found:
        if found is None:
            raise TargetError(
                f"no server runs on {directory.path}", "Start it, or name a conninfo."
            )
        host = found.sockets or found.address
        if not host or not found.port:
            raise TargetError(f"the server on {directory.path} has not said yet where it listens")
        where = {"host": "127.0.0.1" if host == "*" else host, "port": str(found.port)}
    where |= {"user": directory.user.name, "dbname": _DATABASE}
    if not directory.user.is_other:
        return resolve(make_conninfo("", **where))
    found_at = resolve(make_conninfo("", **where, **_WITHOUT_SECRETS))
    # An empty one is none, and keeps libpq from looking in the environment and in services.
    return replace(found_at, password="")


def standby_connection(conninfo: str) -> Connection:
    """How the standby is reached.

    Raises:
        PlanError: The conninfo is empty, or cannot be used.
    """
    if not conninfo.strip():
        raise PlanError("no standby is named", "Name its conninfo: --standby 'host=… user=…'.")
    return resolve(conninfo)


def look(directory: DataDirectory, wanted: Wanted) -> Seen:
    """Ask both servers, and look at the machine. Who does not answer is a finding, no error.

    Raises:
        PlanError: A conninfo cannot be used.
        TargetError: What lies on the machine is not what it has to be.
    """
    primary = contents = standby = None
    silent = {"primary": "", "standby": ""}
    answer_s = wanted.limits.silence_s
    try:
        at = primary_connection(directory, wanted.primary)
        with session(at, answer_s) as asked:
            primary = look_at_primary(asked, None)
            contents = look_into_databases(asked, at, answer_s)
    except psycopg.Error as error:
        silent["primary"] = first_line(error)
    except TargetError as error:
        silent["primary"] = error.fact
    try:
        with session(standby_connection(wanted.standby), answer_s) as asked:
            standby = look_at_standby(asked)
    except psycopg.Error as error:
        silent["standby"] = first_line(error)
    pair = Pair(primary, standby, contents, silent["primary"], silent["standby"])
    system = primary.system_identifier if primary else _UNKNOWN
    config_file = (primary.settings if primary else {}).get("config_file", "")
    include = include_path(wanted.run_folder, system)
    return Seen(pair, look_here(directory, include, config_file), wanted.limits)


def look_here(directory: DataDirectory, include: Path, config_file: str) -> LocalFacts:
    """What is seen without a server.

    Args:
        directory: The data directory.
        include: The file that decides full_page_writes once the server is armed.
        config_file: As the server names it; empty: the role may not know, or nobody was asked.
    """
    line, wrong, stray, configuration = None, "", "", Path()
    if not config_file:
        wrong = "not known: the server does not answer, or the role may not read config_file"
    else:
        try:
            configuration = configuration_of(Path(config_file))
            found = included(configuration)
            line = str(found) if found else None
            stray = stray_configuration(directory, configuration)
            require_changeable(directory, configuration)
            if not os.access(configuration.parent, os.W_OK):
                wrong = f"folder {configuration.parent} cannot be written"
        except TargetError as error:
            wrong = error.fact
    with directory.server() as server:
        pid = server.pid if server else None
    with directory.opened() as data:
        closed = closed_by(data)
    return LocalFacts(
        data=os.path.realpath(directory.path),
        boot_id=boot_id(),
        include=str(include),
        run_folder_kind=kind_below(include),
        run_folder_wrong=_wrong_with(include, directory),
        config_file=str(configuration) if config_file else "",
        config_wrong=wrong,
        line_include=line,
        server_pid=pid,
        stray_config=stray,
        closed_by=closed,
    )


def _wrong_with(include: Path, directory: DataDirectory) -> str:
    """Why no file could be put there."""
    above = existing_above(include)
    try:
        require_makeable(include.parent.parent, directory.user)
        with run_folder_of(include, directory.user):
            pass
        with Folder.hold(above) as folder:
            if folder.facts.st_uid != directory.user.uid:  # systemd makes it for the server's user
                folder.require_closed()
    except TargetError as error:
        return error.fact
    return "" if os.access(above, os.W_OK) else f"folder {above} cannot be written"
