"""Where a knob of the machine stands, and its value there: files under /proc/sys and /sys.

A spot's key is the knob's name, for devices with the device behind an @: `vm.swappiness`,
`queue/scheduler@vda`, `scaling_governor@policy0`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pgdyno.catalog import MachineKnob, machine_knobs
from pgdyno.model.errors import PlanError, TargetError

ROOT = Path("/")
_RAM = ("ram", "zram", "fd", "sr")  # devices of no interest
_IN_BLOCK = "sys/block"
_OF_POLICY = "sys/devices/system/cpu/cpufreq"
RUNTIME_LAYERS = ("sysctl", "memory", "clock", "cpu", "block", "interrupts")


@dataclass(frozen=True, slots=True)
class Spot:
    """One value of the running machine."""

    key: str
    name: str  # of the knob
    device: str | None
    path: Path
    root: Path = ROOT

    @property
    def knob(self) -> MachineKnob:
        """What the catalogue knows of it."""
        return machine_knobs()[self.name]

    @property
    def shown_path(self) -> str:
        """The path as the machine has it."""
        return f"/{self.path.relative_to(self.root)}"

    def read(self) -> str:
        """The value; of a choice in brackets the chosen word, of a list one blank between.

        Raises:
            TargetError: It cannot be read.
        """
        try:
            text = self.path.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise TargetError(f"read {self.shown_path}: {error.strerror}") from error
        if "[" in text and "]" in text:
            return text.partition("[")[2].partition("]")[0]
        return " ".join(text.split())

    def choices(self) -> tuple[str, ...]:
        """What may be written, where the file itself tells."""
        text = self.path.read_text(encoding="utf-8")
        if "[" not in text:
            return ()
        return tuple(text.replace("[", "").replace("]", "").split())

    def write(self, value: str) -> None:
        """Write a value; the kernel may round or refuse it.

        Raises:
            TargetError: It refuses.
        """
        try:
            self.path.write_text(f"{value}\n", encoding="utf-8")
        except OSError as error:
            raise TargetError(
                f"write {value!r} to {self.shown_path}: {error.strerror}",
                f"`pgdyno knobs {self.name!r}` tells what it takes.",
            ) from error


def spot(key: str, root: Path = ROOT) -> Spot:
    """The spot of a key.

    Raises:
        PlanError: No knob is called so, or it is not of the running machine, or it needs a device.
    """
    name, _, device = key.partition("@")
    knob = machine_knobs().get(name)
    if knob is None:
        raise PlanError(f"no knob of the machine is called {name!r}", "See `pgdyno knobs`.")
    if not _stands_in_a_file(knob):
        raise PlanError(
            f"{name} is of layer {knob.layer}, which cannot be set while the machine runs",
            f"`pgdyno knobs {name!r}` tells how it is applied.",
        )
    where = _template(name, knob)
    needs = "{" in where
    if needs and not device:
        known = ", ".join(f"{name}@{one}" for one in devices(knob, root)) or "none here"
        raise PlanError(f"{name} is said of a device", f"Name one: {known}.")
    if device and not needs:
        raise PlanError(f"{name} is said of the whole machine, not of {device}")
    if device and ("/" in device or device.startswith(".")):
        raise PlanError(f"{device!r} is no name of a device")
    path = root / _filled(where, device).lstrip("/")
    return Spot(key, name, device or None, path, root)


def spots(root: Path = ROOT) -> Iterator[Spot]:
    """All spots that this machine has and that can be read."""
    for name, knob in machine_knobs().items():
        if not _stands_in_a_file(knob):
            continue
        if "{" in _template(name, knob):
            found = [f"{name}@{device}" for device in devices(knob, root)]
        else:
            found = [name]
        for key in found:
            one = spot(key, root)
            if one.path.is_file() and _readable(one):
                yield one


def _stands_in_a_file(knob: MachineKnob) -> bool:
    """Whether the running machine has it in a file; a device in /dev counts while it is open."""
    return knob.layer in RUNTIME_LAYERS and not (knob.where or "").startswith("/dev/")


def _readable(one: Spot) -> bool:
    try:
        one.read()
    except (TargetError, UnicodeDecodeError):
        return False
    return True


def _template(name: str, knob: MachineKnob) -> str:
    if knob.where is not None:
        return knob.where
    if knob.layer == "sysctl":
        return "/proc/sys/" + name.replace(".", "/")
    if knob.layer == "memory":
        return f"/sys/kernel/mm/{name}"
    return f"/sys/block/{{device}}/{name}"


def _filled(template: str, device: str | None) -> str:
    begin, brace, rest = template.partition("{")
    return begin if not brace else f"{begin}{device}{rest.partition('}')[2]}"


def devices(knob: MachineKnob, root: Path = ROOT) -> list[str]:
    """The devices that a knob is said of, on this machine."""
    if knob.layer == "block":
        folder = root / _IN_BLOCK
        names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
        return [name for name in names if not name.startswith(_RAM) and _has_size(folder / name)]
    if knob.layer == "cpu":
        folder = root / _OF_POLICY
        return sorted(path.name for path in folder.glob("policy*"))
    if knob.layer == "interrupts":
        folder = root / "proc/irq"
        numbers = [path.name for path in folder.glob("[0-9]*")] if folder.is_dir() else []
        return sorted(numbers, key=int)
    return []


def _has_size(device: Path) -> bool:
    """A loop device without a file has none."""
    try:
        return int((device / "size").read_text()) > 0
    except (OSError, ValueError):
        return False
