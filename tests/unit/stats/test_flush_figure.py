"""One figure of a flush: nothing that was measured contradicts it, and disagreement is told."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data.probed import at_rates, floor, in_rounds, probed

from pgdyno.model.floor import Floor, PathRound, Probed, SyncRate
from pgdyno.model.floor_figures import PROGRAMS
from pgdyno.stats.flush_figure import (
    disagreements,
    flush_figure,
    measured_flush,
    rest_factors,
    span_of,
)
from pgdyno.stats.group_commit import Flush, Transaction, commit_rate_per_s, flush_limit_per_s

RATES = st.floats(50, 500_000)
ROUND = st.tuples(RATES, RATES)


def path_rounds(rates: list[tuple[float, float]]) -> Probed:
    return in_rounds(*((at_rates("/a", fsync, fio),) for fsync, fio in rates))


def whole_flush(one: Floor, found: Probed) -> Flush:
    return measured_flush(one, found, flush_figure(one, found).flush.mid)


def told(found: Probed) -> str:
    return " | ".join(doubt.fact for doubt in disagreements(found.floors[0], found))


@given(rates=st.lists(ROUND, min_size=2, max_size=7))
@settings(max_examples=200, deadline=None)
def test_no_probe_contradicts_the_figure(rates: list[tuple[float, float]]) -> None:
    found = path_rounds(rates)
    one = found.floors[0]
    figure = flush_figure(one, found)
    rounds = found.rounds_of("/a")

    assert figure.flush.low <= figure.flush.mid <= figure.flush.high
    assert figure.commits.mid == pytest.approx(1e9 / figure.flush.mid)
    for span in figure.programs:
        assert span.mid >= figure.flush.mid * (1 - 1e-9), "a program's median is above the limit"
        assert figure.flush.low <= span.low <= span.high <= figure.flush.high
    for probe in rounds:
        windows = (probe.mixed.alone, probe.mixed.under, *probe.rested)
        fastest = max(window.per_s for window in windows)
        assert fastest <= figure.commits.high * (1 + 1e-9)
    under = span_of(probe.mixed.under.per_s for probe in rounds)
    assert under.mid <= figure.commits.mid * (1 + 1e-9)


@given(
    clients=st.sampled_from([1, 2, 8]),
    rates=st.lists(ROUND, min_size=2, max_size=3),
    cpu_us=st.floats(0.5, 5000),
)
@settings(max_examples=8, deadline=None)
def test_a_prediction_stays_below_what_flushes_allow(
    clients: int, rates: list[tuple[float, float]], cpu_us: float
) -> None:
    found = path_rounds(rates)
    one = found.floors[0]
    rate = commit_rate_per_s(
        clients, whole_flush(one, found), Transaction(cpu_ns=1000 * cpu_us), found.cpus
    )

    limit = flush_limit_per_s(clients, flush_figure(one, found).flush.mid)
    assert rate <= limit * (1 + 1e-9)


def test_storage_that_flushes_sooner_after_rest_allows_no_more() -> None:
    """A page said 1,179/s for two clients by flushes alone, and 1,340/s with 150 µs of CPU each."""
    sooner = Flush(848e3, ((9e3, 0.0), (68e3, -59e3), (254e3, -245e3)), cpu_ns=118e3)
    for clients in (1, 2, 4, 8):
        rate = commit_rate_per_s(clients, sooner, Transaction(cpu_ns=150e3), cpus=2)
        assert rate <= flush_limit_per_s(clients, sooner.ns)


def test_the_field_report_that_contradicted_itself_does_so_no_more() -> None:
    """652 µs by pg_test_fsync and 4,802 commits a second by fio stood on one page."""
    once = probed(
        replace(
            floor("/a"),
            syncs=(SyncRate("one-write", "fdatasync", 1535.0), SyncRate("unsynced", "write", 2e6)),
            mixed=at_rates("/a", 1535, 4802).mixed, rested=(),
        )
    )  # fmt: skip
    figure = flush_figure(once.floors[0], once)

    assert figure.rounds == 0
    assert figure.commits.mid == pytest.approx(4802)
    assert figure.commits.low == pytest.approx(1535)
    assert "pg_test_fsync says 651 µs, fio 208 µs; each measured once" in told(once)
    flush = whole_flush(once.floors[0], once)
    assert flush_limit_per_s(1, flush.ns) == pytest.approx(4802)


def test_the_run_of_all_methods_is_a_probe_too() -> None:
    found = path_rounds([(5000, 5000), (5100, 5100)])
    figure = flush_figure(found.floors[0], found)

    assert figure.flush.n == 5
    assert figure.commits.high == pytest.approx(20_599.670), "as the recorded run has it"
    assert figure.commits.mid == pytest.approx(5050, rel=0.001)


def test_programs_that_agree_are_not_told_of() -> None:
    assert told(path_rounds([(5000, 5100), (5200, 5050), (4900, 5000)])) == ""


def test_programs_that_disagree_in_every_round_are() -> None:
    text = told(path_rounds([(1500, 4800), (1550, 4700), (1600, 5000)]))

    assert text.startswith(
        "pg_test_fsync and fio disagree on what a flush takes: pg_test_fsync says "
    )
    assert "645 µs, fio 208 µs; in 3 rounds" in text
    assert "drifts" not in text


def test_programs_that_differ_by_chance_are_not() -> None:
    text = told(path_rounds([(1500, 4800), (9000, 1000), (3000, 4100)]))

    assert "disagree" not in text
    assert "drifts" in text


def test_a_flush_that_drifts_is_told_with_both_moments() -> None:
    text = told(path_rounds([(5000, 5000), (5000, 5000), (2000, 5000)]))

    assert text == (
        "the time of a flush drifts: pg_test_fsync says 200 µs in round 1 and 500 µs in round 3,"
        " 20 s apart"
    )


def test_commits_that_are_faster_under_a_checkpoint_are_told() -> None:
    one = at_rates("/a", 1000, 1000)
    under = replace(one.mixed.under, per_s=4000.0)
    busy = replace(one, mixed=replace(one.mixed, under=under))
    found = in_rounds((busy,), (busy,))

    assert (
        "250 µs each (4,000/s), fastest under a checkpoint, back to back 1.00 ms (1,000/s)"
    ) in told(found)
    assert flush_figure(found.floors[0], found).commits.mid == pytest.approx(4000)


def test_commits_are_not_called_faster_by_an_interval_that_holds_1() -> None:
    one = at_rates("/a", 1000, 1000)
    rounds = []
    for per_s in (300.0, 1500.0, 4000.0):
        under = replace(one.mixed.under, per_s=per_s)
        rounds.append((replace(one, mixed=replace(one.mixed, under=under)),))

    said = told(in_rounds(*rounds))
    assert "commits were faster" not in said
    assert "and back to back cannot be told apart: 667 µs each" in said
    assert "; ×1.28 in 3 rounds, and the interval (0.05 to 33.45) holds 1" in said


def test_where_commits_were_fastest_is_named_once() -> None:
    """After a short rest, perhaps, while a longer one takes longer: no contradiction then."""
    one = at_rates("/a", 1000, 1000)
    short, *longer = one.rested
    rested = replace(one, rested=(replace(short, per_s=4000.0), *longer))
    under = replace(one.mixed.under, per_s=3000.0)
    busy = replace(one, mixed=replace(one.mixed, under=under))

    found = in_rounds((rested,), (busy,), (rested,), (one,))
    assert flush_figure(found.floors[0], found).otherwise == "after 60 µs of rest (included)"
    found = in_rounds((one,), (one,))
    assert flush_figure(found.floors[0], found).otherwise is None


def test_the_best_moment_of_a_kind_is_not_its_figure() -> None:
    """Storage that drifted had 3,557 commits/s on top, and 1,147/s under a checkpoint below."""
    one = at_rates("/a", 1000, 1000)

    def with_under(per_s: float) -> PathRound:
        under = replace(one.mixed.under, per_s=per_s)
        return replace(one, mixed=replace(one.mixed, under=under))

    short, *longer = one.rested
    rested = replace(one, rested=(replace(short, per_s=4000.0), *longer))
    found = in_rounds((with_under(4000.0),), (rested,), (one,))
    figure = flush_figure(found.floors[0], found)

    assert figure.commits.mid == pytest.approx(1000), "each kind has 1,000/s in two of three rounds"
    steady = in_rounds((one,), (one,), (one,))
    assert figure.flush == flush_figure(steady.floors[0], steady).flush, "nor is it of its spread"
    assert figure.otherwise is None
    assert "faster under a checkpoint" not in told(found)


def test_rest_is_compared_within_its_round() -> None:
    """A storage that is four times as slow in one round takes the same share longer after rest."""
    found = path_rounds([(5000, 5000), (1250, 1250)])
    spans = rest_factors(found.floors[0], found)

    assert [span.mid for span in spans] == pytest.approx([1.25, 2, 3])
    assert [span.high / span.low for span in spans] == pytest.approx([1, 1, 1])


def test_who_rests_does_not_commit_more_often() -> None:
    """Storage that counts flushes makes up for them during a rest: its flush is shorter then."""
    one: PathRound = at_rates("/a", 1000, 1000)
    rested = tuple(
        replace(window, flush=replace(window.flush, mean_ns=1000.0), per_s=1000.0)
        for window in one.rested
    )
    found = in_rounds((replace(one, rested=rested),), (replace(one, rested=rested),))
    flush = whole_flush(found.floors[0], found)

    for pause_ns, longer in flush.paused:
        assert pause_ns + flush.ns + longer >= flush.ns
    assert len(PROGRAMS) == len(flush_figure(found.floors[0], found).programs)
