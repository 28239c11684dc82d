"""Clock of the CPUs, temperatures, and how often a CPU was slowed down because it was too hot.

Every 5 s: asking a CPU for its clock wakes it. Files are opened for each look: of some hundred CPUs
they would be more than a process may keep open. Virtual machines mostly have none. Sources:
Linux, Documentation/admin-guide/pm/cpufreq.rst, Documentation/driver-api/thermal/sysfs-api.rst,
Documentation/ABI/testing/sysfs-devices-system-cpu.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from pgdyno.sample.kernel_file import kernel_file
from pgdyno.sample.sampler import Column, Row, Sampler, Subject

_CPUS = "devices/system/cpu"
_THROTTLES = ("core_throttle_count", "package_throttle_count")
_INTERVAL_S = 5.0


def sampler(_subject: Subject, sys: Path = Path("/sys")) -> Sampler | None:
    """None where the host tells neither."""
    clocks = _files(sys / _CPUS, "cpu[0-9]*/cpufreq/scaling_cur_freq")
    throttles = [
        path
        for name in _THROTTLES
        for path in _files(sys / _CPUS, f"cpu[0-9]*/thermal_throttle/{name}")
    ]
    heat = dict(_temperatures(sys))

    def take() -> Row:
        row: Row = {}
        if hertz := [khz * 1000 for khz in map(_number, clocks) if khz is not None]:
            row["cpu.frequency_hz"] = sum(hertz) / len(hertz)
            row["cpu.frequency_min_hz"] = min(hertz)
        counts = [count for count in map(_number, throttles) if count is not None]
        if throttles and len(counts) == len(throttles):  # a CPU that is off would be lacking
            row["cpu.thermal_throttles"] = sum(counts)
        for name, path in heat.items():
            if (thousandths := _number(path)) is not None:
                row[name] = thousandths / 1000
        return row

    if not (columns := tuple(_column(name) for name in take())):
        return None
    return Sampler("frequency", columns, take, _INTERVAL_S, budget_us=5000.0)


def _number(path: Path) -> int | None:
    """None where a sensor is busy or asleep, or a CPU is off."""
    if (file := kernel_file(path)) is None:
        return None
    try:
        return int(file.line())
    except (OSError, ValueError):
        return None
    finally:
        file.close()


def _column(name: str) -> Column:
    if name == "cpu.thermal_throttles":
        return Column(name, "1")
    return Column(name, "Hz" if name.endswith("_hz") else "°C", "gauge")


def _files(folder: Path, pattern: str) -> list[Path]:
    return [path for path in sorted(folder.glob(pattern)) if os.access(path, os.R_OK)]


def _temperatures(sys: Path) -> Iterator[tuple[str, Path]]:
    """Zones by their type, those of one type by their number: `temperature.x86_pkg_temp.0`."""
    for zone in sorted((sys / "class/thermal").glob("thermal_zone[0-9]*")):
        if os.access(zone / "temp", os.R_OK):
            kind = (zone / "type").read_text().strip()
            yield f"temperature.{kind}.{zone.name.removeprefix('thermal_zone')}", zone / "temp"
