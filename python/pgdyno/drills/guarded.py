"""The disk of a guarded stage, repaired from a standby before a server is started on it.

The standby is made of the cluster as it was before the load, and of the WAL that the disk holds: up
to its end, up to some place behind the checkpoint, or not even so far, as the seed draws. So each
disk has a standby of its own, as it may have been when the power went.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import numpy as np

from pgdyno.drills.load import Load
from pgdyno.folders import Folder, owner_of
from pgdyno.guard.feed import feed
from pgdyno.guard.repair import RepairAsked, repair
from pgdyno.model.lsn import lsn_of, lsn_text
from pgdyno.model.repair import RedoBegin, RepairReport
from pgdyno.model.settings import Origin, OriginKind, Setting
from pgdyno.pages.redo import Crashed, read_redo, redo_begin
from pgdyno.target.cluster import Cluster
from pgdyno.target.own_target import BASE, JOURNALS
from pgdyno.target.standby import STANDBY
from pgdyno.trial.fixture import build_of

_PATIENCE_S = 2.0
_ORIGIN = Origin(OriginKind.TARGET, "what the server works on is thrown away")
THROWN_AWAY = Setting("fsync", "off", _ORIGIN)
"""Of servers of a drill that nobody measures, and whose data are never cut."""
_ALL, _LAGS = 0.5, 0.75  # shares of disks whose standby had all WAL; all, or what redo needs
_BEHIND_BYTES_MAX = 1 << 20
_RECORD_BYTES = 8192  # more than a checkpoint's record takes


def mended(load: Load, disk: str, seed: int) -> RepairReport:
    """Repair a disk that a server has not been started on since the power went.

    Args:
        load: What was recorded.
        disk: Its name in the trial's folder.
        seed: Draws how far the standby came.

    Raises:
        TargetError: It was refused, or the standby does not run.
    """
    folder = load.bench.target.trial_folder
    with ExitStack() as stack:
        data = stack.enter_context(folder.into(disk))
        crashed = read_redo(data)
        journals = stack.enter_context(folder.make(JOURNALS, 0o700))
        stack.callback(folder.remove_folder, JOURNALS)
        base = redo_begin(stack.enter_context(folder.into(BASE)))
        until = _until(crashed, base, seed)
        standby = stack.enter_context(_standby(load, data, crashed, until))
        standby_data = stack.enter_context(folder.into(STANDBY))
        return repair(
            data,
            crashed.begin,
            standby.connection(),
            RepairAsked(patience_s=_PATIENCE_S),
            journals,
            standby_data=standby_data,
        )


def _until(crashed: Crashed, base: RedoBegin, seed: int) -> str:
    """How far the standby had received WAL: as far as it is valid, or less."""
    needs, begin = crashed.needs, crashed.begin
    if needs is None:
        return begin.checkpoint_lsn
    redo, checkpoint, end = map(lsn_of, (begin.redo_lsn, begin.checkpoint_lsn, needs.end_lsn))
    least = lsn_of(base.checkpoint_lsn) + _RECORD_BYTES
    draw = np.random.default_rng([seed, end])
    how = draw.random()
    place = end
    if how >= _ALL:
        place = int(draw.integers(checkpoint + 1, end + 1))
    if how >= _LAGS:
        place = redo - int(draw.integers(_BEHIND_BYTES_MAX))
    return lsn_text(min(end, max(least, place)))


@contextmanager
def _standby(load: Load, disk: Folder, crashed: Crashed, until_lsn: str) -> Iterator[Cluster]:
    """A server that follows the crashed one's WAL, and has it up to a place."""
    target, folder = load.bench.target, load.bench.target.trial_folder
    try:
        target.copy(BASE, STANDBY)
        with folder.into(STANDBY) as data:
            data.write("standby.signal", "", 0o600, owner_of(target.user))
            feed(disk, data, crashed.begin, until_lsn)
        cluster = target.server_on(STANDBY, build_of(load.stage))
        try:
            cluster.start([*load.stage.settings, THROWN_AWAY], recovers=True)
            yield cluster
        finally:
            cluster.close()
    finally:
        folder.remove_folder(STANDBY)
