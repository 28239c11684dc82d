"""fio: random and sequential reads and writes of pages, and commits under a checkpoint.

One process with threads for jobs, so that its end is the end of all. Every window has a seed of its
own: the same blocks again would come from a cache below.

fio takes a colon in a name for the end of one file and the start of the next. So it works in our
folder and is told names of our own, never the user's path.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgdyno.model.errors import TargetError
from pgdyno.model.floor import (
    BLOCK_BYTES,
    PAUSES_US,
    Commits,
    GridPoint,
    Latency,
    Pattern,
    UnderCheckpoint,
)
from pgdyno.model.numbers import finite
from pgdyno.model.record_json import json_value
from pgdyno.probe.program import run_probe

WAL_BYTES = 64 << 20  # four segments, written over and over as recycled ones are
CHECKPOINT_DEPTH = 16  # writes that the kernel has under way for a checkpointer
_DATA, _WAL = "data", "wal"
_WRITE_BYTES = 1 << 20
_WRITE_FLOOR_BYTES_PER_S = 5e6  # storage slower than that hangs
_NAME = {
    "random read": "randread", "random write": "randwrite",
    "sequential read": "read", "sequential write": "write",
}  # fmt: skip
_PERCENTILES = "1:10:25:50:75:90:95:99:99.5:99.9"


def find_fio() -> Path:
    """The program on PATH.

    Raises:
        TargetError: It is not there.
    """
    found = shutil.which("fio")
    if found is None:
        raise TargetError(
            "program fio is not on PATH",
            "Install it: `apt-get install fio`. Nothing was measured: a table without it would"
            " have empty columns.",
        )
    return Path(found).absolute()


@dataclass(frozen=True, slots=True)
class Ground:
    """Where fio works: a folder of ours with the prepared file."""

    program: Path
    folder: Path
    size_bytes: int
    direct: bool

    @property
    def data(self) -> Path:
        """The file of pages."""
        return self.folder / _DATA

    @property
    def wal(self) -> Path:
        """The file of commits."""
        return self.folder / _WAL


def version(program: Path) -> str:
    """What fio calls itself, e.g. `fio-3.33`."""
    return run_probe([program, "--version"], timeout_s=30, what="version of fio")


def write_files(ground: Ground) -> float:
    """Write both files in full, so that no window meets blocks that were never written.

    Returns:
        Bytes a second of the larger one.

    Raises:
        TargetError: fio failed, e.g. because the disk is full.
    """
    rates = []
    for file, size in ((_WAL, WAL_BYTES), (_DATA, ground.size_bytes)):
        job = [
            f"--name={file}", f"--filename={file}", "--rw=write", f"--bs={_WRITE_BYTES}",
            f"--size={size}", "--iodepth=8", "--end_fsync=1", *_engine(ground.direct),
        ]  # fmt: skip
        timeout_s = 60 + size / _WRITE_FLOOR_BYTES_PER_S
        (done,) = _run(ground, job, timeout_s, f"write {ground.folder / file}")
        rates.append(float(done["write"]["bw_bytes"]))
    return rates[1]


def measure(
    ground: Ground, pattern: Pattern, depth: int, jobs: int, seconds: int, seed: int
) -> GridPoint:
    """One window of the grid.

    Args:
        ground: With its files written.
        pattern: Of the access.
        depth: Requests that each job keeps under way.
        jobs: Each on a part of the file of its own.
        seconds: Of the window.
        seed: Of the places.

    Raises:
        TargetError: fio failed.
    """
    args = [*_job(ground, "pages", pattern, depth, jobs), *_window(seconds, seed)]
    (done,) = _run(ground, args, seconds + 60.0, f"{pattern} at {ground.data}")
    return grid_point(done, pattern, depth, jobs)


def measure_together(
    grounds: Sequence[Ground], depth: int, jobs: int, seconds: int, seed: int
) -> tuple[float, ...]:
    """Random reads on several files at once; returns the rate of each.

    Raises:
        TargetError: fio failed.
    """
    args = _window(seconds, seed)
    for number, ground in enumerate(grounds):
        name = f"path{number}"
        (grounds[0].folder / name).symlink_to(ground.folder)
        args += _job(ground, name, "random read", depth, jobs, f"{name}/{_DATA}")
        args.append("--new_group")
    done = _run(grounds[0], args, seconds + 60.0, "random reads on all paths")
    return tuple(grid_point(each, "random read", depth, jobs).per_s for each in done)


def measure_commits(ground: Ground, seconds: int, seed: int) -> UnderCheckpoint:
    """Commits alone, then while the pages of a checkpoint are written as fast as they can be.

    Raises:
        TargetError: fio failed.
    """
    checkpoint = _job(ground, "checkpoint", "random write", CHECKPOINT_DEPTH, 1)
    alone = measure_alone(ground, seconds, seed)
    both = [*_window(seconds, seed), *_commits(), *checkpoint, "--new_group"]
    under, writes = _run(ground, both, seconds + 60.0, f"commits at {ground.wal}")
    point = grid_point(writes, "random write", CHECKPOINT_DEPTH, 1)
    return UnderCheckpoint(alone, commits_of(under), point)


def measure_rested(ground: Ground, seconds: int, seed: int) -> tuple[Commits, ...]:
    """Commits after a pause of at least so long, a window for each of PAUSES_US.

    The other CPUs are kept awake meanwhile, as a server would: a flush that ends where all sleep
    takes longer still.

    Raises:
        TargetError: fio failed.
    """
    others = max(1, len(os.sched_getaffinity(0)) - 1)
    awake = [
        "--name=awake", "--new_group", "--ioengine=cpuio", "--cpuload=100", "--nice=19",
        f"--numjobs={others}",
    ]  # fmt: skip
    found = []
    for pause_us in PAUSES_US:
        args = [*_window(seconds, seed), *_commits(), f"--thinktime={pause_us}", *awake]
        what = f"commits after {pause_us} µs of rest at {ground.wal}"
        done, *_ = _run(ground, args, seconds + 60.0, what)
        found.append(commits_of(done))
    return tuple(found)


def measure_alone(ground: Ground, seconds: int, seed: int) -> Commits:
    """Commits while nothing else is written.

    Raises:
        TargetError: fio failed.
    """
    args = [*_window(seconds, seed), *_commits()]
    (done,) = _run(ground, args, seconds + 60.0, f"commits at {ground.wal}")
    return commits_of(done)


def grid_point(job: dict[str, Any], pattern: Pattern, depth: int, jobs: int) -> GridPoint:
    """A job of fio's JSON as a point of the grid.

    Raises:
        TargetError: It did nothing in its window.
    """
    with _understood():
        side = job["read" if pattern.endswith("read") else "write"]
        return GridPoint(
            pattern=pattern,
            depth=depth,
            jobs=jobs,
            per_s=finite(side["iops"]),
            bytes_per_s=finite(side["bw_bytes"]),
            latency=_latency(side["lat_ns"], pattern),
            cpu_share=_cpu_share(job),
        )


def commits_of(job: dict[str, Any]) -> Commits:
    """A job of writes with fdatasync.

    Raises:
        TargetError: It did nothing in its window.
    """
    with _understood():
        side, flushes = job["write"], job["sync"]["lat_ns"]
        flush = _latency(flushes, "fdatasync")
        percentiles = flushes.get("percentile", {})
        shares = {finite(share) / 100: finite(ns) for share, ns in percentiles.items()}
        ends = {0.0: finite(flushes["min"]), 1.0: finite(flushes["max"])}
        per_s = finite(side["iops"])
        return Commits(
            per_s=per_s,
            flush=flush,
            write_mean_ns=finite(side["lat_ns"]["mean"]),
            cpu_ns=1e9 * _cpu_share(job) / per_s,
            flush_quantiles=tuple(sorted((shares | ends).items())),
        )


def parse_jobs(text: str, what: str) -> list[dict[str, Any]]:
    """The jobs of fio's JSON.

    Raises:
        TargetError: It is none, or a job failed.
    """
    try:  # engine cpuio introduces itself before the JSON
        jobs: list[dict[str, Any]] = json_value(text[max(0, text.find("{")) :])["jobs"]
    except (ValueError, KeyError, TypeError) as error:
        raise TargetError(f"{what}: fio wrote no JSON: {text[:300]!r}") from error
    with _understood():
        for job in jobs:
            if job["error"]:
                failed = f"fio's job {job['jobname']} ended with error {job['error']}"
                raise TargetError(f"{what}: {failed}")
    return jobs


@contextmanager
def _understood() -> Iterator[None]:
    """What is read of fio's JSON is there, and of the kind that it has always been."""
    try:
        yield
    except KeyError as error:
        raise TargetError(f"fio's JSON lacks {error}, which is read of it") from error
    except (TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise TargetError(f"fio's JSON is not understood: {error}") from error


def _run(ground: Ground, args: Sequence[str], timeout_s: float, what: str) -> list[dict[str, Any]]:
    output = ground.folder / "fio.json"
    output.unlink(missing_ok=True)
    general = [
        "--output-format=json", f"--output={output.name}", "--thread", "--group_reporting",
        "--lat_percentiles=1", "--clat_percentiles=0", f"--percentile_list={_PERCENTILES}",
    ]  # fmt: skip
    run_probe([ground.program, *general, *args], timeout_s=timeout_s, what=what,
              folder=ground.folder)  # fmt: skip
    return parse_jobs(output.read_text("utf-8", errors="replace"), what)


def _window(seconds: int, seed: int) -> list[str]:
    return ["--time_based", f"--runtime={seconds}", f"--randseed={seed}", "--norandommap"]


def _job(
    ground: Ground, name: str, pattern: Pattern, depth: int, jobs: int, file: str = _DATA
) -> list[str]:
    part = ground.size_bytes // jobs // _WRITE_BYTES * _WRITE_BYTES
    return [
        f"--name={name}", f"--filename={file}", f"--rw={_NAME[pattern]}",
        f"--bs={BLOCK_BYTES}", f"--iodepth={depth}", f"--numjobs={jobs}", f"--size={part}",
        f"--offset_increment={part}", *_engine(ground.direct),
    ]  # fmt: skip


def _commits() -> list[str]:
    return [
        "--name=commits", f"--filename={_WAL}", "--rw=write", f"--bs={BLOCK_BYTES}",
        f"--size={WAL_BYTES}", "--ioengine=psync", "--fdatasync=1", "--overwrite=1",
    ]  # fmt: skip


def _engine(direct: bool) -> list[str]:
    return ["--ioengine=libaio", f"--direct={int(direct)}"]


def _cpu_share(job: dict[str, Any]) -> float:
    return (finite(job["usr_cpu"]) + finite(job["sys_cpu"])) / 100


def _latency(found: dict[str, Any], what: str) -> Latency:
    if not found["N"]:
        raise TargetError(f"fio did no {what} in its window", "Give it more --seconds.")
    shares = [finite(found["percentile"][f"{share:f}"]) for share in (50, 95, 99, 99.9)]
    most, count = int(finite(found["max"])), int(finite(found["N"]))
    # fio names the upper end of a percentile's bin, which may lie above the longest of all.
    p50, p95, p99, p999 = (min(int(share), most) for share in shares)
    return Latency(p50, p95, p99, p999, most, finite(found["mean"]), count)
