"""Where a knob of the machine stands, and its value there: files under /proc/sys and /sys.

The key of a location is the knob's name, for devices with the device behind an @: `vm.swappiness`,
`queue/scheduler@vda`, `scaling_governor@policy0`; of a network card's queue with its number,
`rps_cpus@eth0:1`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pgdyno.catalog import RUNTIME_LAYERS, MachineKnob, file_of, machine_knobs, meant_by
from pgdyno.host.file_tree import folders, text
from pgdyno.model.errors import PlanError, TargetError
from pgdyno.model.system_errors import reason

ROOT = Path("/")
_RAM = ("ram", "zram", "fd", "sr")  # devices of no interest
_IN_BLOCK = "sys/block"
_OF_POLICY = "sys/devices/system/cpu/cpufreq"
_MASK_DIGITS = 8  # between two commas
_CARDS = "sys/class/net"


@dataclass(frozen=True, slots=True)
class KnobLocation:
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
    def moves(self) -> tuple[str, ...]:
        """Keys of what a change of it moves, too, whether this machine has them or not."""
        return tuple(
            f"{name}@{self.device}" if self.device and "." not in name else name
            for name in self.knob.also
        )

    def excludes(self, other: KnobLocation) -> bool:
        """Whether the kernel sets either of the two to 0 where the other is set."""
        return other.key in self.moves and self.key in other.moves

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
            raise TargetError(f"cannot read {self.shown_path}: {reason(error)}") from error
        except UnicodeDecodeError as error:
            raise TargetError(f"{self.shown_path} holds no text") from error
        if "[" in text and "]" in text:
            return text.partition("[")[2].partition("]")[0]
        if self.knob.type == "mask":
            return mask(text)
        return " ".join(text.split())

    def choices(self) -> tuple[str, ...]:
        """What may be written, where the file itself tells."""
        text = self.path.read_text(encoding="utf-8")
        if "[" not in text:
            return ()
        return tuple(text.replace("[", "").replace("]", "").split())

    def advised(self) -> str | None:
        """What the catalogue advises here; None also where this machine cannot have it."""
        value = self.knob.advised_for(self.device or "")
        choices = self.choices()
        return None if choices and value not in choices else value

    def write(self, value: str) -> None:
        """Write a value; the kernel may round or refuse it.

        Raises:
            TargetError: It refuses.
        """
        try:
            self.path.write_text(f"{value}\n", encoding="utf-8")
        except OSError as error:
            raise TargetError(
                f"cannot write {value!r} to {self.shown_path}: {reason(error)}",
                f"`pgdyno knobs {self.name!r}` says what it takes.",
            ) from error


def mask(text: str) -> str:
    """A mask of CPUs in one spelling: the kernel writes as many zeros as it may have CPUs.

    Raises:
        ValueError: It is none.
    """
    digits = f"{int(text.replace(',', ''), 16):x}"
    first = len(digits) % _MASK_DIGITS or _MASK_DIGITS
    rest = range(first, len(digits), _MASK_DIGITS)
    return ",".join([digits[:first], *(digits[at : at + _MASK_DIGITS] for at in rest)])


def knob_location(key: str, root: Path = ROOT) -> KnobLocation:
    """The location of a key.

    Raises:
        PlanError: No knob is called so, or it is not of the running machine, or it needs a device.
    """
    name, _, device = key.partition("@")
    knob = machine_knobs().get(name)
    if knob is None:
        raise PlanError(
            f"no knob of the machine is called {name!r}",
            meant_by(
                name,
                "It is a setting of the server: it belongs in its postgresql.conf, or into a plan.",
            ),
        )
    where = _template(name, knob)
    if where is None:
        raise PlanError(
            f"{name} is of layer {knob.layer}, and not in a file of the running machine",
            f"`pgdyno knobs {name!r}` says how it is applied.",
        )
    needs = "{" in where
    if needs and not device:
        known = ", ".join(f"{name}@{one}" for one in devices(knob, root)) or "none here"
        raise PlanError(f"{name} is set for one device", f"Name one: {known}.")
    if device and not needs:
        raise PlanError(f"{name} is set for the whole machine, not for {device}")
    if device and ("/" in device or device.startswith(".")):
        raise PlanError(f"{device!r} is not a name of a device")
    if needs and where.count("{") != len(device.split(":")):
        whole = where.count("{") == 1
        raise PlanError(
            f"{name} is set for a {'whole device' if whole else 'queue'}, not for {device}",
            f"Say {name}@{device.partition(':')[0] if whole else f'{device}:0'}.",
        )
    path = root / _filled(where, device).lstrip("/")
    return KnobLocation(key, name, device or None, path, root)


def knob_locations(root: Path = ROOT) -> Iterator[KnobLocation]:
    """All locations that this machine has and that can be read."""
    for name, knob in machine_knobs().items():
        where = _template(name, knob)
        if where is None:
            continue
        several = [f"{name}@{device}" for device in devices(knob, root)] if "{" in where else [name]
        for key in several:
            one = knob_location(key, root)
            if one.path.is_file() and _readable(one):
                yield one


def _template(name: str, knob: MachineKnob) -> str | None:
    """The file of the running machine; a device in /dev counts only while it is open."""
    where = file_of(name, knob)
    if knob.layer not in RUNTIME_LAYERS or where is None or where.startswith("/dev/"):
        return None
    return where


def _readable(one: KnobLocation) -> bool:
    try:
        one.read()
    except TargetError:
        return False
    return True


def _filled(template: str, device: str) -> str:
    for part in device.split(":"):
        template = re.sub(r"\{\w+\}", part, template, count=1)
    return template


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
    if knob.layer == "network":
        return _of_cards(knob, root)
    return []


def network_cards(root: Path) -> list[Path]:
    """All but the loopback and what is down without hardware."""
    return [
        path
        for path in folders(root / _CARDS)
        if path.name != "lo" and ((path / "device").exists() or text(path / "operstate") == "up")
    ]


def _of_cards(knob: MachineKnob, root: Path) -> list[str]:
    queue = re.search(r"queues/([rt]x-)", knob.where or "")
    if queue is None:
        return [path.name for path in network_cards(root)]
    return [
        f"{path.name}:{number}"
        for path in network_cards(root)
        for number in sorted(
            int(one.name.removeprefix(queue[1])) for one in (path / "queues").glob(f"{queue[1]}*")
        )
    ]


def _has_size(device: Path) -> bool:
    """A loop device without a file has none."""
    try:
        return int((device / "size").read_text()) > 0
    except (OSError, ValueError):
        return False
