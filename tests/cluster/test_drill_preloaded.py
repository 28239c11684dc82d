"""A drill where nothing can be mounted: a library in the server records."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pgdyno
from pgdyno.disk import recording
from pgdyno.model.errors import TargetError
from pgdyno.model.progress import Event, StepBegun
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


@pytest.mark.wide
def test_without_a_device_for_it_a_library_records(
    folder: Path, home_env: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "_DEVICE", folder / "fuse")
    disasters = ("crash", "power", "power-twice", "power-live", "sync-error", "disk-full")
    design = pgdyno.DrillDesign(disasters, cuts=1, load_s=2)
    unsynced = {"name": "unsynced", "settings": {"fsync": "off"}}

    run = pgdyno.drill(plan(STOCK, unsynced), design=design, out=folder / "run.sqlite")

    facts = run.drill
    assert facts.recorder == "library"
    assert "recorded call by call by a preloaded library" in run.report("md")
    assert all(one.acknowledged > 0 for one in facts.cuts)
    harmed = {(one.stage, one.disaster): one.harmed.of for one in facts.rows}
    assert [harmed["stock", name] for name in disasters] == [0] * 6, facts.cuts
    assert harmed["unsynced", "crash"] == 0  # the kernel lives
    assert harmed["unsynced", "power"] + harmed["unsynced", "power-live"] > 0
    (error,) = (one for one in facts.cuts if (one.stage, one.disaster) == ("stock", "sync-error"))
    assert error.met is not None
    assert error.met > 0
    assert len(facts.controls) == 10
    assert [one for one in facts.controls if one.found is None] == []
    assert mounts(home_env) == []
    assert_nothing_left(home_env)
