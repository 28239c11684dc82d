"""Trials as the report tells them: their state, their numbers and their line over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from pgdyno.analysis.ceiling import rate
from pgdyno.analysis.facts import TrialFacts
from pgdyno.analysis.judge import checkpoint_cycle, client_limit, steadiness, window_end
from pgdyno.analysis.latency_shares import latency_shares
from pgdyno.analysis.only_reads import of_reads, only_reads
from pgdyno.analysis.shape import outages
from pgdyno.analysis.snapshots import analyze_marks
from pgdyno.analysis.timeline_facts import Checkpoint, Mark, Timeline
from pgdyno.model.run import Event, Series, SnapshotRows, TrialRecord, TrialResult
from pgdyno.model.units import bytes_text, count_text
from pgdyno.model.wording import plural
from pgdyno.store.histogram import Quantiles

MARKS_MAX = 200  # of a line
_MOMENT_S = 0.001
POINTS_MAX = 240  # of a line; of longer trials each has a mean, a least and a greatest second
NS = 1e9
COUNTED = ("driver.committed.", "driver.rolled_back")  # together: tpmTotal


def trial_facts(
    record: TrialRecord,
    series: dict[str, Series],
    *,
    server_on_host: bool,
    snapshots: Sequence[SnapshotRows] = (),
    quantiles: Quantiles | None = None,
    ceiling_per_s: float | None = None,
    host_ceilings: Mapping[str, float] = MappingProxyType({}),
) -> TrialFacts:
    """What is said of one trial.

    Args:
        record: The trial, in whatever state.
        series: Its series by name; may be empty.
        server_on_host: Whether driver and server shared a host.
        snapshots: What was read at the ends of its window.
        quantiles: Values of merged histograms at shares; None: no spread is told.
        ceiling_per_s: What the driver could have reached; None: not known.
        host_ceilings: The same of each host that several come from, as far as it is known.
    """
    result = record.result
    completed, cycle = checkpoint_cycle(result) if result else (None, None)
    if cycle is not None and only_reads(record, snapshots):
        cycle = of_reads(cycle)
    return TrialFacts(
        number=record.number,
        round=record.round,
        stage=record.stage,
        state=record.state.value,
        reason=record.reason,
        throughput=result.throughput if result else None,
        nopm=result.nopm if result else None,
        tpm_total=result.tpm_total if result else None,
        checkpoints=completed,
        checkpoint_cycle=cycle,
        client_limit=client_limit(
            result,
            server_on_host=server_on_host,
            ceiling_per_s=ceiling_per_s,
            host_ceilings=host_ceilings,
        )
        if result
        else None,
        ceiling_share=rate(result) / ceiling_per_s if result and ceiling_per_s else None,
        steadiness=None
        if result is None or result.follows_cycles
        else steadiness(_in_window(result, series)),
        window_end=window_end(result) if result else None,
        started_ns=record.started_ns,
        ended_ns=record.ended_ns,
        engine=result.engine if result else None,
        pgbench=result.pgbench if result else None,
        retries=_retries(result) if result else None,
        failed=sum(kind.window.failed for kind in result.kinds) if result else None,
        reconnects=result.reconnects if result else None,
        notes=result.notes if result else (),
        timeline=_timeline(record, result, series, snapshots) if result else None,
        latency_shares=_spread(result, quantiles) if result and quantiles else (),
        attempt=record.attempt,
    )


def _spread(result: TrialResult, quantiles: Quantiles) -> tuple[float, ...]:
    """Of the first kind, if it occurred."""
    first = next((kind for kind in result.kinds if kind.window.timed), None)
    return latency_shares(first.response, quantiles) if first else ()


def per_second(
    series: Mapping[str, Series], counted: tuple[str, ...] = COUNTED
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Transactions that ended in each second, with the start of the second, shape `(seconds,)`.

    Args:
        series: Of a trial.
        counted: How the names of those begin that are added up.
    """
    chosen = [one for name, one in series.items() if name.startswith(counted)]
    if not chosen:
        return np.empty(0, dtype=np.int64), np.empty(0)
    size = min(one.values.size for one in chosen)
    total = np.sum([one.values[:size] for one in chosen], axis=0)
    return chosen[0].unix_ns[:size], np.asarray(total, dtype=np.float64)


def _in_window(result: TrialResult, series: dict[str, Series]) -> npt.NDArray[np.float64]:
    """Transactions of the whole seconds of the window, shape `(seconds,)`."""
    unix_ns, counts = per_second(series)
    begin, end = result.window_ns
    return counts[(unix_ns >= begin) & (unix_ns + NS <= end)]


def _retries(result: TrialResult) -> int:
    return sum(k.window.retries for k in result.kinds)


