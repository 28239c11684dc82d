"""What probes of storage amount to: a run's floors as the facts of its report."""

from __future__ import annotations

from dataclasses import replace

from pgdyno.analysis.facts import Comparison
from pgdyno.analysis.stages import comparison_facts
from pgdyno.analysis.storage_facts import CommitFacts, PathFacts, PatternFacts, StorageFacts
from pgdyno.model.floor import COMPARED, MANY_AT_ONCE, PATTERNS, Floor, Pattern, Probed
from pgdyno.model.floor_figures import FlushFigure, Span
from pgdyno.model.shared_storage import CHANCE
from pgdyno.stats.across_paths import compare_paths
from pgdyno.stats.flush_figure import (
    disagreements,
    flush_figure,
    measured_flush,
    mixed_windows,
    rest_factors,
    span_of,
)
from pgdyno.stats.group_commit import (
    Transaction,
    commit_delay_us,
    commit_rate_per_s,
    flush_limit_per_s,
)
from pgdyno.stats.repeated import many_times, rest_times
from pgdyno.stats.storage import (
    best_points,
    best_sync,
    busy_doubts,
    cap,
    clock_doubts,
    doubts,
    iops_knee,
)

CLIENTS = (1, 2, 4, 8, 16, 32, 64)


def storage_facts(probed: Probed) -> StorageFacts:
    """All that a report says of it, also where it was broken off."""
    return StorageFacts(
        ident=probed.ident,
        started_unix_ns=probed.started_ns,
        pgdyno=probed.pgdyno,
        programs=probed.programs,
        cpus=probed.cpus,
        wish=probed.wish,
        clients=CLIENTS,
        rounds=len(probed.rounds),
        clock=probed.clock,
        clock_doubts=clock_doubts(probed.clock),
        busy_doubts=busy_doubts(probed),
        paths=_paths(probed),
        measured=probed,
    )


def _paths(probed: Probed) -> tuple[PathFacts, ...]:
    against_first: dict[str, dict[str, Comparison]] = {}
    for compared in compare_paths(probed):
        for one in compared.paths:
            against_first.setdefault(one.stage, {})[compared.figure] = comparison_facts(one)
    for floor in probed.floors[1:]:
        if _on_first_device(floor, probed):  # none is better than itself
            against_first[floor.path] = {
                figure: replace(one, verdict="not judged", reason=CHANCE, rounds_needed=None)
                for figure, one in against_first.get(floor.path, {}).items()
            }
    return tuple(_path(floor, probed, against_first.get(floor.path, {})) for floor in probed.floors)


def _on_first_device(floor: Floor, probed: Probed) -> bool:
    return floor.device_number == probed.floors[0].device_number


def _path(floor: Floor, probed: Probed, against_first: dict[str, Comparison]) -> PathFacts:
    figure, mixed = flush_figure(floor, probed), mixed_windows(floor, probed)
    rounds = probed.rounds_of(floor.path)
    many = {one: many_times(rounds, probed.wish, one) for one in MANY_AT_ONCE}
    return PathFacts(
        path=floor.path,
        on_first_device=_on_first_device(floor, probed),
        claims=floor.claims,
        prepared=floor.prepared,
        syncs=floor.syncs,
        fastest_methods={
            test: best_sync(floor, test).method for test in ("one-write", "two-writes")
        },
        grid=floor.grid,
        patterns=tuple(_pattern(floor, pattern) for pattern in PATTERNS),
        cap=cap(floor, probed, many.get("random read")),
        flush=figure,
        heaviest=_heaviest(floor, probed),
        many_times={pattern: found for pattern, found in many.items() if found},
        rest_factors=rest_factors(floor, probed),
        rest_times=rest_times(floor, probed),
        mixed=mixed,
        under_checkpoint=span_of(one.under.per_s for one in mixed),
        beside_commits=span_of(one.writes.per_s for one in mixed),
        commits=tuple(_commits(clients, floor, probed, figure) for clients in CLIENTS),
        commit_delay_us=commit_delay_us(figure.flush.mid),
        disagreements=disagreements(floor, probed),
        doubts=doubts(floor, figure.flush.mid),
        against_first=against_first,
    )


def _heaviest(floor: Floor, probed: Probed) -> dict[Pattern, Span]:
    """What paths are compared by; where rounds have no such windows, nothing."""
    rounds, found = probed.rounds_of(floor.path), {}
    for name in COMPARED:
        windows = [one.at(probed.wish.heaviest(name)) for one in rounds]
        if rates := [window.per_s for window in windows if window]:
            found[name] = span_of(rates)
    return found


def _pattern(floor: Floor, pattern: Pattern) -> PatternFacts:
    return PatternFacts(pattern, tuple(best_points(floor, pattern)), iops_knee(floor, pattern))


def _commits(clients: int, floor: Floor, probed: Probed, figure: FlushFigure) -> CommitFacts:
    flush, row_ns = figure.flush, figure.in_a_row.mid if figure.faster_otherwise else None
    mid, low, high = (flush_limit_per_s(clients, ns) for ns in (flush.mid, flush.high, flush.low))
    return CommitFacts(
        clients,
        Span(mid, low, high, flush.n),
        _with_transactions(clients, floor, probed, flush),
        None if row_ns is None else flush_limit_per_s(clients, row_ns),
        None if row_ns is None else _commits_per_s(clients, floor, probed, row_ns),
    )


def _with_transactions(clients: int, floor: Floor, probed: Probed, flush: Span) -> Span | None:
    """The rate by the figure of the path, and by both ends of its spread."""
    told = [_commits_per_s(clients, floor, probed, ns) for ns in (flush.mid, flush.high, flush.low)]
    rates = [rate for rate in told if rate is not None]
    # Where CPU decides, the simulation of either end may lie beyond the middle by chance.
    return Span(rates[0], min(rates), max(rates), flush.n) if rates else None


def _commits_per_s(clients: int, floor: Floor, probed: Probed, flush_ns: float) -> float | None:
    """With transactions that take CPU; None: how much is not known."""
    if probed.wish.transaction_us is None:
        return None
    transaction = Transaction(cpu_ns=1000.0 * probed.wish.transaction_us)
    flush = measured_flush(floor, probed, flush_ns)
    return commit_rate_per_s(clients, flush, transaction, probed.cpus)
