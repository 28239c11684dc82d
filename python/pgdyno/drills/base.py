"""The cluster as it was before a guarded load, kept beside it: what its standbys are made of."""

from __future__ import annotations

from pgdyno.model.settings import Origin, OriginKind, Setting
from pgdyno.target.own_target import BASE, DATA, OwnTarget

_ORIGIN = Origin(OriginKind.TARGET, "standbys of a drill are made of all WAL of its load")
_SINCE_KEEP_SIZE = 13


def keeps_wal(major: int) -> Setting:
    """The setting of a load whose WAL no checkpoint removes."""
    if major >= _SINCE_KEEP_SIZE:
        return Setting("wal_keep_size", "1TB", _ORIGIN)
    return Setting("wal_keep_segments", "65536", _ORIGIN)


def keep_base(target: OwnTarget) -> None:
    """Copy the cluster that a load will begin with; it does not run."""
    target.copy(DATA, BASE)
