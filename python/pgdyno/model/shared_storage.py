"""Folders of one file system, or of one disk: who compares them compares storage with itself.

The words for it stand here, since plans, reports and probes all say it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pgdyno.model.wording import listed

CHANCE = "what differs between them is chance, or where on it their files lie"
"""Of folders on one file system: no number of rounds would make that a difference of storage."""
FEELS = (
    "what one does the other feels, and where one is faster than what they share, memory answered"
)
"""Of paths that share a disk."""
OWN_FOLDER = "pgdyno's own folder"
"""What PGDYNO_HOME is called among folders that a plan names."""
ITSELF = "storage would be compared with itself"
"""Of a pair of stages that nothing else tells apart."""


@dataclass(frozen=True, slots=True)
class Lies:
    """Where a folder lies."""

    folder: str  # as people call it
    file_system: str | int | None  # tells it from others; None: not known, or no storage
    disks: tuple[str, ...] = ()  # whole ones below it; (): not known


def may_share(ours: Sequence[str], theirs: Sequence[str]) -> bool:
    """Whether two folders may lie on one disk, by the disks below each; not known, they may."""
    return not ours or not theirs or bool(set(ours) & set(theirs))


def on_one_storage(places: Sequence[Lies]) -> Iterator[str]:
    """A sentence for each file system, and for each disk, that several folders of stages lie on."""
    for one in _shared(places):
        folders = listed(one.folders)
        if one.disk is None:
            on = f" on {listed(one.disks)}" if one.disks else ""
            yield (
                f"{folders} lie on one file system{on}: of stages that differ by these alone,"
                f" {CHANCE}; no number of rounds decides that"
            )
        else:
            yield (
                f"{folders} share the disk {one.disk}: stages that differ by these compare what"
                " lies over it, and no two disks"
            )


def paths_on_one_storage(places: Sequence[Lies]) -> Iterator[str]:
    """The same of paths that are probed."""
    for one in _shared(places):
        if one.disk is None:
            yield f"{listed(one.folders)} lie on one file system: {CHANCE}"
        else:
            yield f"{listed(one.folders)} share the disk {one.disk}: {FEELS}"


@dataclass(frozen=True, slots=True)
class _Shared:
    """Several folders on one thing."""

    folders: tuple[str, ...]
    disks: tuple[str, ...]  # below their file system
    disk: str | None  # that they share; None: they share the file system


def _shared(places: Sequence[Lies]) -> Iterator[_Shared]:
    by_file_system: dict[str | int, list[Lies]] = {}
    for one in places:
        if one.file_system is not None:
            by_file_system.setdefault(one.file_system, []).append(one)
    for together in by_file_system.values():
        if len(together) > 1:
            yield _Shared(tuple(one.folder for one in together), together[0].disks, None)
    apart = [together[0] for together in by_file_system.values()]
    for disk in dict.fromkeys(disk for one in apart for disk in one.disks):
        sharing = tuple(one.folder for one in apart if disk in one.disks)
        if len(sharing) > 1:
            yield _Shared(sharing, (disk,), disk)
