"""The guard's records: what was found of a pair, what is kept of an armed one, how it stands."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from pgdyno.model.bounds import require_within

_LEAST: dict[str, float] = {
    "lag_bytes": 1, "lag_s": 1, "silence_s": 1, "hold_s": 0,
    "checkpoint_timeout_s": 30,  # PostgreSQL's own least
}  # fmt: skip
_NO_LESS = "No pair keeps to less."


ONCE = ("standby-power",)
"""What a person may say is well as it was found, and is asked again when that changes."""
ACCEPTABLE = (
    "separate-power", "checksums", "checkpoint-timeout", "unlogged", "databases-seen", *ONCE,
)  # fmt: skip
"""Conditions that a person may accept as they are."""


@dataclass(frozen=True, slots=True)
class GuardLimits:
    """How far the standby may be from the primary while full pages are off."""

    lag_bytes: int = 256 << 20  # flushed on the primary, not replayed on the standby
    lag_s: float = 30.0  # the age of the oldest of these bytes
    silence_s: float = 5.0  # that a server may leave the guard without an answer
    hold_s: float = 10.0  # that all is well before full pages go off
    checkpoint_timeout_s: int = 300  # what a repair fetches grows with the WAL since a checkpoint

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            require_within(name, getattr(self, name), least, None, _NO_LESS)


@dataclass(frozen=True, slots=True)
class LimitsAsked:
    """Limits of which somebody names some; of the others it stays at what it was."""

    lag_bytes: int | None = None
    lag_s: float | None = None
    silence_s: float | None = None
    hold_s: float | None = None
    checkpoint_timeout_s: int | None = None

    def __post_init__(self) -> None:
        for name, value in self._named().items():
            require_within(name, value, _LEAST[name], None, _NO_LESS)

    def over(self, limits: GuardLimits) -> GuardLimits:
        """Those that are named in the place of others."""
        return replace(limits, **self._named())

    def _named(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class Finding:
    """A precondition: what was found, what is wanted, and what would change it."""

    name: str  # e.g. "same-system"
    passed: bool
    found: str
    wanted: str
    change: str = ""  # a sentence; empty where it is passed
    may_be_accepted: bool = False  # a person may accept it as it is, by its name
    accepted: bool = False

    @property
    def allows(self) -> bool:
        """Whether full pages may be off as far as this goes."""
        return self.passed or self.accepted


@dataclass(frozen=True, slots=True)
class Checked:
    """All preconditions of a pair."""

    data: str
    primary: str  # how it was reached, without passwords
    standby: str
    findings: tuple[Finding, ...]
    advice: tuple[str, ...] = ()  # what would be better, and is no condition; each a sentence

    @property
    def allowed(self) -> bool:
        """Whether the pair may be armed."""
        return all(one.allows for one in self.findings)

    @property
    def refused(self) -> tuple[Finding, ...]:
        """What speaks against it."""
        return tuple(one for one in self.findings if not one.allows)


@dataclass(frozen=True, slots=True)
class Life:
    """Of a server and of its machine: whoever lost power has another one."""

    boot_id: str  # of its kernel; empty: the role may not read it
    started: str  # when the server was, seconds since 1970, as it says

    def goes_on(self, since: Life) -> bool:
        """Whether the kernel surely is the one that it was then."""
        if self.tells_machine(since):
            return self.boot_id == since.boot_id
        return self.started == since.started

    def tells_machine(self, since: Life) -> bool:
        """Whether both kernels are known: else a server that was restarted stands for one."""
        return bool(self.boot_id and since.boot_id)


class Step(StrEnum):
    """How far arming or disarming came, as the guard's state has it."""

    arming = "arming"
    armed = "armed"
    disarming = "disarming"


@dataclass(frozen=True, slots=True)
class Armed:
    """What is kept in the data directory of a server that is armed, or is about to be or not."""

    version: int  # of this shape
    step: Step
    system_identifier: str
    boot_id: str  # of the kernel under which nothing can be torn: armed, admitted or repaired
    config_file: str  # that holds the line of the interlock
    include: str  # the file that this line names, in memory
    primary: str  # conninfo without passwords; empty: by postmaster.pid
    standby: str  # conninfo without passwords
    accepted: tuple[str, ...]
    limits: GuardLimits
    data: str  # the directory, without links: a copy of it lies elsewhere
    standby_life: Life | None = None  # in which its pages are whole; None: armed before this was
    inode: int | None = None  # of its folder global: a copy at the same path has another one


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """What the daemon says of itself and of the pair, again and again."""

    version: int
    pid: int
    at_s: float  # since the machine began, which no clock that is set can change
    pages: str  # "off", "on"
    since_s: float  # as at_s
    reasons: tuple[str, ...]  # why they are on: names of findings, each with what was found
    waits_s: float  # until they go off, if all stays well
    complete: bool  # whether images protect every page: on, and a checkpoint began since
    lag_bytes: int | None
    lag_s: float | None
    wal_since_redo_bytes: int | None  # what a repair would have to read now
    turns: int  # how often they went on while the daemon runs
    watchdog_turns: int  # of these: without the daemon, which gave no sign of life
    server_pages: str | None  # "off", "on", as the server has them; None: it does not answer
    unlike: str  # how the server goes on to differ from the interlock's file; empty: it does not

    @property
    def stands_s(self) -> float:
        """How long they had been so, seconds."""
        return self.at_s - self.since_s


class Lock(StrEnum):
    """Whether a server on these data may be started, and by what."""

    open = "open"  # the interlock's file is there
    same_boot = "same-boot"  # it is not, but the kernel never stopped: nothing can be torn
    clean = "clean"  # it is not, and the server was shut down before: nothing can be torn
    repair = "repair"  # it is not, and pages may be torn
    none = "none"  # there is no interlock


@dataclass(frozen=True, slots=True)
class Status:
    """How an armed pair stands; all of it is read from files, and no server is asked."""

    data: str
    armed: Armed | None
    lock: Lock
    server_runs: bool
    pages: str | None  # "off", "on" by the interlock's file; None: there is none
    heartbeat: Heartbeat | None
    heartbeat_age_s: float | None
    daemon_runs: bool
    wrong: tuple[str, ...]  # what a person must do something about, each a sentence

    @property
    def code(self) -> int:
        """Of the command: 0 all is well; 8 safe, but full pages are on; 1 somebody must act."""
        if self.wrong:
            return 1
        return 8 if self.armed is not None and self.pages == "on" else 0
