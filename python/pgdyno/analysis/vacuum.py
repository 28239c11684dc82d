"""What autovacuum took of a stage's load and of its windows, from the server's log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from pgdyno.analysis.answer_facts import Doubt
from pgdyno.analysis.cycle_facts import VacuumCost, VacuumFacts, VacuumTable
from pgdyno.analysis.efficiency import US
from pgdyno.analysis.episodes import episodes
from pgdyno.analysis.only_reads import next_to_no_wal
from pgdyno.analysis.trials import per_second
from pgdyno.model.counters import growth
from pgdyno.model.plan import Plan
from pgdyno.model.run import Series, TrialRecord, TrialResult
from pgdyno.model.wording import CHOSEN
from pgdyno.stats.vacuum import (
    SHARE_TOLERANCE,
    TIME_TOLERANCE,
    WAL_MIN_BYTES_PER_S,
    Episode,
    Taken,
    taken,
    together,
    unlike,
)

NS = 1e9
_SECOND_NS = 1_000_000_000

THRESHOLDS = (
    f"Windows are said to hold more or less of it from {SHARE_TOLERANCE * 100:.0f} points of all"
    f" WAL on; where no share of WAL is told, since it is not known or a load writes less than"
    f" {WAL_MIN_BYTES_PER_S / 1e3:.0f} kB/s, from {TIME_TOLERANCE * 100:.0f} points of the time on."
    f" Each is {CHOSEN}."
)
"""By what windows are judged that hold more or less of autovacuum than the load."""


def off_doubts(plan: Plan, finished: Sequence[TrialRecord]) -> Iterator[Doubt]:
    """That a server never vacuumed by itself, whoever set it so: what it saves is paid later."""
    off = {
        one.stage
        for one in finished
        if one.result
        for each in one.result.settings
        if (each.name, each.value) == ("autovacuum", "off")
    }
    stages = tuple(one.name for one in plan.stages if one.name in off)
    if stages:
        yield Doubt(
            "autovacuum is off: dead rows stay, so that what windows show does not last",
            grave=True, stages=stages, all_stages=len(stages) == len(plan.stages) > 1,
            simply="the server never cleared up (autovacuum is off), which it has to in the long"
            " run",
        )  # fmt: skip


OneLoad = tuple[int, TrialResult, Mapping[str, Series], tuple[int, int]]
"""Round, result, series, and begin and end of the load in ns."""


def vacuum_facts(loads: Sequence[OneLoad], *, only_reads: bool = False) -> VacuumFacts | None:
    """What vacuum took of all loads of a stage together; None where it did nothing.

    Args:
        loads: The finished ones.
        only_reads: They changed no row: what is cleared up meanwhile others left, and windows that
            hold nothing of it are charged rightly.
    """
    found = [(load, episodes(load[1])) for load in loads]
    if not any(listed for _, listed in found):
        return None
    runs = [taken(listed, _seconds(load[3])) for load, listed in found]
    windows = [taken(listed, _seconds(load[1].window_ns)) for load, listed in found]
    run, window = together(runs), together(windows)
    run_share = _share(run, [_grown(load[2], load[3]) for load, _ in found])
    window_share = _share(window, [_grown(load[2], load[1].window_ns) for load, _ in found])
    transactions = np.sum(
        [_transactions(load[2], [load[3], load[1].window_ns]) for load, _ in found], axis=0
    )
    return VacuumFacts(
        time_share=run.time_share,
        window_time_share=window.time_share,
        wal_share=run_share,
        window_wal_share=window_share,
        cpu_s=run.cpu_s,
        window_cpu_s=window.cpu_s,
        cost=_cost(run, float(transactions[0])),
        window_cost=_cost(window, float(transactions[1])),
        tables=_tables(found),
        missed_rounds=tuple(
            load[0]
            for (load, _), whole, part in zip(found, runs, windows, strict=True)
            if whole.busy_s > 0 and part.busy_s == 0
        ),
        unlike=not only_reads and unlike(run_share, window_share, run, window),
    )


def _tables(found: Sequence[tuple[OneLoad, list[Episode]]]) -> tuple[VacuumTable, ...]:
    """Where the episodes of each table fell; those that took longest first."""
    names = dict.fromkeys(one.table for _, listed in found for one in listed)
    tables = []
    for name in names:
        mine = [(load, [one for one in listed if one.table == name]) for load, listed in found]
        run = together([taken(listed, _seconds(load[3])) for load, listed in mine])
        window = together([taken(listed, _seconds(load[1].window_ns)) for load, listed in mine])
        tables.append(
            VacuumTable(
                table=name,
                episodes=sum(len(listed) for _, listed in mine),
                run_s=run.busy_s,
                window_s=window.busy_s,
                wal_bytes=run.wal_bytes,
            )
        )
    return tuple(sorted(tables, key=lambda one: -one.run_s))


def _share(part: Taken, totals: Sequence[float | None]) -> float | None:
    """Of all WAL, what vacuum wrote; None: not known, or too little WAL for a share of it.

    Vacuum may have most of next to none. And an episode's WAL, spread over its time, may be more
    than was written where only a part of it lies: that is no share.
    """
    known = [one for one in totals if one is not None]
    if part.wal_bytes is None or len(known) < len(totals):
        return None
    written = sum(known)
    if not written or written < part.wal_bytes or next_to_no_wal(written, part.span_s):
        return None
    return part.wal_bytes / written


def _cost(part: Taken, transactions: float) -> VacuumCost:
    if transactions <= 0:
        return VacuumCost(None, None)
    return VacuumCost(
        wal_bytes=None if part.wal_bytes is None else part.wal_bytes / transactions,
        cpu_us=None if part.cpu_s is None else part.cpu_s * US / transactions,
    )


def _transactions(series: Mapping[str, Series], spans_ns: Sequence[tuple[int, int]]) -> list[float]:
    """Transactions that ended in each span; the seconds at its ends by their part in it."""
    unix_ns, counts = per_second(series)
    return [
        float(counts @ (np.clip(unix_ns + int(NS), *span) - np.clip(unix_ns, *span)) / NS)
        for span in spans_ns
    ]


def _grown(series: Mapping[str, Series], span_ns: tuple[int, int]) -> float | None:
    """WAL written in a span, as far as that is known."""
    wal = series.get("wal.bytes")
    if wal is None or not wal.unix_ns.size:
        return None
    begin, end = span_ns
    first = int(wal.unix_ns[0])
    if begin < first <= begin + _SECOND_NS:  # a load begins after the first sample, in its second
        begin = first
    return growth(wal, (begin, end))


def _seconds(span_ns: tuple[int, int]) -> tuple[float, float]:
    return span_ns[0] / NS, span_ns[1] / NS
