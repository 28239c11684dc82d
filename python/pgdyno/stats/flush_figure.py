"""One figure of what a flush takes, from all that measured it; and where its sources disagree.

pg_test_fsync and fio each commit one page after the other. What they took for one is compared,
write and loop included, so that a time and a rate are the same fact. One client commits at most
what the fastest kind of probe allows, by the median of its rounds: so no median of one kind lies
below the figure, and the figure of a path is one that its tables show. The fastest probe of each
round would not do: on storage that drifts it tells the best moments, of a kind whose own median is
far slower. The spread is that of the probes with nothing beside them and of that kind: those of
other kinds, of which some are far faster and some far slower, tell of something else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import log

import numpy as np

from pgdyno.model.floor import PAUSES_US, Commits, Floor, PathRound, Probed, UnderCheckpoint
from pgdyno.model.floor_figures import APART, DRIFTS, PROGRAMS, Doubt, FlushFigure, Span
from pgdyno.model.units import count_text, ends_text, ns_text, seconds_text, times_text
from pgdyno.model.wording import plural
from pgdyno.stats.group_commit import Curve, Flush
from pgdyno.stats.interval import estimate
from pgdyno.stats.storage import flush_rate

DRIFT = 1.5  # times: from the fastest to the slowest probe of one program
_CONFIDENCE = 0.95
_SLOWER = "Plan with the slower of the two, with which the limits of commits begin."


def span_of(values: Iterable[float]) -> Span:
    """Of at least one value; its middle is that of `middle`."""
    found = list(values)
    low, high = min(found), max(found)
    return Span(min(max(middle(found), low), high), low, high, len(found))  # but for rounding


def middle(values: Iterable[float]) -> float:
    """The median of values above 0; of an even number the geometric mean of the two in the middle.

    So the median of times is the inverse of the median of the rates: one fact, said in two ways.
    """
    return float(np.exp(np.median(np.log(np.array(list(values))))))


def flush_figure(floor: Floor, probed: Probed) -> FlushFigure:
    """All probes of a path, reconciled."""
    rounds = probed.rounds_of(floor.path)
    alone = _by_program(floor, probed)
    single = [ns for times in alone for ns in times]
    if rounds and (all_methods := flush_rate(floor).ns):
        single.append(all_methods)
    each_round = rounds or [_measured_once(floor)]
    kind, flush_ns = fastest_kind(each_round)
    if kind not in PROGRAMS:
        single += [kinds_ns(one)[kind] for one in each_round]
    flush = Span(flush_ns, min(*single, flush_ns), max(*single, flush_ns), len(single))
    faster = None if kind in PROGRAMS else kind
    by_program = tuple(map(span_of, alone))
    return FlushFigure(flush, len(rounds), by_program, flush.as_rates(), faster)


def measured_flush(floor: Floor, probed: Probed, flush_ns: float) -> Flush:
    """A flush for predictions, longer after rest as far as was measured.

    Args:
        floor: The path.
        probed: All that was measured.
        flush_ns: What a flush of one page takes back to back: of the figure of the path,
            its middle or an end.
    """
    windows = _windows(floor, probed)
    alone = [mixed.alone for mixed, _ in windows]
    pause_ns = float(np.median([one.pause_ns for one in alone]))
    paused = [(pause_ns, 0.0)]
    for index, factor in enumerate(rest_factors(floor, probed)):
        rest_ns = float(np.median([rested[index].pause_ns for _, rested in windows]))
        # Nobody commits more often by resting: what is gained at most is the rest.
        paused.append((rest_ns, max(flush_ns * (factor.mid - 1), pause_ns - rest_ns)))
    return Flush(
        ns=flush_ns,
        paused=tuple(sorted(paused)) if len(paused) > 1 else (),
        cpu_ns=min(flush_ns, float(np.median([one.cpu_ns for one in alone]))),
        quantiles=_quantiles(alone),
    )


def rest_factors(floor: Floor, probed: Probed) -> tuple[Span, ...]:
    """How many times as long a flush takes after each of PAUSES_US; () where that is not known."""
    return tuple(map(span_of, rest_rounds(floor, probed)))


def rest_rounds(floor: Floor, probed: Probed) -> tuple[tuple[float, ...], ...]:
    """The same, round by round."""
    windows = _windows(floor, probed)
    return tuple(
        tuple(rested[index].ns / mixed.alone.ns for mixed, rested in windows)
        for index in range(len(windows[0][1]))
    )


def disagreements(floor: Floor, probed: Probed) -> tuple[Doubt, ...]:
    """Where pg_test_fsync, fio and time tell different things of a flush."""
    return (
        *_programs_apart(floor, probed),
        *_faster_otherwise(floor, probed),
        *_drift(floor, probed),
    )


def mixed_windows(floor: Floor, probed: Probed) -> tuple[UnderCheckpoint, ...]:
    """What fio measured of commits alone and under a checkpoint, by round."""
    return tuple(mixed for mixed, _ in _windows(floor, probed))


def _windows(floor: Floor, probed: Probed) -> list[tuple[UnderCheckpoint, tuple[Commits, ...]]]:
    """The same, with the windows after rest; of a path that was measured once: one."""
    if rounds := probed.rounds_of(floor.path):
        return [(one.mixed, one.rested) for one in rounds]
    assert floor.mixed is not None, "without rounds a path is measured once"
    return [(floor.mixed, floor.rested)]


def fastest_kind(rounds: Sequence[PathRound]) -> tuple[str, float]:
    """The kind of probe by which commits were fastest, and what one took by it, in ns.

    That may be one beside a checkpoint: a disk that is kept busy does not go to sleep. Or one after
    rest, where the storage counts flushes and has made up for them meanwhile.

    Args:
        rounds: Of one path; the figure of a kind is their median.

    Returns:
        One of PROGRAMS, or beside or after what commits came; of equals the first.
    """
    every = [kinds_ns(one) for one in rounds]
    shared = [kind for kind in every[0] if all(kind in one for one in every)]
    middles = {kind: span_of(one[kind] for one in every).mid for kind in shared}
    kind = min(middles, key=middles.__getitem__)
    return kind, middles[kind]


def kinds_ns(one: PathRound) -> dict[str, float]:
    """What each kind of probe of a round took for a commit, rest included, in ns."""
    fsync, fio = PROGRAMS
    rates = {
        fsync: one.fdatasync_per_s, fio: one.mixed.alone.per_s,
        "under a checkpoint": one.mixed.under.per_s,
    }  # fmt: skip
    for pause_us, rested in zip(PAUSES_US, one.rested, strict=False):  # none in early files
        rates[f"after {pause_us} µs of rest (included)"] = rested.per_s
    return {kind: 1e9 / per_s for kind, per_s in rates.items()}


def _measured_once(floor: Floor) -> PathRound:
    """What files of version 0.1 hold of a path, as one round."""
    assert floor.mixed is not None, "without rounds a path is measured once"
    return PathRound(floor.path, flush_rate(floor).per_s or 0.0, floor.mixed, floor.rested)


def _by_program(floor: Floor, probed: Probed) -> tuple[list[float], list[float]]:
    """Times of pg_test_fsync and of fio with nothing beside them, in ns, by round."""
    fio = [1e9 / mixed.alone.per_s for mixed in mixed_windows(floor, probed)]
    rounds = probed.rounds_of(floor.path)
    fsync = [one.fdatasync_per_s for one in rounds] or [flush_rate(floor).per_s or 0.0]
    return [1e9 / per_s for per_s in fsync], fio


def _quantiles(runs: Sequence[Commits]) -> Curve:
    """How flushes differ, in shares of the mean of their own window."""
    curves = [
        [(share, ns / max(1.0, run.flush.mean_ns)) for share, ns in run.flush_quantiles]
        for run in runs
    ]
    shares = [share for share, _ in curves[0]]
    if any([share for share, _ in curve] != shares for curve in curves):
        curves = curves[:1]
    return tuple(
        (share, float(np.mean([curve[index][1] for curve in curves])))
        for index, share in enumerate(shares)
    )


def _programs_apart(floor: Floor, probed: Probed) -> Iterator[Doubt]:
    fsync, fio = _by_program(floor, probed)
    logs = np.log(np.array(fsync) / np.array(fio))
    if abs(float(np.median(logs))) <= log(APART):
        return
    values = f"{ns_text(middle(fsync))}, fio {ns_text(middle(fio))}"
    each = "each measured once"
    if len(fsync) > 1:
        fitted = estimate(logs[np.newaxis], _CONFIDENCE)
        low, high = (float(np.exp(side[0])) for side in (fitted.low, fitted.high))
        if low <= 1 <= high:
            return
        each = (
            f"in {plural(len(fsync), 'round')} pg_test_fsync takes"
            f" {times_text(float(np.exp(fitted.centre[0])), low, high)} of it"
        )
    slower = max(middle(fsync), middle(fio))
    yield Doubt(
        "pg_test_fsync and fio disagree on what a flush takes",
        f"pg_test_fsync says {values}; {each}; the slower of the two allows one client"
        f" {count_text(1e9 / slower)} commits/s",
        "pg_test_fsync writes the same page over and over, fio page after page, as WAL is written.",
    )


def _faster_otherwise(floor: Floor, probed: Probed) -> Iterator[Doubt]:
    """Commits under a checkpoint or after rest that were faster than those back to back."""
    figure = flush_figure(floor, probed)
    if not figure.faster_otherwise:
        return
    flush_ns, row_ns = figure.flush.mid, figure.in_a_row.mid
    detail = (
        f"{ns_text(flush_ns)} each ({count_text(1e9 / flush_ns)}/s), fastest"
        f" {figure.otherwise}, back to back {ns_text(row_ns)}"
        f" ({count_text(1e9 / row_ns)}/s)"
    )
    if held := _holds_one(figure.otherwise, probed.rounds_of(floor.path)):
        yield Doubt(
            "commits under a checkpoint or after rest and back to back cannot be told apart",
            f"{detail}; {held}",
            f"{_SLOWER} More `--rounds` and longer `--seconds` tell.",
        )
        return
    yield Doubt(
        "commits were faster under a checkpoint or after rest than back to back",
        detail,
        "Storage that is kept busy, or that was left alone, seems to flush faster here; or it was"
        f" faster at that moment. {_SLOWER}",
    )


def _holds_one(kind: str | None, rounds: Sequence[PathRound]) -> str:
    """The interval of commits of this kind against those in a row; empty: it excludes 1."""
    every = [kinds_ns(one) for one in rounds]
    if kind is None or len(every) < 2:
        return ""
    row = min(PROGRAMS, key=lambda name: middle(one[name] for one in every))
    logs = np.log([one[row] / one[kind] for one in every])
    fitted = estimate(logs[np.newaxis], _CONFIDENCE)
    low, high = (float(np.exp(side[0])) for side in (fitted.low, fitted.high))
    if not low <= 1 <= high:
        return ""
    return (
        f"×{np.exp(fitted.centre[0]):.2f} in {plural(len(every), 'round')}, and the interval"
        f" ({ends_text(low, high, 2)}) holds 1"
    )


def _drift(floor: Floor, probed: Probed) -> Iterator[Doubt]:
    """Probes of one program that differ from one moment to another."""
    if not probed.rounds:
        return
    began, parts = [one.started_ns for one in probed.rounds], []
    for name, times in zip(PROGRAMS, _by_program(floor, probed), strict=True):
        least, most = int(np.argmin(times)), int(np.argmax(times))
        if times[most] <= DRIFT * times[least]:
            continue
        apart_s = abs(began[most] - began[least]) / 1e9
        parts.append(
            f"{name} says {ns_text(times[least])} in round {least + 1} and {ns_text(times[most])}"
            f" in round {most + 1}, {seconds_text(apart_s)} apart"
        )
    if parts:
        yield Doubt(
            DRIFTS,
            "; ".join(parts),
            "The storage, or who shares it, is not the same from one moment to the next: what"
            " counts is the spread. More `--rounds` and longer `--seconds` show it better.",
        )
