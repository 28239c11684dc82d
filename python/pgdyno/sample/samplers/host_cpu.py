"""CPU seconds of the host by state, all CPUs together."""

from __future__ import annotations

from pathlib import Path

from pgdyno.sample.proc_stat import STATES, parse_host
from pgdyno.sample.sampler import Column, Sampler, Subject

_PATH = Path("/proc/stat")


def sampler(_subject: Subject) -> Sampler:
    """Always there."""
    columns = tuple(Column(f"cpu.{name}_s", "s") for name in STATES)
    return Sampler("host cpu", columns, lambda: parse_host(_PATH.read_text()))
