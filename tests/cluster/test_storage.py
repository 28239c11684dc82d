"""`pgdyno storage` with the real programs: measured, refused, interrupted. No speed is asserted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

import pgdyno
from pgdyno.host.disk_lock import disks_taken
from pgdyno.model.errors import Interrupted, TargetError
from pgdyno.model.floor import PATTERNS, Probed, Wish
from pgdyno.model.floor_figures import PROGRAMS
from pgdyno.model.progress import Event, StepBegun
from pgdyno.probe.fio import Ground, find_fio, write_files
from pgdyno.probe.folder import own_folder
from pgdyno.stats.across_paths import FIGURES
from pgdyno.stats.flush_figure import kinds_ns, span_of
from pgdyno.store.run_file import RunFile
from tests import children
from tests.waiting import DEADLINE_S, until

pytestmark = pytest.mark.cluster
MIB = 1 << 20
SMALL = {"--size": "64MiB", "--depths": "1", "--rounds": "2"}
DEBIAN = ("--bindir", "/usr/lib/postgresql/15/bin", "--depths", "1")


def arguments(*paths: Path, out: Path, more: tuple[str, ...] = ()) -> list[str]:
    """Small probes; `more` may say otherwise, and every option is given once."""
    small = [word for option, value in SMALL.items() if option not in more
             for word in (option, value)]  # fmt: skip
    return [
        sys.executable, "-m", "pgdyno", "storage", *map(str, paths), "--quick", *small,
        "--out", str(out), *more,
    ]  # fmt: skip


def storage(
    *paths: Path, home: Path, out: Path, more: tuple[str, ...] = (), search: str | None = None
) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PGDYNO_HOME": str(home)}
    if search is not None:
        environment["PATH"] = search
    return subprocess.run(
        arguments(*paths, out=out, more=more),
        env=environment, capture_output=True, text=True, timeout=DEADLINE_S, check=False,
    )  # fmt: skip


@contextmanager
def memory_disk(place: Path, size_mib: int) -> Iterator[Path]:
    """A small file system of its own."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    place.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size_mib}m", "none", str(place)], check=True
    )
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize(
    ("depths", "is_alone"), [("1", True), pytest.param("1,8", False, marks=pytest.mark.long)]
)
@pytest.mark.wide
def test_paths_are_measured_side_by_side(
    folder: Path, home_env: Path, depths: str, is_alone: bool
) -> None:
    out = folder / "s.sqlite"
    disk = folder / "disk"
    disk.mkdir()
    with memory_disk(folder / "memory", 400) as memory:
        paths = [disk, memory][: 1 if is_alone else 2]
        more = ("--depths", depths, "--json")
        done = storage(*paths, home=home_env, out=out, more=more)
        assert done.returncode == 0, done.stderr
        assert [list(path.iterdir()) for path in paths] == [[] for _ in paths]

    assert "removed at the end. It takes about" in done.stderr
    told = json.loads(done.stdout)
    with RunFile.read(out) as run:
        probed = run.found("storage", Probed)
    assert probed is not None
    assert [floor.path for floor in probed.floors] == [str(path) for path in paths]
    for floor, derived in zip(probed.floors, told["derived"], strict=True):
        each = len(depths.split(","))
        assert [point.pattern for point in floor.grid[::each]] == list(PATTERNS)
        assert len(floor.grid) == each * len(PATTERNS)
        assert all(point.per_s > 0 and point.latency.n > 0 for point in floor.grid)
        at_most = {n: one["mid"] for n, one in derived["commits_per_s_at_most"].items()}
        assert at_most["16"] == pytest.approx(8 * at_most["1"])
        assert_nothing_contradicts(derived, probed, floor.path)
    turns = [[one.path for one in each.paths] for each in probed.rounds]
    assert turns == [[str(path) for path in each] for each in (paths, paths[::-1])]
    report = subprocess.run(
        [sys.executable, "-m", "pgdyno", "report", str(out), "--format", "md", "--out", "-"],
        capture_output=True, text=True, timeout=DEADLINE_S, check=True,
    )  # fmt: skip
    assert "**Reported by the kernel**" in report.stdout
    if is_alone:
        assert probed.together is None
        return
    against = told["derived"][1]["against_first"]
    assert {figure: one["rounds"] for figure, one in against.items()} == dict.fromkeys(FIGURES, 2)
    assert probed.floors[1].claims.block_device is None
    assert probed.together is not None
    assert [share.path for share in probed.together.shares] == [str(disk), str(memory)]
    assert "tmpfs keeps its files in memory" in out.with_suffix(".html").read_text()


