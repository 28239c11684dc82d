"""What is said of settings: as a server had them, as a stage changes them, as recommended."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A setting that a stage changes against the stage before, or against the defaults."""

    name: str
    before: str | None  # None: not set there
    after: str | None  # None: no longer set
    effective: str | None  # as read back from the running server
    origin: str | None
    origin_detail: str | None


@dataclass(frozen=True, slots=True)
class ServerSetting:
    """A setting of a server that is not ours, as it was found."""

    name: str
    value: str
    source: str  # a file with the line, or the server's word: default, command line, database, ...


@dataclass(frozen=True, slots=True)
class RecommendedSetting:
    """A setting of the stage, with what is known of it."""

    name: str
    value: str
    chosen_by: str  # e.g. "25 % of 23.5 GiB of memory"
    why: str  # sentences; empty: whoever chose it gave none
    gain: str  # its ratio alone with the interval, or that it was not measured alone
    apply: str  # what a change costs, e.g. "restart"; empty: the catalogue does not say


@dataclass(frozen=True, slots=True)
class Recommended:
    """What a run recommends to configure."""

    ident: str
    pgdyno: str
    version: str  # of PostgreSQL
    stage: str
    sentences: tuple[str, ...]  # what the stage gives, what it loses, what it was measured on
    settings: tuple[RecommendedSetting, ...]
    sysctl: dict[str, str]  # of the host that was measured; empty: it is not known
    pooler: str | None = None  # what the load went through, e.g. "transaction, 20 sessions"
    pooler_ini: dict[str, str] = field(default_factory=dict)  # what its pgbouncer.ini had of that
