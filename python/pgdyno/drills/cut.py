"""One disaster: a disk made as of an instant, a server started on it, and all of it looked at."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import psycopg

from pgdyno.disk.record import hand_back, make_disk
from pgdyno.disk.recorder import recorded
from pgdyno.drills import checks
from pgdyno.drills.disasters import device_of
from pgdyno.drills.free_space import free_space
from pgdyno.drills.guarded import mended
from pgdyno.drills.index_entries import index_entries
from pgdyno.drills.ledger import Found, Owed, compared
from pgdyno.drills.load import Load
from pgdyno.drills.refusals import refusal, require_of_data
from pgdyno.drills.survivors import rows_of
from pgdyno.folders import Folder
from pgdyno.loader.unlogged import emptied
from pgdyno.model.connection import Connection
from pgdyno.model.drill import Cut, Device, Disaster, Made, Spared, State
from pgdyno.model.errors import Interrupted, PgdynoError, RefusedError, TargetError
from pgdyno.model.repair import RepairReport
from pgdyno.model.wording import listed, plural
from pgdyno.model.workload import database_names
from pgdyno.shell import run
from pgdyno.target.cluster import DATABASE, Cluster
from pgdyno.target.interface import NO_ENVIRONMENT
from pgdyno.target.own_target import DATA, DISK, DISK_AGAIN, RECORD, RECORD_AGAIN
from pgdyno.target.standby import STANDBY
from pgdyno.trial.fixture import build_of

_NS = 1_000_000_000
_NOTHING = Spared()
_FIRST_SHARE = 0.05  # of a load: before, too little is there to be lost
_WRITE_S = 600
_NAMED = 3  # tables in a sentence
_DISK_SEEDS = 2**31


@dataclass(frozen=True, slots=True)
class Looked:
    """What a server that came back shows."""

    found: Found
    damage: list[str]
    emptied: tuple[str, ...] = ()  # unlogged tables, by the crash


def share_and_seed(stage: str, disaster: str, number: int, seed: int) -> tuple[float, int]:
    """At which share of a load a disaster strikes, and the seed of the disk that it leaves."""
    names = (zlib.crc32(name.encode()) for name in (stage, disaster))
    draw = np.random.default_rng([seed, number, *names])
    return _FIRST_SHARE + (1 - _FIRST_SHARE) * draw.random(), int(draw.integers(_DISK_SEEDS))


def strike(
    load: Load, disaster: Disaster, number: int, seed: int, spared: Spared = _NOTHING
) -> Cut:
    """Make the disk of a disaster, start the server on it, and look.

    Args:
        load: What was recorded.
        disaster: What happens to the disk.
        number: Of this disaster for this stage, from 1.
        seed: Of the drill.
        spared: What the disk keeps, though it was drawn to be lost.

    Raises:
        TargetError: The disk cannot be made: no room, or the record is broken. Or no server could
            be started on it, for want of something that is not in it.
    """
    share, disk_seed = share_and_seed(load.stage.name, disaster.name, number, seed)
    first_ns, last_ns = load.ledger.span_ns[0], load.ends_ns
    struck_ns = first_ns + round(share * (last_ns - first_ns))
    # What has struck the load itself is looked at as of the end, for what it came to.
    instant_ns = last_ns if disaster.is_live else struck_ns
    if disaster.cuts:
        struck_ns = last_ns
    owed = load.ledger.at(instant_ns)
    target = load.bench.target
    recovery_s, repair, looked = None, None, Looked(Found(), [])
    state: State = "dead"
    with _struck(load, disaster, instant_ns, disk_seed, spared) as (disk, made):
        cluster = target.server_on(disk, build_of(load.stage))
        try:
            if load.stage.guard and disaster.standby is None:
                repair = _repaired(load, disk, disk_seed)
            _written_out(target.trial_folder, disk)
            recovery_s = cluster.start(load.stage.settings, recovers=True)
            if load.promotion_s is not None:
                recovery_s = load.promotion_s
            looked = look(load, cluster, owed)
            state = state_of(looked)
            reasons = (*_of_tables(looked), *_of_ledger(looked.found, owed), *looked.damage)
        except RefusedError as error:
            reasons = (f"The server did not come back: {refusal(error)}.",)
        finally:
            cluster.close()
    return Cut(
        load.stage.name, disaster.name, number, disk_seed,
        (struck_ns - first_ns) / _NS, made, state, owed.commits,
        sum(owed.uncertain.values()), looked.found.lost, looked.found.lost_s, recovery_s, reasons,
        load.outage if disaster.is_live else None, load.met if disaster.is_live else None, repair,
        len(looked.emptied),
    )  # fmt: skip


def _written_out(folder: Folder, disk: str) -> None:
    """Have the kernel write what was made: else the recovery's own flushes would wait for it."""
    with folder.into(disk) as data:
        run(["sync", "-f", "."], folder=data.handle, timeout_s=_WRITE_S)


