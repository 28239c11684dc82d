"""What is named: one limit, two that may be it, a paced load, nothing, or what is not known."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from pgdyno.analysis.account_facts import (
    IDLE,
    IN_FLIGHT,
    PARTS,
    RUNNING,
    UNTOLD,
    WANTS_CPU,
    Account,
    NoAccount,
)
from pgdyno.analysis.diagnosis_facts import Gain
from pgdyno.analysis.window_facts import StageWindows, WindowFacts
from pgdyno.catalog.waits import wait_classes
from pgdyno.diagnosis.stages import diagnose_stages
from pgdyno.diagnosis.window import diagnose_window
from pgdyno.report import diagnosis
from tests.data.windows import DRIVER, LOAD, PLANTED, WINDOW_S, a_window, an_account, full_host


def test_a_healthy_window_has_no_single_limit() -> None:
    found = diagnose_window(a_window())
    assert (found.outcome, found.limits) == ("balanced", ())
    assert found.sentence.startswith("No single limit")


def test_two_that_take_alike_are_both_named() -> None:
    found = diagnose_window(a_window({"flush": 0.45, "read": 0.44, RUNNING: 0.11}))
    assert found.outcome == "tie"
    assert set(found.limits) == {"flush", "reads"}
    assert " or " in found.sentence
    assert found.deciding is not None
    chances = [found.answer(name).chance or 0.0 for name in found.limits]
    assert sum(chances) == pytest.approx(1.0, abs=0.05)


def test_a_queue_is_named_with_what_its_holders_do() -> None:
    found = diagnose_window(
        a_window({"row": 0.8, "flush": 0.12, RUNNING: 0.08}, {"flush": 0.9, RUNNING: 0.1})
    )
    assert found.limits == ("row_locks",)
    assert "whose holders are waiting for a flush of WAL" in found.sentence
    assert found.answer("flush").verdict == "finding", "told, and no rival of the queue it makes"


def on_full_cpus(growth: float) -> WindowFacts:
    """A window at whose end a transaction takes so many times the pages that it took before."""
    pages = np.linspace(40.0, 40.0 * growth, 29)
    return replace(
        PLANTED["cpu"], costs={"database.blocks_hit": pages * 1000.0}, ended=np.full(29, 1000.0),
        dead_share={"branches": (0.5, 0.9)},
    )  # fmt: skip


@pytest.mark.parametrize("growth", [1.5, 12.0])
def test_what_much_of_the_cpu_time_is_taken_for_comes_before_the_cpus(growth: float) -> None:
    found = diagnose_window(on_full_cpus(growth))
    assert found.limits == ("dead_rows",)
    assert found.answer("cpu").verdict == "finding", "told, and no rival of what it is taken for"


def test_what_little_of_the_cpu_time_is_taken_for_is_told_beside_the_cpus() -> None:
    found = diagnose_window(on_full_cpus(growth=1.2))
    assert found.limits == ("cpu",)
    assert found.answer("dead_rows").verdict == "finding", "CPUs that are full are full of it"


@pytest.mark.parametrize(("others", "limit"), [(2.6, "neighbours"), (0.5, "cpu")])
def test_others_who_take_much_of_full_cpus_come_before_them(others: float, limit: str) -> None:
    """Of two CPUs with eight other programs a load got two thirds: the CPUs alone were named."""
    window = a_window(
        {RUNNING: 0.3, WANTS_CPU: 0.4, IN_FLIGHT: 0.3},
        rates=full_host(server=6.4 - others, driver=1.6, others=others),
        driver=replace(DRIVER, cpu_s=1.6 * WINDOW_S, busiest=0.4, wanted=0.9),
    )
    found = diagnose_window(window)
    assert found.limits == (limit,)
    assert {found.answer(name).verdict for name in ("cpu", "client")} == {"finding"}
    if limit == "neighbours":
        assert "lost to caches that others made cold, too: an estimate" in found.sentence


def test_full_page_images_come_before_the_waits_for_wal_that_they_fill() -> None:
    """Free of insertion, these waits would be gone as well: but nobody can have that."""
    found = diagnose_window(PLANTED["full_pages"])
    assert found.limits == ("full_pages",)
    assert found.answer("wal_insertion").verdict == "finding", "told beside them"


@pytest.mark.parametrize(("flushed", "limit"), [(0.40, "checkpoints"), (0.70, "flush")])
def test_checkpoints_come_before_the_cpus_and_the_waits_that_are_mostly_theirs(
    flushed: float, limit: str
) -> None:
    """They take a quarter of the throughput here: no flush that takes 70% of the time is theirs."""
    shares = {"flush": flushed, RUNNING: 0.92 - flushed, WANTS_CPU: 0.03, IDLE: 0.05}
    found = diagnose_window(replace(PLANTED["checkpoints"], account=an_account(shares)))
    assert found.limits == (limit,), found.sentence
    assert found.answer("checkpoints").verdict == found.answer("flush").verdict == "finding"


@pytest.mark.parametrize(("idle", "limit"), [(4.7, "flush"), (0.2, "cpu")])
def test_cpus_that_are_mostly_idle_are_told_beside_what_is_waited_for(
    idle: float, limit: str
) -> None:
    """One session that asked row by row and committed: its CPU time went with the waits, x4.8."""
    busy = full_host(server=(8.0 - idle) * 0.8, driver=(8.0 - idle) * 0.2, others=0.0)
    rates = busy | {"cpu.idle_s": idle}
    found = diagnose_window(a_window({RUNNING: 0.5, "flush": 0.3, IN_FLIGHT: 0.2}, rates=rates))
    assert found.limits == (limit,)
    assert found.answer("cpu").verdict == "finding", "told beside it"


@pytest.mark.parametrize(("again", "limits"), [(580.0, {"memory"}), (30.0, {"memory", "reads"})])
def test_pages_that_are_read_again_are_memorys(again: float, limits: set[str]) -> None:
    rates = {"psi.memory.some_s": 0.6, "vm.refaulted_pages": again}
    found = diagnose_window(a_window({"read": 0.6, "flush": 0.2, RUNNING: 0.2}, rates=rates))
    assert set(found.limits) == limits
    assert found.answer("reads").verdict == "finding"


def test_reads_of_pages_that_were_freed_too_early_take_memorys_time_though_few_tasks_stall() -> (
    None
):
    """The kernel calls it a stall where nothing else could run: 12% of the time, planted."""
    rates = {"psi.memory.some_s": 0.12, "vm.refaulted_pages": 580.0}
    found = diagnose_window(a_window({"read": 0.6, "flush": 0.2, RUNNING: 0.2}, rates=rates))
    gain = found.answer("memory").gain
    assert gain is not None
    assert gain.low > 2.0
    assert gain.may_save


def test_a_thread_that_is_always_wanted_is_the_limit_beside_others_that_take_its_cpu() -> None:
    """Half of what it is wanted others have its CPU: that is theirs, and the rest its own."""
    window = a_window(
        {RUNNING: 0.1, WANTS_CPU: 0.2, IN_FLIGHT: 0.7},
        rates=full_host(server=0.8, driver=0.8, others=4.8),
        driver=replace(DRIVER, cpu_s=0.8 * WINDOW_S, busiest=0.5, wanted=1.0),
    )
    client = diagnose_window(window).answer("client")
    assert client.verdict == "finding", client.fact
    waits = client.figures[0]
    assert waits.value == pytest.approx(0.7 * (1 - 0.5 * 4.8 / 6.4))


def test_a_schedule_that_was_kept_is_paced() -> None:
    load = replace(LOAD, arrivals="open")
    found = diagnose_window(replace(PLANTED["flush"], load=load))
    assert (found.outcome, found.limits) == ("paced", ())
    assert found.sentence.startswith("Nothing is the limit, the load is paced: of 30,000 requests")
    assert {one.verdict for one in found.answers} == {"clear"}
    assert "response time" in found.answer("flush").fact


@pytest.mark.parametrize("change", [{"ended": 28_000}, {"skipped": 5}])
def test_a_schedule_that_was_not_kept_asks_for_more(change: dict[str, int]) -> None:
    load = replace(LOAD, arrivals="open", **change)
    assert diagnose_window(replace(PLANTED["flush"], load=load)).limits == ("flush",)


def test_terminals_that_think_pace_the_load() -> None:
    found = diagnose_window(replace(PLANTED["flush"], load=replace(LOAD, waits_share=0.95)))
    assert found.outcome == "paced"
    assert "key or think 95%" in found.sentence


def test_a_client_that_pauses_paces_the_load_and_one_that_is_busy_does_not() -> None:
    shares = {IDLE: 0.8, "flush": 0.1, RUNNING: 0.1}
    assert diagnose_window(a_window(shares)).outcome == "paced"
    busy = diagnose_window(a_window(shares, driver=replace(DRIVER, wanted=0.99)))
    assert busy.limits == ("client",)


def test_time_that_no_class_has_is_not_hidden() -> None:
    found = diagnose_window(a_window({UNTOLD: 0.6, RUNNING: 0.2, "flush": 0.2}))
    assert found.outcome == "unknown"
    assert "what the server does not tell" in found.sentence


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seconds": 4}, "4 whole seconds"),
        ({"looks": 12}, "looked at 12 times"),
        ({"seconds": 15}, "15 of 29 seconds"),
        ({"excess": 4.0}, "does not add up"),
        ({"sessions": 5.0}, "5.00 sessions were met"),
        ({"sessions": 40.0}, "what the others do is not told apart"),
    ],
)
def test_a_window_with_holes_or_contradictions_names_nothing(
    change: dict[str, float], words: str
) -> None:
    account = an_account({"flush": 0.7, RUNNING: 0.3}, **change)  # type: ignore[arg-type]
    found = diagnose_window(a_window(account=account))
    assert found.outcome == "unknown"
    assert found.sentence.startswith("What limits it is not known: ")
    assert words in found.sentence
    assert {one.verdict for one in found.answers} == {"unknown"}
    assert found.deciding


def test_what_would_tell_is_said() -> None:
    account = NoAccount("no whole second of the window was looked at")
    short = diagnose_window(a_window(account=account, window_s=1.0))
    assert short.deciding == (
        "A longer window would tell: repeat the run with `--set protocol.window_s=30`."
    )
    first_look = diagnose_window(a_window(account=account, window_s=1.0, shortened=True))
    assert first_look.deciding == "A longer window would tell: repeat the run without `--quick`."
    long = diagnose_window(a_window(account=account))
    assert long.deciding == "A longer window, with nothing else on its machine, may tell more."
    copy = 'Measure a copy: `kind = "installed"`.'
    remedies = {"processes of the server": copy, "WAL": "GRANT nothing;"}
    elsewhere = diagnose_window(a_window(account=account, remedies=remedies))
    assert elsewhere.deciding == f"Another run would tell more, after this: {copy}"
    remedies["sessions of others"] = "GRANT pg_monitor TO engineer;"
    hidden = diagnose_window(a_window(account=account, remedies=remedies))
    assert hidden.deciding is not None
    assert hidden.deciding.endswith("after this: `GRANT pg_monitor TO engineer;`")


def test_requests_that_fail_are_no_ground_for_a_limit() -> None:
    found = diagnose_window(replace(PLANTED["flush"], load=replace(LOAD, failed=900)))
    assert found.outcome == "unknown"
    assert "3.0% of the requests failed" in found.sentence


def twice(window: WindowFacts) -> WindowFacts:
    """Everything lasts twice as long: half of everything a second."""
    assert isinstance(window.account, Account)
    return replace(
        window, window_s=2 * WINDOW_S, second=window.second * 2, ended=window.ended,
        load=replace(window.load, per_s=window.load.per_s / 2),
        driver=replace(window.driver, cpu_s=window.driver.cpu_s * 2),
        grown={name: value * 2 if name.endswith("_s") else value
               for name, value in window.grown.items()},
        account=replace(window.account, seconds=58, looks=580),
        checkpoints=None if window.checkpoints is None else tuple(
            replace(one, start_s=one.start_s * 2, end_s=(one.end_s or 0) * 2)
            for one in window.checkpoints),
    )  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_a_machine_that_is_half_as_fast_in_all_has_the_same_limit(name: str) -> None:
    before, after = diagnose_window(PLANTED[name]), diagnose_window(twice(PLANTED[name]))
    assert after.limits == before.limits
    assert [one.verdict for one in after.answers] == [one.verdict for one in before.answers]


@pytest.mark.parametrize("name", sorted(set(PLANTED) - {"checkpoints", "memory"}))
def test_a_sampler_that_is_dropped_clears_nothing(name: str) -> None:
    lacking = replace(PLANTED[name], grown={}, costs={}, dead_share={}, checkpoints=None)
    before, after = diagnose_window(PLANTED[name]), diagnose_window(lacking)
    for one in after.answers:
        if before.answer(one.name).verdict == "finding":
            assert one.verdict != "clear" or "at most" in one.fact, one


def stage(*windows: WindowFacts) -> list[WindowFacts]:
    return [replace(one, round=number) for number, one in enumerate(windows, 1)]


def test_most_rounds_decide_and_disagreement_is_told() -> None:
    flush, reads, cpu = PLANTED["flush"], PLANTED["reads"], PLANTED["cpu"]
    most, none, torn = diagnose_stages(
        [
            StageWindows("most", stage(flush, reads, flush)),
            StageWindows("none", ()),
            StageWindows("torn", stage(flush, reads, cpu)),
        ]
    )
    assert (most.limits, most.agreeing) == (("flush",), 2)
    assert most.sentence.endswith("So say 2 of 3 rounds.")
    assert most.window is not None
    assert most.window.limits == ("flush",)
    assert none.outcome == torn.outcome == "unknown"
    assert "none of its windows" in none.sentence
    assert none.window is None
    assert (
        "rounds disagree (1 round: the flush of WAL at commit; 1 round: reading pages; 1 round: the"
        " CPUs)"
    ) in torn.sentence


def test_parts_that_are_shown_add_up() -> None:
    for window in (a_window(), *PLANTED.values()):
        parts = diagnose_window(window).parts
        assert sum(one.share for one in parts) == pytest.approx(1.0)
        assert sum(one.root for one in parts) == pytest.approx(1.0)


def test_waiting_that_the_kernel_does_not_tell_keeps_the_cpus_unknown() -> None:
    account = an_account({RUNNING: 0.6, "flush": 0.3, IN_FLIGHT: 0.1}, cpu_known=False)
    found = diagnose_window(a_window(account=account, without=("server.cpu_s",)))
    assert found.answer("cpu").verdict == found.answer("neighbours").verdict == "unknown"
    assert found.outcome == "unknown"
    assert "may take up to 60%" in found.sentence
    assert WANTS_CPU not in {one.name for one in found.parts}


def test_a_terminal_says_what_at_its_holders_means_where_a_part_moved() -> None:
    moved = a_window({"row": 0.8, "flush": 0.12, RUNNING: 0.08}, {"flush": 0.9, RUNNING: 0.1})
    for window, told in ((moved, True), (a_window(), False)):
        text = " ".join(diagnosis.text(diagnose_stages([StageWindows("s", (window,))])).split())
        assert ("% at its holders" in text) == told
        assert ("At its holders: a wait for a lock counts as" in text) == told


def test_shares_that_a_terminal_shows_add_up() -> None:
    """It showed the first six, and 5% of the time was nowhere."""
    waits = dict.fromkeys(("row", "read", "page", "extend", "mapping", "write", "slru", "pin"), 0.1)
    window = a_window({"flush": 0.2, **waits})
    text = " ".join(diagnosis.text(diagnose_stages([StageWindows("s", (window,))])).split())
    ((told),) = re.findall(r"Session time of round .*? on average: (.*?)\.", text)
    assert sum(int(one) for one in re.findall(r"(\d+)%(?! at its)", told)) == 100
    assert told.endswith("all else 30%")


def test_every_class_of_waits_has_a_name_for_people() -> None:
    """`waiting for write`, a page said."""
    assert set(wait_classes()) <= set(PARTS)


def test_a_gain_that_a_full_resource_caps_has_no_interval() -> None:
    """What stays used is not drawn anew: `×1.18 (1.18 to 1.18)` was told once."""
    assert Gain(1.18, 1.18, 1.18, "CPUs").text == "×1.18"
    assert Gain(1.10, 1.16, 1.18, "CPUs").text == "×1.16 (1.10 to 1.18)"
