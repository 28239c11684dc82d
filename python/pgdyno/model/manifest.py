"""What a run was made on, as its file keeps it: everything that may explain a different number.

Run files of all formats are read into these records. What an earlier pgdyno did not ask for is
None or empty, as is what nobody can tell.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class FileSystem:
    """The file system that holds a folder, as /proc/mounts has it, and what it lies on."""

    type: str
    device: str = ""
    options: str = ""
    mount: str = ""
    disks: tuple[str, ...] = ()  # whole ones below it; (): memory, or not known


@dataclass(frozen=True, slots=True)
class HostManifest:
    """The machine of the client, which is that of the server too where the server is ours."""

    cpu_model: str | None = None
    cpus: int | None = None
    cpu_mhz: int | None = None  # of that moment
    numa_nodes: int | None = None
    memory_bytes: int | None = None
    huge_pages_free: int | None = None
    huge_page_bytes: int | None = None
    transparent_huge_pages: str | None = None
    kernel: str | None = None
    clock_source: str | None = None
    virtualisation: str | None = None
    operating_system: str | None = None
    file_system: FileSystem | None = None  # that clusters are put on
    sysctl: dict[str, str] = field(default_factory=dict)  # by path below /proc/sys
    swap_bytes: int | None = None
    driver: str | None = None  # first letters of the hash of our driver's own binary
    folders: dict[str, FileSystem] = field(default_factory=dict)  # that stages name for clusters


@dataclass(frozen=True, slots=True)
class Installation:
    """PostgreSQL's programs: those of the target, or of what runs there already."""

    version: str | None = None
    version_num: str | None = None
    configure: str | None = None  # its options
    compiler: str | None = None
    origin: str | None = None  # "embedded", a folder, or a running server
