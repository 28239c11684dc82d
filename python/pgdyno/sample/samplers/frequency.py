"""Clock of the CPUs, temperatures, and how often a CPU was slowed down because it was too hot.

Every 5 s: asking a CPU for its clock wakes it. Virtual machines mostly have none of these. Sources:
Linux, Documentation/admin-guide/pm/cpufreq.rst, Documentation/driver-api/thermal/sysfs-api.rst,
Documentation/ABI/testing/sysfs-devices-system-cpu.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pgdyno.sample.kernel_file import KernelFile, kernel_file
from pgdyno.sample.sampler import Column, Row, Sampler, Subject

_CPUS = "devices/system/cpu"
_THROTTLES = ("core_throttle_count", "package_throttle_count")
_INTERVAL_S = 5.0


def sampler(_subject: Subject, sys: Path = Path("/sys")) -> Sampler | None:
    """None where the host tells neither."""
    clocks = _files(sys / _CPUS, "cpu[0-9]*/cpufreq/scaling_cur_freq")
    throttles = [
        file
        for name in _THROTTLES
        for file in _files(sys / _CPUS, f"cpu[0-9]*/thermal_throttle/{name}")
    ]
    heat = dict(_temperatures(sys))

    def take() -> Row:
        row: Row = {}
        if hertz := [khz * 1000 for khz in map(_number, clocks) if khz is not None]:
            row["cpu.frequency_hz"] = sum(hertz) / len(hertz)
            row["cpu.frequency_min_hz"] = min(hertz)
        if throttles:
            row["cpu.thermal_throttles"] = sum(map(int, map(KernelFile.line, throttles)))
        for name, file in heat.items():
            if (thousandths := _number(file)) is not None:
                row[name] = thousandths / 1000
        return row

    if not (columns := tuple(_column(name) for name in take())):
        return None
    return Sampler("frequency", columns, take, _INTERVAL_S, budget_us=5000.0)


def _number(file: KernelFile) -> int | None:
    """None where a sensor is busy or asleep, or a CPU is off."""
    try:
        return int(file.line())
    except (OSError, ValueError):
        return None


def _column(name: str) -> Column:
    if name == "cpu.thermal_throttles":
        return Column(name, "1")
    return Column(name, "Hz" if name.endswith("_hz") else "°C", "gauge")


def _files(folder: Path, pattern: str) -> list[KernelFile]:
    found = (kernel_file(path) for path in sorted(folder.glob(pattern)))
    return [file for file in found if file is not None]


def _temperatures(sys: Path) -> Iterator[tuple[str, KernelFile]]:
    """Zones by their type, those of one type by their number: `temperature.x86_pkg_temp.0`."""
    for zone in sorted((sys / "class/thermal").glob("thermal_zone[0-9]*")):
        if (file := kernel_file(zone / "temp")) is not None:
            kind = (zone / "type").read_text().strip()
            yield f"temperature.{kind}.{zone.name.removeprefix('thermal_zone')}", file
