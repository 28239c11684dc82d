"""Storage: what it can do, what it claims, and what follows for commits.

    write the files -> rounds over all paths, each path once in full -> keep after each -> remove

Rounds lie before, between and after the long measurements; nothing of the files is left behind.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import ceil
from pathlib import Path
from typing import TypeVar

from pgdyno.analysis.storage import storage_facts
from pgdyno.api.notebook_line import with_line
from pgdyno.api.probe_cost import Cost, cost, rounds_of
from pgdyno.api.runs import Experiment, Run
from pgdyno.api.storing import begun, going_on, stored
from pgdyno.host.disk_lock import disks_taken, require_free
from pgdyno.model.bounds import require_within
from pgdyno.model.errors import PgdynoError, PlanError, StoreError
from pgdyno.model.floor import (
    COMPARED,
    PATTERNS,
    ROUNDS_MAX,
    ROUNDS_MIN,
    SECONDS_MAX,
    TRANSACTION_US_MAX,
    Floor,
    GridPoint,
    Load,
    PathRound,
    Prepared,
    Probed,
    ProbeRound,
    Share,
    Together,
    Wish,
)
from pgdyno.model.plan import Target
from pgdyno.model.progress import StepBegun
from pgdyno.model.shared_storage import Lies, paths_on_one_storage
from pgdyno.model.text import visible
from pgdyno.model.units import bytes_text
from pgdyno.plan.resolve.order import balanced_order
from pgdyno.plan.same_machine import require_same
from pgdyno.probe import fio
from pgdyno.probe.clock import measure_clock
from pgdyno.probe.folder import accepts_direct, own_folder, require_room
from pgdyno.probe.others import cpu_time
from pgdyno.probe.sync import measure_fdatasync, measure_sync
from pgdyno.report import storage as report
from pgdyno.shell import postgres_user
from pgdyno.stats.storage import iops_knee
from pgdyno.store.run_file import require_new
from pgdyno.target.binaries import Binaries, find_binaries
from pgdyno.target.device_claims import device_claims
from pgdyno.target.host_facts import host_facts, own_version
from pgdyno.trial.progress import Listener

_SIZE_MIN = 64 << 20
_MEANT = {
    "depths": "Each is a number of requests that a job has under way.",
    "jobs": "Each is a number of jobs that run at once.",
}
_SEEDS_A_ROUND = 100_000  # above those of the grid, which has a seed for each window

_Found = TypeVar("_Found")
OnStep = Callable[[str], None]
Keep = Callable[[Probed], None]


def storage_cost(wish: Wish, bindir: str | Path | None = None) -> Cost:
    """What probing takes of time and disk; nothing is touched.

    Args:
        wish: What is to be measured.
        bindir: PostgreSQL's programs, where they are named: looked for as well.

    Raises:
        PlanError: A path is not a folder, is not to be written to or has too little room, a size
            is too small.
        TargetError: fio is missing, or programs that are named.
    """
    _check(wish)
    if bindir is not None:
        _programs(bindir)
    free_bytes = require_possible(wish).free_bytes
    claims = {path: device_claims(Path(path)) for path in wish.paths}
    lies = [Lies(path, Path(path).stat().st_dev, one.disks) for path, one in claims.items()]
    return replace(
        cost(wish), free_bytes=free_bytes, shared=tuple(paths_on_one_storage(lies)),
        places={path: one.place for path, one in claims.items()},
    )  # fmt: skip


def require_storage_free(wish: Wish, out: Path | None = None) -> None:
    """Look whether its disks are measured on now; nothing is touched, and nothing taken.

    Args:
        wish: What is to be probed.
        out: The run file that is to be written, if it is known.

    Raises:
        StoreError: There is such a file, or it has the name of its page.
        TargetError: Another pgdyno measures on one of them: who, and where.
    """
    if out is not None:
        require_new(out)
    require_free(_folders(wish), alone=True)


@with_line
def storage(
    wish: Wish,
    *,
    bindir: str | Path | None = None,
    out: str | Path | None = None,
    command: str = "pgdyno.storage(wish), from Python",
    on_event: Listener = lambda _: None,
) -> Run:
    """Measure storage with pg_test_fsync, pg_test_timing and fio, several paths side by side.

    Flushes and commits are probed in rounds, on every path in turn, so that the figure of a path
    has a spread and paths are compared as stages of a plan are.

    Files are made in a folder of our own below each path, and always removed. It reads and writes
    as fast as the storage can, which slows whoever shares it: do not run it beside a server that
    matters.

    Args:
        wish: Paths, and how long and deep they are measured.
        bindir: PostgreSQL's programs; None: the embedded ones.
        out: The run file, a page goes beside it; None: `runs/<time>-storage.sqlite`.
        command: How to repeat it, as the run file keeps it.
        on_event: Told what is done next.

    Raises:
        PgdynoError: See `storage_cost`; or a probe failed. What was measured until then is kept.
        Interrupted: Ctrl-C; the same.
    """
    storage_cost(wish)
    binaries = _programs(bindir)
    run = begun("storage", "storage", command, out, data=Path(wish.paths[0]),
                build=binaries.manifest())  # fmt: skip
    with _disks_of(wish), stored(run) as keep:
        probe_storage(wish, run.info.ident, binaries, keep=keep, listener=on_event)
    return run.reported()


def _programs(bindir: str | Path | None) -> Binaries:
    """PostgreSQL's, of a folder or the embedded ones."""
    target = (
        Target("installed", bindir=str(Path(bindir).absolute())) if bindir else Target("embedded")
    )
    return find_binaries(target, postgres_user())


