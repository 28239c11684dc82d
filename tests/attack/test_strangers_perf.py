"""A program perf that others can change: root does not run it, and the profile says so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pgdyno.profiler.capture import Capture, Subject

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="it is about root")


def test_root_runs_no_perf_that_others_can_change(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = folder / "ran"
    programs = folder / "bin"
    programs.mkdir()
    programs.chmod(0o777)
    perf = programs / "perf"
    perf.write_text(f"#!/bin/sh\ntouch {ran}\necho perf version 6.1\n")
    perf.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")

    with Capture(Subject(None, None, "dwarf"), seconds=1) as capture:
        capture.begin(os.getpid())
        profile = capture.end((0, 1_000_000_000), [0.0])

    assert not ran.exists()
    assert profile.cpu is None
    (told,) = [one for one in profile.lacks if str(programs) in one.fact]
    assert "is not run as root" in told.fact
    assert told.remedy
