"""Wait channels, asked of a folder that looks like /proc."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pgdyno.model.profile import KERNEL, UNKNOWN
from pgdyno.profiler.wait_channels import RUNNING, Tick, WaitChannels, stack_of

POSTMASTER = 100


def process(proc: Path, pid: int, title: str, state: str, wchan: str) -> None:
    folder = proc / str(pid)
    (folder / "task" / str(pid)).mkdir(parents=True, exist_ok=True)
    (folder / "cmdline").write_bytes(title.encode() + b"\0\0")
    (folder / "wchan").write_text(wchan)
    (folder / "stat").write_text(f"{pid} (postgres) {state} 1 {' 0' * 9} 300 200 0 0 20 0 1 0 99")
    (folder / "task" / str(pid) / "children").write_text("")


def server(proc: Path) -> Path:
    process(proc, POSTMASTER, "/bin/postgres -D /data", "S", "do_select")
    process(proc, 101, "postgres: checkpointer ", "D", "io_schedule")
    process(proc, 102, "postgres: bench bench [local] idle", "S", "do_epoll_wait")
    process(proc, 103, "postgres: bench bench [local] UPDATE", "R", "0")
    process(proc, 104, "postgres: bench bench [local] COMMIT", "S", "0")
    (proc / "100/task/100/children").write_text("101 102 103 104 ")
    return proc


def test_each_process_is_met_with_its_state_and_channel(tmp_path: Path) -> None:
    waits = WaitChannels(POSTMASTER, server(tmp_path), np.random.default_rng(1), lambda: 7)
    waits.look()
    try:
        tick = waits.tick()
    finally:
        waits.stop()

    assert tick == Tick(
        7,
        [
            ("checkpointer", "waiting for a device (uninterruptible)", "io_schedule"),
            ("backend", "sleeping", "do_epoll_wait"),
            ("backend", RUNNING, ""),
            ("backend", "sleeping", UNKNOWN),
        ],
    )
    assert waits.living == (POSTMASTER,), "nothing is held open after the end"
    assert waits.roles[101] == "checkpointer"
    assert waits.cpu[0] == (7, 5 * 5.0), "five processes of 500 ticks each"


def test_a_process_that_ended_is_met_no_more(tmp_path: Path) -> None:
    waits = WaitChannels(POSTMASTER, server(tmp_path))
    waits.look()
    process(tmp_path, 102, "", "Z", "0")
    try:
        first, second = waits.tick(), waits.tick()
    finally:
        waits.stop()
    assert len(first.met) == len(second.met) == 3


def test_a_server_that_is_gone_is_no_error(tmp_path: Path) -> None:
    waits = WaitChannels(POSTMASTER, tmp_path)
    waits.look()
    assert waits.tick().met == []
    waits.stop()


def test_what_runs_has_no_channel() -> None:
    assert stack_of(("backend", RUNNING, "")) == [("backend", ""), (RUNNING, "")]
    assert stack_of(("backend", "sleeping", "futex_do_wait")) == [
        ("backend", ""), ("sleeping", ""), ("futex_do_wait", KERNEL),
    ]  # fmt: skip
