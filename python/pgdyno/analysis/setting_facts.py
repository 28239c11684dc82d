"""What a report says of settings: those that a server had, and those that a stage changes."""

from __future__ import annotations

from dataclasses import dataclass


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
