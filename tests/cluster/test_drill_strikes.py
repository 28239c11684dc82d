"""Disasters that strike a load: one that did not is an error, and no cut that was survived."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pgdyno
from pgdyno.disk.recorder import recorded
from pgdyno.drills import cut, kills, load
from pgdyno.drive.driver import drive
from pgdyno.model.errors import DriveError, RefusedError, TargetError
from pgdyno.target.cluster import Cluster
from pgdyno.target.own_target import DISK
from tests.children import started
from tests.cluster.test_drill import STOCK, mounts, plan
from tests.cluster.test_run import assert_nothing_left
from tests.waiting import DEADLINE_S, until

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("drill")]
LACKING = "could not create lock file"
"""As a server says that has no folder for its sockets."""
KILLED = pgdyno.DrillDesign(("kill-checkpointer",), cuts=1, load_s=2)
_PARENT = """
import os, signal, sys
for _ in range(3):
    if os.fork() == 0:
        signal.pause()
print("begun", flush=True)
signal.pause()
"""


def none_is_kept(folder: Path, home: Path, *, loaded: bool = False) -> None:
    """No cut stands in the run file; where no load went before it either, there is none."""
    run = folder / "run.sqlite"
    assert run.exists() == loaded
    if loaded:
        assert pgdyno.Run(run).drilled.cuts == ()
    assert mounts(home) == []
    assert_nothing_left(home)


@pytest.mark.wide
def test_a_disaster_that_did_not_strike_is_no_cut_that_was_survived(
    folder: Path, home_env: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (ended := subprocess.Popen(["true"])).wait()
    monkeypatch.setattr(kills, "_pid", lambda *_: ended.pid)
    with pytest.raises(TargetError, match=f"kill checkpointer {ended.pid}: no such process"):
        pgdyno.drill(plan(STOCK), design=KILLED, out=folder / "run.sqlite")

    none_is_kept(folder, home_env)


@pytest.mark.wide
def test_a_driver_that_fails_before_the_disaster_is_no_outage(
    folder: Path, home_env: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def short(*asked: Any) -> Any:
        connection, workload, protocol, c_load, _, wishes = asked
        protocol = replace(protocol, window_s=0.1)
        driven = drive(connection, workload, protocol, c_load, wishes=wishes)
        return replace(driven, error="the driver gave up")

    monkeypatch.setattr(load, "drive", short)
    wanted = "ended before disaster kill-checkpointer struck it: the driver gave up"
    with pytest.raises(DriveError, match=wanted):
        pgdyno.drill(plan(STOCK), design=KILLED, out=folder / "run.sqlite")

    none_is_kept(folder, home_env)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
@pytest.mark.parametrize(
    ("why", "recovers"),
    [("too many open files in system", True), ("invalid page in block 7", False),
     (LACKING, False)],
)  # fmt: skip
@pytest.mark.wide
@pytest.mark.usefixtures("without_controls")
def test_a_recovery_that_cannot_be_recorded_is_an_error_unless_the_disk_is_dead(
    why: str, recovers: bool, folder: Path, home_env: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recordings: list[bool] = []  # whether each goes on
    real_start = Cluster.start

    @contextmanager
    def watched(*asked: Any) -> Iterator[Any]:
        with recorded(*asked) as record:
            recordings.append(True)
            yield record
        recordings[-1] = False

    def start(self: Cluster, *asked: Any, **more: Any) -> float:
        if recordings and self.data.name == DISK and (recordings[-1] or not recovers):
            if why == LACKING:
                shutil.rmtree(self.connection().host)
                return real_start(self, *asked, **more)
            raise RefusedError(f"the server ended with code 1 while starting: FATAL:  {why}")
        return real_start(self, *asked, **more)

    monkeypatch.setattr(cut, "recorded", watched)
    monkeypatch.setattr(Cluster, "start", start)
    design = pgdyno.DrillDesign(("power-twice",), cuts=1, load_s=2)
    if recovers or why == LACKING:
        wanted = "not while that is recorded: " if recovers else "not for what is in its data: "
        with pytest.raises(TargetError, match=f"{wanted}.*{why}"):
            pgdyno.drill(plan(STOCK), design=design, out=folder / "run.sqlite")
        none_is_kept(folder, home_env, loaded=True)
    else:
        run = pgdyno.drill(plan(STOCK), design=design, out=folder / "run.sqlite")
        (made,) = run.drill.cuts
        assert made.state == "whole", made
        assert mounts(home_env) == []
        assert_nothing_left(home_env)
    assert recordings == [False]


def test_what_stands_still_is_killed_though_its_children_are_not_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parent = started([sys.executable, "-c", _PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    assert parent.stdout.readline() == "begun\n"
    children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
    real: Callable[..., str] = Path.read_text

    def untold(path: Path, *args: Any, **kwargs: Any) -> str:
        if path.name == "children":
            raise FileNotFoundError(2, "No such file or directory", str(path))
        return real(path, *args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_text", untold)
        with pytest.raises(TargetError, match=f"kill server {parent.pid}: no such file"):
            kills.kill_all(parent.pid)
    try:
        assert parent.wait(DEADLINE_S) == -signal.SIGKILL
    finally:
        for child in map(int, children):
            os.kill(child, signal.SIGKILL)


def test_every_process_of_a_server_is_killed() -> None:
    parent = started([sys.executable, "-c", _PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    assert parent.stdout.readline() == "begun\n"
    children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
    assert len(children) == 3

    kills.kill_all(parent.pid)

    assert parent.wait(DEADLINE_S) == -signal.SIGKILL
    until(lambda: not any(is_alive(child) for child in children), "its children to end")
    with pytest.raises(TargetError, match=f"kill server {parent.pid}: no such process"):
        kills.kill_all(parent.pid)


def is_alive(pid: str) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return not stat.rpartition(") ")[2].startswith("Z")
