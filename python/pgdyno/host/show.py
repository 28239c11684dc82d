"""The machine as a person wants to see it, each value beside what the catalogue advises."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pgdyno.catalog import RUNTIME_LAYERS, entries, layers
from pgdyno.host.advice import Line, Part
from pgdyno.host.file_tree import folders, text
from pgdyno.host.huge_pages import Count, total
from pgdyno.host.knob_location import ROOT, knob_locations
from pgdyno.host.network import Ethtool, cards, interrupts, queues
from pgdyno.host.processors import clock, processors, speed
from pgdyno.host.storage import disks, file_systems
from pgdyno.model.units import bytes_text
from pgdyno.target.host_facts import cgroup_huge_limit, cgroup_memory_limit, read_meminfo

_SILENT = ("interrupts", "sysctl", "network")  # too many to show those without advice


@dataclass(frozen=True, slots=True)
class Asked:
    """What programs and servers told, beyond the files of the machine."""

    clock_ns: float | None = None  # None: not measured
    ethtool: Ethtool | None = None  # None: not installed
    servers: tuple[Count, ...] = ()  # huge pages that they need


NOBODY = Asked()


def machine(root: Path = ROOT, asked: Asked = NOBODY) -> tuple[Part, ...]:
    """All parts that there is something to say of.

    Args:
        root: Of the file tree, for tests.
        asked: What the files do not tell.
    """
    settings = _settings(root)
    parts = [
        Part("Processors", tuple(processors(root))),
        _layer("cpu", speed(root), settings),
        _layer("clock", clock(root, asked.clock_ns), settings),
        Part("Memory", tuple(_memory(root, asked.servers))),
        _layer("memory", (), settings),
        _layer("sysctl", (), settings),
        Part("Block devices", tuple(disks(root))),
        _layer("block", (), settings),
        Part("File systems", tuple(file_systems(root))),
        Part("Network cards", tuple(cards(root))),
        _layer("network", queues(root, asked.ethtool), settings),
        _layer("interrupts", interrupts(root), settings),
    ]
    return tuple(part for part in parts if part.lines)


def _layer(name: str, first: Iterable[Line], settings: dict[str, list[Line]]) -> Part:
    return Part(layers()[name].title, (*first, *settings[name]))


def _memory(root: Path, servers: tuple[Count, ...]) -> Iterator[Line]:
    info = read_meminfo(text(root / "proc/meminfo"))
    yield Line("memory", bytes_text(info["MemTotal"]))
    limit = cgroup_memory_limit(root)
    if limit is not None and limit < info["MemTotal"]:
        yield Line("limit of the cgroup", bytes_text(limit), note="this is what counts here")
    yield Line("available", bytes_text(info.get("MemAvailable", 0)))
    size = info.get("Hugepagesize", 0)
    free, kept = info.get("HugePages_Free", 0), info.get("HugePages_Rsvd", 0)
    yield Line(
        "vm.nr_hugepages", str(info.get("HugePages_Total", 0)),
        note=f"huge pages of {bytes_text(size)}, {free} free, {kept} of them promised",
        advised=str(total(servers)) if servers else "",
        why="; ".join(f"{one.pages} for {one.server}, {one.how}" for one in servers),
        search="" if servers else "what the server counts: --huge-pages-for DATADIR or CONNINFO",
    )  # fmt: skip
    for path in folders(root / "sys/kernel/mm/hugepages"):
        other = int(path.name.removeprefix("hugepages-").removesuffix("kB")) << 10
        if other != size and (pages := text(path / "nr_hugepages")) not in ("", "0"):
            yield Line(f"huge pages of {bytes_text(other)}", pages)
    if (most := cgroup_huge_limit(size, root)) is not None:
        yield Line("huge pages of the cgroup", f"at most {bytes_text(most)}")
    yield Line("swap", bytes_text(info.get("SwapTotal", 0)))


def _settings(root: Path) -> dict[str, list[Line]]:
    """By layer, what stands in the catalogue and can be changed while the machine runs."""
    found: dict[str, list[Line]] = {layer: [] for layer in RUNTIME_LAYERS}
    for one in knob_locations(root):
        known = entries()[one.name]
        if known.layer in _SILENT and not known.advise and not known.search:
            continue
        found[known.layer].append(
            Line(
                one.key, one.read(), advised=one.advised() or "", search=known.search, why=known.why
            )
        )
    return found
