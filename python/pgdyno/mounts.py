"""File systems in user space that pgdyno mounted, found by what `mount` shows for them.

Who serves one unmounts it. Should both that one and whoever began it be killed at once, a mount
stays that answers nobody, and hides the folder below: the next pgdyno there unmounts it.
"""

from __future__ import annotations

from pathlib import Path

from pgdyno.access import mount_points
from pgdyno.folders import Folder
from pgdyno.shell import run

SOURCE = "pgdyno-disk"
"""What `mount` shows for one."""


def unmount_left(folder: Folder) -> None:
    """Unmount what is mounted in a folder of ours.

    Raises:
        TargetError: It cannot be unmounted.
    """
    for path in _mounted(folder.path):
        # By its name in the folder: the mount itself answers nobody any more.
        run(["umount", "--lazy", "--no-canonicalize", "--internal-only", path])


def _mounted(above: Path) -> list[Path]:
    found = [path for path, source in mount_points() if source == SOURCE and path.parent == above]
    return found[::-1]
