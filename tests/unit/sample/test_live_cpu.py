"""The CPU of the process that shows a run, read from made-up folders of /proc."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pgdyno.sample.kernel_file import KernelFile
from pgdyno.sample.sampler import Subject
from pgdyno.sample.samplers import live_cpu

TICKS = os.sysconf("SC_CLK_TCK")


def process(proc: Path, pid: int, words: str, children: dict[int, str] | None = None) -> None:
    for task, found in (children or {}).items():
        (proc / str(pid) / "task" / str(task)).mkdir(parents=True)
        (proc / str(pid) / "task" / str(task) / "children").write_text(found)
    (proc / str(pid)).mkdir(exist_ok=True)
    (proc / str(pid) / "cmdline").write_bytes(words.replace(" ", "\0").encode() + b"\0")
    fields = "S 1 1 1 0 -1 0 0 0 0 0 30 20 900 900 20 0 1 0 5"
    (proc / str(pid) / "stat").write_text(f"{pid} (a) b) {fields}")


def test_the_worker_is_found_whichever_thread_started_it(tmp_path: Path) -> None:
    process(tmp_path, 10, "pgdyno run x", {10: "11 13 ", 14: "12 "})
    process(tmp_path, 11, "python -m pgdyno.drive.worker")
    process(tmp_path, 12, "python -m pgdyno.live.worker")
    (tmp_path / "10" / "task" / "15").mkdir()  # a thread that ends meanwhile; 13 has ended

    assert live_cpu.find(tmp_path, 10) == 12
    assert live_cpu.cpu_s(KernelFile(tmp_path / "12/stat")) == 50 / TICKS


def test_without_one_there_is_no_series(tmp_path: Path) -> None:
    process(tmp_path, 10, "pgdyno run x", {10: "11 "})
    process(tmp_path, 11, "vi pgdyno.live.worker.py")

    assert live_cpu.find(tmp_path, 10) is None


def test_another_with_the_number_of_one_that_has_ended_is_not_taken_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process(tmp_path, os.getpid(), "pgdyno run x", {10: "12 "})
    process(tmp_path, 12, "python -m pgdyno.live.worker")
    monkeypatch.setattr(live_cpu, "Path", lambda _: tmp_path)
    worker = live_cpu.sampler(Subject())
    assert worker is not None
    (tmp_path / "12/stat").unlink()
    (tmp_path / "12/stat").write_text("12 (b) S 1 1 1 0 -1 0 0 0 0 0 9000 9000 0 0 20 0 1 0 7")

    assert worker.take() == {"live.cpu_s": 50 / TICKS}