def resume(run: Run, _again: bool, on_event: Listener) -> Run:
    """Resume the rounds and paths that were not measured; see `api.resume`.

    Raises:
        PlanError: PostgreSQL's programs are others than when it was begun.
    """
    so_far = run.probed
    found = going_on(run, Path(so_far.wish.paths[0]))
    origin = run.info.build.origin or ""
    installed = origin.startswith("/")
    binaries = _programs(origin if installed else None)
    require_same(
        {"PostgreSQL": asdict(run.info.build)}, {"PostgreSQL": asdict(binaries.manifest())}
    )
    left = [Path(path) for path in _still_used(so_far)]
    with disks_taken(left, alone=True), stored(found) as keep:
        probe_storage(
            so_far.wish, so_far.ident, binaries, so_far=so_far, keep=keep, listener=on_event
        )
    return found.reported()


def _disks_of(wish: Wish) -> AbstractContextManager[None]:
    return disks_taken(_folders(wish), alone=True)


def _folders(wish: Wish) -> list[Path]:
    return [Path(path) for path in wish.paths]


def _check_numbers(wish: Wish) -> None:
    for name, numbers in (("depths", wish.depths), ("jobs", wish.jobs)):
        for number in numbers:
            require_within(name, number, 1, None, _MEANT[name])
    require_within("seconds", wish.seconds, 1, SECONDS_MAX, "They are those of each window.")
    if wish.rounds is not None:
        require_within(
            "rounds", wish.rounds, ROUNDS_MIN, ROUNDS_MAX,
            "One alone tells nothing of the spread, and each takes its time.",
        )  # fmt: skip
    if wish.transaction_us is not None:
        require_within(
            "transaction_us", wish.transaction_us, 1, TRANSACTION_US_MAX,
            "It is the CPU time of one transaction, in µs.",
        )  # fmt: skip


def _check(wish: Wish) -> None:
    _check_numbers(wish)
    least = max(_SIZE_MIN, max(wish.jobs) << 20)  # each job has a part of its own
    if wish.size_bytes < least:
        raise PlanError(
            f"the size is {bytes_text(wish.size_bytes)}, at least {bytes_text(least)} are needed",
            "A smaller file says little of a disk, and each job needs 1 MiB of it. A number alone"
            " counts bytes; a unit follows without a space: 64MB is 64,000,000 bytes, 64MiB"
            " 67,108,864.",
        )
    for path in wish.paths:
        try:
            path.encode()
        except UnicodeEncodeError:
            raise PlanError(
                f"path {visible(path)} is not text in UTF-8",
                "Run file and page could not hold it. Measure a folder beside it.",
            ) from None
    twice = [path for path in dict.fromkeys(wish.paths) if wish.paths.count(path) > 1]
    if twice:
        raise PlanError(f"{visible(twice[0])} is named twice", "Each is measured once.")


