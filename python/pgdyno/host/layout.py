"""A storage layout: partitions, stripes, a file system, its mount; planned here, and no more.

What `host.making` makes of it destroys what was there, so it cannot be undone: a device that holds
anything is refused, unless it is named a second time.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from pgdyno.access import stranger_on
from pgdyno.host.device import Device
from pgdyno.model.errors import PlanError
from pgdyno.model.units import bytes_text
from pgdyno.model.wording import plural

FileSystem: TypeAlias = Literal["xfs", "ext4"]
FILE_SYSTEM: FileSystem = "xfs"
BLOCK_BYTES = 4096
STRIPE_KB = 64  # on one device before the next, as mdadm counts it
MIB = 1 << 20
ALIGNMENT_BYTES = MIB  # a multiple of every block of every device
LEAST_BYTES = 300 * MIB  # less than that mkfs.xfs refuses
PAGE_BYTES = 4096  # of memory: file systems with larger blocks need Linux 6.12
LARGE_BLOCKS_SINCE = (6, 12)
_LOG_BYTES_MAX = 2_136_997_888  # of XFS, as report 1 has it


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked for."""

    devices: tuple[Device, ...]
    file_system: FileSystem = FILE_SYSTEM
    block_bytes: int = BLOCK_BYTES
    stripe_bytes: int = STRIPE_KB << 10  # on one device before the next
    partition: bool = False
    log_device: Device | None = None  # the journal of the file system
    mount: str | None = None
    erase: tuple[str, ...] = ()  # devices that may lose what they hold


@dataclass(frozen=True, slots=True)
class Kernel:
    """What this machine can do."""

    version: tuple[int, ...]
    md: bool
    device_mapper: bool


@dataclass(frozen=True, slots=True)
class Step:
    """One command."""

    why: str
    args: tuple[str, ...]
    text: str = ""  # for its standard input
    appears: str = ""  # the device that it makes
    on: tuple[str, ...] = ()  # devices that it writes over
    forgets: bool = False  # what they hold may go

    @property
    def shown(self) -> str:
        """As it would be typed."""
        command = shlex.join(self.args)
        return f"printf {shlex.quote(self.text)} | {command}" if self.text else command


@dataclass(frozen=True, slots=True)
class Layout:
    """What is made, in order."""

    steps: tuple[Step, ...]
    target: str  # the device that holds the file system
    fstab: str | None
    notes: tuple[str, ...]
    devices: tuple[Device, ...] = ()  # as they were when it was planned


def plan(wish: Wish, kernel: Kernel) -> Layout:
    """All steps; nothing is touched.

    Raises:
        PlanError: Something that cannot be, or that would destroy what was not named twice.
    """
    _check_devices(wish)
    _check_mount(wish)
    _check_sizes(wish, kernel)
    steps: list[Step] = []
    parts = []
    for one in wish.devices:
        steps += _emptied(one, wish)
        parts.append(_partitioned(one, wish, steps))
    target = parts[0]
    if len(parts) > 1:
        target = _striped(parts, wish, kernel, steps)
    log = wish.log_device
    if log is not None:
        steps += _emptied(log, wish)
    options = _made(target, wish, steps)
    fstab = None
    if wish.mount is not None:
        named = ",".join(options)
        steps.append(Step("a place for it", ("mkdir", "-p", wish.mount)))
        steps.append(Step("mounted", ("mount", "-t", wish.file_system, "-o", named, target,
                                      wish.mount)))  # fmt: skip
        fstab = f"{target} {_in_fstab(wish.mount)} {wish.file_system} {named} 0 2"
    return Layout(tuple(steps), target, fstab, _notes(wish), _every(wish))


def _every(wish: Wish) -> tuple[Device, ...]:
    return (*wish.devices, *([wish.log_device] if wish.log_device else []))


def _in_fstab(path: str) -> str:
    """A path as fstab and /proc/mounts have it: octal numbers for what separates there."""
    return "".join(f"\\{ord(one):03o}" if one in " \t\n\\#" else one for one in path)


def _check_mount(wish: Wish) -> None:
    if wish.mount is None:
        return
    mounted = Path(wish.mount)
    if not mounted.is_absolute() or not wish.mount.isprintable():
        raise PlanError(
            f"--mount is {wish.mount!r}, expected an absolute path without control characters"
        )


