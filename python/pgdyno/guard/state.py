"""Where the guard keeps what must outlive a repair: journals of old and new bytes, by cluster.

It is no cache, and holds pages of the cluster: only its owner may read it. What root named of a
pair lies there as well (`named`), since nobody else can write there.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from pgdyno import access
from pgdyno.access import is_closed
from pgdyno.folders import Folder, failing
from pgdyno.model.errors import TargetError

VARIABLE = "PGDYNO_GUARD_STATE"


def state_path(environ: Mapping[str, str] = os.environ) -> Path:
    """Root's under /var/lib, another user's among the states of programs.

    Raises:
        TargetError: The variable names no absolute path.
    """
    return access.state_path("pgdyno-guard", VARIABLE, environ)


def folder_at(path: Path) -> Folder:
    """A folder there, made for this user alone where it is missing; its name is on the disk.

    One that was there keeps its mode: it may be somebody's, and what we make in it is closed.

    Raises:
        TargetError: It cannot be made or synced, or others than this user could change what is in
            it.
    """
    with Folder.made(path.parent) as above:
        folder = Folder.hold(path) if above.has(path.name) else above.make(path.name, 0o700)
    try:
        folder.require_closed()
        _require_ours_alone(folder)
        _sync_names(folder)
    except BaseException:
        folder.close()
        raise
    return folder


def _require_ours_alone(folder: Folder) -> None:
    """Refuse a folder of this user's that others may write to; `require_closed` is root's."""
    facts = folder.facts
    if facts.st_uid == os.geteuid() and not is_closed(facts, sticky_holds=False):
        raise TargetError(
            f"others can change what is in folder {folder.path}"
            f" (mode {stat.S_IMODE(facts.st_mode):03o})",
            "Name one that is not there yet, or take that right from them.",
        )


def _sync_names(folder: Folder) -> None:
    """Wait until the names that lead to a folder are on its disk: any may be new, if not of now.

    Those above one that this user may not list were made by somebody else.
    """
    device = folder.facts.st_dev
    for above in folder.path.parents:
        if not os.access(above, os.R_OK) or os.stat(above).st_dev != device:
            return
        with Folder.hold(above) as one, failing(f"sync {above}"):
            one.sync()
