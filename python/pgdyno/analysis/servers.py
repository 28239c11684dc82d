"""Several servers that a workload was divided over: what each did, and how they are unlike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import median

from pgdyno.analysis.facts import PartFacts
from pgdyno.analysis.server_facts import ServerRow, ServersFacts, UnlikeSetting
from pgdyno.model.plan import Plan
from pgdyno.model.run import TrialRecord, TrialResult
from pgdyno.model.server_result import ServerResult

_CHECKPOINTS = ("checkpoints.timed", "checkpoints.requested")
_COMMITS, _OWN_COMMITS = "database.commits", "database.own_commits"
_Driven = tuple[TrialResult, ServerResult]


def servers_facts(
    plan: Plan, finished: Sequence[TrialRecord], parts: Sequence[PartFacts]
) -> ServersFacts | None:
    """The servers of all stages; None: there was one.

    Args:
        plan: Of the run.
        finished: Trials whose numbers are used.
        parts: Throughput and times of what the servers were asked for, by stage and name.
    """
    results = [(one.stage, one.result) for one in finished if one.result and one.result.servers]
    if not results:
        return None
    first = results[0][1].servers
    of_part = {(one.stage, one.name): one for one in parts}
    rows = []
    for stage in plan.stages:
        driven = [result for name, result in results if name == stage.name]
        for number, server in enumerate(first if driven else ()):
            pairs = [(result, result.servers[number]) for result in driven]
            rows.append(_row(of_part[stage.name, server.name], pairs))
    return ServersFacts(
        tuple(one.name for one in first), plan.target.share, tuple(rows), tuple(_unlike(first))
    )


def _row(part: PartFacts, driven: Sequence[_Driven]) -> ServerRow:
    server = driven[0][1]
    has_own = all(_OWN_COMMITS in one.deltas for _, one in driven)
    checked = [one.violations for _, one in driven if one.violations is not None]
    return ServerRow(
        stage=part.stage,
        server=server.name,
        held=server.held,
        version=server.server.partition(" on ")[0],
        rounds=len(driven),
        throughput=part.throughput.median,
        share=median(
            _ended(result, one) / max(1, sum(_ended(result, each) for each in result.servers))
            for result, one in driven
        ),
        percentiles_ns=part.percentiles_ns,
        exact_below_ns=part.exact_below_ns,
        commits_per_s=_median(
            driven, lambda result, one: _commits_per_s(one, result.window_s, apart=has_own)
        ),
        commits_are_most=not has_own,
        wal_bytes_per_s=_median(
            driven, lambda result, one: _per(one, "wal.bytes", result.window_s)
        ),
        wal_bytes_per_transaction=_median(
            driven, lambda result, one: _per(one, "wal.bytes", _ended(result, one))
        ),
        checkpoints=_sum(driven),
        checked=len(checked),
        violations=sum(checked),
    )


def _median(
    driven: Sequence[_Driven], of: Callable[[TrialResult, ServerResult], float | None]
) -> float | None:
    found = [value for one in driven if (value := of(*one)) is not None]
    return median(found) if found else None


def _per(server: ServerResult, counter: str, over: float) -> float | None:
    """Growth of a counter for each second, or transaction; None: it is not known."""
    grown = server.deltas.get(counter)
    return None if grown is None or not over else grown / over


def _commits_per_s(server: ServerResult, window_s: float, *, apart: bool) -> float | None:
    """In the driven database; apart: without those of sessions that look on."""
    found = _per(server, _COMMITS, window_s)
    if found is None or not apart:
        return found
    # Both are interpolated: where nobody else commits, rounding must not make it less than nothing.
    return max(0.0, found - server.deltas[_OWN_COMMITS] / window_s)


def _sum(driven: Sequence[_Driven]) -> float | None:
    counts = [one.deltas.get(name) for _, one in driven for name in _CHECKPOINTS]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _ended(result: TrialResult, server: ServerResult) -> int:
    """Transactions that came to their end on a server, in the window."""
    return sum(
        kind.window.ended
        for part in result.parts if part.name == server.name
        for kind in part.kinds
    )  # fmt: skip


def _unlike(servers: Sequence[ServerResult]) -> Iterator[UnlikeSetting]:
    for name in sorted({name for one in servers for name in one.configured}):
        values = tuple(one.configured.get(name) for one in servers)
        if len(set(values)) > 1:
            yield UnlikeSetting(name, values)
