"""Where the guard keeps what must outlive a repair: journals of old and new bytes, by cluster.

It is no cache, and holds pages of the cluster: only its owner may read it. What root named of a
pair lies there as well (`named`), since nobody else can write there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pgdyno import access
from pgdyno.folders import Folder, failing

VARIABLE = "PGDYNO_GUARD_STATE"


def state_path(environ: Mapping[str, str] = os.environ) -> Path:
    """Root's under /var/lib, another user's among the states of programs.

    Raises:
        TargetError: The variable names no absolute path.
    """
    return access.state_path("pgdyno-guard", VARIABLE, environ)


def folder_at(path: Path) -> Folder:
    """A folder there, made where it is missing; its name is on the disk.

    Raises:
        TargetError: It cannot be made or synced, or others than this user could change what is in
            it.
    """
    folder = Folder.made(path)
    try:
        folder.require_closed()
        if folder.facts.st_uid == os.geteuid():
            with failing(f"close folder {path} to others"):
                os.fchmod(folder.handle, 0o700)
        _sync_names(folder)
    except BaseException:
        folder.close()
        raise
    return folder


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
