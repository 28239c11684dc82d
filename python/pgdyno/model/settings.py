"""Settings: what a stage sets, where each value comes from, and what it risks."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from pgdyno.model.durability import Durability, Rung
from pgdyno.model.rights import Role

__all__ = [
    "DiskFormat", "HostFacts", "Origin", "OriginKind", "Rung", "ServerFacts", "ServerKnob",
    "Setting",
]  # fmt: skip


class OriginKind(StrEnum):
    """Who chose a value."""

    INITDB = "initdb"  # PostgreSQL's default, or what initdb wrote
    TARGET = "target"  # pgdyno needs it to run the cluster: port, socket, logging
    PROFILE = "profile"  # a profile of the catalogue, sized to this machine
    PLAN = "plan"  # the stage itself
    OVERRIDE = "override"  # --set
    SERVER = "server"  # the configuration that a server which is not ours already has


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value comes from: who chose it, and in which words."""

    kind: OriginKind
    detail: str  # e.g. "plans/demo.toml: stage tuned", "25 % of 23.5 GiB of memory"
    why: str = field(default="", compare=False)  # the profile's reason, in sentences


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of a stage, as it will be written to postgresql.conf."""

    name: str
    value: str
    origin: Origin
    default: str | None = field(default=None, compare=False)  # without it, as SHOW prints it


@dataclass(frozen=True, slots=True)
class ServerKnob:
    """What a server of this version says of one of its settings (pg_settings).

    Numbers are in the server's own unit; `enum_values` is empty where the server does not tell.
    """

    name: str
    vartype: str  # bool | integer | real | string | enum
    unit: str | None  # kB, 8kB, ms, s, min, B, MB
    context: str  # internal | postmaster | sighup | backend | superuser | user | ...
    minimum: float | None
    maximum: float | None
    enum_values: tuple[str, ...]
    default: str | None


@dataclass(frozen=True, slots=True)
class DiskFormat:
    """What a server refuses to start on unless it is its own: see pg_control_system()."""

    catalog_version: int  # e.g. 202506291
    control_version: int  # e.g. 1800


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """A PostgreSQL version and its settings."""

    version_num: int  # e.g. 180006, 150018
    version: str  # e.g. "PostgreSQL 18.6"
    knobs: dict[str, ServerKnob]  # by name
    disk_format: DiskFormat | None = None  # None: it was not asked, or does not tell
    role: Role | None = None  # that we are on a server that is not ours
    replica: Role | None = None  # the same on the standby that answers reads, if a plan names one
    about: dict[str, str] = field(default_factory=dict)  # what such a server says beside, in lines
    set_in: dict[str, str] = field(default_factory=dict)  # file:line of settings, where it tells
    name: str = ""  # among several servers of a plan
    others: tuple[ServerFacts, ...] = ()  # of a plan with several servers all but the first

    @property
    def major(self) -> int:
        """The major version, e.g. 18."""
        return self.version_num // 10000


@dataclass(frozen=True, slots=True)
class Place:
    """A folder other than pgdyno's own that a stage names for its clusters."""

    path: str
    free_bytes: int
    file_system: str  # its type
    device_number: int  # of the file system: folders of the same share its room
    durability: Durability | None = None  # of the storage below it; None: not looked at
    disks: tuple[str, ...] = ()  # whole ones below it; (): memory, or not known


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What of the host shapes a plan. In a container the limits are those of the cgroup."""

    cpus: int  # that this process may use
    memory_bytes: int  # physical, or the cgroup's limit where that is lower
    huge_pages_free: int  # of the default size
    huge_page_bytes: int
    free_disk_bytes: int  # where clusters are put
    data_path: str  # folder of clusters and fixtures
    file_system: str  # its type, e.g. "ext4"
    durability: Durability | None = None  # of the storage below `data_path`; None: not looked at
    data_device_number: int | None = None  # of the file system below `data_path`
    data_disks: tuple[str, ...] = ()  # whole ones below it; (): memory, or not known
    places: tuple[Place, ...] = ()  # that stages name, as far as they are there

    @property
    def least_free_bytes(self) -> int:
        """What is free where there is least of it, of all folders that clusters lie in."""
        return min((self.free_disk_bytes, *(one.free_bytes for one in self.places)))

    @property
    def least_free_elsewhere(self) -> str | None:
        """The folder on another file system where that is; None: it is on that of `data_path`."""
        if self.least_free_bytes == self.free_disk_bytes:
            return None
        least = min(self.places, key=lambda one: one.free_bytes)
        return None if least.device_number == self.data_device_number else least.path

    def place(self, path: str) -> Place | None:
        """What is known of a folder; None: it is not there, or was not looked at."""
        return next((one for one in self.places if one.path == path), None)