def assert_nothing_contradicts(derived: dict[str, Any], probed: Probed, path: str) -> None:
    """No median of a kind of probe lies above the figure, nor a probe alone out of its spread."""
    most = derived["commits_per_s_at_most"]["1"]
    assert most["low"] <= most["mid"] <= most["high"]
    assert derived["flush_ns"]["mid"] == pytest.approx(1e9 / most["mid"])
    every = [kinds_ns(one) for one in probed.rounds_of(path)]
    for kind in every[0]:
        rates = span_of(1e9 / one[kind] for one in every)
        assert rates.mid <= most["mid"] * (1 + 1e-9), kind
        # Under a checkpoint and after rest a single round may be far faster, and tells of that.
        if kind in PROGRAMS:
            assert most["low"] * (1 - 1e-9) <= rates.low, kind
            assert rates.high <= most["high"] * (1 + 1e-9), kind


@pytest.mark.long
def test_an_installed_postgresql_will_do(folder: Path, home_env: Path) -> None:
    out = folder / "s.sqlite"
    done = storage(folder, home=home_env, out=out, more=DEBIAN)

    assert done.returncode == 0, done.stderr
    assert "PostgreSQL 15." in done.stdout


def test_without_fio_nothing_is_measured(folder: Path, home_env: Path, tmp_path: Path) -> None:
    done = storage(folder, home=home_env, out=folder / "s.sqlite", search=str(tmp_path))

    assert done.returncode == 3
    assert "program fio is not on PATH" in done.stderr
    assert "apt-get install fio" in done.stderr
    assert list(folder.iterdir()) == []


def test_a_disk_that_is_too_small_is_refused(folder: Path, home_env: Path) -> None:
    with memory_disk(folder / "memory", 100) as memory:
        done = storage(memory, home=home_env, out=folder / "s.sqlite")

        assert done.returncode == 2
        assert "of which 5% stay free, and the probe needs 145 MiB" in done.stderr
        assert list(memory.iterdir()) == []
    assert not (folder / "s.sqlite").exists()


def test_a_disk_that_fills_up_meanwhile_is_told_and_left_clean(folder: Path) -> None:
    with memory_disk(folder / "memory", 100) as memory:
        with own_folder(memory) as own:
            ground = Ground(find_fio(), own, 256 * MIB, direct=False)
            with pytest.raises(TargetError, match=r"write .*data: fio .*No space left on device"):
                write_files(ground)
        assert list(memory.iterdir()) == []


def until_measuring(out: Path, process: subprocess.Popen[str]) -> None:
    """Wait until the run file knows the clock: the files are being written then, or later."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        assert process.poll() is None
        if out.exists():
            with RunFile.read(out) as run:
                if run.found("storage", Probed):
                    return
        time.sleep(0.05)
    raise AssertionError("it never began")


def live(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those that still run: neither ended, nor another one under the same number."""
    return [one for one in processes if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]


STORAGES = """
name = "places"
question = "Does the place matter?"

[protocol]
rounds = 2
window_s = 2.0

[workload]
kind = "tpcb"
scale = 1

[[stage]]
name = "here"
why = "Where pgdyno keeps its clusters."

[[stage]]
name = "there"
why = "Elsewhere on the same disk."
folder = "{}"
"""


