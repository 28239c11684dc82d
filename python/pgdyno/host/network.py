"""Network cards: their queues by /sys, and by ethtool where it is installed; their interrupts."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from pgdyno.catalog import entries, machine_knobs
from pgdyno.host.advice import Line
from pgdyno.host.file_tree import text
from pgdyno.host.knob_location import devices, network_cards
from pgdyno.shell import run

Ethtool = Callable[[str, str], str]  # option, card -> what it says; nothing where it refuses
_ADMIN_PATH = "/usr/sbin:/sbin"  # where Debian has it, and ordinary users do not look
_MISSING = (
    "so how many channels the cards could have, their rings, coalescing and offloads are not known"
)


def installed_ethtool() -> Ethtool | None:
    """The program, or None where it is not installed."""
    program = shutil.which("ethtool") or shutil.which("ethtool", path=_ADMIN_PATH)
    if program is None:
        return None

    def ask(option: str, card: str) -> str:
        return run([program, option, card], check=False).stdout

    return ask


def cards(root: Path) -> Iterator[Line]:
    """What they are."""
    for path in network_cards(root):
        speed = text(path / "speed")
        driver = path / "device/driver"
        lines = [
            text(path / "operstate"),
            f"{int(speed):,} Mbit/s" if speed.isdigit() else "",
            f"driver {driver.resolve().name}" if driver.exists() else "",
            f"queues: {_queues(path, 'rx')} in, {_queues(path, 'tx')} out",
        ]
        yield Line(path.name, ", ".join(part for part in lines if part))


def queues(root: Path, ethtool: Ethtool | None) -> Iterator[Line]:
    """What only ethtool tells of the cards; that it is missing, where it is."""
    names = [path.name for path in network_cards(root) if (path / "device").exists()]
    if ethtool is None:
        if names:
            yield Line("ethtool", "not installed", note=_MISSING)
        return
    for name in names:
        yield from _told_of(name, ethtool)


def _told_of(card: str, ethtool: Ethtool) -> Iterator[Line]:
    most, now = halves(ethtool("-l", card))
    cpus = len(os.sched_getaffinity(0))
    both = most.get("Combined", "")
    advised = str(min(int(both), cpus)) if both.isdigit() and int(both) else ""
    yield _line("channels combined", card, now.get("Combined", ""), both, advised)
    most, now = halves(ethtool("-g", card))
    yield _line("ring rx", card, now.get("RX", ""), most.get("RX", ""))
    yield _line("coalesce rx-usecs", card, halves(ethtool("-c", card))[1].get("rx-usecs", ""))
    gro = halves(ethtool("-k", card))[1].get("generic-receive-offload", "")
    word = gro.partition(" ")[0]  # on [fixed]
    yield _line("offload gro", card, word, advised=entries()["offload gro"].advise)


def halves(text: str) -> tuple[dict[str, str], dict[str, str]]:
    """What ethtool says of the most and of now; with one half only, that is now."""
    most, current, now = text.rpartition("Current hardware settings:")
    return (_fields(most) if current else {}), _fields(now)


def _fields(text: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in text.splitlines())
    return {head.strip(): value.strip() for head, colon, value in pairs if colon}


def _line(knob: str, card: str, value: str, most: str = "", advised: str = "") -> Line:
    known = entries()[knob]
    if value in ("", "n/a"):
        return Line(f"{knob}@{card}", "not reported by the driver")
    note = f"at most {most}" if most.isdigit() else ""
    return Line(f"{knob}@{card}", value, note, advised, known.search, known.why)


def interrupts(root: Path) -> Iterator[Line]:
    """Who spreads the interrupts of disks and cards over the CPUs, and how they are spread."""
    counts = _counts(text(root / "proc/interrupts"))
    found = []
    block = devices(machine_knobs()["queue/scheduler"], root)
    for folder in (*(root / "sys/block" / name for name in block), *network_cards(root)):
        served = [counts[irq] for irq in _numbers(folder / "device", root) if irq in counts]
        if served:
            found.append(Line(f"of {folder.name}", _spread(served)))
    if found:
        known = entries()["irqbalance"]
        running = any(text(path) == "irqbalance" for path in (root / "proc").glob("[0-9]*/comm"))
        yield Line(
            "irqbalance", "runs" if running else "does not run", search=known.search, why=known.why
        )  # fmt: skip
    yield from found


def _counts(table: str) -> dict[str, list[int]]:
    """Of /proc/interrupts: how often each CPU served each numbered interrupt."""
    found = {}
    for line in table.splitlines():
        match = re.match(r" *(\d+):((?: +\d+)+) ", line)
        if match:
            found[match[1]] = [int(count) for count in match[2].split()]
    return found


def _spread(served: list[list[int]]) -> str:
    by_cpu = [sum(counts) for counts in zip(*served, strict=True)]
    total = sum(by_cpu)
    if not total:
        return f"{len(served)}, none served yet"
    busiest = max(range(len(by_cpu)), key=lambda cpu: by_cpu[cpu])
    return (
        f"{len(served)}, served by {sum(count > 0 for count in by_cpu)} of {len(by_cpu)} CPUs,"
        f" most by CPU {busiest}: {by_cpu[busiest] / total:.0%}"
    )


def _numbers(device: Path, root: Path) -> list[str]:
    """Interrupts of a device: its own, or those of what it is built into."""
    if not device.exists():
        return []
    real = device.resolve()
    for folder in (real, *real.parents):
        own = folder / "msi_irqs"
        if own.is_dir():
            return [path.name for path in own.iterdir()]
        if folder == root:
            break
    return []


def _queues(card: Path, way: str) -> int:
    return len(list((card / "queues").glob(f"{way}-*")))
