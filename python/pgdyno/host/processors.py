"""Processors, their speed, what else runs beside us, and what a look at the clock costs."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from pathlib import Path

from pgdyno.host.advice import Line
from pgdyno.host.file_tree import field, text
from pgdyno.host.knob_location import ROOT
from pgdyno.model.errors import TargetError
from pgdyno.model.units import bytes_text
from pgdyno.model.wording import plural
from pgdyno.shell import postgres_user, run
from pgdyno.target.host_facts import cgroup_cpu_limit, read_meminfo

CLOCK_MOST_NS = 100  # what the manual of pg_test_timing calls quick
_CLOCK_S = 1
_KHZ = 1000


def processors(root: Path) -> Iterator[Line]:
    """What they are and how much of them is ours."""
    info = text(root / "proc/cpuinfo")
    cpus = root / "sys/devices/system/cpu"
    yield Line("model", field(info, "model name") or platform.machine())
    usable = len(os.sched_getaffinity(0))
    yield Line("CPUs", f"{text(cpus / 'online')}, {usable} of them for this process")
    if quota := cgroup_cpu_limit(root):
        yield Line("limit of the cgroup", f"{quota:g} CPUs", note="this is what counts here")
    cores = {
        (text(path / "physical_package_id"), text(path / "core_id"))
        for path in cpus.glob("cpu[0-9]*/topology")
    }
    if cores:
        sockets = len({socket for socket, _ in cores})
        yield Line("cores", f"{len(cores)} in {plural(sockets, 'socket')}")
    nodes = sorted((root / "sys/devices/system/node").glob("node[0-9]*"))
    if nodes:
        layout = "; ".join(_node(path) for path in nodes)
        yield Line("NUMA", f"{plural(len(nodes), 'node')}; {layout}")
    caches = [
        f"L{text(path / 'level')} {text(path / 'type').lower()} {text(path / 'size')}"
        for path in sorted((cpus / "cpu0/cache").glob("index*"))
    ]
    if caches:
        yield Line("caches", ", ".join(caches))
    yield Line("virtualisation", _virtualisation(root, field(info, "flags")))
    yield Line("stolen by others", _stolen(root))
    yield Line("kernel", platform.release() if root == ROOT else text(root / "proc/version"))


def speed(root: Path) -> Iterator[Line]:
    """How fast they run now; who decides it stands among the settings, where anybody may."""
    if now := field(text(root / "proc/cpuinfo"), "cpu MHz"):
        most = text(root / "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")
        note = f"at most {int(most) / _KHZ:,.0f} MHz" if most.isdigit() else ""
        yield Line("speed now", f"{float(now):,.0f} MHz", note=note)
    if text(root / "proc/cpuinfo") and not list(
        (root / "sys/devices/system/cpu/cpufreq").glob("policy*")
    ):
        yield Line("governor", "none here", note="the speed of a guest is its host's to decide")


def clock(root: Path, reading_ns: float | None) -> Iterator[Line]:
    """Clocks to choose from, and the cost of a reading, where it was measured."""
    sources = root / "sys/devices/system/clocksource/clocksource0/available_clocksource"
    if listed := text(sources):
        yield Line("clocks at hand", listed)
    if reading_ns is not None:
        yield Line(
            "cost of a reading", f"{reading_ns:.1f} ns",
            note=f"by pg_test_timing in {_CLOCK_S} s; more while others keep the CPUs busy",
            advised="" if reading_ns <= CLOCK_MOST_NS else f"less than {CLOCK_MOST_NS} ns",
            why="track_io_timing and EXPLAIN ANALYZE look at the clock twice for each step.",
        )  # fmt: skip


def clock_reading_ns(program: Path) -> float:
    """What a look at the clock costs, loop included, by pg_test_timing; takes a second.

    Raises:
        TargetError: It cannot be run, or says something else than any version does.
    """
    output = run([program, "--duration", str(_CLOCK_S)], user=postgres_user()).stdout
    found = re.search(r"loop time including overhead: +([\d.]+) ns", output)
    if found is None:
        raise TargetError(f"{program.name} printed no time per loop: {output[:200]!r}")
    return float(found[1])


def _node(path: Path) -> str:
    lines = [line.partition(path.name[len("node") :] + " ")[2] for line in _lines(path / "meminfo")]
    memory = read_meminfo("\n".join(lines)).get("MemTotal")
    cpus = f"{path.name}: CPUs {text(path / 'cpulist')}"
    return f"{cpus}, {bytes_text(memory)}" if memory else cpus


def _lines(path: Path) -> list[str]:
    return text(path).splitlines()


def _virtualisation(root: Path, flags: str) -> str:
    maker = text(root / "sys/class/dmi/id/sys_vendor")
    product = text(root / "sys/class/dmi/id/product_name")
    product_name = " ".join(part for part in (maker, product) if part)
    if "hypervisor" not in flags.split():
        return f"none seen ({product_name})" if product_name else "none seen"
    return f"a guest ({product_name})" if product_name else "a guest"


def _stolen(root: Path) -> str:
    fields = next(
        (line.split()[1:] for line in _lines(root / "proc/stat") if line[:4] == "cpu "), []
    )
    steal = 7  # user nice system idle iowait irq softirq steal
    if len(fields) <= steal:
        return "unknown"
    ticks = [int(field) for field in fields[: steal + 1]]
    return f"{ticks[steal] / max(1, sum(ticks)):.2%} of the time since the start"
