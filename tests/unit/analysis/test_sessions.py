"""Sessions of the windows: what is active, how it adds up, what is left out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.analysis.blocking import with_blocking
from pgdyno.analysis.session_facts import GROUPS, REST, StageSessions
from pgdyno.analysis.sessions import NAMED_MAX, group_of, met_in, round_sessions, stage_sessions
from pgdyno.analysis.trials import POINTS_MAX
from pgdyno.catalog.waits import wait_classes
from pgdyno.model.run import TallySeries, TrialRecord, TrialState
from pgdyno.report.charts.time_axis import unbroken
from pgdyno.sample.samplers.server_sessions import LOCKS
from tests.data.met import TICKS, USUAL, key, sessions
from tests.data.miniature import START_NS, WINDOW_S, a_result

NS = 1_000_000_000
RESULT = a_result()
BEGIN_S = -(-RESULT.window_ns[0] // NS)
SECONDS = RESULT.window_ns[1] // NS - BEGIN_S


def found(tally: TallySeries, stage: str = "initdb") -> StageSessions | None:
    record = TrialRecord(1, 1, stage, "x", TrialState.FINISHED, None, START_NS, None, RESULT)
    return stage_sessions("initdb", [record], {1: {tally.name: tally}})


def usual() -> StageSessions:
    seen = found(sessions(BEGIN_S, SECONDS))
    assert seen is not None
    return seen


def test_active_is_what_runs_or_holds_a_transaction_open() -> None:
    classes = {one.name: one.average for one in usual().by["class"]}

    assert classes == pytest.approx({"flush": 2.1, "cpu": 1.4, "row": 0.8, "client": 0.5})
    assert list(classes) == ["flush", "cpu", "row", "client"], "the largest first"
    assert usual().active.average == pytest.approx(4.8), "idle sessions are none"


def test_one_window_tells_what_a_stage_of_it_alone_would() -> None:
    record = TrialRecord(1, 1, "initdb", "x", TrialState.FINISHED, None, START_NS, None, RESULT)
    one = round_sessions(record, {"sessions": sessions(BEGIN_S, SECONDS)})
    assert one is not None
    assert one.active == pytest.approx(usual().active.average)
    assert one.classes == pytest.approx({each.name: each.share for each in usual().by["class"]})
    assert round_sessions(record, {}) is None


def test_each_dimension_adds_up_to_all_active_sessions() -> None:
    """What several kinds send, as COMMIT, and what is none of the load's, too."""
    commit, other = key("flush", "IO:WalSync", statement="commit"), key("cpu")
    seen = found(sessions(BEGIN_S, SECONDS, {**USUAL, commit: 0.6, other: 0.1}))
    assert seen is not None
    for dimension in ("class", "event", "kind", "statement", "relation", "blocker"):
        assert sum(one.average for one in seen.by[dimension]) == pytest.approx(5.5)
        assert sum(one.share for one in seen.by[dimension]) == pytest.approx(1)
        assert sum(one.database_s for one in seen.by[dimension]) == pytest.approx(5.5 * SECONDS)
    assert seen.active.database_s == pytest.approx(5.5 * SECONDS)
    (line,) = seen.lines
    assert [sum(at) for at in zip(*line.groups.values(), strict=True)] == pytest.approx(
        [5.5] * SECONDS
    )
    averages = {one.name: one.average for one in seen.by["statement"]}
    assert averages["commit"] == pytest.approx(0.6), "it is the most of the time of flushes"
    assert averages["none that the load is known by"] == pytest.approx(0.1)
    kinds = {one.name: one.average for one in seen.by["kind"]}
    assert kinds["any: several send it"] == pytest.approx(0.6)


