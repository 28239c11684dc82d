"""The cluster as it was before a guarded load, kept beside it: what its standbys are made of."""

from __future__ import annotations

import signal

from pgdyno.folders import owner_of
from pgdyno.model.settings import Origin, OriginKind, Setting
from pgdyno.shell import run
from pgdyno.target.own_target import BASE, DATA, OwnTarget

_COPY_S = 7200.0
_ORIGIN = Origin(OriginKind.TARGET, "standbys of a drill are made of all WAL of its load")
_SINCE_KEEP_SIZE = 13


def keeps_wal(major: int) -> Setting:
    """The setting of a load whose WAL no checkpoint removes."""
    if major >= _SINCE_KEEP_SIZE:
        return Setting("wal_keep_size", "1TB", _ORIGIN)
    return Setting("wal_keep_segments", "65536", _ORIGIN)


def keep_base(target: OwnTarget) -> None:
    """Copy the cluster that a load will begin with; it does not run."""
    copied(target, DATA, BASE)


def copied(target: OwnTarget, source: str, name: str) -> None:
    """Copy a data directory of the trial's folder, in place of what has the copy's name."""
    folder = target.trial_folder
    folder.remove_folder(name)
    with folder.make(name, 0o700, owner_of(target.user)) as made:
        words = ["cp", "-a", "--reflink=auto", "-T", str(folder.path / source), "."]
        run(words, user=target.user, folder=made.handle, timeout_s=_COPY_S,
            dies_with_us=signal.SIGKILL)  # fmt: skip
