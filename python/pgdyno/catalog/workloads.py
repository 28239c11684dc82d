"""Workloads of the catalogue: values for the keys of a plan's `[workload]`, told as data."""

from __future__ import annotations

from functools import cache
from typing import Any

from pgdyno.catalog.tables import Table, read_tables


class WorkloadKey(Table):
    """A key of `[workload]` with its value."""

    value: Any
    why: str


class WorkloadProfile(Table):
    """A named bundle of keys."""

    name: str
    kind: str  # of workload
    why: str
    key: dict[str, WorkloadKey]


@cache
def _profiles() -> dict[str, WorkloadProfile]:
    tables = read_tables("workloads").items()
    return {name: WorkloadProfile.model_validate(table) for name, table in tables}


def workload_profile_names() -> tuple[str, ...]:
    """Names of all workloads of the catalogue."""
    return tuple(_profiles())


def workload_profile(name: str) -> WorkloadProfile:
    """The workload of this name; a missing one is a bug, see `workload_profile_names`."""
    return _profiles()[name]
