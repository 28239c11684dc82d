"""Where the guard keeps what must outlive a repair: journals of old and new bytes, by cluster.

It is no cache, and holds pages of the cluster: only its owner may read it.
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


def journals_at(path: Path) -> Folder:
    """A folder of journals, made where it is missing.

    Raises:
        TargetError: It cannot be made, or others than this user could change what is in it.
    """
    folder = Folder.made(path)
    try:
        folder.require_closed()
        if folder.facts.st_uid == os.geteuid():
            with failing(f"close folder {path} to others"):
                os.fchmod(folder.handle, 0o700)
    except BaseException:
        folder.close()
        raise
    return folder
