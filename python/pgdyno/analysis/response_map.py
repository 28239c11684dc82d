"""Response times over time, for the middle trial of each stage: counts, joined where they are many.

Joined seconds are added, so that no request is lost. What ended after the window is left out, as it
is of the line of throughput.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

import numpy as np

from pgdyno.analysis.extremes import PARTS_MAX
from pgdyno.analysis.signal_facts import ResponseMap
from pgdyno.analysis.signals import NS, SeriesByName, middle
from pgdyno.model.response_times import counted
from pgdyno.model.run import TrialRecord


def response_maps(
    stages: Sequence[str], trials: Sequence[TrialRecord], series: Mapping[int, SeriesByName]
) -> tuple[ResponseMap, ...]:
    """The map of each stage whose driver kept times over time.

    Args:
        stages: Their names, in the order of the plan.
        trials: Those whose numbers may be used.
        series: Of each trial, by its number and their names.
    """
    chosen = (one for stage in stages if (one := middle(trials, stage)) is not None)
    found = (_map(one, series.get(one.number, {})) for one in chosen)
    return tuple(one for one in found if one is not None)


def _map(record: TrialRecord, series: SeriesByName) -> ResponseMap | None:
    if record.result is None or (kept := counted(series)) is None:
        return None
    unix_ns, step_s, edges_ns, counts = kept
    begin_ns, end_ns = record.result.window_ns
    inside = unix_ns + step_s * NS / 2 <= end_ns
    counts = counts[:, inside]
    if not counts.any():
        return None
    begins = np.arange(0, counts.shape[1], ceil(counts.shape[1] / PARTS_MAX))
    met = np.flatnonzero(counts.any(axis=1))
    rows = slice(met[0], met[-1] + 1)
    edges_s = (np.append(unix_ns[begins], unix_ns[inside][-1] + step_s * NS) - begin_ns) / NS
    return ResponseMap(
        trial=record.number,
        round=record.round,
        stage=record.stage,
        edges_s=tuple(round(float(one), 3) for one in edges_s),
        edges_ns=tuple(edges_ns[rows.start : rows.stop + 1].tolist()),
        counts=tuple(map(tuple, np.add.reduceat(counts[rows], begins, axis=1).tolist())),
    )
