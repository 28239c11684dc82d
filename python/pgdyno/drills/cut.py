"""One disaster: a disk made as of an instant, a server started on it, and all of it looked at."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import psycopg

from pgdyno.disk.record import make_disk
from pgdyno.drills import checks
from pgdyno.drills.ledger import Found, Owed, compared
from pgdyno.drills.load import Load
from pgdyno.drills.survivors import rows_of
from pgdyno.model.connection import Connection
from pgdyno.model.drill import Cut, Disaster, State
from pgdyno.model.errors import Interrupted, PgdynoError, TargetError
from pgdyno.model.wording import plural
from pgdyno.model.workload import database_names
from pgdyno.target.cluster import DATABASE, Cluster
from pgdyno.target.own_target import DISK, RECORD
from pgdyno.trial.fixture import build_of

_NS = 1_000_000_000
_FIRST_SHARE = 0.05  # of a load: before, too little is there to be lost
_DISK_SEEDS = 2**31
_FATAL = ("PANIC: ", "FATAL: ", "CONTEXT: ", "HINT: ")


@dataclass(frozen=True, slots=True)
class Looked:
    """What a server that came back shows."""

    found: Found
    damage: list[str]


def instant_and_seed(load: Load, disaster: str, number: int, seed: int) -> tuple[int, int]:
    """When the power goes, in ns of `time.monotonic_ns`, and which disk that leaves."""
    names = (zlib.crc32(name.encode()) for name in (load.stage.name, disaster))
    draw = np.random.default_rng([seed, number, *names])
    first_ns, last_ns = load.ledger.span_ns
    share = _FIRST_SHARE + (1 - _FIRST_SHARE) * draw.random()
    return first_ns + round(share * (last_ns - first_ns)), int(draw.integers(_DISK_SEEDS))


def strike(load: Load, disaster: Disaster, number: int, seed: int) -> Cut:
    """Make the disk of a disaster, start the server on it, and look.

    Args:
        load: What was recorded.
        disaster: What happens to the disk.
        number: Of this disaster for this stage, from 1.
        seed: Of the drill.

    Raises:
        TargetError: The disk cannot be made: no room, or the record is broken.
    """
    instant_ns, disk_seed = instant_and_seed(load, disaster.name, number, seed)
    owed = load.ledger.at(instant_ns)
    target = load.bench.target
    folder = target.trial_folder
    folder.remove_folder(DISK)
    made = make_disk(folder, RECORD, DISK, instant_ns, disk_seed, disaster.device)
    with folder.into(DISK) as disk:
        disk.remove("postmaster.pid")  # as whoever starts a server after a power cut does
    cluster = target.server_on(DISK, build_of(load.stage))
    recovery_s, looked = None, Looked(Found(), [])
    state: State = "dead"
    try:
        recovery_s = cluster.start(load.stage.settings, recovers=True)
        looked = look(load, cluster, owed)
        state = state_of(looked)
        reasons = (*_of_ledger(looked.found, owed), *looked.damage)
    except TargetError as error:
        reasons = (_why(error),)
    finally:
        cluster.close()
        folder.remove_folder(DISK)
    return Cut(
        load.stage.name, disaster.name, number, disk_seed,
        (instant_ns - load.ledger.span_ns[0]) / _NS, made, state, owed.commits,
        sum(owed.uncertain.values()), looked.found.lost, looked.found.lost_s, recovery_s, reasons,
    )  # fmt: skip


def state_of(looked: Looked) -> State:
    """The worst that was found."""
    if looked.damage or looked.found.torn or looked.found.unasked:
        return "damaged"
    return "lost" if looked.found.lost else "whole"


def look(load: Load, cluster: Cluster, owed: Owed) -> Looked:
    """Hold a server that runs against the ledger and against itself; it is stopped then."""
    target, build = load.bench.target, build_of(load.stage)
    binaries, user = target.binaries_of(build), target.user
    databases = databases_of(load, cluster)
    found, damage = Found(), []
    try:
        found = compared(owed, rows_of(databases, load.bench.described, load.begun_unix_us))
        damage += checks.conditions(databases, load.bench.described)
        damage += checks.relations(cluster, binaries, user)
        damage += checks.readable(databases, binaries, user)
        summed = checks.has_checksums(cluster)
        cluster.stop(clean=True)
        damage += checks.checksums(cluster, binaries, user) if summed else []
    except Interrupted:
        raise
    except (psycopg.Error, PgdynoError) as error:
        text = error.line if isinstance(error, PgdynoError) else " ".join(str(error).split())
        damage.append(f"It cannot be read: {text}.")
    return Looked(found, damage)


def databases_of(load: Load, cluster: Cluster) -> list[Connection]:
    """Those that were driven, in the order of the driver's parts."""
    names = database_names(DATABASE, load.stage.workload.databases)
    return [cluster.connection().to(name) for name in names]


def _why(error: TargetError) -> str:
    """What the server said of itself that matters; else all of it."""
    said = [one.strip() for one in error.fact.split(" / ")]
    fatal = [one for one in said if any(level in one for level in _FATAL)]
    return f"The server did not come back: {' '.join(fatal) or error.fact}."


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
