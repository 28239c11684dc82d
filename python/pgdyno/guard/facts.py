"""What was seen of the two servers of a pair, at one look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pgdyno.model.guard import GuardLimits, Life

CYCLES = 3
"""Checkpoints of the primary that the standby's restartpoint may be behind: it begins one on a
schedule of its own, after it replayed the record that ends a checkpoint, and takes as long."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A physical replication slot of the primary."""

    name: str
    active: bool
    reserved: bool  # it keeps WAL
    status: str  # wal_status; "reserved" where the server has no such word


@dataclass(frozen=True, slots=True)
class PrimaryFacts:
    """The primary."""

    version_num: int
    system_identifier: str
    is_in_recovery: bool
    timeline: int
    redo_lsn: int
    redo_oldest_lsn: int | None  # of `CYCLES` checkpoints before, if the guard saw them
    redo_full_pages: bool  # whether full_page_writes was on where that checkpoint began
    flush_lsn: int
    settings: Mapping[str, str]  # in base units, as pg_settings has them
    full_pages_source: str  # the file that decides full_page_writes, or the server's word for it
    slots: tuple[Slot, ...]
    tablespaces: Mapping[int, str]  # oid, name
    foreign_managers: tuple[str, ...]  # of WAL records
    may_checkpoint: bool

    @property
    def full_pages(self) -> bool:
        """Whether full_page_writes is on."""
        return self.settings["full_page_writes"] == "on"

    def images_since(self, on_lsn: int) -> bool:
        """Whether images protect every page.

        Args:
            on_lsn: A place in WAL that was written when they were on already, and stayed so.
        """
        return self.full_pages and self.redo_full_pages and self.redo_lsn >= on_lsn


@dataclass(frozen=True, slots=True)
class Contents:
    """What databases of the primary hold that matters; each had to be entered for it."""

    foreign_methods: tuple[str, ...]  # access methods that are not known to log what they change
    unlogged: tuple[str, ...]  # relations, as database.schema.name
    unseen: tuple[str, ...]  # databases that could not be entered, each with the reason


@dataclass(frozen=True, slots=True)
class StandbyFacts:
    """The standby."""

    version_num: int
    system_identifier: str
    is_in_recovery: bool
    timeline: int  # that it receives, or else of its last restartpoint
    redo_lsn: int
    replay_lsn: int
    receiver: str  # status of its WAL receiver; empty: there is none
    slot: str  # that this names; empty: none
    is_paused: bool
    delay_ms: int  # recovery_min_apply_delay
    recovery_target: tuple[str, str] | None  # a setting and its value; None: it has none
    settings: Mapping[str, str]
    tablespaces: frozenset[int] | None  # oids; None: the role may not look
    missing_rights: tuple[str, ...]
    life: Life
    is_by_loopback: bool  # reached over a Unix socket or from an address to the same


@dataclass(frozen=True, slots=True)
class Pair:
    """Both, as they were seen last; None: no answer, for which there is a reason."""

    primary: PrimaryFacts | None
    standby: StandbyFacts | None
    contents: Contents | None
    primary_silence: str = ""
    standby_silence: str = ""
    lag_s: float = 0.0  # age of the oldest WAL that is flushed and not replayed

    @property
    def lag_bytes(self) -> int | None:
        """WAL that the primary flushed and the standby has not replayed; None: not known."""
        if self.primary is None or self.standby is None:
            return None
        return max(self.primary.flush_lsn - self.standby.replay_lsn, 0)


@dataclass(frozen=True, slots=True)
class LocalFacts:
    """What is seen on the primary's machine without its server."""

    data: str  # without links
    boot_id: str
    include: str
    run_folder_kind: str  # of the file system that its files would lie on; empty: not known
    run_folder_wrong: str  # why nothing can be written there; empty: it can
    config_file: str  # that the line belongs into; empty: not known yet
    config_wrong: str  # why it cannot be changed; empty: it can
    line_include: str | None  # what our line names; None: there is none
    server_pid: int | None  # of the server on these data, where its process is seen
    is_armed: bool = False
    is_shut: bool = False  # pages may be torn, and the interlock says so to who starts it
    standby_life: Life | None = None  # as it was written down; None: it was not
    stray_config: str = ""  # see `stray_configuration`
    closed_by: str | None = None  # what was broken off while it wrote; None: nothing was


@dataclass(frozen=True, slots=True)
class Seen:
    """All that preconditions are judged by."""

    pair: Pair
    local: LocalFacts
    limits: GuardLimits
