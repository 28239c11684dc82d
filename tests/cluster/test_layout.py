"""Storage layouts on loop devices: planned, made, mounted; and what is never touched."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.waiting import DEADLINE_S

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("machine")]
MIB = 1 << 20


def command(*arguments: str) -> str:
    return subprocess.run(arguments, capture_output=True, text=True, check=True).stdout.strip()


def layout(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A layout that is written down in a folder of its own, not in the machine's.

    Where lines of an error break depends on how long a path is: they are joined.
    """
    with tempfile.TemporaryDirectory() as state:
        done = subprocess.run(
            [sys.executable, "-m", "pgdyno", "host", "layout", *arguments],
            env=os.environ | {"PGDYNO_HOST_STATE": state},
            capture_output=True, text=True, timeout=DEADLINE_S, check=False,
        )  # fmt: skip
    done.stderr = " ".join(done.stderr.split())
    return done


@contextmanager
def loop_device(folder: Path, name: str, size_mib: int = 400) -> Iterator[str]:
    file = folder / name
    with file.open("wb") as handle:
        handle.truncate(size_mib * MIB)
    path = command("losetup", "--find", "--show", "--partscan", str(file))
    try:
        yield path
    finally:
        command("losetup", "--detach", path)


@pytest.fixture
def devices(tmp_path: Path) -> Iterator[list[str]]:
    if os.geteuid() != 0:
        pytest.skip("loop devices need root; the plans themselves are unit tests")
    with ExitStack() as stack:
        yield [stack.enter_context(loop_device(tmp_path, f"disk{n}")) for n in range(2)]


@contextmanager
def unmounted_after(place: Path) -> Iterator[None]:
    try:
        yield
    finally:
        subprocess.run(["umount", str(place)], capture_output=True, check=False)


def mount_line(place: Path) -> list[str]:
    lines = Path("/proc/mounts").read_text().splitlines()
    return next(line.split() for line in lines if line.split()[1] == str(place))


@pytest.mark.parametrize(
    ("options", "kind", "block"),
    [
        (("--fs", "xfs"), "xfs", 4096),
        pytest.param(("--fs", "xfs", "--block", "8192"), "xfs", 8192, marks=pytest.mark.long),
        pytest.param(("--fs", "xfs", "--block", "16384"), "xfs", 16384, marks=pytest.mark.wide),
        pytest.param(("--fs", "ext4"), "ext4", 4096, marks=pytest.mark.wide),
    ],
    ids=("xfs", "xfs-8k", "xfs-16k", "ext4"),
)
def test_a_file_system_is_made_and_mounted(
    tmp_path: Path, devices: list[str], options: tuple[str, ...], kind: str, block: int
) -> None:
    place = tmp_path / "data"
    planned = layout(devices[0], *options, "--mount", str(place))
    assert planned.returncode == 0, planned.stderr
    assert "Nothing was touched." in planned.stdout
    assert command("wipefs", "--no-act", devices[0]) == ""
    with unmounted_after(place):
        made = layout(devices[0], *options, "--mount", str(place), "--apply")
        assert made.returncode == 0, made.stderr
        device, _, mounted_as, mounted_with, *_ = mount_line(place)
        assert (device, mounted_as) == (devices[0], kind)
        assert "noatime" in mounted_with.split(",")
        assert os.statvfs(place).f_bsize == block
        (place / "file").write_bytes(os.urandom(MIB))
        again = layout(devices[0], "--erase", devices[0], "--apply")
        assert again.returncode == 2
        assert "is in use" in again.stderr, "what is mounted is not touched, named twice or not"
    refused = layout(devices[0], "--apply")
    assert refused.returncode == 2
    assert f"{devices[0]} holds {kind} signature" in refused.stderr
    assert f"--erase {devices[0]}" in refused.stderr
    assert kind in command("wipefs", "--no-act", devices[0])


@pytest.mark.parametrize("kind", ["xfs", "ext4"])
@pytest.mark.wide
def test_the_journal_may_have_a_device_of_its_own(
    tmp_path: Path, devices: list[str], kind: str
) -> None:
    place = tmp_path / "data"
    with unmounted_after(place):
        made = layout(
            devices[0], "--fs", kind, "--log-device", devices[1], "--mount", str(place), "--apply"
        )
        assert made.returncode == 0, made.stderr
        assert "the loss of" in made.stdout
        (place / "file").write_text("there")
        if kind == "xfs":
            assert f"logdev={devices[1]}" in mount_line(place)[3]
        refused = layout(devices[1])
        assert refused.returncode == 2, "the journal's device is in use, or holds something"


@pytest.mark.wide
def test_a_partition_begins_at_a_mebibyte(tmp_path: Path, devices: list[str]) -> None:
    place = tmp_path / "data"
    with unmounted_after(place):
        made = layout(devices[0], "--partition", "--fs", "ext4", "--mount", str(place), "--apply")
        assert f"{devices[0]}p1 : start=        2048" in command("sfdisk", "--dump", devices[0])
        if Path(f"{devices[0]}p1").exists():
            assert made.returncode == 0, made.stderr
            assert mount_line(place)[0] == f"{devices[0]}p1"
        else:  # a kernel that shows no partitions of loop devices
            assert made.returncode == 3
            assert f"shows no {devices[0]}p1" in made.stderr
            assert "Taken before: 0." in made.stderr
    refused = layout(devices[0])
    assert refused.returncode == 2
    assert "gpt signature" in refused.stderr


def test_what_it_held_is_destroyed_only_if_named_twice(tmp_path: Path, devices: list[str]) -> None:
    command("mkfs.ext4", "-q", devices[0])
    assert layout(devices[0], "--apply").returncode == 2
    done = layout(devices[0], "--erase", devices[0], "--fs", "xfs", "--apply")
    assert done.returncode == 0, done.stderr
    assert "xfs" in command("wipefs", "--no-act", devices[0])


def test_a_stripe_needs_a_kernel_that_has_one(devices: list[str]) -> None:
    if Path("/proc/mdstat").exists() or Path("/dev/mapper/control").exists():
        pytest.skip("this kernel makes stripes; their plans are unit tests")
    refused = layout(*devices)
    assert refused.returncode == 2
    assert "neither md nor the device mapper" in refused.stderr


def test_what_is_no_block_device_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused = layout(str(tmp_path / "file"), "--apply")
    assert refused.returncode == 2
    assert "is not a block device" in refused.stderr
