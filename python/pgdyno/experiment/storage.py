"""Probes storage path by path: prepares it, measures it, and leaves nothing of it behind."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from pgdyno.experiment.progress import Listener
from pgdyno.host.device_claims import device_claims
from pgdyno.model.floor import (
    PATTERNS,
    PAUSES_US,
    Floor,
    GridPoint,
    Prepared,
    Probed,
    Share,
    Together,
    Wish,
)
from pgdyno.model.progress import StepBegun
from pgdyno.model.wording import plural
from pgdyno.probe import fio
from pgdyno.probe.clock import measure_clock
from pgdyno.probe.folder import accepts_direct, own_folder, require_room
from pgdyno.probe.sync import FILE_BYTES, TESTS, measure_sync
from pgdyno.stats.storage import iops_knee
from pgdyno.target.binaries import Binaries
from pgdyno.target.host_facts import host_facts, own_version

_STARTS_S = 0.4  # fio, each time
_WRITTEN_BYTES_PER_S = 300e6  # assumed before anything is measured
_OVERHEAD_BYTES = 1 << 20

OnStep = Callable[[str], None]
Keep = Callable[[Probed], None]


@dataclass(frozen=True, slots=True)
class Cost:
    """What a probe takes, before it starts."""

    seconds: float  # of it, the writing of the files at an assumed rate
    writing_s: float
    each_bytes: int  # on each path, at once
    loaded_s: float  # of writing as fast as the storage can, on each path


def cost(wish: Wish) -> Cost:
    """Estimate a probe."""
    points = len(wish.depths) * len(wish.jobs)
    windows = len(PATTERNS) * points + 2 + len(PAUSES_US)
    each_bytes = wish.size_bytes + fio.WAL_BYTES + FILE_BYTES + _OVERHEAD_BYTES
    writing_s = (wish.size_bytes + fio.WAL_BYTES) / _WRITTEN_BYTES_PER_S
    measuring_s = windows * (wish.seconds + _STARTS_S) + TESTS * wish.seconds
    return Cost(
        seconds=len(wish.paths) * (writing_s + measuring_s) + wish.seconds,
        writing_s=len(wish.paths) * writing_s,
        each_bytes=each_bytes,
        loaded_s=(points * 2 + 2) * wish.seconds,
    )


def require_possible(wish: Wish) -> Path:
    """Refuse before anything is touched; returns the program fio.

    Raises:
        PlanError: A path is not a folder, or has too little room.
        TargetError: fio is missing.
    """
    require_room([Path(path) for path in wish.paths], cost(wish).each_bytes)
    return fio.find_fio()


def probe_storage(
    wish: Wish,
    ident: str,
    binaries: Binaries,
    *,
    so_far: Probed | None = None,
    listener: Listener = lambda _: None,
    keep: Keep = lambda _: None,
) -> Probed:
    """Measure all paths; their files are gone at the end, however it comes.

    Args:
        wish: What, and how long.
        ident: Of the run.
        binaries: PostgreSQL's programs.
        so_far: What was measured before it was broken off.
        listener: Told what is done next.
        keep: Gets what is known so far after each path.

    Raises:
        PlanError: A path will not do.
        TargetError: A program is missing or failed.
    """
    program = require_possible(wish)

    def begin(what: str) -> None:
        listener(StepBegun(what))

    probed = so_far or _begun(wish, ident, program, binaries, begin)
    keep(probed)
    grounds: dict[str, fio.Ground] = {}
    known = {floor.path for floor in probed.floors}
    devices = {floor.device_number for floor in probed.floors}
    devices |= {Path(path).stat().st_dev for path in wish.paths if path not in known}
    several = len(devices) > 1
    with ExitStack() as folders:
        for path in wish.paths if not probed.is_whole else ():
            folder = folders.enter_context(own_folder(Path(path)))
            ground = fio.Ground(program, folder, wish.size_bytes, accepts_direct(folder))
            grounds[path] = ground
            if path in known:
                if several:  # its files are gone, and are read once more beside the others'
                    begin(f"{path}: writing its files again")
                    fio.write_files(ground)
                continue
            floor = _floor(path, ground, wish, binaries, begin)
            probed = replace(probed, floors=(*probed.floors, floor))
            keep(probed)
        if not probed.is_whole:
            probed = replace(probed, together=_together(probed.floors, grounds, wish, begin))
            keep(probed)
    return probed


def _begun(wish: Wish, ident: str, program: Path, binaries: Binaries, on_step: OnStep) -> Probed:
    on_step("reading the clock")
    return Probed(
        ident=ident,
        started_ns=time.time_ns(),
        pgdyno=own_version(),
        programs={"PostgreSQL": binaries.version, "fio": fio.version(program)},
        cpus=len(os.sched_getaffinity(0)),
        wish=wish,
        clock=measure_clock(binaries.program("pg_test_timing"), wish.seconds),
    )


def _floor(path: str, ground: fio.Ground, wish: Wish, binaries: Binaries, on_step: OnStep) -> Floor:
    on_step(f"{path}: writing its files in full")
    rate = fio.write_files(ground)
    on_step(f"{path}: pg_test_fsync")
    syncs = measure_sync(binaries.program("pg_test_fsync"), ground.folder, wish.seconds)
    on_step(f"{path}: commits under a checkpoint")
    mixed = fio.measure_commits(ground, wish.seconds, 1)
    on_step(f"{path}: commits after pauses")
    rested = fio.measure_rested(ground, wish.seconds, 1)
    return Floor(
        path=path,
        device_number=Path(path).stat().st_dev,
        claims=device_claims(Path(path)),
        prepared=Prepared(
            wish.size_bytes, host_facts(Path(path)).memory_bytes, ground.direct, rate
        ),
        syncs=syncs,
        grid=_grid(path, ground, wish, on_step),
        mixed=mixed,
        rested=rested,
    )


def _grid(path: str, ground: fio.Ground, wish: Wish, on_step: OnStep) -> tuple[GridPoint, ...]:
    points: list[GridPoint] = []
    for pattern in PATTERNS:
        for jobs in wish.jobs:
            for depth in wish.depths:
                on_step(f"{path}: {pattern}, {depth} under way in each of {plural(jobs, 'job')}")
                seed = len(points) + 2  # the commits had the first
                points.append(fio.measure(ground, pattern, depth, jobs, wish.seconds, seed))
    return tuple(points)


def _together(
    floors: Sequence[Floor], grounds: dict[str, fio.Ground], wish: Wish, on_step: OnStep
) -> Together | None:
    """Random reads on one path of each device, where there are several."""
    apart = list({floor.device_number: floor for floor in floors}.values())
    if len(apart) < 2:
        return None
    on_step("random reads on all paths at once")
    peaks = [iops_knee(floor, "random read").peak for floor in apart]
    most = max(peaks, key=lambda point: point.outstanding)
    rates = fio.measure_together(
        [grounds[floor.path] for floor in apart], most.depth, most.jobs, wish.seconds, 1
    )
    shares = tuple(
        Share(floor.path, _alone(floor, most), rate)
        for floor, rate in zip(apart, rates, strict=True)
    )
    return Together(most.depth, most.jobs, shares)


def _alone(floor: Floor, at: GridPoint) -> float:
    same = (p for p in floor.grid if p.pattern == "random read")
    return next(p.per_s for p in same if (p.depth, p.jobs) == (at.depth, at.jobs))