def test_blockers_are_told_by_what_they_do_and_processes_apart() -> None:
    seen = usual()
    assert [one.name for one in seen.by["blocker"]] == ["waits for no lock", "client"]
    assert [one.name for one in seen.by["process"]] == [
        "checkpointer: Timeout:CheckpointWriteDelay"
    ]
    assert seen.by["class"][1].what == "A session waits for nothing: it runs, or wants a CPU."
    told = found(sessions(BEGIN_S, SECONDS, {**USUAL, key("cpu_wait"): 0.2}))
    assert told is not None
    assert told.by["class"][1].what == "A session waits for nothing, and runs.", "they are told"


def test_blockers_that_do_the_same_are_one_key_however_many_processes_they_are() -> None:
    one = {key("row", "Lock:tuple", blocker="client 4711"): 5.0, key("cpu"): 1.0}
    each = {key("row", "Lock:tuple", blocker=f"client {pid}"): 0.1 for pid in range(50)}
    record = TrialRecord(1, 1, "initdb", "x", TrialState.FINISHED, None, START_NS, None, RESULT)
    window = met_in(record, sessions(BEGIN_S, SECONDS, {**each, key("cpu"): 1.0}))

    assert window is not None
    assert [one["blocker"] for one in window.keys] == ["client", ""]
    assert found(sessions(BEGIN_S, SECONDS, {**each, key("cpu"): 1.0})) == found(
        sessions(BEGIN_S, SECONDS, one)
    )


def queued(relation: str = "stock", **more: str) -> tuple[str, ...]:
    """A key of the tally `locks`: who waits for a row of another, that waits for its client."""
    known = {
        "lock": "tuple", "mode": "ExclusiveLock", "relation": relation, "kind": "payment",
        "statement": "pay_district", "blocker_class": "client", "blocker_kind": "new_order",
        "blocker_state": "idle in transaction", "blocker_statement": "no_district",
        "blocker": "client 4711",
    }  # fmt: skip
    return tuple((known | more).get(name, "") for name in LOCKS)


def with_queues(averages: dict[tuple[str, ...], float]) -> StageSessions:
    """What the usual sessions did, of which 0.8 wait for a row, with these queues."""
    queues = replace(sessions(BEGIN_S, SECONDS, averages), name="locks", dimensions=LOCKS)
    record = TrialRecord(1, 1, "initdb", "x", TrialState.FINISHED, None, START_NS, None, RESULT)
    tallies = {1: {"sessions": sessions(BEGIN_S, SECONDS), "locks": queues}}
    seen = stage_sessions("initdb", [record], tallies)
    assert seen is not None
    return with_blocking(seen, [record], tallies)


@pytest.mark.parametrize(
    ("averages", "told"),
    [
        (
            {queued(): 0.3, queued(blocker="cpu 12"): 0.2, queued(""): 0.1},
            {"stock": 0.5, "no relation told": 0.1,
             "not seen: the wait was over before it was asked": 0.2},
        ),
        # Two samplers look at other moments: who looks more often decides how many there were.
        ({queued(): 1.2, queued(""): 0.4}, {"stock": 0.6, "no relation told": 0.2}),
        ({}, {"not seen: the wait was over before it was asked": 0.8}),
    ],
    ids=["fewer", "more", "none"],
)  # fmt: skip
def test_sessions_by_relation_are_those_in_queues_and_all_others(
    averages: dict[tuple[str, ...], float], told: dict[str, float]
) -> None:
    seen = with_queues(averages)
    assert {one.name: one.average for one in seen.by["relation"]} == pytest.approx(
        {"waits for no lock": 4.0, **told}
    )
    assert sum(one.database_s for one in seen.by["relation"]) == pytest.approx(4.8 * SECONDS)


def test_without_a_queue_no_relation_and_no_blocker_is_told() -> None:
    seen = found(sessions(BEGIN_S, SECONDS, {key("cpu"): 1.0}))
    assert seen is not None
    assert (seen.by["relation"], seen.by["blocker"]) == ((), ())


