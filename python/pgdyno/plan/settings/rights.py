"""Which rights a plan needs on a server that is not ours, and which of them its role has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pgdyno.model.plan import Plan, Protocol, Stage
from pgdyno.model.rights import Right, Role
from pgdyno.model.settings import ServerFacts
from pgdyno.model.wording import listed, plural
from pgdyno.plan.schema.complaint import Complaint, refuse

_CHECKPOINT_ROLE = 15  # major version; before, only superusers make checkpoints
_PARAMETER_RIGHTS = 15  # so long, only superusers may set what is theirs
_HBA_PATTERNS = 16  # since then, pg_hba.conf knows databases by regular expression
_OF_SUPERUSERS = ("superuser", "superuser-backend")

OWN_CONNECTIONS = 3
"""Sessions of pgdyno itself beside the workload: two that look on, one that has the server."""
REPLICA_OWN_CONNECTIONS = 2
"""The same on a replica: one that looks on, one that has it."""


def rights(
    server: ServerFacts, protocol: Protocol, stages: Iterable[Stage], servers: int = 1
) -> tuple[Right, ...]:
    """The rights that a plan makes use of; empty where the server is ours.

    Args:
        server: Where the role is.
        protocol: Of the plan.
        stages: Of the plan.
        servers: Over how many servers the load is divided.
    """
    role = server.role
    if role is None:
        return ()
    stages = tuple(stages)
    creation = (f"ALTER ROLE {role.name} CREATEDB;",)
    found = [Right("create databases", role.can_create_databases, creation)]
    driven = max((one.workload.sessions // servers for one in stages), default=0)
    sessions = _sessions(role, OWN_CONNECTIONS + driven, "a plan with fewer workload.connections")
    found += [*_entry(role, server.major), *_place(role), *sessions]
    if protocol.prewarm:
        found.append(_prewarm(role))
    if protocol.checkpoint_before:
        found.append(_checkpoint(role, server.major))
    found += _settings(role, server, stages)
    return (*found, *_reading(role))


def rights_there(server: ServerFacts, stages: Iterable[Stage]) -> tuple[Right, ...]:
    """Those that it makes use of on a replica that answers reads; empty where there is none.

    Args:
        server: Whose replica it is.
        stages: Of the plan.
    """
    if server.replica is None:
        return ()
    driven = max((one.workload.replica_connections for one in stages), default=0)
    needed = REPLICA_OWN_CONNECTIONS + driven
    sessions = _sessions(server.replica, needed, "stages with fewer replica_connections")
    return (*_entry(server.replica, server.major), *sessions)


def require_rights(plan: Plan, server: ServerFacts) -> None:
    """Look whether the role may do what a plan needs, before anything is touched.

    Raises:
        PlanError: Naming each right that it lacks, and what grants it.
    """
    servers = (server, *server.others)
    asked = [
        (f"{of_server(one)}role {one.role.name}", right)
        for one in servers if one.role is not None
        for right in rights(one, plan.protocol, plan.stages, len(servers))
    ]  # fmt: skip
    if server.replica is not None:
        where = f"replica: role {server.replica.name}"
        asked += [(where, right) for right in rights_there(server, plan.stages)]
    refuse(plan.source, [
        Complaint(where, _refusal(right))
        for where, right in asked if right.is_needed and not (right.is_held or right.unknown)
    ])  # fmt: skip


def of_server(server: ServerFacts) -> str:
    """Which server a role is of, before its name; empty where there is one."""
    return f"server {server.name}: " if server.name else ""


def _refusal(right: Right) -> str:
    r"""One line each for what goes to psql, where a change of database takes a line of its own."""
    by = f" {right.before}" if right.before else ""
    by += "".join(f"\n    {line}" for line in right.grant)
    granted = f"may not {right.what}; granted by:{by}"
    return f"{granted}\n    without it: {right.otherwise}" if right.otherwise else granted


def _entry(role: Role, major: int) -> Iterator[Right]:
    """What pg_hba.conf refuses, if anything: GRANTs do not help there."""
    if not role.shut_out_of:
        return
    databases = '"/^pgdyno_"' if major >= _HBA_PATTERNS else "all"
    way, address = ("local", "") if role.by_socket else ("host", "ADDRESS ")
    line = f"{way} {databases} {role.name} {address}scram-sha-256"
    yield Right(
        f"enter databases {listed(role.shut_out_of)}",
        False,
        ("SELECT pg_reload_conf();",),
        before=f"write a line into pg_hba.conf, such as `{line}`",
    )


def _place(role: Role) -> Iterator[Right]:
    """A schema for the tables of a new database, where search_path leads to none."""
    no_place = role.no_place
    if no_place is None:
        return
    if (schema := no_place.schema) is not None:
        grant = f'GRANT USAGE, CREATE ON SCHEMA "{schema}" TO {role.name};'
        what = f"create tables in schema {schema} of a new database"
        yield Right(what, False, ("\\c template1", grant, "\\c postgres"))
        return
    path = no_place.search_path
    what = f"create tables in a new database, where no schema of search_path = {path} is"
    if no_place.of_client:
        yield Right(what, False, (), before="leave search_path out of the conninfo")
        return
    yield Right(
        what,
        False,
        (f'ALTER ROLE {role.name} SET search_path = "$user", public;',),
        "options='-c search_path=public' in the conninfo",
    )


def _sessions(role: Role, needed: int, otherwise: str) -> Iterator[Right]:
    """Sessions that a trial has at the same time with one server, where they are counted."""
    sessions = plural(needed, "session")
    if role.sessions_max is not None:
        yield Right(
            f"have {sessions} at once, but {role.sessions_max}"
            if needed > role.sessions_max
            else f"have {sessions} at once",
            needed <= role.sessions_max,
            (f"ALTER ROLE {role.name} CONNECTION LIMIT {needed};",),
        )
    if role.sessions_left is not None and needed > role.sessions_left:
        yield Right(
            f"take {sessions}, as the server has {role.sessions_left} left",
            False,
            (),
            otherwise,
            before="end sessions of others, or raise max_connections",
        )


def _prewarm(role: Role) -> Right:
    unknown = role.has_prewarm_files and role.can_prewarm is None
    creation = f"CREATE EXTENSION {'IF NOT EXISTS ' if unknown else ''}pg_prewarm;"
    return Right(
        "create pg_prewarm",
        bool(role.can_prewarm) and role.has_prewarm_files,
        # Nobody may be in template1 while a database is made of it.
        ("\\c template1", creation, "\\c postgres"),
        "protocol.prewarm = false, with a warm-up that reads the data;"
        " until they are in memory, a window measures the disk as well",
        before="" if role.has_prewarm_files else "install postgresql-contrib on the server's host",
        unknown=f"{role.name} may not look into template1" if unknown else "",
    )


def _checkpoint(role: Role, major: int) -> Right:
    grant = f"GRANT pg_checkpoint TO {role.name};"
    if major < _CHECKPOINT_ROLE:
        grant = f"ALTER ROLE {role.name} SUPERUSER;  -- before PostgreSQL 15, nothing less"
    return Right(
        "make a checkpoint",
        role.can_checkpoint,
        (grant,),
        "protocol.checkpoint_before = false;"
        " a window then pays as well for what loading and the trial before it left to be written",
    )


def _reading(role: Role) -> Iterator[Right]:
    """What a run goes well without, and its report does not."""
    yield Right(
        "read all settings",
        role.can_read_settings,
        (f"GRANT pg_read_all_settings TO {role.name};",),
        "the server does not say where its data lie and which file sets a value: room on"
        " its disk is not checked, and what its storage may lose is not known",
        is_needed=False,
    )
    yield Right(
        "read what other sessions do",
        role.can_read_statistics,
        (f"GRANT pg_monitor TO {role.name};",),
        "what sessions and processes of others do is not seen, so that `pgdyno diagnose` cannot"
        " tell most classes of limits",
        is_needed=False,
    )


def _settings(role: Role, server: ServerFacts, stages: Iterable[Stage]) -> Iterator[Right]:
    """Settings that only superusers may set, unless they are granted."""
    names = {one.name for stage in stages for one in stage.settings}
    guarded = sorted(
        name
        for name in names
        if (knob := server.knobs.get(name)) is not None and knob.context in _OF_SUPERUSERS
    )
    if not guarded:
        return
    missing = [name for name in guarded if not role.is_superuser and name not in role.can_set]
    grant = f"GRANT SET ON PARAMETER {', '.join(missing or guarded)} TO {role.name};"
    if server.major < _PARAMETER_RIGHTS:
        grant = f"ALTER ROLE {role.name} SUPERUSER;  -- before PostgreSQL 15, nothing less"
    yield Right(f"set {listed(missing or guarded)}", not missing, (grant,))
