"""A standby on this host given the crashed cluster's WAL: segments copied into its `pg_wal`.

A standby that reaches nobody looks there again and again. A segment that it has in part is replaced
by the longer one, which begins with the same bytes: both are the same cluster's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from pgdyno.folders import Folder, Owner, failing, owner_of
from pgdyno.model.errors import TargetError
from pgdyno.model.lsn import lsn_of
from pgdyno.model.repair import RedoBegin
from pgdyno.pages.files import held, segments_in
from pgdyno.pages.segment_names import begin_of
from pgdyno.shell import OsUser

_CHUNK_BYTES = 1 << 20


def feed(crashed: Folder, standby: Folder, begin: RedoBegin, until_lsn: str) -> None:
    """Copy the WAL that the crashed cluster still has, up to a place.

    Args:
        crashed: Its data directory.
        standby: The data directory of its standby.
        begin: What the crashed cluster says of itself.
        until_lsn: Nothing behind it is copied.

    Raises:
        TargetError: It cannot be read or written, or there is none.
    """
    facts = standby.facts
    owner = owner_of(OsUser("", facts.st_uid, facts.st_gid))
    copied = 0
    with Folder.hold(crashed.path / "pg_wal") as source, standby.into("pg_wal") as target:
        for name in segments_in(source, "Recover from a backup."):
            valid = lsn_of(until_lsn) - begin_of(name, begin.wal_segment_bytes)
            if valid > 0:
                _copy(source, target, name, min(valid, begin.wal_segment_bytes),
                      begin.wal_segment_bytes, owner)  # fmt: skip
                copied += 1
        target.sync()
    if not copied:
        raise TargetError(f"{crashed.path} has no segment of WAL before {until_lsn}")


def _copy(
    source: Folder, target: Folder, name: str, valid: int, segment_bytes: int, owner: Owner | None
) -> None:
    """The first bytes of a segment, and zeroes behind them."""
    fresh = f"{name}.pgdyno"
    target.remove(fresh)
    how = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with held(source, name) as old, failing(f"write {target.path / name}"):
        new = os.open(fresh, how, 0o600, dir_fd=target.handle)
        try:
            for chunk in _chunks(old, valid):
                view = memoryview(chunk)
                while view:
                    view = view[os.write(new, view) :]
            os.ftruncate(new, segment_bytes)
            if owner is not None:
                os.fchown(new, owner.uid, owner.gid)
            os.fsync(new)
        finally:
            os.close(new)
        os.rename(fresh, name, src_dir_fd=target.handle, dst_dir_fd=target.handle)


def _chunks(handle: int, valid: int) -> Iterator[bytes]:
    while valid and (chunk := os.read(handle, min(valid, _CHUNK_BYTES))):
        valid -= len(chunk)
        yield chunk
