"""Session time adds up, whatever the witnesses say: no part is negative, none is lost or made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.analysis.account_facts import (
    IDLE,
    IN_FLIGHT,
    RUNNING,
    UNDIVIDED,
    WANTS_CPU,
    Account,
    NoAccount,
    quantiles,
)
from pgdyno.analysis.diagnosis_facts import StatementShare
from pgdyno.analysis.session_account import account_of, in_flight
from pgdyno.catalog.waits import wait_classes
from pgdyno.model.run import KindResult, TrialRecord, TrialResult, TrialState
from pgdyno.report.sections.diagnosis import statements_table
from tests.data.met import Key, key, sessions
from tests.data.miniature import START_NS, WINDOW_S, a_result

RESULT = a_result()
CLASSES = sorted({*wait_classes(), "cpu", "cpu_wait"} - {"idle"})
BLOCKERS = st.sampled_from(
    ("", "client 7", "flush 7", "row 7", "cpu_wait 7", "prepared transaction")
)
KEYS = st.builds(
    lambda wait_class, state, blocker: key(wait_class, state=state, blocker=blocker),
    st.sampled_from(CLASSES),
    st.sampled_from(("active", "idle", "idle in transaction")),
    BLOCKERS,
)
AVERAGES = st.dictionaries(KEYS, st.floats(0.1, 9.0), min_size=1, max_size=8)
TIMES = st.one_of(st.none(), st.floats(0.0, 20.0))


def account(
    averages: Mapping[Key, float],
    *,
    ran: float | None = None,
    wanted: float | None = None,
    in_flight: float | None = None,
    rng: np.random.Generator | None = None,
    result: TrialResult = RESULT,
    beside_server: bool = True,
) -> Account | NoAccount:
    """Of a window with these sessions; what kernel and driver tell is in sessions on average."""
    window_s = result.window_s
    told = {"process.backend.cpu_s": ran, "process.backend.wait_cpu_s": wanted}
    result = replace(
        result,
        deltas={name: value * window_s for name, value in told.items() if value is not None},
        kinds=with_in_flight(result, in_flight),
    )
    tally = sessions(result.window_ns[0] // 1_000_000_000, WINDOW_S, averages, rng)
    record = TrialRecord(1, 1, "s", "x", TrialState.FINISHED, None, START_NS, None, result)
    return account_of(record, {tally.name: tally}, beside_server=beside_server)


def with_in_flight(result: TrialResult, level: float | None) -> tuple[KindResult, ...]:
    """Kinds whose statements were under way so many at a time."""
    first = result.kinds[0]
    if level is None:
        return (replace(first, statements=()),)
    statement = replace(first.statements[0], count=1_000)
    ns = round(level * result.window_s * 1e9 / 1_000)
    return (replace(first, statements=(replace(statement, ns={"mean": ns}),)),)


@given(averages=AVERAGES, ran=TIMES, wanted=TIMES, in_flight=TIMES)
def test_parts_and_roots_add_up_to_all_sessions(
    averages: dict[Key, float], ran: float | None, wanted: float | None, in_flight: float | None
) -> None:
    found = account(averages, ran=ran, wanted=wanted, in_flight=in_flight)
    if isinstance(found, NoAccount):
        assert found.reason == "no session of the load was met"
        return
    for each in (found.parts, found.roots):
        total = np.sum(list(each.values()), axis=0)
        assert total == pytest.approx(np.full_like(total, found.sessions))
        assert min(one.min() for one in each.values()) >= -1e-9
    assert (UNDIVIDED in found.parts) == (in_flight is None)
    assert (IN_FLIGHT in found.parts) == (IDLE in found.parts) == (in_flight is not None)


@given(averages=AVERAGES, ran=TIMES, wanted=TIMES, in_flight=TIMES)
def test_what_was_met_as_waits_is_a_part_of_cpu_time(
    averages: dict[Key, float], ran: float | None, wanted: float | None, in_flight: float | None
) -> None:
    found = account(averages, ran=ran, wanted=wanted, in_flight=in_flight)
    if isinstance(found, NoAccount) or not found.inside:
        return
    inside = np.sum(list(found.inside.values()), axis=0)
    assert inside.min() >= -1e-9
    assert (inside <= found.parts[RUNNING] + found.parts[WANTS_CPU] + 1e-9).all()


@given(averages=AVERAGES, factor=st.floats(0.5, 3.0))
def test_idle_sessions_more_change_no_other_part(averages: dict[Key, float], factor: float) -> None:
    """Nobody asked them anything: shares fall alike, levels stay."""
    idle = key("client", "Client:ClientRead", state="idle", kind="more")
    before, after = account(averages, in_flight=0.0), account({**averages, idle: factor},
                                                              in_flight=0.0)  # fmt: skip
    if isinstance(before, NoAccount) or isinstance(after, NoAccount):
        return
    for name, draws in before.parts.items():
        if name != IDLE:
            assert after.parts[name][0] == pytest.approx(draws[0])


def test_who_was_woken_and_has_no_cpu_is_taken_from_what_it_waited_for() -> None:
    """As measured on a full host: samples show 9 of 12 waiting for a client that has asked."""
    met = {
        key("client", "Client:ClientRead", state="idle"): 9.0,
        key("cpu_wait"): 2.0,
        key("cpu"): 1.0,
    }
    found = account(met, ran=1.0, wanted=9.0, in_flight=12.0)
    assert isinstance(found, Account)
    parts = {name: float(one[0]) for name, one in found.parts.items()}
    assert parts[RUNNING] == pytest.approx(1.0)
    assert parts[WANTS_CPU] == pytest.approx(9.0)
    assert parts[IN_FLIGHT] == pytest.approx(2.0, abs=0.01)
    assert parts[IDLE] == pytest.approx(0.0, abs=0.01)
    assert found.excess == 0


@given(connections=st.integers(1, 12), held_s=st.floats(0.05, 1.0), phase=st.floats(0.0, 1.0))
def test_what_the_window_cuts_counts_once(connections: int, held_s: float, phase: float) -> None:
    """All but one wait for one row: seen whole of all that lasted into the window or out of it."""
    waits_s, window_s = (connections - 1) * held_s, RESULT.window_s
    each_s = waits_s + held_s  # a request: it waits for the row, then holds it and asks nothing
    begins = np.arange(-2 * connections - 2, window_s / held_s + 2) * held_s + phase * held_s
    timed = (begins < window_s) & (begins + each_s > 0)
    counts = replace(
        RESULT.kinds[0].window,
        succeeded=int((timed & (begins + each_s <= window_s)).sum()), rolled_back=0, unanswered=0,
        drained=int((timed & (begins + each_s > window_s)).sum()),
    )  # fmt: skip
    statement = replace(
        RESULT.kinds[0].statements[0], count=int(timed.sum()), ns={"mean": round(waits_s * 1e9)}
    )
    kind = replace(RESULT.kinds[0], window=counts, statements=(statement,))
    found = in_flight(replace(RESULT, kinds=(kind,)))
    # One request more or less may end within it, by where it begins.
    assert found == pytest.approx(connections - 1, abs=waits_s / window_s + 1e-6)


def test_it_is_so_where_the_driver_does_not_tell_what_is_under_way() -> None:
    """Else waits of other classes would have to give what waits for the client hide."""
    met = {
        key("client", "Client:ClientRead", state="idle"): 2.0,
        key("flush", "IO:WalSync"): 4.0,
        key("cpu"): 1.0,
    }
    found = account(met, ran=1.0, wanted=1.5)
    assert isinstance(found, Account)
    assert found.parts["flush"][0] == pytest.approx(4.0)
    assert found.parts[UNDIVIDED][0] == pytest.approx(0.5)


def test_the_kernel_counts_more_than_there_are_sessions() -> None:
    found = account({key("flush"): 2.0}, ran=1.0, wanted=4.0, in_flight=2.0)
    assert isinstance(found, Account)
    assert found.excess == pytest.approx(3.0)


def test_waits_for_a_lock_go_to_what_its_holder_did() -> None:
    met = {
        key("row", "Lock:transactionid"): 6.0,
        key("row", "Lock:transactionid", blocker="flush 7"): 0.6,
        key("row", "Lock:transactionid", blocker="client 9"): 0.2,
        key("row", "Lock:transactionid", blocker="row 8"): 1.0,
        key("flush", "IO:WalSync"): 1.0,
        key("client", "Client:ClientRead", state="idle in transaction"): 0.2,
    }
    found = account(met, in_flight=9.0)
    assert isinstance(found, Account)
    roots = {name: float(one[0]) for name, one in found.roots.items()}
    assert "row" not in roots
    assert roots["flush"] == pytest.approx(1.0 + 7.8 * 0.75)
    assert roots[IN_FLIGHT] == pytest.approx(0.2 + 7.8 * 0.25)
    assert found.parts["row"][0] == pytest.approx(7.8)
    assert found.holders_seen == pytest.approx(0.8 * 10 * found.seconds)


def test_a_holder_that_nobody_saw_leaves_the_wait_where_it_is() -> None:
    found = account({key("row", "Lock:tuple"): 6.0, key("cpu"): 1.0})
    assert isinstance(found, Account)
    assert found.roots["row"][0] == pytest.approx(6.0)
    assert found.moved == {}


def test_latches_are_the_cpus_where_sessions_want_cpus() -> None:
    met = {key("page", "LWLock:BufferContent"): 3.0, key("cpu"): 2.0}
    busy = account({**met, key("cpu_wait"): 2.0}, ran=2.0, wanted=2.0)
    free = account(met, ran=2.0, wanted=0.0)
    assert isinstance(busy, Account)
    assert isinstance(free, Account)
    assert busy.roots[WANTS_CPU][0] == pytest.approx(5.0)
    assert "page" not in busy.roots
    assert free.roots["page"][0] == pytest.approx(3.0)


def test_a_client_that_wants_a_cpu_of_the_servers_host_is_the_cpus() -> None:
    """As measured with reads in memory: 3 of 8 requests were at a driver that had no CPU."""
    met = {key("client", "Client:ClientRead", state="idle"): 3.0, key("cpu"): 5.0}
    client = replace(RESULT.client, thread_cpu_s=(3.0, 3.0), thread_wait_s=(9.0, 9.0), threads=2)
    beside = account(met, in_flight=8.0, result=replace(RESULT, client=client))
    assert isinstance(beside, Account)
    assert beside.parts[IN_FLIGHT][0] == pytest.approx(3.0, rel=0.01), "as it was met"
    assert beside.roots[WANTS_CPU][0] == pytest.approx(3.0 * 0.75, rel=0.01)
    assert beside.roots[IN_FLIGHT][0] == pytest.approx(3.0 * 0.25, rel=0.01)
    hardly = replace(client, thread_cpu_s=(0.1, 0.1), thread_wait_s=(0.3, 0.3))
    little = account(met, in_flight=8.0, result=replace(RESULT, client=hardly))
    assert isinstance(little, Account)
    most = 8.0 / 2 * 0.6 / RESULT.window_s
    assert little.roots[WANTS_CPU][0] == pytest.approx(most), (
        "its threads' waiting holds up no more"
    )
    apart = account(met, in_flight=8.0, result=replace(RESULT, client=client), beside_server=False)
    assert isinstance(apart, Account)
    assert apart.roots[IN_FLIGHT][0] == pytest.approx(3.0, rel=0.01)


@pytest.mark.parametrize("seed", range(5))
def test_a_known_share_lies_within_its_interval(seed: int) -> None:
    """Of five shares drawn from one truth; the interval is wider than the error of sampling."""
    met = {key("flush"): 2.0, key("cpu"): 1.0, key("client", state="idle"): 1.0}
    found = account(met, in_flight=3.0, rng=np.random.default_rng(seed))
    assert isinstance(found, Account)
    low, value, high = quantiles(found.share("flush"))
    assert low <= value <= high
    assert low - 0.02 <= 0.5 <= high + 0.02


def test_sessions_that_were_there_in_one_second_only_are_an_account_too() -> None:
    """Redraws of other seconds hold none: they are no share, and no error."""
    first = RESULT.window_ns[0] // 1_000_000_000 + 1
    tally = sessions(first, 3, {key("flush"): 2.0})
    alone = replace(tally, seconds=tally.seconds[:1], key=tally.key[:1], counts=tally.counts[:1])
    record = TrialRecord(1, 1, "s", "x", TrialState.FINISHED, None, START_NS, None, RESULT)
    found = account_of(record, {alone.name: alone})
    assert isinstance(found, Account)
    assert found.share("flush")[0] == pytest.approx(1.0)
    assert np.isfinite(found.share("flush")).all()


def test_statements_join_what_the_driver_and_the_server_call_otherwise() -> None:
    met = {
        key("flush", kind="", statement="commit"): 2.0,
        key("cpu", kind="new_order", statement="no_stock_04"): 1.0,
        key("row", kind="new_order", statement="no_stock_05"): 0.5,
        key("client", "Client:ClientRead", state="idle"): 1.5,
    }
    tally = sessions(RESULT.window_ns[0] // 1_000_000_000, WINDOW_S, met)
    kinds = tuple(
        replace(kind, statements=tuple(
            replace(RESULT.kinds[0].statements[0], name=name, count=1_000,
                    ns={"mean": round(level * RESULT.window_s * 1e6)})
            for name, level in (("commit", 1.0), ("no_stock", 2.0))[: 2 - place]))
        for place, kind in enumerate(RESULT.kinds[:2])
    )  # fmt: skip
    record = TrialRecord(1, 1, "s", "x", TrialState.FINISHED, None, START_NS, None,
                         replace(RESULT, kinds=kinds))  # fmt: skip
    found = account_of(record, {tally.name: tally})
    assert isinstance(found, Account)
    of = {(one.kind, one.statement): one for one in found.by_statement}
    assert set(of) == {("", "commit"), ("new_order", "no_stock")}
    commit = of["", "commit"]
    assert commit.in_flight == pytest.approx(2.0, rel=0.01), "one of each kind"
    assert commit.server == pytest.approx({"flush": 2.0})
    assert of["new_order", "no_stock"].active == pytest.approx(1.5)
    # What is sent at once is met by its single statements: 3.23 under way were told as 0.00 met.
    at_once = replace(commit, kind="new_order", statement="no_order+commit", server={})
    assert at_once.active is None
    rare = StatementShare("new_order", "no_items", 0.04, 0.0, "")
    sent = replace(rare, statement=at_once.statement, in_flight=3.23, active=at_once.active)
    assert "single statements" not in statements_table("s", (rare,)).caption
    table = statements_table("s", (sent, rare))
    assert table.caption.endswith(" what is sent at once (+) as single statements.")
    told = [[cell.text for cell in row] for row in table.rows]
    assert told == [
        ["new_order · no_order+commit", "3.23", "–", "–"],
        ["new_order · no_items", "0.04", "0.00", "–"],
    ]
    # Requests that began before a short window count in it: 16.5 were told of 16 sessions.
    half = {name: level / 2 for name, level in met.items()}
    few = sessions(RESULT.window_ns[0] // 1_000_000_000, WINDOW_S, half)
    found = account_of(record, {few.name: few})
    assert isinstance(found, Account)
    under_way = [one.in_flight or 0.0 for one in found.by_statement]
    assert sum(under_way) == pytest.approx(found.sessions) == pytest.approx(2.5)
    # What no second of the window met is told as nothing, not as a wait of no time.
    row = next(place for place, one in enumerate(tally.keys) if "no_stock_05" in one)
    early = replace(tally, counts=np.where(tally.key == row, 0, tally.counts))
    found = account_of(record, {tally.name: early})
    assert isinstance(found, Account)
    (stock,) = [one for one in found.by_statement if one.statement == "no_stock"]
    assert stock.server == pytest.approx({"cpu": 1.0})