def _timeline(
    record: TrialRecord,
    result: TrialResult,
    series: dict[str, Series],
    snapshots: Sequence[SnapshotRows],
) -> Timeline | None:
    unix_ns, counts = per_second(series)
    if counts.size == 0:
        return None
    begin, end = result.window_ns
    inside = unix_ns + NS <= end + NS / 2  # the drain after the window is no throughput
    unix_ns, counts = unix_ns[inside], counts[inside]
    step = max(1, ceil(counts.size / POINTS_MAX))
    if step > 1 and unix_ns[-1] + NS > end:  # a second that was cut short would look like a stall
        unix_ns, counts = unix_ns[:-1], counts[:-1]
    begins = np.arange(0, counts.size, step)
    widths = np.diff(np.append(begins, counts.size))
    tpm = np.add.reduceat(counts, begins) / widths if counts.size else counts
    second = (unix_ns[begins] - begin) / NS + widths / 2
    ends = (float(second[0] - widths[0] / 2) if counts.size else 0.0, result.window_s)
    marks = [*_marks(result, ends), *analyze_marks(record, snapshots)]
    return Timeline(
        window_s=result.window_s,
        step_s=float(step),
        second=tuple(round(float(value), 3) for value in second),
        tpm=_tpm(tpm),
        checkpoints=_checkpoints(result, ends),
        outages=_outages(record, ends),
        marks=_longest(marks),
        marks_left_out=max(0, len(marks) - MARKS_MAX),
        least=_tpm(np.minimum.reduceat(counts, begins)) if step > 1 else (),
        greatest=_tpm(np.maximum.reduceat(counts, begins)) if step > 1 else (),
    )


def _tpm(per_s: npt.NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(round(float(value) * 60, 1) for value in per_s)


def _outages(record: TrialRecord, ends: tuple[float, float]) -> tuple[tuple[float, float], ...]:
    """Times without connections on the axis of the line, cut at its ends."""
    found = (
        _cut(one.start_s, None if one.seconds is None else one.start_s + one.seconds, ends)
        for one in outages([record])
    )
    return tuple(span for span in found if span is not None)


def _checkpoints(result: TrialResult, ends: tuple[float, float]) -> tuple[Checkpoint, ...]:
    """Checkpoints on the axis of the line, cut at its ends."""
    begin, _ = result.window_ns
    found = []
    for event in result.checkpoints or ():
        end = None if event.end_ns is None else (event.end_ns - begin) / NS
        span = _cut((event.start_ns - begin) / NS, end, ends)
        if span is not None:
            start_s = (event.start_ns - begin) / NS
            phases = _phases(start_s, event, ends)
            found.append(Checkpoint(*span, event.detail.cause, *phases, event.detail))
    return tuple(found)


def _phases(
    start_s: float, event: Event, ends: tuple[float, float]
) -> tuple[float | None, float | None]:
    """When a checkpoint had written and had flushed, as far as that lies on the axis."""
    if event.detail.write_s is None or event.detail.sync_s is None:
        return None, None
    written = start_s + event.detail.write_s
    moments = written, written + event.detail.sync_s
    first, last = ends
    if not first <= moments[0] <= moments[1] <= last:
        return None, None
    return round(moments[0], 3), round(moments[1], 3)


def _marks(result: TrialResult, ends: tuple[float, float]) -> list[Mark]:
    """What else the log tells of, cut at the ends of the line."""
    begin, _ = result.window_ns
    found = []
    for event in result.events:
        if event.kind == "checkpoint":
            continue
        end_ns = event.start_ns if event.end_ns is None else event.end_ns
        # What happens at a moment has a width for `_cut`, and none on the axis.
        start, end = (event.start_ns - begin) / NS, (end_ns - begin) / NS
        if (span := _cut(start, max(end, start + _MOMENT_S), ends)) is not None:
            found.append(Mark(event.kind, *span, _said_of(event)))
    return found


def _longest(marks: list[Mark]) -> tuple[Mark, ...]:
    kept = sorted(marks, key=lambda mark: mark.start_s - mark.end_s)[:MARKS_MAX]
    return tuple(sorted(kept, key=lambda mark: mark.start_s))


def _said_of(event: Event) -> str:
    detail = event.detail
    said = [detail.text, detail.lock, detail.table, detail.cause]
    said += [bytes_text(detail.file_bytes)] if detail.file_bytes is not None else []
    said += [f"{plural(detail.buffers, 'buffer')} written"] if detail.buffers is not None else []
    if detail.replayed_bytes is not None:
        said += [f"{bytes_text(detail.replayed_bytes)} of WAL replayed"]
    if detail.distance_bytes is not None:
        said += [f"{bytes_text(detail.distance_bytes)} of WAL since the one before"]
    if detail.table is not None:
        said += _cost_of(event)
    return ", ".join(one for one in said if one)


def _cost_of(event: Event) -> Iterator[str]:
    """What a vacuum or analyze took, as far as this version of the server tells it."""
    detail = event.detail
    if detail.unremovable_rows:
        kept = plural(detail.unremovable_rows, "dead row", thousands=True)
        yield f"{kept} not removable, as a transaction may still see them"
    pages = (detail.buffers_hit, detail.buffers_read, detail.buffers_dirtied)
    if None not in pages:
        hit, read, dirtied = (one or 0 for one in pages)
        found = plural(hit, "page", thousands=True)
        yield f"{found} found, {count_text(read)} read, {count_text(dirtied)} dirtied"
    if detail.wal_bytes is not None:
        records = detail.wal_records
        within = "" if records is None else f" in {plural(records, 'record', thousands=True)}"
        yield f"{bytes_text(detail.wal_bytes)} of WAL{within}"
    if detail.cpu_s is not None:
        yield f"{detail.cpu_s:.2f} s of CPU"
    if event.end_ns is not None:
        yield f"{(event.end_ns - event.start_ns) / NS:.2f} s in all"


def _cut(start: float, end: float | None, ends: tuple[float, float]) -> tuple[float, float] | None:
    """A span on the axis, as far as it lies between its ends; an open one lasts to the last."""
    first, last = ends
    end = last if end is None else end
    if end <= first or start >= last:
        return None
    return round(max(start, first), 3), round(min(end, last), 3)
