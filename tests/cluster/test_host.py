"""Changes of this very machine: applied, killed at every step, put back bit for bit."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from pgdyno.host.change import parse
from pgdyno.host.spot import spot, spots
from pgdyno.shell import postgres_user
from tests.data.killed import run_killed

pytestmark = pytest.mark.cluster
# Moved somewhat from what they are; harmless for whatever else runs here.
CANDIDATES = (
    ("vm.swappiness", "57"),
    ("vm.dirty_background_bytes", "134217728"),
    ("vm.dirty_expire_centisecs", "2900"),
    ("transparent_hugepage/defrag", "defer"),
    ("net.core.somaxconn", "4097"),
    ("vm.nr_overcommit_hugepages", "3"),
)
STEPS = ("journal", "write", "read", "undo", "undone")


@cache
def wishes() -> tuple[str, ...]:
    """Those that this machine has and lets itself be told, with a disk's and a card's."""
    candidates = list(CANDIDATES)
    for name, values in (("queue/rq_affinity", "12"), ("rps_cpus", "01")):
        found = next((one for one in spots() if one.name == name), None)
        if found:
            candidates.append((found.key, values[found.read() == values[0]]))
    return tuple(
        f"{key}={value}"
        for key, value in candidates
        if spot(key).path.exists() and os.access(spot(key).path, os.W_OK)
    )


def state() -> dict[str, str]:
    """The file of every value of the catalogue, but of those that move by themselves."""
    return {
        one.key: one.path.read_text() for one in spots() if not one.key.startswith("smp_affinity")
    }


def pgdyno(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pgdyno", *arguments],
        env=os.environ | {"PGDYNO_HOME": str(home)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.fixture
def untouched(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The state before, and a machine that is put back whatever happens."""
    if not wishes():
        pytest.skip("this user may not change the machine; test_without_the_right covers that")
    before = state()
    yield before
    assert pgdyno(tmp_path, "host", "restore").returncode == 0
    assert state() == before


def test_apply_and_restore_leave_the_machine_as_it_was(
    tmp_path: Path, untouched: dict[str, str]
) -> None:
    planned = pgdyno(tmp_path, "host", "plan", *wishes())
    assert planned.returncode == 0, planned.stderr
    assert "Nothing was touched." in planned.stdout
    assert state() == untouched

    applied = pgdyno(tmp_path, "host", "apply", *wishes())
    assert applied.returncode == 0, applied.stderr
    for wish in wishes():
        key, _, value = wish.partition("=")
        assert spot(key).read() == value

    restored = pgdyno(tmp_path, "host", "restore")
    assert restored.returncode == 0, restored.stderr
    assert restored.stdout.count("restored") == len(wishes())
    assert state() == untouched
    assert "Nothing stands" in pgdyno(tmp_path, "host", "restore").stdout


def test_a_kill_at_each_step_is_mended_bit_for_bit(
    tmp_path: Path, untouched: dict[str, str]
) -> None:
    wanted = [parse(wish) for wish in wishes()]
    for step in range(1, len(STEPS) * len(wanted) + 1):
        run_killed(step, wanted, tmp_path / "host-journal.jsonl")
        restored = pgdyno(tmp_path, "host", "restore")
        assert restored.returncode == 0, restored.stderr
        assert state() == untouched, f"after a kill at step {step}"


def test_what_the_kernel_refuses_changes_nothing(tmp_path: Path, untouched: dict[str, str]) -> None:
    # Less than two pages of memory are too few for the kernel.
    done = pgdyno(tmp_path, "host", "apply", *wishes(), "vm.dirty_bytes=1")
    assert done.returncode == 3
    assert "write '1' to /proc/sys/vm/dirty_bytes: Invalid argument" in done.stderr
    assert state() == untouched


def without_the_right(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The same as who runs PostgreSQL, who is never root."""
    user = postgres_user()
    if not user.is_other:
        return pgdyno(home, *arguments)
    script = (
        f"import sys; sys.path[:0] = {sys.path!r}; sys.argv = {['pgdyno', *arguments]!r}\n"
        "from pgdyno.cli.app import main\nsys.exit(main())"
    )
    return subprocess.run(
        ["setpriv", "--reuid", str(user.uid), "--regid", str(user.gid), "--clear-groups",
         sys.executable, "-c", script],
        env=os.environ | {"PGDYNO_HOME": str(home)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_without_the_right_the_commands_are_printed(folder: Path) -> None:
    before = state()
    done = without_the_right(
        folder, "host", "apply", "vm.swappiness=57", "transparent_hugepage/enabled=never"
    )
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines() == [
        "# You may not change these; somebody who may types:",
        "echo 57 | sudo tee /proc/sys/vm/swappiness",
        "echo never | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
        "# and, to put them back as they are now:",
        *(
            f"echo {spot(key).read()} | sudo tee {spot(key).path}"
            # The kernel moves the second one with the first.
            for key in ("transparent_hugepage/enabled", "vm.min_free_kbytes", "vm.swappiness")
        ),
    ]
    assert state() == before
    assert list(folder.iterdir()) == [], "nothing is journalled that is not done"


def test_the_machine_is_shown(tmp_path: Path) -> None:
    done = pgdyno(tmp_path, "host", "show")
    assert done.returncode == 0, done.stderr
    for title in ("Processors", "Memory", "File systems", "Kernel settings (sysctl)"):
        assert title in done.stdout
