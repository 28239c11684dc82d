"""A drill where nothing can be mounted: a library in the server records."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

import pgdyno
from pgdyno.disk import recording
from pgdyno.drills import load
from pgdyno.folders import Folder
from pgdyno.model.drill import Disaster
from pgdyno.model.errors import TargetError
from pgdyno.model.progress import Event, StepBegun
from pgdyno.shell import OsUser
from pgdyno.target.interface import Ready
from pgdyno.target.leftover_server import require_no_server
from tests.cluster.test_drill import SHORT, STOCK, mounts, plan
from tests.cluster.test_run import assert_nothing_left

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("drill")]


def test_without_a_device_for_it_nothing_is_begun(
    folder: Path, home_env: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "_DEVICE", folder / "fuse")

    design = replace(SHORT, recorder="mount")
    with pytest.raises(TargetError, match=r"there is no .*fuse, which a file system that records"):
        pgdyno.drill(plan(STOCK), design=design, out=folder / "run.sqlite")

    assert not (folder / "run.sqlite").exists()


@pytest.mark.wide
@pytest.mark.usefixtures("without_controls")
def test_the_library_records_whatever_the_umask_is(folder: Path, home_env: Path) -> None:
    design = pgdyno.DrillDesign(("crash",), cuts=1, load_s=1, recorder="library")
    umask = os.umask(0o077)
    try:
        run = pgdyno.drill(plan(STOCK), design=design, out=folder / "run.sqlite")
    finally:
        os.umask(umask)

    (cut,) = run.drill.cuts
    assert (cut.state, cut.acknowledged > 0) == ("whole", True), cut
    assert_nothing_left(home_env)


@pytest.mark.skipif(os.geteuid() != 0, reason="who compiles it can read it")
@pytest.mark.wide
def test_a_server_that_has_not_the_library_is_told_before_the_load(
    folder: Path, home_env: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chmod, steps = os.chmod, list[str]()

    def closed(path: Any, mode: int, **more: Any) -> None:
        chmod(path, 0o700 if path == "library.so" else mode, **more)

    def heard(event: Event) -> None:
        if isinstance(event, StepBegun):
            steps.append(event.what)

    monkeypatch.setattr(os, "chmod", closed)
    design = replace(SHORT, recorder="library")
    with pytest.raises(TargetError, match="no process of the server had the library that records"):
        pgdyno.drill(plan(STOCK), design=design, out=folder / "run.sqlite", on_event=heard)

    assert steps[-1].endswith("starting the server"), steps
    assert_nothing_left(home_env)


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[psutil.Process]]:
    """Processes that outlive the power of their server's disk, as on a machine that is busy."""
    late: list[psutil.Process] = []
    real_act = load._act

    def act(disaster: Disaster, record: Any, ready: Ready, *more: Any) -> None:
        if disaster.cuts:  # one that never has the record's lock
            for one in psutil.Process(ready.postmaster_pid).children():
                if "logical replication launcher" in " ".join(one.cmdline()):
                    one.suspend()
                    late.append(one)
        real_act(disaster, record, ready, *more)

    def leave_one(postmaster: int) -> None:
        server = psutil.Process(postmaster)
        others = [one for one in server.children() if one not in late]
        for one in (server, *others):
            with suppress(psutil.NoSuchProcess):  # they see the server go
                one.kill()

    def wait(data: Folder, user: OsUser, patience_s: float) -> None:
        for one in filter(psutil.Process.is_running, late):
            threading.Timer(1.0, one.kill).start()
        require_no_server(data, user, patience_s)

    monkeypatch.setattr(load, "_act", act)
    monkeypatch.setattr(load, "kill_all", leave_one)
    monkeypatch.setattr(load, "require_no_server", wait)
    yield late
    for one in late:
        with suppress(psutil.NoSuchProcess):
            one.kill()


@pytest.mark.long
def test_without_a_device_for_it_a_library_records(
    folder: Path, home_env: Path, monkeypatch: pytest.MonkeyPatch, late: list[psutil.Process]
) -> None:
    monkeypatch.setattr(recording, "_DEVICE", folder / "fuse")
    # The postmaster of 18 stays without a startup process where recovery meets the fault, too. How
    # long it is waited for changes nothing of what was acknowledged.
    monkeypatch.setattr(load, "BACK_S", 3.0)
    disasters = ("crash", "power", "power-twice", "power-live", "sync-error", "disk-full")

    run = drilled(STOCK, disasters, folder / "stock.sqlite")

    facts = run.drill
    assert "recorded call by call by a preloaded library" in run.report("md")
    harmed = {one.disaster: one.harmed.of for one in facts.rows}
    assert harmed == dict.fromkeys(disasters, 0), [one.reasons for one in facts.cuts]
    (error,) = (one for one in facts.cuts if one.disaster == "sync-error")
    assert error.met is not None
    assert error.met > 0
    assert error.outage is not None
    down = error.outage.down
    assert error.outage.waited_s == (3.0 if down in ("hangs", "recovers") else None)
    (told,) = (one for one in facts.sentences if ", sync-error:" in one)
    assert ("neither come back nor ended 3 s after the load" in told) == (down == "hangs")
    assert ("still recovering 3 s after the load" in told) == (down == "recovers")
    assert len(late) == 1
    assert mounts(home_env) == []
    assert_nothing_left(home_env)


@pytest.mark.wide
def test_what_a_library_records_shows_what_is_not_synced(
    folder: Path, home_env: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "_DEVICE", folder / "fuse")
    unsynced: dict[str, object] = {"name": "unsynced", "settings": {"fsync": "off"}}

    facts = drilled(unsynced, ("crash", "power", "power-live"), folder / "unsynced.sqlite").drill

    harmed = {one.disaster: one.harmed.of for one in facts.rows}
    assert harmed["crash"] == 0  # the kernel lives
    assert harmed["power"] + harmed["power-live"] > 0
    assert_nothing_left(home_env)


def drilled(stage: dict[str, object], disasters: tuple[str, ...], out: Path) -> pgdyno.Run:
    """A drill by the library, whose load commits and whose checks can fail."""
    design = pgdyno.DrillDesign(disasters, cuts=1, load_s=2)
    run = pgdyno.drill(plan(stage), design=design, out=out)
    facts = run.drill
    assert facts.recorder == "library"
    assert all(one.acknowledged > 0 for one in facts.cuts)
    assert len(facts.controls) == 7
    assert [one for one in facts.controls if one.found is None] == []
    return run