def require_free(mount: Path) -> None:
    """Refuse to mount over something, or where somebody else can say where that is.

    Raises:
        PlanError: It is not a folder, or not an empty one; or, as root, others can change a folder
            on the way, and so lead the mount elsewhere.
    """
    if mount.is_symlink() or (mount.exists() and not mount.is_dir()):
        raise PlanError(f"--mount {mount} is not a folder")
    if os.path.ismount(mount):
        raise PlanError(
            f"something is mounted on --mount {mount} already",
            "`findmnt` says what. Unmount it, or name another folder.",
        )
    if mount.is_dir() and any(mount.iterdir()):
        raise PlanError(
            f"--mount {mount} is not empty", "What is in it would be hidden. Name another folder."
        )
    there = next(one for one in (mount, *mount.parents) if os.path.lexists(one))
    if os.geteuid() == 0 and (where := stranger_on(there)):
        raise PlanError(
            f"--mount {mount} is mounted by root, and others than root can change {where}",
            "Name a folder that only root can change, such as one below /srv or /mnt.",
        )


def _check_devices(wish: Wish) -> None:
    every = _every(wish)
    if not wish.devices:
        raise PlanError("no device", "Name at least one, e.g. /dev/nvme1n1.")
    paths = [one.path for one in every]
    for path in paths:
        if paths.count(path) > 1:
            raise PlanError(f"{path} is named twice as a device")
    for path in wish.erase:
        if path not in paths:
            raise PlanError(f"--erase {path} is none of the devices: {', '.join(paths)}")
    for one in every:
        if one.busy:
            raise PlanError(f"{one.path}: {'; '.join(one.busy)}", "It is not touched.")
        if one.holds and one.path not in wish.erase:
            raise PlanError(
                f"{one.path} holds {', '.join(one.holds)}",
                f"To destroy that, name it a second time: --erase {one.path}.",
            )
        least = LEAST_BYTES if one in wish.devices else 64 * MIB
        if one.size_bytes < least:
            raise PlanError(
                f"{one.path} has {bytes_text(one.size_bytes)}, {bytes_text(least)} are needed"
            )


def _check_sizes(wish: Wish, kernel: Kernel) -> None:
    allowed = {"xfs": (1024, 2048, 4096, 8192, 16384, 32768, 65536), "ext4": (1024, 2048, 4096)}
    if wish.block_bytes not in allowed[wish.file_system]:
        known = ", ".join(map(str, allowed[wish.file_system]))
        raise PlanError(
            f"--block is {wish.block_bytes}, {wish.file_system} takes {known}",
            "Blocks larger than a page of memory are a matter of XFS.",
        )
    if wish.block_bytes > PAGE_BYTES and kernel.version < LARGE_BLOCKS_SINCE:
        raise PlanError(
            f"--block is {wish.block_bytes}, more than a page of memory ({PAGE_BYTES}); Linux"
            f" {'.'.join(map(str, kernel.version))} cannot mount that",
            "It can since 6.12.",
        )
    largest = max(one.logical_block_bytes for one in wish.devices)
    if wish.block_bytes < largest:
        raise PlanError(f"--block is {wish.block_bytes}, the blocks of the device are {largest}")
    if wish.stripe_bytes % wish.block_bytes or wish.stripe_bytes < PAGE_BYTES:
        raise PlanError(
            f"--stripe is {wish.stripe_bytes} bytes, no multiple of --block {wish.block_bytes}"
        )
    if wish.stripe_bytes & (wish.stripe_bytes - 1):
        raise PlanError(f"--stripe is {wish.stripe_bytes} bytes, expected a power of two")
    if len(wish.devices) > 1 and not (kernel.md or kernel.device_mapper):
        raise PlanError(
            f"{plural(len(wish.devices), 'device')} make a stripe, this kernel has neither md nor"
            " the device mapper",
            "Load md_mod or dm_mod, or name one device.",
        )


def _emptied(one: Device, wish: Wish) -> list[Step]:
    if not one.holds or one.path not in wish.erase:
        return []
    held = ", ".join(one.holds)
    inner = [
        Step("what its partition held is forgotten", ("wipefs", "--all", part), on=(one.path,))
        for part in one.parts
    ]
    last = Step(f"what it held is forgotten: {held}", ("wipefs", "--all", one.path),
                on=(one.path,), forgets=True)  # fmt: skip
    return [*inner, last]


def _shown_again(made: str, below: Sequence[Device], wish: Wish) -> list[Step]:
    """On a new device an old file system may come to light; it may go if all below it may."""
    if not all(one.path in wish.erase for one in below):
        return []
    why = "what an earlier layout left there is forgotten"
    return [Step(why, ("wipefs", "--all", made), on=(made,), forgets=True)]


