"""Each rule finds its planted case, clears a healthy window, and is silent without its needs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pgdyno.diagnosis.rules as package
from pgdyno.analysis.account_facts import IDLE, IN_FLIGHT, RUNNING, UNDIVIDED, WANTS_CPU
from pgdyno.analysis.window_facts import CheckpointSpan, WindowFacts
from pgdyno.diagnosis.rules import rules
from pgdyno.diagnosis.window import diagnose_window
from tests.data.windows import (
    DRIVER,
    FIRST,
    HEALTHY,
    LOAD,
    NEEDED,
    PLANTED,
    WINDOW_S,
    a_window,
    an_account,
    full_host,
)


def test_every_file_is_a_class_and_there_are_sixteen() -> None:
    files = {path.stem for path in Path(next(iter(package.__path__))).glob("*.py")} - {"__init__"}
    assert set(rules()) == files
    assert [rule.number for rule in rules().values()] == list(range(1, 17))


@pytest.mark.parametrize("name", rules())
def test_a_rule_says_what_it_is(name: str) -> None:
    rule = rules()[name]
    assert rule.needs
    assert rule.confounders
    assert rule.knobs
    assert all(one.what for one in rule.thresholds.values())
    assert not rule.title.endswith(".")


def test_every_rule_has_its_planted_case() -> None:
    assert set(PLANTED) == set(NEEDED) == set(rules())


@pytest.mark.parametrize("name", PLANTED)
def test_a_rule_finds_its_planted_case(name: str) -> None:
    found = diagnose_window(PLANTED[name])
    answer = found.answer(name)

    assert answer.verdict == "finding", answer.fact
    assert answer.gain is not None
    assert 1.0 <= answer.gain.low <= answer.gain.bound <= answer.gain.high
    assert answer.gain.bound > 1.05
    assert answer.knobs
    assert all(one.rung[0] == "D" and one.why for one in answer.knobs)
    assert found.outcome in ("limit", "tie")
    assert set(found.limits) & {name, *FIRST.get(name, ())}, found.sentence
    assert "not proved" in found.sentence


@pytest.mark.parametrize("name", PLANTED)
def test_what_takes_more_with_it_than_is_counted_is_an_estimate_and_no_bound(name: str) -> None:
    """Without flushes a server did 5.35 times as much where the sentence said at most 1.9."""
    found = diagnose_window(PLANTED[name])
    told = ("checkpoints", "client", "dead_rows", "flush", "memory", "neighbours", "reads",
            "round_trips")  # fmt: skip
    estimated = name in told

    gain = found.answer(name).gain
    assert gain is not None
    assert bool(gain.may_save) == estimated
    if found.limits[0] == name:
        assert ("at most ×" not in found.sentence) == estimated, found.sentence
        assert (", too: an estimate" in found.sentence) == estimated


def test_what_the_client_does_already_is_no_advice() -> None:
    window = PLANTED["round_trips"]
    asked = {one.name for one in diagnose_window(window).answer("round_trips").knobs}
    by_socket = replace(window, client=frozenset({"transport = socket", "face = pipeline"}))
    left = {one.name for one in diagnose_window(by_socket).answer("round_trips").knobs}
    assert asked - left == {"transport = socket", "face = pipeline"}


@pytest.mark.parametrize("name", PLANTED)
def test_a_rule_clears_a_healthy_window(name: str) -> None:
    found = diagnose_window(a_window()).answer(name)

    assert found.verdict == "clear", found.fact
    assert found.gain is None
    assert found.knobs == ()


@pytest.mark.parametrize("name", NEEDED)
def test_a_rule_without_its_needs_is_unknown_and_says_why(name: str) -> None:
    window, word = NEEDED[name]
    found = diagnose_window(window).answer(name)

    assert found.verdict == "unknown"
    assert word in found.fact


@pytest.mark.parametrize("name", PLANTED)
def test_every_class_answers_in_every_window(name: str) -> None:
    answers = diagnose_window(PLANTED[name]).answers
    assert [one.number for one in answers] == list(range(1, 17))
    assert all(one.fact for one in answers)


def verdict(name: str, window: WindowFacts) -> str:
    return diagnose_window(window).answer(name).verdict


def test_a_busy_driver_that_nobody_waits_for_is_not_the_limit() -> None:
    window = a_window({RUNNING: 0.5, "flush": 0.4, IN_FLIGHT: 0.1},
                      driver=replace(DRIVER, wanted=0.95))  # fmt: skip
    assert verdict("client", window) == "clear"


def test_a_client_that_fills_a_host_with_the_server_is_found_by_its_part() -> None:
    window = a_window(
        {RUNNING: 0.5, WANTS_CPU: 0.4, IN_FLIGHT: 0.1},
        driver=replace(DRIVER, cpu_s=3.0 * WINDOW_S),
        rates={"cpu.user_s": 7.9, "cpu.system_s": 0.1, "cpu.idle_s": 0.0, "cpu.iowait_s": 0.0,
               "server.cpu_s": 4.5},
    )  # fmt: skip
    found = diagnose_window(window)
    answer = found.answer("client")
    assert answer.verdict == "finding"
    assert answer.gain is not None
    assert answer.gain.bound == pytest.approx(1 / (1 - 3.0 / 8.0), rel=0.01), "of all that used it"
    assert found.limits == ("cpu",), "of which the client is a part"


@pytest.mark.parametrize(("driver", "expected"), [(0.6, "clear"), (2.0, "unknown")])
def test_a_full_host_is_told_where_the_servers_part_of_it_is_not_known(
    driver: float, expected: str
) -> None:
    window = a_window(
        driver=replace(DRIVER, cpu_s=driver * WINDOW_S),
        rates={"cpu.user_s": 7.9, "cpu.system_s": 0.1, "cpu.idle_s": 0.0, "cpu.iowait_s": 0.0},
        without=("server.cpu_s",),
    )
    answer = diagnose_window(window).answer("client")
    assert answer.verdict == expected
    assert "the host's CPUs were idle 0%" in answer.fact
    assert f"the client took {driver / 8:.1%}" in answer.fact or expected == "unknown"


def test_one_lack_is_told_once_and_that_cpus_are_idle_beside_it() -> None:
    why = "the server does not run on this host alone"
    window = a_window(
        account=an_account(HEALTHY, cpu_known=False),
        missing=(f"processes of the server: {why}", f"waiting for a CPU by session: {why}"),
    )
    fact = diagnose_window(window).answer("cpu").fact
    assert fact.count(why) == 1
    assert "the host's CPUs were idle 69% of the time" in fact


def test_a_host_is_never_used_and_idle_for_more_than_all_its_time() -> None:
    """As it was on two CPUs of a virtual machine whose ticks told of 1.71 of them."""
    window = a_window(
        {RUNNING: 0.6, IN_FLIGHT: 0.4},
        driver=replace(DRIVER, cpu_s=0.02 * WINDOW_S),
        rates={"cpu.user_s": 0.21, "cpu.system_s": 0.48, "cpu.idle_s": 0.2, "cpu.iowait_s": 0.82,
               "cpu.0.busy_s": 0.25, "cpu.1.busy_s": 0.45, "server.cpu_s": 0.8},
    )  # fmt: skip

    figures = {one.name: one.value for one in diagnose_window(window).answer("cpu").figures}

    assert figures["CPU time of the host that was idle"] == pytest.approx(1.02 / 2)
    assert sum(v for what, v in figures.items() if what.startswith("CPU time of the host")) <= 1


def test_waiting_behind_neighbours_is_not_the_own_cpus() -> None:
    found = diagnose_window(PLANTED["neighbours"])
    assert found.limits == ("neighbours",)
    assert found.answer("cpu").chance in (None, 0.0)


def test_a_control_group_that_holds_back_is_named() -> None:
    window = a_window({RUNNING: 0.3, WANTS_CPU: 0.6, IN_FLIGHT: 0.1},
                      rates={"cgroup.throttled_s": 0.6})  # fmt: skip
    answer = diagnose_window(window).answer("neighbours")
    assert answer.verdict == "finding"
    assert "control group held the server back on 0.6 CPUs on average" in answer.fact


def test_a_control_group_may_hold_back_on_several_cpus_and_of_none_nothing_is_told() -> None:
    window = a_window({RUNNING: 0.3, WANTS_CPU: 0.6, IN_FLIGHT: 0.1},
                      rates={"cgroup.throttled_s": 3.2})  # fmt: skip
    answer = diagnose_window(window).answer("neighbours")
    assert "held the server back on 3.2 CPUs" in answer.fact
    unknown = replace(window, grown={name: value for name, value in window.grown.items()
                                     if not name.startswith("cgroup.")})  # fmt: skip
    figures = diagnose_window(unknown).answer("neighbours").figures
    assert figures
    assert not [one.name for one in figures if "control group" in one.name]


def test_full_page_images_behind_flushes_alone_cannot_be_told() -> None:
    window = a_window({"flush": 0.7, RUNNING: 0.2, IN_FLIGHT: 0.1}, rates={"wal.fpi": 150.0})
    answer = diagnose_window(window).answer("full_pages")
    assert answer.verdict == "unknown"
    assert "full_page_writes off in a stage of its own would tell" in answer.fact


def test_one_checkpoint_may_be_chance_and_none_is_told() -> None:
    planted = PLANTED["checkpoints"]
    assert planted.checkpoints is not None
    one = replace(planted, checkpoints=planted.checkpoints[:1])
    assert verdict("checkpoints", one) == "unknown"
    none = diagnose_window(replace(planted, checkpoints=())).answer("checkpoints")
    assert none.verdict == "clear"
    assert "what one costs is not in it" in none.fact
    always = replace(planted, checkpoints=(CheckpointSpan(-5.0, None, None),))
    assert verdict("checkpoints", always) == "unknown"


def test_a_second_counts_by_the_part_of_it_that_a_checkpoint_has() -> None:
    """Each lasted 1.2 of 1.7 seconds: no second was without one, and 69% were told for 30%."""
    planted = PLANTED["checkpoints"]
    begins = np.arange(0.0, planted.second.size, 1.7)
    spans = tuple(CheckpointSpan(float(at), float(at) + 1.2, 0.1) for at in begins)
    moments = np.arange(0.0, planted.second.size, 0.01)
    within = np.any([(moments >= at) & (moments < at + 1.2) for at in begins], axis=0)
    per_s = np.where(within, 300.0, 1000.0).reshape(planted.second.size, 100).mean(axis=1)

    short = replace(planted, checkpoints=spans, ended=per_s)
    (during, lasted, _) = diagnose_window(short).answer("checkpoints").figures

    assert during.value == pytest.approx(0.30, abs=0.02)
    assert lasted.value == pytest.approx(1.2 / 1.7, abs=0.02)


def test_reads_from_the_kernels_cache_say_so() -> None:
    window = replace(PLANTED["reads"], grown=PLANTED["reads"].grown | {"disk.reads": 10.0})
    answer = diagnose_window(window).answer("reads")
    assert answer.verdict == "finding"
    assert "kernel's cache" in answer.fact


def test_cpu_time_that_was_met_in_reads_is_of_the_reads() -> None:
    """Reads that keep the kernel busy were told as the CPUs; without them x5.8 was done."""
    shares = {RUNNING: 0.4, WANTS_CPU: 0.2, "read": 0.15, IN_FLIGHT: 0.25}
    plain = an_account(shares)
    reading = replace(
        plain, inside={"read": 0.75 * (plain.parts[RUNNING] + plain.parts[WANTS_CPU])}
    )
    rates = full_host(server=6.0, driver=1.5, others=0.5)
    before, after = (
        diagnose_window(
            a_window(rates=rates, account=one, driver=replace(DRIVER, cpu_s=1.5 * WINDOW_S))
        )
        for one in (plain, reading)
    )

    assert before.limits == ("cpu",)
    assert after.limits == ("reads",)
    found = after.answer("reads")
    assert found.gain is not None
    assert found.gain.bound == pytest.approx(1 / (1 - 0.15 - 0.75 * 0.6), rel=0.02)
    cpu = after.answer("cpu")
    assert cpu.verdict == "clear", "a quarter of what it was"


def test_workers_that_read_take_no_cpu_time_without_reads() -> None:
    """Sessions wait for them; their CPU time was a cap of what the absence of reads could bring."""
    shares = {RUNNING: 0.2, "read": 0.7, IN_FLIGHT: 0.1}
    rates = full_host(server=4.0, driver=0.4, others=0.0)
    driver = replace(DRIVER, cpu_s=0.4 * WINDOW_S)
    before, after = (
        diagnose_window(a_window(shares, rates=rates | more, driver=driver)).answer("reads").gain
        for more in ({}, {"process.io_worker.cpu_s": 3.0})
    )
    assert before is not None
    assert after is not None
    assert before.bound == pytest.approx(8 / 4.4, rel=0.02)
    assert after.bound == pytest.approx(1 / 0.3, rel=0.02)


def without_waiting_commits(full_per_s: float) -> WindowFacts:
    """Sessions wait for the lock under which WAL is flushed, and commits are told not to."""
    return a_window(
        {"flush": 0.7, RUNNING: 0.3}, rates={"wal.buffers_full": full_per_s},
        settings={"synchronous_commit": "off"},
    )  # fmt: skip


def test_where_commits_do_not_wait_full_buffers_do() -> None:
    found = diagnose_window(without_waiting_commits(full_per_s=900.0))
    assert found.limits == ("wal_insertion",)
    flush = found.answer("flush")
    assert flush.verdict == "clear"
    assert "commits do not wait for it (synchronous_commit = off)" in flush.fact


def test_a_transaction_that_asks_for_its_flush_itself_waits_for_it() -> None:
    assert diagnose_window(without_waiting_commits(full_per_s=0.0)).limits == ("flush",)


def test_a_table_that_grows_is_not_dead_rows() -> None:
    window = replace(PLANTED["dead_rows"], dead_share={"orders": (0.0, 0.01)})
    answer = diagnose_window(window).answer("dead_rows")
    assert answer.verdict == "unknown"
    assert "may have grown" in answer.fact


def test_round_trips_are_the_drivers_where_it_is_always_wanted() -> None:
    window = replace(PLANTED["round_trips"], driver=replace(DRIVER, wanted=0.9))
    found = diagnose_window(window)
    assert found.answer("round_trips").verdict == "clear"
    assert found.limits == ("client",)


def test_swapping_without_pressure_is_not_known() -> None:
    window = a_window(rates={"vm.swap_in_pages": 500.0}, without=("psi.memory.some_s",))
    assert verdict("memory", window) == "unknown"


def test_far_more_connections_than_cpus_of_a_full_host_is_the_knees_to_tell() -> None:
    planted = PLANTED["cpu"]
    window = replace(
        planted, load=replace(LOAD, connections=400),
        account=an_account({RUNNING: 0.5, WANTS_CPU: 0.4, IN_FLIGHT: 0.1}, sessions=400.0),
    )  # fmt: skip
    answer = diagnose_window(window).answer("connections")
    assert answer.verdict == "unknown"
    assert "pgdyno knee" in answer.fact


def test_what_takes_no_effect_is_no_finding() -> None:
    """Every other resource is nearly full: freeing this one brings next to nothing."""
    window = a_window(
        {"read": 0.3, RUNNING: 0.2, WANTS_CPU: 0.4, IN_FLIGHT: 0.1},
        rates={"cpu.user_s": 8.0, "cpu.system_s": 0.0, "cpu.idle_s": 0.0, "cpu.iowait_s": 0.0,
               "server.cpu_s": 7.4},
    )  # fmt: skip
    answer = diagnose_window(window).answer("reads")
    assert answer.verdict == "clear"
    assert "at most 1% more throughput" in answer.fact


def test_a_part_that_nobody_divides_keeps_the_client_unknown() -> None:
    account = an_account({UNDIVIDED: 0.3, "flush": 0.5, RUNNING: 0.2}, in_flight=None)
    window = a_window(account=account, driver=replace(DRIVER, engine="pgbench 18.6"))
    found = diagnose_window(window)
    assert found.answer("client").verdict == found.answer("round_trips").verdict == "unknown"
    assert "pgbench 18.6 does not tell" in found.answer("client").fact
    assert found.limits == ("flush",), "it takes more than what is not known"
    more = replace(
        window,
        account=an_account({UNDIVIDED: 0.5, "flush": 0.3, RUNNING: 0.2}, in_flight=None),
    )
    hidden = diagnose_window(more)
    assert hidden.outcome == "unknown"
    assert "the client may take up to 50% of session time" in hidden.sentence
    assert IDLE not in {one.name for one in hidden.parts}
