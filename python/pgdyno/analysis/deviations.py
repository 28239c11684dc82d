"""Where what was driven differs from the TPC-C text."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.analysis.facts import Deviation
from pgdyno.model.run import RunInfo


def deviations(info: RunInfo, stages: Sequence[str]) -> tuple[Deviation, ...]:
    """Those of all stages first, then those that only some have."""
    whole = info.workload.deviations if info.workload else ()
    having: dict[tuple[str, str, str], list[str]] = {}
    for stage in stages:
        own = info.stages.get(stage)
        for one in whole if own is None or own.deviations is None else own.deviations:
            having.setdefault((one.what, one.why, one.clause), []).append(stage)
    found = [
        Deviation(*texts, () if len(names) == len(stages) else tuple(names))
        for texts, names in having.items()
    ]
    return tuple(sorted(found, key=lambda one: bool(one.stages)))