def test_a_disk_that_is_probed_is_nobody_elses(folder: Path, home_env: Path) -> None:
    """Below two folders of one disk a probe measures the other, and so does a plan of storages."""
    first, second, plan = folder / "first", folder / "second", folder / "plan.toml"
    first.mkdir()
    second.mkdir()
    plan.write_text(STORAGES.format(second))
    process = children.started(
        arguments(first, out=folder / "s.sqlite", more=("--seconds", "30")),
        env=os.environ | {"PGDYNO_HOME": str(home_env)},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    until_measuring(folder / "s.sqlite", process)
    until(lambda: list(first.glob(".pgdyno-storage-*")), "its folder")
    (own,) = first.glob(".pgdyno-storage-*")
    words = [sys.executable, "-m", "pgdyno", "run", str(plan), "--out", str(folder / "r.sqlite")]
    found = []
    for dry in ((), ("--dry-run",)):
        found.append(storage(second, home=home_env, out=folder / "other.sqlite", more=dry))
        found.append(
            subprocess.run(
                [*words, *dry], capture_output=True, text=True, timeout=DEADLINE_S, check=False
            )
        )
    assert process.poll() is None, "it ended too early"
    process.send_signal(signal.SIGINT)
    process.wait(DEADLINE_S)

    for done in found:
        said = " ".join(done.stderr.split())
        assert done.returncode == 3, said
        assert ("Nothing was touched." in done.stdout) == ("--dry-run" in done.args)
        assert "on which another pgdyno measures: process" in said
        assert f"process {process.pid} of user" in said
        assert f"in {own}" in said
        assert "Wait until it has ended" in said
    assert not list(folder.glob("*other*"))
    assert not list(folder.glob("r.*"))
    assert list(second.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.long
def test_an_interrupted_probe_leaves_nothing(
    folder: Path, home_env: Path, number: signal.Signals
) -> None:
    out = folder / "s.sqlite"
    disk = folder / "disk"
    disk.mkdir()
    process = children.started(
        arguments(disk, out=out, more=("--seconds", "3")),
        env=os.environ | {"PGDYNO_HOME": str(home_env)},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    until_measuring(out, process)
    until_busy(disk)
    started = psutil.Process(process.pid).children()
    process.send_signal(number)
    said, _ = process.communicate(timeout=DEADLINE_S)

    assert process.returncode == 130, said
    assert list(disk.iterdir()) == []
    assert live(started) == []
    assert "Nothing is left of it." in said
    assert not out.exists(), "nothing was measured"


def until_busy(disk: Path) -> None:
    until(lambda: list(disk.glob(".pgdyno-storage-*/**/pg_test_fsync")), "pg_test_fsync")


@pytest.mark.long
def test_a_killed_probe_is_cleaned_up_by_the_next(folder: Path, home_env: Path) -> None:
    disk = folder / "disk"
    disk.mkdir()
    process = children.started(
        arguments(disk, out=folder / "first.sqlite", more=("--seconds", "3")),
        env=os.environ | {"PGDYNO_HOME": str(home_env)},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    until_busy(disk)
    started = psutil.Process(process.pid).children()
    process.kill()
    process.wait(DEADLINE_S)
    until(lambda: not live(started), "the end of what a killed probe had started")
    assert len(list(disk.iterdir())) == 1

    done = storage(disk, home=home_env, out=folder / "second.sqlite", more=("--depths", "1"))

    assert done.returncode == 0, done.stderr
    assert list(disk.iterdir()) == []


def failing_fio(folder: Path) -> Path:
    """A folder with a fio that fails once a file `broken` lies beside it."""
    folder.mkdir()
    script = f'#!/bin/sh\n[ -e {folder}/broken ] && echo "it broke" && exit 1\n'
    (folder / "fio").write_text(f'{script}exec {find_fio()} "$@"\n')
    (folder / "fio").chmod(0o755)
    return folder


@pytest.mark.long
@pytest.mark.same_machine
def test_a_probe_whose_tool_fails_says_so_ever_after(
    folder: Path, home_env: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, out, tools = folder / "disk", folder / "run.sqlite", failing_fio(folder / "tools")
    disk.mkdir()
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    wish = Wish((str(disk),), 64 * MIB, 1, (1,), (1,), quick=True, rounds=2)
    in_round = 1

    def breaks(event: Event) -> None:
        if isinstance(event, StepBegun) and event.what.startswith(f"round {in_round} of 2, "):
            (tools / "broken").touch()

    with pytest.raises(TargetError, match="it broke"):
        pgdyno.storage(wish, out=out, on_event=breaks)
    assert not out.exists(), "nothing was measured"

    (tools / "broken").unlink()
    in_round = 2
    with pytest.raises(TargetError, match="it broke") as failed:
        pgdyno.storage(wish, out=out, on_event=breaks)
    assert f"continue with `pgdyno resume {out}`" in " ".join(failed.value.__notes__)
    stopped = pgdyno.Run(out)
    assert not stopped.is_whole
    assert "it was stopped (commits at " in stopped.report("md")
    assert "it broke): 1 of 2 rounds of probes" in stopped.report("md")

    (tools / "broken").unlink()
    run = pgdyno.resume(out)
    assert run.is_whole
    assert run.probed.ended is None
    with disks_taken([disk], alone=True):
        assert pgdyno.resume(out).is_whole, "nothing is left to measure there"
    assert list(disk.iterdir()) == []


@pytest.mark.long
@pytest.mark.same_machine
def test_a_probe_that_was_broken_off_goes_on_with_what_is_left(
    folder: Path, home_env: Path
) -> None:
    first, second, out = folder / "a", folder / "b", folder / "run.sqlite"
    first.mkdir()
    second.mkdir()
    wish = Wish((str(first), str(second)), 64 * MIB, 1, (1,), (1,), quick=True, rounds=3)

    def broken_off(event: Event) -> None:
        if isinstance(event, StepBegun) and event.what.startswith(f"round 2 of 3, {second}: "):
            raise KeyboardInterrupt

    with pytest.raises(Interrupted, match="what was measured is kept"):
        pgdyno.storage(wish, out=out, on_event=broken_off)
    stopped = pgdyno.Run(out)
    so_far = stopped.probed
    assert not stopped.is_whole
    assert len(so_far.rounds) == 1, "a round that was interrupted is none"
    assert [floor.path for floor in so_far.floors] == [str(first)]
    assert "it was stopped (it was interrupted): 1 of 3 rounds" in stopped.report("md")
    assert list(first.iterdir()) == list(second.iterdir()) == []

    run = pgdyno.resume(out)

    assert run.is_whole
    assert run.probed.floors[:1] == so_far.floors
    assert run.probed.rounds[:1] == so_far.rounds
    assert len(run.probed.rounds) == 3
    assert [floor.path for floor in run.probed.floors] == [str(first), str(second)]
    assert run.probed.together is None, "both lie on one device"
    assert list(first.iterdir()) == list(second.iterdir()) == []
