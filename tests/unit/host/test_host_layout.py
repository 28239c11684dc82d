"""Plans of storage layouts: geometry, order of steps, refusals."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.host.device import Device
from pgdyno.host.layout import Kernel, Layout, Wish, plan, require_free, this_kernel
from pgdyno.model.errors import PlanError

GIB = 1 << 30
NEW = Kernel((6, 18), md=True, device_mapper=True)
LVM = Kernel((6, 18), md=False, device_mapper=True)
NONE = Kernel((6, 18), md=False, device_mapper=False)


def disk(path: str, size: int = 100 * GIB, **changed: object) -> Device:
    return replace(Device(path, size, 512, 4096, (), ()), **changed)  # type: ignore[arg-type]


ONE = (disk("/dev/nvme0n1"),)
THREE = tuple(disk(f"/dev/sd{letter}") for letter in "bcd")


def shown(layout: Layout) -> list[str]:
    return [step.shown for step in layout.steps]


def test_one_device_needs_a_file_system_and_a_mount() -> None:
    layout = plan(Wish(ONE, mount="/data"), NONE)
    assert shown(layout) == [
        "mkfs.xfs -q -b size=4096 /dev/nvme0n1",
        "mkdir -p /data",
        "mount -t xfs -o noatime /dev/nvme0n1 /data",
    ]
    assert layout.fstab == "/dev/nvme0n1 /data xfs noatime 0 2"
    assert layout.notes == ()


def test_a_stripe_by_md_tells_the_file_system_its_geometry() -> None:
    layout = plan(Wish(THREE, stripe_bytes=256 << 10), NEW)
    assert shown(layout) == [
        "mdadm --create /dev/md/pgdyno --run --level=0 --chunk=256K --raid-devices=3"
        " /dev/sdb /dev/sdc /dev/sdd",
        "mkfs.xfs -q -b size=4096 -d su=262144,sw=3 /dev/md/pgdyno",
    ]
    assert layout.notes == ("a stripe without copies: the loss of any one device loses all",)


def test_a_stripe_by_lvm_where_there_is_no_md() -> None:
    steps = shown(plan(Wish(THREE, "ext4", stripe_bytes=64 << 10), LVM))
    assert [step.split()[0] for step in steps] == ["pvcreate", "vgcreate", "lvcreate", "mkfs.ext4"]
    assert "--stripes 3 --stripesize 64k" in steps[2]
    assert steps[3] == (
        "mkfs.ext4 -q -b 4096 -E lazy_itable_init=0,lazy_journal_init=0,stride=16,stripe_width=48"
        " /dev/pgdyno/data"
    )


def test_partitions_begin_at_a_mebibyte_whatever_the_sector() -> None:
    four = disk("/dev/sdb", logical_block_bytes=4096)
    (step, mkfs) = plan(Wish((four,), partition=True), NONE).steps
    assert step.text == "label: gpt\nstart=256, type=linux\n"
    assert mkfs.args[-1] == "/dev/sdb1"
    assert plan(Wish(ONE, partition=True), NONE).target == "/dev/nvme0n1p1"


def test_the_journal_elsewhere() -> None:
    log = disk("/dev/sdz", 4 * GIB)
    xfs = plan(Wish(ONE, log_device=log, mount="/d"), NONE)
    assert xfs.steps[0].shown == (
        "mkfs.xfs -q -b size=4096 -l logdev=/dev/sdz,size=2136997888 /dev/nvme0n1"
    )
    assert xfs.fstab == "/dev/nvme0n1 /d xfs noatime,logdev=/dev/sdz 0 2"
    assert xfs.notes == ("the loss of /dev/sdz loses the file system",)
    ext4 = shown(plan(Wish(ONE, "ext4", log_device=log), NONE))
    assert ext4[0] == "mke2fs -q -O journal_dev -b 4096 /dev/sdz"
    assert ext4[1].endswith("-J device=/dev/sdz /dev/nvme0n1")


def test_what_is_there_is_forgotten_first_if_it_was_named_twice() -> None:
    full = disk("/dev/sdb", holds=("ext4 signature",))
    steps = plan(Wish((full,), erase=("/dev/sdb",)), NONE).steps
    assert steps[0].shown == "wipefs --all /dev/sdb"
    assert "ext4 signature" in steps[0].why
    assert len(plan(Wish(ONE, erase=("/dev/nvme0n1",)), NONE).steps) == 1, "it held nothing"


@pytest.mark.parametrize(
    ("wish", "kernel", "fact"),
    [
        (Wish(()), NONE, "no device"),
        (Wish((*ONE, *ONE)), NEW, "/dev/nvme0n1 is named twice as a device"),
        (Wish(ONE, erase=("/dev/sda",)), NONE, "--erase /dev/sda is none of the devices"),
        (Wish((disk("/dev/sdb", holds=("xfs signature",)),)), NONE, "holds xfs signature"),
        (
            Wish((disk("/dev/sdb", busy=("sdb is in use: /",)),), erase=("/dev/sdb",)),
            NONE,
            "sdb is in use: /",
        ),
        (Wish((disk("/dev/sdb", 1 << 20),)), NONE, "/dev/sdb has 1.00 MiB, 300 MiB are needed"),
        (Wish(ONE, "ext4", block_bytes=8192), NONE, "--block is 8192, ext4 takes 1024, 2048, 4096"),
        (Wish(ONE, block_bytes=8000), NONE, "--block is 8000, xfs takes"),
        (
            Wish(ONE, block_bytes=8192),
            Kernel((6, 1), md=True, device_mapper=True),
            "Linux 6.1 cannot mount that",
        ),
        (
            Wish((disk("/dev/sdb", logical_block_bytes=4096),), block_bytes=1024),
            NONE,
            "the blocks of the device are 4096",
        ),
        (Wish(ONE, stripe_bytes=10_000), NONE, "no multiple of --block 4096"),
        (Wish(ONE, stripe_bytes=12 << 10), NONE, "expected a power of two"),
        (Wish(THREE), NONE, "this kernel has neither md nor the device mapper"),
        (
            Wish(ONE, log_device=disk("/dev/sdz", 1 << 20)),
            NONE,
            "/dev/sdz has 1.00 MiB, 64.0 MiB are needed",
        ),
        (Wish(ONE, log_device=ONE[0]), NONE, "is named twice as a device"),
    ],
)
def test_what_cannot_be_is_refused(wish: Wish, kernel: Kernel, fact: str) -> None:
    with pytest.raises(PlanError) as caught:
        plan(wish, kernel)
    assert fact in caught.value.fact


def test_large_blocks_are_for_kernels_that_mount_them() -> None:
    layout = plan(Wish(ONE, block_bytes=16384), NONE)
    assert "size=16384" in layout.steps[0].shown


def test_the_running_kernel_is_asked() -> None:
    assert this_kernel("6.18.44-fc").version == (6, 18)


@pytest.mark.skipif(os.geteuid() != 0, reason="strangers are made by root")
@pytest.mark.parametrize("below", ["", "new", "new/deeper"])
def test_root_mounts_nowhere_that_others_can_lead_elsewhere(tmp_path: Path, below: str) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    require_free(theirs / below)
    os.chown(theirs, 65534, 65534)
    with pytest.raises(PlanError, match=r"others than root can change .*theirs"):
        require_free(theirs / below)


@pytest.mark.parametrize(
    ("mounts", "fact"), [(True, "something is mounted on"), (False, "is not empty")]
)
def test_where_something_is_mounted_that_is_said_and_not_that_it_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mounts: bool, fact: str
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(os.path, "ismount", lambda path: mounts and path == tmp_path)
    with pytest.raises(PlanError, match=fact):
        require_free(tmp_path)