def _repaired(load: Load, disk: str, seed: int) -> RepairReport:
    try:
        return mended(load, disk, seed)
    except TargetError as error:
        raise RefusedError(error.fact, error.hint) from error


@contextmanager
def _struck(
    load: Load, disaster: Disaster, instant_ns: int, seed: int, spared: Spared
) -> Iterator[tuple[str, Made]]:
    """The disk that a disaster leaves: its name, and what was left to chance."""
    folder, device = load.bench.target.trial_folder, device_of(load.stage, disaster)
    if disaster.standby is not None and disaster.standby.takes_over:
        yield STANDBY, Made(0, 0, 0, 0, 0)
        return
    if disaster.cuts:
        made = hand_back(folder, RECORD, DATA, instant_ns, seed, device)
        with folder.into(DATA) as data:
            data.remove("postmaster.pid")
        yield DATA, made
        return

    def make() -> Made:
        return made_disk(folder, RECORD, DISK, instant_ns, seed, device, spared)

    try:
        made = make()
        if not disaster.again:
            yield DISK, made
            return
        again_ns = _recovered(load, seed, make)
        again = made_disk(folder, RECORD_AGAIN, DISK_AGAIN, again_ns, seed, device, spared)
        yield DISK_AGAIN, _both(made, again)
    finally:
        folder.remove(RECORD_AGAIN)
        for disk in (DISK, DISK_AGAIN):
            folder.remove_folder(disk)


def _both(first: Made, second: Made) -> Made:
    return Made(
        first.names_open + second.names_open, first.names_lost + second.names_lost,
        first.sectors_open + second.sectors_open, first.sectors_lost + second.sectors_lost,
        first.blocks_torn + second.blocks_torn, first.blocks_lost + second.blocks_lost,
    )  # fmt: skip


def made_disk(
    folder: Folder,
    record: str,
    disk: str,
    instant_ns: int,
    seed: int,
    device: Device,
    spared: Spared = _NOTHING,
) -> Made:
    """Make a disk that a server can be started on, in place of one of its name."""
    folder.remove_folder(disk)
    made = make_disk(folder, record, disk, instant_ns, seed, device, spared)
    with folder.into(disk) as data:
        data.remove("postmaster.pid")  # as whoever starts a server after a power cut does
    return made


def _recovered(load: Load, seed: int, make: Callable[[], Made]) -> int:
    """Record how a server recovers on the disk that was made, and draw an instant of it.

    Args:
        load: What was recorded.
        seed: Draws the instant.
        make: Makes the disk anew.

    Raises:
        TargetError: It recovers, but not while it is recorded.
    """
    target, folder = load.bench.target, load.bench.target.trial_folder
    if load.stage.guard:
        mended(load, DISK, seed)
    with recorded(
        load.recorder, folder, DISK, RECORD_AGAIN, load.record_bytes_max, target.user
    ) as record:
        begun_ns = time.monotonic_ns()
        cluster = target.server_on(DISK, build_of(load.stage))
        try:
            failed = _start(load, cluster, record.environment)
            ended_ns = time.monotonic_ns()
        finally:
            cluster.close()
    if failed is not None:
        make()
        _require_dead(load, failed)
    draw = np.random.default_rng([seed])
    return int(draw.integers(begun_ns, ended_ns))


def _start(load: Load, cluster: Cluster, environment: Mapping[str, str]) -> RefusedError | None:
    """Let a server recover; what it says if it does not."""
    try:
        cluster.start(load.stage.settings, environment, recovers=True)
    except RefusedError as error:
        return error
    return None


