"""The checks of `stats`, asked about one trial, and summed up over the rounds of a stage.

Contradictory values are an answer too: unknown, with the contradiction as its fact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from pgdyno.analysis.ceiling import rate
from pgdyno.analysis.efficiency import per_transaction
from pgdyno.analysis.facts import Judgement
from pgdyno.model.client import Client
from pgdyno.model.errors import PgdynoError
from pgdyno.model.fleet import HostResult
from pgdyno.model.host_address import host_address
from pgdyno.model.host_time import host_idle_share
from pgdyno.model.run import TrialRecord, TrialResult
from pgdyno.model.wording import plural
from pgdyno.stats.client_limit import client_limit as judge_client
from pgdyno.stats.client_limit import load_of
from pgdyno.stats.finding import Answer, Clear, Finding
from pgdyno.stats.fleet import card_limit
from pgdyno.stats.placement import placement as judge_placement
from pgdyno.stats.steady import check_window
from pgdyno.stats.window import Checkpoint, checkpoint_facts, cycles_by_begins
from pgdyno.stats.window_end import answer_of
from pgdyno.stats.window_end import window_end as add_up

NS = 1e9
_DOUBT = ("clear", "steady", "unknown", "drifting", "finding")  # most doubtful last


def client_limit(
    result: TrialResult,
    *,
    server_on_host: bool,
    ceiling_per_s: float | None = None,
    host_ceilings: Mapping[str, float] = MappingProxyType({}),
) -> Judgement:
    """Whether the load generator was the limit, instead of the server; of hosts the worst one.

    Args:
        result: Of the trial.
        server_on_host: Whether the server is on the host that the head runs on.
        ceiling_per_s: What one driver could have reached; None: not known.
        host_ceilings: The same of each host that several come from, as far as it is known.
    """
    if result.fleet is not None:
        found = [(host.name, host_limit(result, host, server_on_host=server_on_host,
                                        ceiling_per_s=host_ceilings.get(host.name)))
                 for host in result.fleet.hosts]  # fmt: skip
        name, worst = max(found, key=lambda one: _DOUBT.index(one[1].verdict))
        return replace(worst, fact=f"host {name}: {worst.fact}")
    return _client_limit(
        result.client, rate(result), host_idle_share(result.deltas, result.window_s),
        server_on_host=server_on_host, ceiling_per_s=ceiling_per_s,
    )  # fmt: skip


def host_limit(
    result: TrialResult,
    host: HostResult,
    *,
    server_on_host: bool,
    ceiling_per_s: float | None = None,
) -> Judgement:
    """Whether one of several hosts was the limit: its threads, its CPUs or its network card.

    Args:
        result: Of all of them.
        host: The one that is asked about.
        server_on_host: Whether the server is on the host that the head runs on.
        ceiling_per_s: What its driver could have reached; None: not known.
    """
    here = host_address(host.name).is_here
    idle = None if host.around is None else host.around.idle_share
    if here:  # sampled all the time by the head
        idle = host_idle_share(result.deltas, result.window_s)
    found = _client_limit(
        host.client, host.ended / host.client.window_s, idle,
        server_on_host=here and server_on_host, ceiling_per_s=ceiling_per_s,
    )  # fmt: skip
    card = card_limit(host.around)
    if card is None or found.verdict == "finding":
        return found
    return Judgement("finding", card, "Take more hosts, faster cards, or a face with less to send.")


def _client_limit(
    client: Client,
    per_s: float,
    idle_share: float | None,
    *,
    server_on_host: bool,
    ceiling_per_s: float | None = None,
) -> Judgement:
    try:
        load = load_of(
            client,
            host_idle_share=idle_share,
            server_on_host=server_on_host,
            transactions_per_s=per_s,
            ceiling_per_s=ceiling_per_s,
        )
        return _judgement(judge_client(load))
    except PgdynoError as error:
        return Judgement("unknown", error.fact, error.hint)


def steadiness(throughput: npt.NDArray[np.float64]) -> Judgement:
    """Whether the window was steady.

    Args:
        throughput: Transactions in each second of the window, shape `(seconds,)`.
    """
    try:
        found = check_window(throughput)
    except PgdynoError as error:
        return Judgement("unknown", error.fact, error.hint)
    fact = found.fact
    if found.stall_s > 0:
        fact += f"; {found.stall_s:g} s below half of the median, counted"
    return Judgement(found.state.value, fact, None)


def checkpoint_cycle(result: TrialResult) -> tuple[int | None, Judgement]:
    """Checkpoints completed in the window, and whether it holds whole cycles of them."""
    known = _known_checkpoints(result)
    begin, end = (moment / NS for moment in result.window_ns)
    if known is None and result.followed is not None:
        begins = sorted(one / NS for one in result.followed.begins_ns)
        completed, answer = cycles_by_begins(begins, begin, end)
        return completed, _judgement(answer)
    try:
        found = checkpoint_facts(known, begin, end)
    except PgdynoError as error:
        return None, Judgement("unknown", error.fact, error.hint)
    return None if known is None else found.completed, _judgement(found.answer)


def window_end(result: TrialResult) -> Judgement:
    """Whether all requests of the window have an answer, or some are lower bounds."""
    counts = [kind.window for kind in result.kinds]
    return _judgement(answer_of(add_up(counts, result.given_up_s, result.unlogged)))


def placement(trials: Sequence[TrialRecord], *, server_on_host: bool) -> Judgement:
    """Whether throughput goes with where the scheduler placed sessions.

    Args:
        trials: Those that finished.
        server_on_host: Whether driver and server shared a host.
    """
    if not server_on_host:
        return Judgement(
            "unknown", "where a server runs that pgdyno did not start was not looked at", None
        )
    costs = [(one, per_transaction(one.result).get("ipis")) for one in trials if one.result]
    known = [(one, ipis) for one, ipis in costs if ipis is not None]
    if not known:
        return Judgement("unknown", "interrupts between CPUs were not counted", None)
    _, stages = np.unique([one.stage for one, _ in known], return_inverse=True)
    rates = np.array([rate(one.result) for one, _ in known if one.result], dtype=np.float64)
    ipis = np.array([value for _, value in known], dtype=np.float64)
    return _judgement(judge_placement(stages, np.log(rates), ipis))


def most_doubtful(
    judgements: Sequence[Judgement | None], shares: Sequence[float | None] = ()
) -> Judgement | None:
    """The judgement of the most doubtful round, with the number of rounds that share it.

    The fact is that round's; where others of the same verdict have other facts, it says of how many
    it is, but for the clauses that it begins with as they all do.

    Args:
        judgements: Of the rounds.
        shares: By which one is more doubtful than another of its verdict: the greatest is; none
            where verdicts alone tell.
    """
    of_each = shares or [None] * len(judgements)
    known = [(one, share or 0.0) for one, share in zip(judgements, of_each, strict=True) if one]
    if not known:
        return None
    worst, _ = max(known, key=lambda each: (_DOUBT.index(each[0].verdict), each[1]))
    alike = [one for one, _ in known if one.verdict == worst.verdict]
    clauses = [one.fact.split("; ") for one in alike]
    of_worst = worst.fact.split("; ")
    side_by_side = zip(*clauses, strict=False)
    shared = len(list(takewhile(lambda each: len({*each}) == 1, side_by_side)))
    first, own = of_worst[:shared], "; ".join(of_worst[shared:])
    same = sum(one[: len(of_worst)] == of_worst for one in clauses)
    if own and same < len(alike):
        own = f"in {plural(same, 'round')}: {own}"
    fact = "; ".join([*first, own] if own else first)
    return replace(worst, fact=fact, rounds=len(alike), of_rounds=len(known))


def _judgement(answer: Answer) -> Judgement:
    if isinstance(answer, Finding):
        return Judgement("finding", answer.fact, answer.advice)
    return Judgement("clear" if isinstance(answer, Clear) else "unknown", answer.fact, None)


def _known_checkpoints(result: TrialResult) -> list[Checkpoint] | None:
    if result.checkpoints is None:
        return None
    return [
        Checkpoint(event.start_ns / NS, None if event.end_ns is None else event.end_ns / NS)
        for event in result.checkpoints
    ]