def test_who_blocks_whom_is_told_by_what_both_do_and_not_by_process() -> None:
    prepared = queued("", blocker_class="", blocker_kind="", blocker_state="",
                      blocker_statement="", blocker="prepared transaction")  # fmt: skip
    runs = queued(blocker="cpu 12", blocker_class="cpu")
    shared = queued(mode="ShareLock")
    seen = with_queues({queued(): 0.3, runs: 0.2, shared: 0.1, prepared: 0.7})

    assert [one.waited_s / SECONDS for one in seen.blocking] == pytest.approx([0.7, 0.5, 0.1])
    first, most, least = seen.blocking
    assert first.blocker_does == {"prepared transaction": 1.0}
    assert (most.waiter_kind, most.waiter_statement) == ("payment", "pay_district")
    assert (most.lock, most.mode, most.relation) == ("tuple", "ExclusiveLock", "stock")
    assert (most.blocker_kind, most.blocker_statement) == ("new_order", "no_district")
    assert most.blocker_state == "idle in transaction"
    assert most.blocker_does == pytest.approx({"client": 0.6, "cpu": 0.4})
    assert most.low == pytest.approx(0.5), "no second is luckier than another"
    assert (least.mode, most.deepest) == ("ShareLock", 1)


def test_the_deepest_queue_is_the_least_that_it_can_have_been_in_its_second() -> None:
    tally = sessions(
        BEGIN_S, SECONDS,
        {key("row", "Lock:tuple", blocker="client 12"): 2.3,
         key("row", "Lock:tuple", blocker="cpu 12"): 0.1,
         key("row", "Lock:tuple", blocker="cpu 13"): 1.0},
    )  # fmt: skip
    counts = tally.counts.copy()
    counts[(tally.seconds == BEGIN_S + 4) & (tally.key == 0)] = 41  # in ten looks
    outside = replace(tally, counts=counts)
    record = TrialRecord(1, 3, "initdb", "x", TrialState.FINISHED, None, START_NS, None, RESULT)
    seen = stage_sessions("initdb", [record], {1: {"sessions": outside}})
    assert seen is not None
    queue = with_blocking(seen, [record], {1: {"sessions": outside}}).deepest

    assert queue is not None
    assert (queue.sessions, queue.round, queue.head) == (5, 3, ("client", "cpu")), "4.2 on average"
    assert queue.second == pytest.approx((BEGIN_S + 4) - RESULT.window_ns[0] / NS)
    assert with_blocking(usual(), [record], {}).deepest is None


