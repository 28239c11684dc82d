"""Made-up profiles: what three stages' servers and driver do, drawn from a seed.

Weights are CPU µs of a transaction; `tuned` reads fewer pages than `initdb`, `async-commit` waits
for no flush. A line is a role, then functions from the outermost one, each with its module.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pgdyno.model.profile import (
    DRIVER,
    KERNEL,
    KERNEL_THREADS,
    SERVER,
    UNKNOWN,
    Lack,
    Profile,
    Quality,
)
from pgdyno.model.run import TrialState
from pgdyno.profiler.perf_script import Folded
from pgdyno.store import RunFile
from pgdyno.store.profiles import put_profile

SEED = 20261124
SECONDS = 10
HZ = 99
PER_S = 1500.0
MAIN = "_start main PostmasterMain ServerLoop BackendStartup BackendMain PostgresMain"
RUN = f"{MAIN} exec_execute_message PortalRun PortalRunSelect ExecutorRun ExecModifyTable"
STACKS: dict[str, tuple[float, float, float]] = {  # role and functions: µs in each stage
    f"backend {MAIN} exec_bind_message GetCachedPlan": (40, 40, 40),
    f"backend {MAIN} exec_bind_message OidInputFunctionCall": (22, 22, 22),
    f"backend {RUN} ExecIndexScan index_getnext_slot _bt_search _bt_compare": (95, 90, 91),
    f"backend {RUN} ExecIndexScan index_getnext_slot heap_hot_search_buffer": (60, 58, 60),
    f"backend {RUN} ExecIndexScan ReadBufferExtended FileReadV libc.so.6:pread64"
    " k:entry_SYSCALL_64_after_hwframe k:do_syscall_64 k:ksys_pread64 k:filemap_read"
    " k:copy_page_to_iter k:_copy_to_iter": (130, 12, 12),
    f"backend {RUN} ExecUpdate heap_update XLogInsert XLogInsertRecord": (75, 48, 49),
    f"backend {RUN} ExecUpdate heap_update XLogInsert XLogRecordAssemble"
    " pg_comp_crc32c_sse42": (44, 21, 21),
    f"backend {MAIN} finish_xact_command CommitTransaction XLogFlush issue_xlog_fsync"
    " libc.so.6:fdatasync k:entry_SYSCALL_64_after_hwframe k:do_syscall_64 k:ext4_sync_file"
    " k:jbd2_log_wait_commit": (36, 36, 0),
    f"backend {MAIN} secure_write libc.so.6:send k:entry_SYSCALL_64_after_hwframe"
    " k:do_syscall_64 k:unix_stream_sendmsg": (52, 52, 52),
    f"backend {MAIN} libssl.so.3:?": (6, 6, 6),
    "checkpointer _start main PostmasterMain CheckpointerMain CreateCheckPoint BufferSync"
    " SyncOneBuffer FlushBuffer libc.so.6:pwrite64 k:ksys_pwrite64 k:ext4_buffered_write_iter":
        (18, 9, 9),
    "wal_writer _start main PostmasterMain WalWriterMain XLogBackgroundFlush": (2, 2, 14),
    "driver core:clone3 core:run_thread core:poll_sessions core:read_messages": (26, 26, 26),
    "driver core:clone3 core:run_thread core:execute libc.so.6:send k:unix_stream_sendmsg":
        (31, 31, 31),
    "kernel_threads k:ret_from_fork k:kthread k:worker_thread k:wb_workfn k:ext4_writepages":
        (15, 7, 7),
}  # fmt: skip
WAITS: dict[tuple[str, str, str], tuple[float, float, float]] = {  # processes in each stage
    ("backend", "sleeping", "do_epoll_wait"): (2.1, 2.6, 3.4),
    ("backend", "sleeping", "jbd2_log_wait_commit"): (3.0, 2.8, 0.0),
    ("backend", "running, or waiting for a CPU", ""): (2.6, 2.4, 4.3),
    ("checkpointer", "waiting for a device (uninterruptible)", "io_schedule"): (0.3, 0.1, 0.1),
}  # fmt: skip
PLACES = {"initdb": 0, "tuned": 1, "async-commit": 2}
LACK = Lack("kernel.perf_event_paranoid is 3.", "Until the next boot: `sudo sysctl x=1`.")


def made_up(stage: str, rng: np.random.Generator, *, lacks: tuple[Lack, ...] = ()) -> Profile:
    """The profile of a trial of one of the three stages."""
    place = PLACES[stage]
    cpu, waiting = Folded(SECONDS), Folded(SECONDS)
    for second in range(SECONDS):
        for line, weights in STACKS.items():
            met = rng.poisson(weights[place] * PER_S * HZ / 1e6)
            if met:
                cpu.add(second, stack(line), int(met))
        for (role, state, channel), processes in WAITS.items():
            met = rng.binomial(800, processes[place] / 8)
            named = [(channel, KERNEL)] if channel else []
            if met:
                waiting.add(second, [(role, ""), (state, ""), *named], int(met))
    return Profile(
        seconds=SECONDS,
        transactions=(PER_S,) * SECONDS,
        cpu=cpu.stacks(HZ),
        waiting=waiting.stacks(100.0),
        unwinding="dwarf",
        tool="perf version 6.1.187",
        quality=(
            Quality(SERVER, 900, 0, 14_000, 13_860, 880, 871, (("libssl.so.3", 140),), 9.3),
            Quality(DRIVER, 120, 0, 900, 900, 120, 120, ()),
            Quality(KERNEL_THREADS, 30, 0, 150, 150, 0, 0, ()),
        ),
        lacks=lacks,
    )


def stack(line: str) -> list[tuple[str, str]]:
    """A line above as functions and their modules."""
    role, *functions = line.split()
    found = [(role, "")]
    for one in functions:
        module, has_module, name = one.rpartition(":")
        module = {"k": KERNEL, "core": "_core.abi3.so"}.get(module, module)
        found.append((UNKNOWN if name == "?" else name, module if has_module else "postgres"))
    return found


def add_profiles(path: Path, *, lacks: tuple[Lack, ...] = ()) -> Path:
    """Give every finished trial of a miniature run file a profile."""
    rng = np.random.default_rng(SEED)
    with RunFile.append(path) as run:
        for trial in run.trials():
            if trial.state is TrialState.FINISHED:
                put_profile(run, made_up(trial.stage, rng, lacks=lacks), trial.number)
    return path
