"""Changes of this very machine: applied, killed at every step, put back bit for bit."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from pgdyno.host.change import parse
from pgdyno.host.journal import NAME, Journal
from pgdyno.host.knob_location import knob_location, knob_locations
from pgdyno.host.undo import Resolutions, restore
from pgdyno.shell import postgres_user
from tests.data.killed import run_killed
from tests.waiting import DEADLINE_S

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("machine")]
# Moved somewhat from what they are; harmless for whatever else runs here.
CANDIDATES = (
    ("vm.swappiness", "57"),
    ("vm.dirty_background_bytes", "134217728"),
    ("vm.dirty_expire_centisecs", "2900"),
    ("transparent_hugepage/defrag", "defer"),
    ("net.core.somaxconn", "4097"),
    ("vm.nr_overcommit_hugepages", "3"),
)
STEPS_A_CHANGE = 7  # journal, write, read, keep; undo, back, undone


@cache
def wishes() -> tuple[str, ...]:
    """Those that this machine has and lets itself be told, with a disk's and a card's."""
    candidates = list(CANDIDATES)
    for name, values in (("queue/rq_affinity", "12"), ("rps_cpus", "01")):
        found = next((one for one in knob_locations() if one.name == name), None)
        if found:
            candidates.append((found.key, values[found.read() == values[0]]))
    return tuple(
        f"{key}={value}"
        for key, value in candidates
        if knob_location(key).path.exists() and os.access(knob_location(key).path, os.W_OK)
    )


def state() -> dict[str, str]:
    """The file of every value of the catalogue, but of those that move by themselves."""
    return {
        one.key: one.path.read_text()
        for one in knob_locations()
        if not one.key.startswith("smp_affinity")
    }


def pgdyno(home: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pgdyno", *arguments],
        env=os.environ | {"PGDYNO_HOME": str(home), "PGDYNO_HOST_STATE": str(home / "state")}
        | variables,
        capture_output=True, text=True, timeout=DEADLINE_S, check=False,
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
        assert knob_location(key).read() == value

    restored = pgdyno(tmp_path, "host", "restore")
    assert restored.returncode == 0, restored.stderr
    assert restored.stdout.count("restored") == len(wishes())
    assert state() == untouched
    assert "Nothing that pgdyno changed" in pgdyno(tmp_path, "host", "restore").stdout


def test_a_kill_at_each_step_is_mended_bit_for_bit(
    tmp_path: Path, untouched: dict[str, str]
) -> None:
    wanted = [parse(wish) for wish in wishes()]
    journal = Journal(tmp_path / "state" / NAME)
    step = 1
    while run_killed(step, wanted, journal.path):
        assert all(one.ok for one in restore([journal])), f"after a kill at step {step}"
        assert state() == untouched, f"after a kill at step {step}"
        step += 1
    assert step > STEPS_A_CHANGE * len(wanted)


def test_what_somebody_sets_after_a_kill_stays(tmp_path: Path, untouched: dict[str, str]) -> None:
    """Whatever of apply and restore came before the kill: theirs is never overwritten."""
    one = knob_location("vm.swappiness")
    if not os.access(one.path, os.W_OK):
        pytest.skip("this user may not change the machine")
    before, journal = one.read(), Journal(tmp_path / "state" / NAME)
    step = 1
    while run_killed(step, [(one.key, "57")], journal.path):
        try:
            one.write("30")
            fates = restore([journal])
            assert one.read() == "30", f"after a kill at step {step}: {fates}"
            assert all("it is '30' now, pgdyno had made it '57' of" in it.fate for it in fates)
            restore([journal], resolutions=Resolutions(keep=[it.change.key for it in fates]))
        finally:
            one.write(before)
        step += 1
    assert step > STEPS_A_CHANGE


def test_all_three_values_are_told_and_the_home_may_be_gone(
    tmp_path: Path, untouched: dict[str, str]
) -> None:
    one = knob_location("vm.swappiness")
    before, home = one.read(), tmp_path / "home"
    state_folder = {"PGDYNO_HOST_STATE": str(tmp_path / "elsewhere")}
    try:
        applied = pgdyno(home, "host", "apply", "vm.swappiness=57", **state_folder)
        assert applied.returncode == 0, applied.stderr
        if home.exists():
            shutil.rmtree(home)
        one.write("30")
        left = pgdyno(home, "host", "restore", **state_folder)
        assert left.returncode == 3
        told = f"left: it is '30' now, pgdyno had made it '57' of '{before}'"
        assert told in " ".join(left.stdout.split())
        assert "--overwrite NAME" in left.stderr
        assert one.read() == "30"
        back = pgdyno(home, "host", "restore", "--overwrite", one.key, **state_folder)
        assert back.returncode == 0, back.stderr
        assert one.read() == before
    finally:
        one.write(before)


def test_what_the_kernel_rounds_is_put_back_and_its_own_value_kept(
    tmp_path: Path, untouched: dict[str, str]
) -> None:
    """Read-ahead is kept in pages of memory: 4 kB."""
    found = [one for one in knob_locations() if one.name == "queue/read_ahead_kb"]
    if not found or not os.access(found[0].path, os.W_OK):
        pytest.skip("no block device whose queue may be changed")
    done = pgdyno(tmp_path, "host", "apply", f"{found[0].key}=130")
    assert done.returncode == 3
    assert "was set to '130' and is '128'" in " ".join(done.stderr.split())
    assert state() == untouched
    lines = (tmp_path / "state" / NAME).read_text().splitlines()
    assert [(line["what"], line["became"]) for line in map(json.loads, lines)][:2] == [
        ("intend", None), ("done", "128"),
    ]  # fmt: skip


def test_what_the_kernel_refuses_changes_nothing(tmp_path: Path, untouched: dict[str, str]) -> None:
    # Less than two pages of memory are too few for the kernel.
    done = pgdyno(tmp_path, "host", "apply", *wishes(), "vm.dirty_bytes=1")
    assert done.returncode == 3
    assert "write '1' to /proc/sys/vm/dirty_bytes: invalid argument" in done.stderr
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
        env=os.environ | {"PGDYNO_HOME": str(home), "PGDYNO_HOST_STATE": str(home / "state")},
        capture_output=True, text=True, timeout=DEADLINE_S, check=False,
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
            f"echo {knob_location(key).read()} | sudo tee {knob_location(key).path}"
            # The kernel moves the second one with the first.
            for key in ("transparent_hugepage/enabled", "vm.min_free_kbytes", "vm.swappiness")
        ),
    ]
    assert state() == before
    assert list(folder.iterdir()) == [], "nothing is journalled that is not done"


def test_what_is_named_comes_before_what_is_advised(tmp_path: Path) -> None:
    """Also where the catalogue advises the other one of two that exclude each other."""
    wish = "vm.dirty_background_ratio=11"
    for wishes, has_bytes in (((), True), ((wish,), False)):
        done = pgdyno(tmp_path, "host", "plan", "--advised", *wishes)
        assert done.returncode == 0, done.stderr
        assert ("vm.dirty_background_bytes" in done.stdout) == has_bytes
        assert "Nothing was touched." in done.stdout


def test_the_machine_is_shown(tmp_path: Path) -> None:
    done = pgdyno(tmp_path, "host", "show")
    assert done.returncode == 0, done.stderr
    for title in ("Processors", "Memory", "File systems", "Kernel settings (sysctl)"):
        assert title in done.stdout