def _partitioned(one: Device, wish: Wish, steps: list[Step]) -> str:
    if not wish.partition:
        return one.path  # a whole device begins where its blocks do
    sector = one.logical_block_bytes
    start = ALIGNMENT_BYTES // sector
    part = f"{one.path}p1" if one.path[-1].isdigit() else f"{one.path}1"
    steps.append(
        Step(
            f"one partition that begins at {bytes_text(ALIGNMENT_BYTES)}",
            ("sfdisk", "--quiet", one.path),
            f"label: gpt\nstart={start}, type=linux\n",
            part,
            (one.path,),
        )
    )
    steps += _shown_again(part, (one,), wish)
    return part


def _striped(parts: Sequence[str], wish: Wish, kernel: Kernel, steps: list[Step]) -> str:
    each = bytes_text(wish.stripe_bytes)
    text = f"{plural(len(parts), 'device')} share the load, {each} each in turn"
    if kernel.md:
        target = "/dev/md/pgdyno"
        chunk = f"--chunk={wish.stripe_bytes // 1024}K"
        create = ("mdadm", "--create", target, "--run", "--level=0", chunk,
                  f"--raid-devices={len(parts)}", *parts)  # fmt: skip
        steps.append(Step(text, create, appears=target, on=tuple(parts)))
        steps += _shown_again(target, wish.devices, wish)
        return target
    volumes = ("pvcreate", "--dataalignment", "4m", *parts)
    steps.append(Step("physical volumes", volumes, on=tuple(parts)))
    steps.append(Step("a group of them", ("vgcreate", "pgdyno", *parts)))
    steps.append(
        Step(text, ("lvcreate", "--yes", "--extents", "100%FREE", "--name", "data",
                    "--stripes", str(len(parts)), "--stripesize",
                    f"{wish.stripe_bytes // 1024}k", "pgdyno"), appears="/dev/pgdyno/data")
    )  # fmt: skip
    steps += _shown_again("/dev/pgdyno/data", wish.devices, wish)
    return "/dev/pgdyno/data"


def _made(target: str, wish: Wish, steps: list[Step]) -> list[str]:
    """Makes the file system; returns its mount options."""
    width = len(wish.devices)
    log = (wish.log_device.path,) if wish.log_device else ()
    if wish.file_system == "xfs":
        args = ["mkfs.xfs", "-q", "-b", f"size={wish.block_bytes}"]
        if width > 1:
            args += ["-d", f"su={wish.stripe_bytes},sw={width}"]
        options = ["noatime"]
        if wish.log_device is not None:
            size = min(wish.log_device.size_bytes, _LOG_BYTES_MAX) // PAGE_BYTES * PAGE_BYTES
            args += ["-l", f"logdev={wish.log_device.path},size={size}"]
            options.append(f"logdev={wish.log_device.path}")
        steps.append(Step("the file system", (*args, target), on=(target, *log)))
        return options
    extended = ["lazy_itable_init=0", "lazy_journal_init=0"]
    if width > 1:
        stride = wish.stripe_bytes // wish.block_bytes
        extended += [f"stride={stride}", f"stripe_width={stride * width}"]
    args = ["mkfs.ext4", "-q", "-b", str(wish.block_bytes), "-E", ",".join(extended)]
    if wish.log_device is not None:
        journal = ("mke2fs", "-q", "-O", "journal_dev", "-b", str(wish.block_bytes))
        steps.append(Step("its journal's device", (*journal, *log), on=log))
        args += ["-J", f"device={wish.log_device.path}"]
    steps.append(Step("the file system", (*args, target), on=(target,)))
    return ["noatime"]


def _notes(wish: Wish) -> tuple[str, ...]:
    notes = []
    if len(wish.devices) > 1:
        notes.append("a stripe without copies: the loss of any one device loses all")
    if wish.log_device is not None:
        notes.append(f"the loss of {wish.log_device.path} loses the file system")
    return tuple(notes)


def this_kernel(release: str, root: Path = Path("/")) -> Kernel:
    """What the running kernel can do."""
    parts = release.split("-", maxsplit=1)[0].split(".")[:2]
    return Kernel(
        tuple(int(part) for part in parts),
        (root / "proc/mdstat").exists(),
        (root / "dev/mapper/control").exists(),
    )
