"""What storage gives up of durability, from made-up mounts and disks; and what is not known."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.model.durability import Durability
from pgdyno.target.storage_durability import mount_of, read_mounts, storage_losses

DATA = Path("/srv/pg")


def machine(
    root: Path, kind: str, options: str = "rw", cache: str | None = "write back", **more: str
) -> Path:
    """A root whose /srv is such a file system on the first partition of the disk vda."""
    source = {"tmpfs": "tmpfs", "overlay": "overlay"}.get(kind, "/dev/vda1")
    number = "0:42" if source == kind else "254:1"
    mounts = [
        "20 1 254:0 / / rw,relatime - ext4 /dev/vda rw",
        f"21 20 {number} / /srv rw,relatime - {kind} {source} {options}",
    ]
    proc = root / "proc/self"
    proc.mkdir(parents=True)
    (proc / "mountinfo").write_text(
        "\n".join([*mounts, *filter(None, more.get("mounts", "").split("|"))]) + "\n"
    )
    disk(root, "vda", "254:0", cache)
    part = root / "sys/devices/vda/vda1"
    part.mkdir()
    (root / "sys/dev/block/254:1").symlink_to(part)
    return root


def disk(root: Path, name: str, number: str, cache: str | None, **files: str) -> Path:
    """A disk in /sys; keys of `files` are paths with __ for /."""
    folder = root / "sys/devices" / name
    (folder / "queue").mkdir(parents=True)
    if cache is not None:
        (folder / "queue/write_cache").write_text(cache + "\n")
    for path, text in files.items():
        file = folder / path.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
    links = root / "sys/dev/block"
    links.mkdir(parents=True, exist_ok=True)
    (links / number).symlink_to(folder)
    return folder


def found(root: Path) -> Durability:
    return storage_losses(DATA, "data folder", root)


def rungs(root: Path) -> list[str]:
    return [loss.rung.value for loss in found(root).losses]


def test_an_ordinary_disk_with_a_flushed_cache_gives_up_nothing(tmp_path: Path) -> None:
    assert found(machine(tmp_path, "ext4", "rw,data=ordered")) == Durability()


def test_a_folder_in_memory_loses_everything(tmp_path: Path) -> None:
    (loss,) = found(machine(tmp_path, "tmpfs", "rw,size=1g")).losses
    assert (loss.rung.value, loss.layer, loss.source) == ("D6", "file system", "mount /srv")
    assert loss.what == "data folder /srv/pg in memory (tmpfs)"


@pytest.mark.parametrize(
    ("kind", "options", "expected"),
    [
        ("ext4", "rw,nobarrier", ["D5"]),
        ("ext4", "rw,barrier=0", ["D5"]),
        ("ext4", "rw,barrier=1", []),
        ("ext3", "rw,data=writeback", ["D5"]),
        ("ext4", "rw,barrier=0,data=writeback", ["D5", "D5"]),
        ("ext4", "rw,nodelalloc,commit=30", []),
        ("xfs", "rw,nobarrier", ["D5"]),
        ("btrfs", "rw,nobarrier", ["D5"]),
        ("btrfs", "rw,nodatacow", ["D0"]),
        ("f2fs", "rw,fsync_mode=nobarrier", ["D5"]),
        ("f2fs", "rw,fsync_mode=posix", []),
    ],
)
def test_mount_options_fall_by_the_catalogue(
    tmp_path: Path, kind: str, options: str, expected: list[str]
) -> None:
    assert rungs(machine(tmp_path, kind, options)) == expected


@pytest.mark.parametrize(
    "kind", ["nfs4", "fuse.sshfs", "zfs", "9p", "virtiofs", "cifs", "whatever"]
)
def test_what_is_no_file_system_on_a_disk_is_not_known(tmp_path: Path, kind: str) -> None:
    durability = found(machine(tmp_path, kind))
    assert durability.rung is None
    assert durability.not_known == (f"what {kind} does when data folder /srv/pg is flushed",)


def test_a_soft_mount_gives_writes_up(tmp_path: Path) -> None:
    durability = found(machine(tmp_path, "nfs4", "rw,soft"))
    assert [loss.rung.value for loss in durability.losses] == ["D5"]


def test_an_overlay_is_judged_by_what_lies_below_it(tmp_path: Path) -> None:
    root = machine(tmp_path, "overlay", "rw,lowerdir=/l,upperdir=/mem/upper,workdir=/mem/work",
                   mounts="22 20 0:43 / /mem rw - tmpfs tmpfs rw")  # fmt: skip
    assert found(root).not_known == ("what lies below the overlay of data folder /srv/pg",)
    (root / "mem/upper").mkdir(parents=True)
    assert rungs(root) == ["D6"]


def test_a_volatile_overlay_swallows_flushes(tmp_path: Path) -> None:
    root = machine(tmp_path, "overlay", "rw,upperdir=/upper,volatile")
    assert rungs(root) == ["D6"]


def test_a_cache_that_is_not_flushed_is_a_loss_where_the_device_has_one(tmp_path: Path) -> None:
    root = machine(tmp_path, "ext4", cache="write through")
    assert "no flush is sent" in found(root).not_known[0]  # nobody says whether it has
    claim = root / "sys/devices/vda/cache_type"
    claim.write_text("write back\n")
    (loss,) = found(root).losses
    assert (loss.rung.value, loss.layer) == ("D5", "device")
    claim.write_text("write through\n")
    assert found(root) == Durability()


def test_a_disk_that_tells_nothing_is_not_known(tmp_path: Path) -> None:
    assert found(machine(tmp_path, "xfs", cache=None)).rung is None


def test_without_a_table_of_mounts_nothing_is_known(tmp_path: Path) -> None:
    assert found(tmp_path).rung is None


def test_a_disk_in_memory(tmp_path: Path) -> None:
    root = machine(tmp_path, "ext4", mounts="22 21 251:0 / /srv/pg rw - ext4 /dev/zram0 rw")
    disk(root, "zram0", "251:0", "write through")
    assert rungs(root) == ["D6"]


def test_a_loop_device_is_judged_by_its_file(tmp_path: Path) -> None:
    root = machine(tmp_path, "ext4", mounts="22 21 7:0 / /srv/pg rw - ext4 /dev/loop0 rw|"
                                            "23 20 0:44 / /mem rw - tmpfs tmpfs rw")  # fmt: skip
    disk(root, "loop0", "7:0", "write back", loop__backing_file="/mem/disk.img")
    assert "where /mem/disk.img lies" in found(root).not_known[0]
    (root / "mem").mkdir()
    (root / "mem/disk.img").touch()
    assert rungs(root) == ["D6"]


def test_a_volume_is_judged_by_its_disks(tmp_path: Path) -> None:
    root = machine(tmp_path, "ext4", mounts="22 21 253:0 / /srv/pg rw - xfs /dev/dm-0 rw")
    volume = disk(root, "dm-0", "253:0", "write through")
    one = disk(root, "sda", "8:0", "write back")
    (volume / "slaves").mkdir()
    (volume / "slaves/sda").symlink_to(one)
    assert rungs(root) == ["D5"]  # the volume sends no flush to a disk that has a cache
    (volume / "queue/write_cache").write_text("write back\n")
    assert found(root) == Durability()


def test_names_of_mounts_are_read_with_their_blanks() -> None:
    (mount,) = read_mounts("1 0 8:1 / /a\\040b rw,noatime shared:1 - ext4 /dev/sda1 rw,barrier=0\n")
    assert (mount.point, mount.kind, mount.number) == ("/a b", "ext4", "8:1")
    assert mount.options == {"rw": "on", "noatime": "on", "barrier": "0"}
    assert mount_of("/a b/data", [mount]) is mount
    assert mount_of("/a bc", [mount]) is None