@dataclass(frozen=True, slots=True)
class Possible:
    """What a probe finds where it is to be made."""

    fio: Path
    free_bytes: Mapping[str, int]  # by path


def require_possible(wish: Wish) -> Possible:
    """Refuse before anything is touched.

    Raises:
        PlanError: A path is not a folder, is not to be written to, or has too little room.
        TargetError: fio is missing.
    """
    free = require_room([Path(path) for path in wish.paths], cost(wish).each_bytes)
    return Possible(fio.find_fio(), {str(path): size for path, size in free.items()})


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
        keep: Gets what is known so far after each round and each path.

    Raises:
        PlanError: A path will not do.
        TargetError: A program is missing or failed.
    """
    program = require_possible(wish).fio

    def begin(what: str) -> None:
        listener(StepBegun(what))

    probed = _begun(wish, ident, program, binaries, begin) if so_far is None else so_far
    probed = replace(probed, ended=None)

    def put(found: Probed) -> None:
        nonlocal probed
        probed = found
        keep(found)

    put(probed)
    try:
        with ExitStack() as folders:
            _probe_rest(probed, program, binaries, folders, put, begin)
    except (PgdynoError, KeyboardInterrupt) as error:
        if probed.rounds or probed.floors:
            with suppress(StoreError):  # that may be what ended it
                keep(replace(probed, ended=getattr(error, "fact", "it was interrupted")))
        raise
    return probed


def _probe_rest(
    probed: Probed,
    program: Path,
    binaries: Binaries,
    folders: ExitStack,
    put: Keep,
    begin: OnStep,
) -> None:
    """All that is left, in folders that go when the stack is closed."""
    wish = probed.wish
    rates: dict[str, float] = {}
    grounds: dict[str, fio.Ground] = {}
    for path in _still_used(probed):
        folder = folders.enter_context(own_folder(Path(path)))
        grounds[path] = fio.Ground(program, folder, wish.size_bytes, accepts_direct(folder))
        begin(f"{path}: writing its files in full")
        rates[path] = fio.write_files(grounds[path])
    bed = _Bed(wish, grounds, rates, binaries, begin)
    while (due := _due(probed)) is not None:
        if isinstance(due, int):
            probed = replace(probed, rounds=(*probed.rounds, bed.round(due)))
        else:
            probed = replace(probed, floors=(*probed.floors, bed.floor(due)))
        put(probed)
    if not probed.is_whole:
        put(replace(probed, together=_together(probed.floors, grounds, wish, begin)))


def _due(probed: Probed) -> int | str | None:
    """What comes next: a round, by its number, or what is measured once on a path; None: neither.

    Rounds lie before, between and after the long measurements, so that they see how storage drifts.
    """
    paths, rounds = probed.wish.paths, probed.wish.rounds or 0
    done, measured = len(probed.rounds), len(probed.floors)
    if measured < len(paths) and done >= ceil(rounds * (measured + 1) / (len(paths) + 1)):
        return paths[measured]
    return done + 1 if done < rounds else None


def _still_used(probed: Probed) -> tuple[str, ...]:
    """Paths whose files are needed for what is left to measure."""
    known = {floor.path: floor.device_number for floor in probed.floors}
    paths = probed.wish.paths
    devices = {known.get(path) or Path(path).stat().st_dev for path in paths}
    if len(probed.rounds) < (probed.wish.rounds or 0) or len(devices) > 1:
        return paths
    return tuple(path for path in paths if path not in known)


def _begun(wish: Wish, ident: str, program: Path, binaries: Binaries, on_step: OnStep) -> Probed:
    on_step("reading the clock")
    return Probed(
        ident=ident,
        started_ns=time.time_ns(),
        pgdyno=own_version(),
        programs={"PostgreSQL": binaries.version, "fio": fio.version(program)},
        cpus=len(os.sched_getaffinity(0)),
        wish=replace(wish, rounds=rounds_of(wish)),
        clock=measure_clock(binaries.program("pg_test_timing"), wish.seconds),
    )


@dataclass(frozen=True, slots=True)
class _Bed:
    """Prepared paths, and what they are probed with."""

    wish: Wish
    grounds: Mapping[str, fio.Ground]
    rates: Mapping[str, float]  # at which the files were written, bytes a second
    binaries: Binaries
    on_step: OnStep

    def round(self, number: int) -> ProbeRound:
        """One round: each probe on each path, in an order that no path profits from."""
        wish, started_ns, before = self.wish, time.time_ns(), cpu_time()
        row = balanced_order(len(wish.paths), number)[-1]
        order = [wish.paths[index] for index in row]

        def each(what: str, probe: Callable[[fio.Ground], _Found]) -> dict[str, _Found]:
            found = {}
            for path in order:
                self.on_step(f"round {number} of {wish.rounds}, {path}: {what}")
                found[path] = probe(self.grounds[path])
            return found

        fsync, seed = self.binaries.program("pg_test_fsync"), number * _SEEDS_A_ROUND
        synced = each("pg_test_fsync", lambda g: measure_fdatasync(fsync, g.folder, wish.seconds))
        mixed = each("commits", lambda g: fio.measure_commits(g, wish.seconds, seed))
        rested = each("commits after rest", lambda g: fio.measure_rested(g, wish.seconds, seed))
        seen = {
            load: each(
                load.said,
                partial(fio.measure, pattern=load.pattern, depth=load.depth, jobs=load.jobs,
                        seconds=wish.seconds, seed=seed + more),
            )
            for more, load in enumerate(wish.repeated, 1)
        }  # fmt: skip
        reads, writes = map(wish.heaviest, COMPARED)
        return ProbeRound(
            started_ns,
            tuple(
                PathRound(
                    path, synced[path], mixed[path], rested[path],
                    reads=seen.get(reads, {}).get(path),
                    writes=seen.get(writes, {}).get(path),
                    again=tuple(found[path] for load, found in seen.items()
                                if load not in (reads, writes)),
                )
                for path in order
            ),
            after.others_since(before) if before and (after := cpu_time()) else None,
        )  # fmt: skip

    def floor(self, path: str) -> Floor:
        """What is measured once on a path: all methods of pg_test_fsync, and the grid."""
        ground, seconds = self.grounds[path], self.wish.seconds
        self.on_step(f"{path}: pg_test_fsync, all methods")
        syncs = measure_sync(self.binaries.program("pg_test_fsync"), ground.folder, seconds)
        memory_bytes = host_facts(Path(path)).memory_bytes
        return Floor(
            path=path,
            device_number=Path(path).stat().st_dev,
            claims=device_claims(Path(path)),
            prepared=Prepared(ground.size_bytes, memory_bytes, ground.direct, self.rates[path]),
            syncs=syncs,
            grid=_grid(path, ground, self.wish, self.on_step),
        )


def _grid(path: str, ground: fio.Ground, wish: Wish, on_step: OnStep) -> tuple[GridPoint, ...]:
    points: list[GridPoint] = []
    for pattern in PATTERNS:
        for jobs in wish.jobs:
            for depth in wish.depths:
                on_step(f"{path}: {Load(pattern, depth, jobs).said}")
                seed = len(points) + 1
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


EXPERIMENT = Experiment(
    lambda run: run.probed.is_whole,
    {
        "html": lambda run: report.render_html(storage_facts(run.probed)),
        "md": lambda run: report.render_md(storage_facts(run.probed)),
        "json": lambda run: report.render_json(storage_facts(run.probed)),
    },
    lambda run: report.summary(storage_facts(run.probed)),
    resume,
)