def _require_dead(load: Load, failed: RefusedError) -> None:
    """Let a server that did not recover recover unrecorded: cut again is only what a disk is like.

    Raises:
        TargetError: It does, so that it was our recorder that kept it from it; or it does not for
            want of something.
    """
    cluster = load.bench.target.server_on(DISK, build_of(load.stage))
    try:
        again = _start(load, cluster, NO_ENVIRONMENT)
    finally:
        cluster.close()
    if again is not None:
        refusal(again)
    else:
        raise TargetError(
            f"a server recovers from the first of two power cuts of stage {load.stage.name}, but"
            f" not while that is recorded: {failed.fact}",
            failed.hint,
        ) from failed


def state_of(looked: Looked) -> State:
    """The worst that was found."""
    if looked.damage or looked.found.torn or looked.found.unasked:
        return "damaged"
    return "lost" if looked.found.lost or looked.emptied else "whole"


def look(load: Load, cluster: Cluster, owed: Owed) -> Looked:
    """Hold a server that runs against the ledger and against itself; it is stopped then.

    Raises:
        TargetError: It could not be looked at for want of something that is not in its data.
    """
    target, build = load.bench.target, build_of(load.stage)
    binaries, user = target.binaries_of(build), target.user
    databases = databases_of(load, cluster)
    found, damage = Found(), []
    gone: tuple[str, ...] = ()
    try:
        found = compared(owed, rows_of(databases, load.bench.described, load.begun_unix_us))
        gone = _emptied(load, databases)
        if not gone:  # what is empty promises nothing
            damage += checks.conditions(databases, load.bench.described)
        damage += checks.relations(cluster, binaries, user)
        damage += checks.visibility(databases)
        damage += index_entries(databases)
        damage += checks.readable(databases, binaries, user)
        damage += free_space(databases)
        summed = checks.summed_files(cluster)
        cluster.stop(clean=True)
        if summed is not None:
            with target.trial_folder.into(cluster.data.name) as data:
                damage += checks.checksums(
                    cluster, data, summed, binaries, user, maps=load.stage.guard
                )
    except Interrupted:
        raise
    except (psycopg.Error, PgdynoError) as error:
        text = error.line if isinstance(error, PgdynoError) else " ".join(str(error).split())
        require_of_data(text)
        damage.append(f"It cannot be read: {text}.")
    return Looked(found, damage, gone)


def _emptied(load: Load, databases: Sequence[Connection]) -> tuple[str, ...]:
    """Tables that a crash has emptied, by their databases where there are several."""
    if not load.stage.unlogged:
        return ()
    several = len(databases) > 1
    return tuple(
        f"{database.database}.{table}" if several else table
        for database in databases
        for table in emptied(database, load.bench.described.tables)
    )


def databases_of(load: Load, cluster: Cluster) -> list[Connection]:
    """Those that were driven, in the order of the driver's parts."""
    names = database_names(DATABASE, load.stage.workload.databases)
    return [cluster.connection().to(name) for name in names]


def _of_tables(looked: Looked) -> Sequence[str]:
    if not looked.emptied:
        return []
    named = looked.emptied[:_NAMED]
    more = len(looked.emptied) - len(named)
    names = listed([*named, *([f"{more} more"] if more else [])])
    tables = plural(len(looked.emptied), "unlogged table")
    return [f"All rows of {tables} are gone, those that were loaded as well: {names}."]


def _of_ledger(found: Found, owed: Owed) -> Sequence[str]:
    sentences = []
    if found.lost:
        gone = plural(found.lost, "acknowledged commit is", "acknowledged commits are")
        sentences.append(
            f"{gone} gone of {owed.commits}, the first from {found.lost_s:.3f} s before the cut."
        )
    if found.torn:
        torn = plural(found.torn, "acknowledged commit is", "acknowledged commits are")
        sentences.append(f"{torn} there in part.")
    if found.unasked:
        unasked = plural(found.unasked, "row is", "rows are")
        sentences.append(f"{unasked} there that nobody asked for, or twice.")
    return sentences
