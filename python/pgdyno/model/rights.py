"""What a role may do on a server that is not ours, and which rights a plan needs there."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class NoPlace:
    """Why a role could not create tables in a database that it made."""

    search_path: str  # that its sessions have there
    schema: str | None  # that it leads to, and that is closed to it; None: to none that is there
    of_client: bool  # the connection's options set the path


@dataclass(frozen=True, slots=True)
class Role:
    """The role that pgdyno connects as, by what the server says of it."""

    name: str  # quoted as SQL wants it
    is_superuser: bool
    can_create_databases: bool
    can_checkpoint: bool
    can_prewarm: bool | None  # it may create pg_prewarm, or template1 has it; None: not known
    has_prewarm_files: bool  # pg_prewarm is installed on the server's host
    can_read_settings: bool  # also those that only administrators are shown
    can_read_statistics: bool  # also what sessions of others do, and how the server does
    can_set: frozenset[str]  # settings of context `superuser`
    sessions_max: int | None = None  # that it may have; None: as many as the server has
    sessions_left: int | None = None  # that the server has left for it; None: it was not asked
    shut_out_of: tuple[str, ...] = ()  # databases that pg_hba.conf keeps it out of
    by_socket: bool = False  # it comes through a Unix socket
    no_place: NoPlace | None = None  # for tables in a new database; None: there is one
    stronger: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Settings that come before those of a database: value, and `user` or `client` that set it."""


@dataclass(frozen=True, slots=True)
class Right:
    """One right that a plan makes use of."""

    what: str  # completes "may", e.g. "create databases"
    is_held: bool
    grant: tuple[str, ...]  # what a superuser gives psql, line by line
    otherwise: str = ""  # how a plan does without it, and what that costs; empty: it cannot
    is_needed: bool = True  # False: the run goes well without it
    unknown: str = ""  # why nobody knows whether it is held; empty: it is known
    before: str = ""  # what must be done first, on the server's host or by whoever uses it
