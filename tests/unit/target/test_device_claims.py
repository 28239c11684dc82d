"""What the kernel says of storage, from a made-up /sys."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from pgdyno.target.device_claims import _disks, device_claims

QUEUE = {
    "rotational": "0", "write_cache": "write back", "fua": "1",
    "atomic_write_unit_max_bytes": "16384", "logical_block_size": "512",
    "physical_block_size": "4096", "scheduler": "[none] mq-deadline",
}  # fmt: skip


def _disk(root: Path, path: Path) -> None:
    """A disk with one partition, which holds the file system of `path`."""
    queue = root / "sys/devices/nvme0n1/queue"
    queue.mkdir(parents=True)
    for name, text in QUEUE.items():
        (queue / name).write_text(f"{text}\n")
    (root / "sys/devices/nvme0n1/nvme0n1p1").mkdir()
    number = path.stat().st_dev
    link = root / "sys/dev/block" / f"{os.major(number)}:{os.minor(number)}"
    link.parent.mkdir(parents=True)
    link.symlink_to("../../devices/nvme0n1/nvme0n1p1")


def test_a_partition_has_the_queue_of_its_disk(tmp_path: Path) -> None:
    _disk(tmp_path, tmp_path)
    found = device_claims(tmp_path, tmp_path)

    assert found.block_device == "nvme0n1"
    assert (found.write_cache, found.fua, found.rotational) == ("write back", True, False)
    assert found.atomic_write_bytes == 16_384
    assert (found.logical_block_bytes, found.physical_block_bytes) == (512, 4096)
    assert found.scheduler == "none"
    assert found.model is None


def test_what_is_not_told_is_not_guessed(tmp_path: Path) -> None:
    found = device_claims(tmp_path, tmp_path)

    assert found.file_system
    assert found.block_device is None
    assert (found.write_cache, found.fua, found.atomic_write_bytes) == (None, None, None)


def test_a_loop_device_lies_on_the_disk_of_its_file(tmp_path: Path) -> None:
    _disk(tmp_path, tmp_path)
    file, loop = tmp_path / "file", tmp_path / "sys/devices/loop0"
    file.touch()
    (loop / "queue").mkdir(parents=True)
    (loop / "loop").mkdir()
    (loop / "loop/backing_file").write_text(f"{file}\n")

    assert [*_disks(loop, tmp_path)] == ["nvme0n1"]
    file.unlink()
    assert [*_disks(loop, tmp_path)] == []


def test_a_loop_device_whose_file_lies_in_memory_is_no_disk(tmp_path: Path) -> None:
    loop = tmp_path / "sys/devices/loop0"
    (loop / "queue").mkdir(parents=True)
    (loop / "loop").mkdir()
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        (loop / "loop/backing_file").write_text(f"{file.name}\n")
        number = tmp_path.stat().st_dev
        link = tmp_path / "sys/dev/block" / f"{os.major(number)}:{os.minor(number)}"
        link.parent.mkdir(parents=True)
        link.symlink_to("../../devices/loop0")
        found = device_claims(tmp_path, tmp_path)

    assert (found.in_memory, found.disks) == (True, ())
    assert found.place.endswith(", loop0, a file in memory: no disk is measured")


def test_a_loop_device_that_uses_the_page_cache_is_told(tmp_path: Path) -> None:
    """Direct I/O on it is none on its file: what is read again comes from memory."""
    _disk(tmp_path, tmp_path)
    number = tmp_path.stat().st_dev
    link = tmp_path / "sys/dev/block" / f"{os.major(number)}:{os.minor(number)}"
    assert not device_claims(tmp_path, tmp_path).cached_file, "it is no loop device"
    loop, file = tmp_path / "sys/devices/loop0", tmp_path / "file"
    (loop / "queue").mkdir(parents=True)
    (loop / "loop").mkdir()
    (loop / "loop/backing_file").write_text(f"{file}\n")
    link.unlink()
    link.symlink_to("../../devices/loop0")

    assert not device_claims(tmp_path, tmp_path).cached_file, "a kernel that does not tell"
    (loop / "loop/dio").write_text("1\n")
    assert not device_claims(tmp_path, tmp_path).cached_file
    (loop / "loop/dio").write_text("0\n")
    assert device_claims(tmp_path, tmp_path).cached_file


def test_a_volume_lies_on_the_disks_of_its_parts(tmp_path: Path) -> None:
    devices, volume = tmp_path / "sys/devices", tmp_path / "sys/devices/dm-0"
    (volume / "slaves").mkdir(parents=True)
    for name in ("sda", "sdb"):
        (devices / name / "queue").mkdir(parents=True)
        (devices / name / f"{name}1").mkdir()
        (volume / "slaves" / f"{name}1").symlink_to(devices / name / f"{name}1")

    assert [*_disks(volume, tmp_path)] == ["sda", "sdb"]
