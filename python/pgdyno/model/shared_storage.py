"""Folders of one file system, or of one disk: who compares them compares storage with itself.

The words for it stand here, since plans, reports and probes all say it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pgdyno.model.wording import listed

CHANCE = "what differs between them is chance, or where on it their files lie"
"""Of folders on one file system: no number of rounds would make that a difference of storage."""
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
    """A sentence for each file system, and for each disk, that several folders lie on."""
    by_file_system: dict[str | int, list[Lies]] = {}
    for one in places:
        if one.file_system is not None:
            by_file_system.setdefault(one.file_system, []).append(one)
    for together in by_file_system.values():
        if len(together) > 1:
            disks = together[0].disks
            on = f" on {listed(disks)}" if disks else ""
            folders = listed([one.folder for one in together])
            yield (
                f"{folders} lie on one file system{on}: of stages that differ by these alone,"
                f" {CHANCE}; no number of rounds decides that"
            )
    apart = [together[0] for together in by_file_system.values()]
    for disk in dict.fromkeys(disk for one in apart for disk in one.disks):
        sharing = [one.folder for one in apart if disk in one.disks]
        if len(sharing) > 1:
            yield (
                f"{listed(sharing)} share the disk {disk}: stages that differ by these compare what"
                " lies over it, and no two disks"
            )
