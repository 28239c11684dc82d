"""A host that is a node of a Ray cluster; needs the extra `pgdyno[ray]`, and a token.

Ray knows where its nodes are, and notices when one dies. Whoever enters a cluster may run anything
on it, so that one without a token is refused, and a token that others can read.
"""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from pgdyno.drive.ray_bridge import REFUSE_OPEN
from pgdyno.drive.transport import Transport, here
from pgdyno.model.errors import DriveError
from pgdyno.model.fleet import Fleet
from pgdyno.model.host_address import HostAddress
from pgdyno.model.system_errors import reason
from pgdyno.shell import Process, start

MODE, TOKEN, TOKEN_FILE = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"
_BRIDGE = "pgdyno.drive.ray_bridge"
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0"}


def require_token(environ: Mapping[str, str]) -> None:
    """Refuse to enter a cluster without a token of our own.

    Raises:
        DriveError: None is asked for, or it lies where others can read it.
    """
    if (mode := environ.get(MODE)) != "token":
        raise DriveError(
            f"{MODE} is {mode or 'not set'}, token expected: who reaches a Ray cluster without one"
            " may run anything there",
            f"Start the cluster with {MODE}=token on all hosts, and set it here.",
        )
    if TOKEN in environ:
        raise DriveError(
            f"{TOKEN} holds a token, which every process of the cluster inherits",
            f"Put it into a file that only you can read, and name that by {TOKEN_FILE}.",
        )
    path = Path(environ.get(TOKEN_FILE) or Path.home() / ".ray" / "auth_token")
    try:
        found = path.stat()
    except OSError as error:
        raise DriveError(
            f"token file {path} cannot be read: {reason(error)}",
            "`ray get-auth-token --generate` makes one; all hosts need the same.",
        ) from error
    if not stat.S_ISREG(found.st_mode):
        raise DriveError(f"token file {path} is no file")
    if found.st_mode & 0o077 or found.st_uid not in (os.geteuid(), 0):
        mode = f"{found.st_mode & 0o777:04o}"
        raise DriveError(
            f"token file {path} has mode {mode} and owner {found.st_uid}, 0600 and"
            f" {os.geteuid()} expected: others can read it",
            f"chmod 600 {path}, and take another token where others may have read it.",
        )


def _start(address: HostAddress, fleet: Fleet, log: int, module: str) -> Process:
    if find_spec("ray") is None:
        raise DriveError(
            f"Ray is not installed, and {address.scheme}:{address.place} is reached by it",
            "pip install 'pgdyno[ray]', the same version on all hosts.",
        )
    require_token(os.environ)
    first = next(name for name in fleet.hosts if name.startswith(f"{address.scheme}:"))
    checked = (REFUSE_OPEN,) if first == f"{address.scheme}:{address.place}" else ()
    words = (*here(_BRIDGE), *checked, address.place, module)
    return start(words, env=_QUIET, pipes=True, log=log, dies_with_us=signal.SIGTERM)


TRANSPORT = Transport("ray", _start, hello_s=120.0)  # a driver of Ray's, an actor, and its check