def test_seconds_in_which_nobody_looked_are_no_part_of_a_line() -> None:
    """The points after them stand at their own seconds, however many are averaged to one."""
    seconds = 3 * POINTS_MAX
    record = TrialRecord(
        1, 1, "initdb", "x", TrialState.FINISHED, None, START_NS, None,
        replace(RESULT, window_ns=(BEGIN_S * NS, (BEGIN_S + seconds) * NS)),
    )  # fmt: skip
    tally = sessions(BEGIN_S, seconds)
    seen = tally.tick_seconds >= BEGIN_S + seconds // 2
    counted = tally.seconds >= BEGIN_S + seconds // 2
    early = tally.tick_seconds < BEGIN_S + 30
    counted |= tally.seconds < BEGIN_S + 30
    tally = replace(
        tally, seconds=tally.seconds[counted], key=tally.key[counted],
        counts=tally.counts[counted], tick_seconds=tally.tick_seconds[seen | early],
        ticks=tally.ticks[seen | early],
    )  # fmt: skip
    found = stage_sessions("initdb", [record], {1: {"sessions": tally}})

    assert found is not None
    (line,) = found.lines
    assert line.second[9:11] == (28.5, seconds // 2 + 1.5)
    assert len(line.second) == POINTS_MAX // 2 + 10
    parts = unbroken(line.second, line.step_s)
    assert [(one.start, one.stop) for one in parts] == [(0, 10), (10, len(line.second))]


def test_a_second_in_which_all_stood_is_seen_in_an_hour() -> None:
    """In the middle, and in the last one, which is no whole point."""
    seconds = 3_600 + 7
    record = TrialRecord(
        1, 1, "initdb", "x", TrialState.FINISHED, None, START_NS, None,
        replace(RESULT, window_ns=(BEGIN_S * NS, (BEGIN_S + seconds) * NS)),
    )  # fmt: skip
    tally = sessions(BEGIN_S, seconds)
    counts = tally.counts.copy()
    stood = (tally.seconds == BEGIN_S + 1_234) | (tally.seconds == BEGIN_S + seconds - 1)
    counts[stood] *= 10
    found = stage_sessions("initdb", [record], {1: {"sessions": replace(tally, counts=counts)}})

    assert found is not None
    (line,) = found.lines
    step = int(line.step_s)
    usual = sorted(line.greatest)[len(line.greatest) // 2]
    peaks = [at for at, most in enumerate(line.greatest) if most > 5 * usual]
    assert peaks == [1_234 // step, (seconds - 1) // step]
    assert max(sum(at) for at in zip(*line.groups.values(), strict=True)) < 5 * usual
    assert len(line.least) == len(line.second) <= POINTS_MAX
    assert max(line.least) <= usual
    for group, alone in line.apart.items():
        most = [at for at, one in zip(alone.second, alone.values, strict=True)
                if one == max(alone.values)]  # fmt: skip
        assert max(alone.values) > max(line.groups[group]), "a mean of seconds does not tell"
        assert {int(at) for at in most} <= {1_234, seconds - 1}
    assert line.apart.keys() == line.groups.keys()
    assert line.second[-1] < seconds


def test_seconds_outside_of_the_window_do_not_count() -> None:
    early = sessions(BEGIN_S - 10, SECONDS + 20)
    counts = early.counts.copy()
    outside = (early.seconds < BEGIN_S) | (early.seconds >= BEGIN_S + SECONDS)
    counts[outside] *= 100
    seen = found(replace(early, counts=counts))
    assert seen == usual()
    assert seen is not None
    assert seen.ticks == SECONDS * TICKS
    assert (WINDOW_S - 1 <= SECONDS <= WINDOW_S, seen.seconds) == (True, SECONDS)


def test_rare_kinds_are_added_up() -> None:
    many = {key("cpu", kind="k", statement=f"s{n}"): 1.0 + n for n in range(NAMED_MAX + 5)}
    seen = found(sessions(BEGIN_S, SECONDS, many))
    assert seen is not None
    shares = seen.by["statement"]
    assert len(shares) == NAMED_MAX + 1
    assert shares[-1].name == REST
    assert sum(one.average for one in shares) == pytest.approx(sum(many.values()))
    # They have names still: another stage may tell one of them apart.
    assert seen.rest["statement"] == pytest.approx({f"k · s{n}": 1.0 + n for n in range(5)})
    assert "kind" not in seen.rest


def test_without_looks_nothing_is_said() -> None:
    assert found(sessions(BEGIN_S - 1000, 10)) is None
    assert found(sessions(BEGIN_S, SECONDS), stage="another") is None
    empty = found(sessions(BEGIN_S, SECONDS, {key("client", state="idle"): 3.0}))
    assert empty is not None
    assert empty.active.average == 0
    assert empty.by["class"] == ()


def test_sessions_that_do_not_say_what_they_do_are_not_idle() -> None:
    untold = key("client", "Client:ClientRead", state="disabled")
    assert found(sessions(BEGIN_S, SECONDS, {untold: 3.0})) is None
    seen = found(sessions(BEGIN_S, SECONDS, {untold: 3.0, key("cpu"): 1.0}))
    assert seen is not None
    assert seen.active.average == pytest.approx(1), "one of them alone does not tell"


def test_few_seconds_have_no_interval() -> None:
    seen = found(sessions(BEGIN_S, 3))
    assert seen is not None
    assert all(one.low is None and one.high is None for one in seen.by["class"])


def test_every_class_has_a_group_that_charts_draw() -> None:
    assert {group_of(one) for one in (*wait_classes(), "cpu", "cpu_wait", "unheard")} <= set(GROUPS)
    assert {key[1] for key in USUAL} <= {*wait_classes(), "cpu"}
