"""Each class of mistake, on the figures of the field report that made it: the check fires."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pgdyno.analysis import mistakes as checks
from pgdyno.analysis.facts import Difference, Facts, Spread, StageFacts
from pgdyno.analysis.judge import checkpoint_cycle
from pgdyno.analysis.mistakes import MISTAKES, mistake_facts, page
from pgdyno.model.cycle import Followed, Spacing
from pgdyno.model.plan import Plan, Stage, Trial
from pgdyno.model.run import Effective, Event, TrialRecord, TrialResult, TrialState
from pgdyno.model.settings import Origin, OriginKind, Rung, Setting
from pgdyno.plan.resolve.figure_checks import misplaced, repeated
from tests.data.miniature import CHARACTERS, SECOND_NS, START_NS, WORKLOAD, a_plan, a_result

ROOT = Path(__file__).parents[3]
REPORTS = tomllib.loads((ROOT / "tests" / "data" / "field_reports.toml").read_text())
SIX = REPORTS["six_stages"]
FPW = REPORTS["full_page_writes"]
STORAGE = REPORTS["storage"]
ORIGIN = Origin(OriginKind.PLAN, "field report")
RESULT = a_result()


def stage(one: dict[str, Any]) -> Stage:
    assert WORKLOAD.tpcc is not None
    tpcc = replace(WORKLOAD.tpcc, mix={k: float(v) for k, v in SIX["mix"].items()})
    settings = tuple(Setting(k, v, ORIGIN) for k, v in sorted(one["settings"].items()))
    workload = replace(WORKLOAD, tpcc=tpcc, terminals=one["client"]["connections"], **one["client"])
    return Stage(one["name"], "As reported.", False, settings, Rung.D4, "", workload)


def plan_of(stages: Sequence[Stage], rounds: int = 1) -> Plan:
    trials = tuple(
        Trial(number, round_, one.name, f"{number:016x}")
        for number, (round_, one) in enumerate(
            ((r, s) for r in range(1, rounds + 1) for s in stages), start=1
        )
    )
    base = a_plan(CHARACTERS, rounds)
    protocol = replace(base.protocol, window_s=float(SIX["window_s"]))
    return replace(base, stages=tuple(stages), trials=trials, protocol=protocol)


PLAN = plan_of([stage(one) for one in SIX["stage"]])
MEASURED = {one["name"]: one for one in SIX["stage"]}


def told(name: str, **changes: Any) -> TrialResult:
    """What the report's log says of a stage."""
    figures = (
        {key: MEASURED[name][key] for key in ("nopm", "tpm_total")} if name in MEASURED else {}
    )
    return replace(RESULT, window_s=float(SIX["window_s"]), **{**figures, **changes})


def records(plan: Plan, results: dict[str, TrialResult]) -> list[TrialRecord]:
    return [
        TrialRecord(
            t.number, t.round, t.stage, t.ident, TrialState.FINISHED, result=results[t.stage]
        )
        for t in plan.trials
        if t.stage in results
    ]


def seen(
    plan: Plan = PLAN,
    results: dict[str, TrialResult] | None = None,
    stages: Sequence[StageFacts] = (),
    differences: Sequence[Difference] = (),
) -> checks.Seen:
    if results is None:
        results = {one.name: told(one.name) for one in plan.stages}
    return checks.Seen(plan, records(plan, results), stages, differences)


@pytest.fixture
def facts_of(facts: Facts) -> list[StageFacts]:
    """The report's stages as facts: one round each."""
    return [
        replace(
            facts.stages[0], name=name, rounds=(1,), rounds_planned=1,
            throughput=Spread.of((one["nopm"],)),
        )
        for name, one in MEASURED.items()
    ]  # fmt: skip


def test_what_dims_the_light_is_said_in_plain_words_too() -> None:
    """The others have a plain clause of their own on the first screen."""
    without = {one.ident for one in MISTAKES if one.grave and not one.simply}
    assert without == {"E4", "E6", "E11", "E14"}


def test_e1_all_transactions_called_new_orders() -> None:
    wrong = seen(results={"stage-6": told("stage-6", nopm=SIX["said"]["tpmc"])})

    assert checks.mistyped_metric(seen()) is None
    assert checks.mistyped_metric(wrong) == (
        "trial 5: nopm 606,466 is 100% of tpm_total 606,466, the mix has 40% of New-Orders"
    )


def test_e2_a_mix_that_is_not_the_texts() -> None:
    found = checks.not_the_text(seen())

    assert found == ("the mix is 40/36/8/8/8; keying and think times are shortened or none")


def test_e3_several_factors_at_once() -> None:
    found = checks.several_factors(seen())

    assert found is not None
    assert "stage-2 changes databases and face at once" in found
    assert "stage-4 changes settings and the client at once" in found
    assert "stage-3" not in found


def test_e3_one_that_begins_afresh_is_a_step_from_the_one_most_like_it() -> None:
    """Else the last rungs of a price list change two things against what they do not build on."""
    plan = seen().plan
    first = plan.stages[0]
    others = (
        replace(first, name="lying", afresh=True, lying_disk=True),
        replace(first, name="unlogged", afresh=True, unlogged=True),
        replace(first, name="both", afresh=True, unlogged=True, folder="elsewhere"),
        replace(first, name="all", afresh=True, lying_disk=True, folder="elsewhere"),
    )
    stages = (*plan.stages[:2], *others)
    found = checks.several_factors(replace(seen(), plan=replace(plan, stages=stages))) or ""
    assert "lying changes" not in found
    assert "unlogged changes" not in found
    assert "both changes" not in found
    assert "all changes" not in found
    stages = (*plan.stages[:2], others[3])
    found = checks.several_factors(replace(seen(), plan=replace(plan, stages=stages))) or ""
    assert "all changes the folder of its data and a disk that lies at once" in found


def test_e3_the_first_of_another_load_is_no_step() -> None:
    """It is compared with nothing, so nothing that it changes needs a name."""
    plan = seen().plan
    before, after = plan.stages[2:4]
    assert after.workload.load == before.workload.load
    other = replace(after, workload=replace(after.workload, kind="tpcb"))
    stages = (*plan.stages[:3], other, *plan.stages[4:])
    found = checks.several_factors(replace(seen(), plan=replace(plan, stages=stages)))
    assert "stage-4" in (checks.several_factors(seen()) or "")
    assert "stage-4" not in (found or "")


def test_e4_no_checkpoint_in_the_window(facts_of: list[StageFacts]) -> None:
    ends = START_NS + SIX["window_s"] * SECOND_NS
    before = START_NS - SECOND_NS
    after = before + SIX["checkpoint_timeout_s"] * SECOND_NS
    events = tuple(Event("checkpoint", at, at + 1) for at in (before, after))
    assert after > ends
    _, cycle = checkpoint_cycle(replace(RESULT, window_ns=(START_NS, ends), events=events))

    stages = [replace(facts_of[0], checkpoint_cycle=cycle)]

    assert checks.no_checkpoint(seen(stages=stages)) == (
        "no whole checkpoint cycle in windows of stage-1"
    )


def test_e4_is_not_clear_where_cycles_are_not_known(facts_of: list[StageFacts]) -> None:
    of_running = replace(RESULT, events=(), deltas={"checkpoints.timed": 2.0})
    _, cycle = checkpoint_cycle(of_running)
    stages = [replace(facts_of[0], checkpoint_cycle=cycle)]

    (e4,) = (one for one in checks.mistake_facts(seen(stages=stages)) if one.ident == "E4")

    assert e4.verdict == "unknown"
    assert e4.fact == "it is not known whether checkpoint cycles of stage-1 are whole"


def test_e4_cycles_that_were_followed_without_a_log_are_whole() -> None:
    begins = tuple(START_NS + at * SECOND_NS for at in (-60, 0, 60, 120))
    window_ns = (START_NS + SECOND_NS // 10, START_NS + 120 * SECOND_NS)
    followed = Followed(2, begins, (begins[0], window_ns[1]), Spacing(60.0, 1 << 30, 0.9))
    result = replace(RESULT, events=(), deltas={"checkpoints.timed": 2.0}, window_ns=window_ns)

    assert checkpoint_cycle(result)[1].verdict == "unknown"
    completed, cycle = checkpoint_cycle(replace(result, followed=followed))

    assert (completed, cycle.verdict) == (2, "clear")


def test_e5_fewer_terminals_in_one_stage() -> None:
    found = checks.unequal_beginning(seen())

    assert found is not None
    assert "stage-3 96, stage-4 80" in found


def test_e6_gains_from_one_run(facts_of: list[StageFacts]) -> None:
    found = checks.measured_once(seen(stages=facts_of))

    assert found is not None
    assert "stage-6" in found


def test_e7_another_configuration_than_was_said() -> None:
    def with_minutes(name: str) -> TrialResult:
        return replace(RESULT, settings=(Effective("runMins", str(SIX["said"][name]), "plan", ""),))

    plan = plan_of(PLAN.stages[:1], rounds=2)
    first, second = records(plan, {"stage-1": with_minutes("run_minutes")})
    second = replace(second, result=with_minutes("logged_minutes"))

    found = checks.other_settings(checks.Seen(plan, [first, second], [], []))

    assert found == "effective settings differ between rounds of stage-1"
    assert checks.other_settings(checks.Seen(plan, [first, first], [], [])) is None


def test_e8_another_duration_than_was_asked_for() -> None:
    protocol = replace(PLAN.protocol, window_s=float(STORAGE["fio"]["asked_s"]))
    plan = replace(plan_of(PLAN.stages[:1]), protocol=protocol)
    result = replace(RESULT, window_s=float(STORAGE["fio"]["told_s"]))

    found = checks.other_duration(seen(plan, {"stage-1": result}))

    assert found == "a window of 60 s was asked for: trial 1 30 s"


@pytest.mark.parametrize(
    ("window_s", "found"),
    [(74.2, None), (60.0, None), (30.0, "a window of 60 s was asked for: trial 1 30 s")],
)
def test_e8_checkpoints_end_a_window_later_never_earlier(
    window_s: float, found: str | None
) -> None:
    followed = Followed(2, (), (0, 1), Spacing(300.0, 1 << 30, 0.9))
    plan = plan_of(PLAN.stages[:1])
    plan = replace(plan, protocol=replace(plan.protocol, window_s=60.0))
    result = replace(RESULT, window_s=window_s, followed=followed)

    assert checks.other_duration(seen(plan, {"stage-1": result})) == found


def test_e9_rotated_columns(facts_of: list[StageFacts]) -> None:
    measured, said = STORAGE["read_write_tps"], STORAGE["said_read_write_tps"]

    assert misplaced(said, measured) == {"local": "essd_1", "essd_8": "local", "essd_1": "essd_8"}
    assert misplaced(measured, measured) == {}
    first, second = facts_of[:2]
    swapped = [
        replace(first, throughput=second.throughput), replace(second, throughput=first.throughput)
    ]  # fmt: skip
    assert checks.other_column(seen(stages=facts_of)) is None
    assert checks.other_column(seen(stages=swapped)) == (
        "stage-1 is printed with what stage-2 measured;"
        " stage-2 is printed with what stage-1 measured"
    )


def test_e10_copied_figures() -> None:
    assert repeated(STORAGE["load_s"]) == [("local", "essd_104", 1058.21)]
    one, two = PLAN.stages[:2]
    same = {one.name: RESULT, two.name: RESULT}
    slower = replace(RESULT, kinds=tuple(replace(k, response_ns={"p50": 1}) for k in RESULT.kinds))

    assert checks.copied(seen(plan_of([one, two]), same)) == "trials 1 and 2 agree to the digit"
    assert checks.copied(seen(plan_of([one, two]), {**same, two.name: slower})) is None


def test_e11_other_things_that_differ() -> None:
    clients = tuple(f"{count} on {name}" for name, count in STORAGE["clients"].items())
    unexplained = Difference("clients", clients, None)

    found = checks.not_comparable(seen(differences=[unexplained]))

    assert found is not None
    assert "128 on local; 128 on essd_104; 52 on essd_52; 32 on essd_32" in found
    assert checks.not_comparable(seen(differences=[replace(unexplained, explanation="x")])) is None


@pytest.mark.parametrize(
    ("name", "value", "others", "why"),
    [
        ("wal_sync_method", "fsync", {}, "synchronous_commit = off"),
        ("commit_delay", "10", {"synchronous_commit": "on"}, "16 others that are open"),
        ("wal_compression", "lz4", {}, "full_page_writes = off"),
    ],
)
def test_e12_a_factor_that_nothing_waits_for(
    name: str, value: str, others: dict[str, str], why: str
) -> None:
    values = {
        "synchronous_commit": STORAGE["synchronous_commit"], "full_page_writes": "off",
        "commit_siblings": "16", **others,
    }  # fmt: skip
    few = {"connections": 8, "databases": 1}
    base = stage({"name": "local", "client": few, "settings": values})
    other = stage({"name": "cloud", "client": few, "settings": {**values, name: value}})

    found = checks.off_the_path(seen(plan_of([base, other]), {}))

    assert found is not None
    assert found.startswith(f"cloud: {name} cannot show while")
    assert why in found


@pytest.mark.parametrize(("name", "tried", "off"), [
    ("wal_compression", "pglz", "off"), ("commit_delay", "10", "0"),
])  # fmt: skip
def test_e12_what_is_put_back_is_not_waited_for(name: str, tried: str, off: str) -> None:
    """As in `full-page-writes`: a stage without full pages follows one that compresses them."""
    on = {"full_page_writes": "on", "synchronous_commit": "on", "commit_siblings": "0"}
    none = {"full_page_writes": "off", "synchronous_commit": "off", "commit_siblings": "0"}
    few = {"connections": 8, "databases": 1}
    before = stage({"name": "before", "client": few, "settings": {**on, name: tried}})
    for value, is_found in ((off, False), (tried + "1" if tried == "10" else "lz4", True)):
        after = stage({"name": "after", "client": few, "settings": {**none, name: value}})
        found = checks.off_the_path(seen(plan_of([before, after]), {}))
        assert (found is not None and f"after: {name} cannot show" in found) is is_found


def test_e12_a_disk_whose_flushes_nobody_waits_for() -> None:
    settings = {"synchronous_commit": STORAGE["synchronous_commit"]}
    local = stage({"name": "local", "client": {"connections": 128}, "settings": settings})
    cloud = replace(local, name="cloud", folder="/data02")
    kept = [replace(one, settings=()) for one in (local, cloud)]

    assert checks.off_the_path(seen(plan_of([local, cloud]), {})) == (
        "cloud: the flush of another disk cannot show while synchronous_commit = off"
    )
    assert checks.off_the_path(seen(plan_of(kept), {})) is None


def test_e12_fires_at_group_commit_of_the_six_stages() -> None:
    assert checks.off_the_path(seen()) == (
        "stage-3: commit_delay cannot show while synchronous_commit = off"
    )


def test_e13_one_arm_always_first() -> None:
    arms = [
        stage({"name": arm, "client": {"connections": 16}, "settings": {}}) for arm in FPW["order"]
    ]
    plan = plan_of(arms, rounds=FPW["runs"])
    cold = replace(plan.protocol, warmup_s=float(FPW["warmup_s"]), prewarm=False)

    found = checks.order_or_cache(seen(replace(plan, protocol=cold), {}))

    assert found == (
        "one round: its stages had one order, whose effect cannot be told from theirs; neither"
        " prewarm nor warm-up"
    )


def test_e14_the_best_was_never_measured(facts_of: list[StageFacts]) -> None:
    best = replace(facts_of[0], name="best", rounds=(), throughput=None)

    assert checks.not_measured(seen(stages=facts_of)) is None
    assert checks.not_measured(seen(stages=[*facts_of, best])) == "planned, but not measured: best"


def test_e15_durability_given_up_before_the_first_stage() -> None:
    found = checks.price_hidden(seen())

    assert found is not None
    assert found.startswith("the first stage stands on D4 already")

    last = PLAN.stages[-1]
    kept = tuple(
        s for s in last.settings if s.name not in ("synchronous_commit", "full_page_writes")
    )
    durable = replace(last, name="durable", settings=kept, rung=Rung.D0)
    assert checks.price_hidden(seen(plan_of([durable, last]), {})) is None

    memory = replace(durable, name="memory", folder="/dev/shm", rung=Rung.D6)
    assert checks.price_hidden(seen(plan_of([durable, memory]), {})) is None
    both = replace(last, name="both", folder="/dev/shm", rung=Rung.D6)
    assert checks.price_hidden(seen(plan_of([durable, both]), {})) is not None


def test_every_class_has_a_check_and_a_line_of_the_page() -> None:
    assert [one.ident for one in MISTAKES] == [f"E{n}" for n in range(1, 16)]
    assert (ROOT / "docs" / "reference" / "mistakes.md").read_text() == page(), (
        "run `make reference`"
    )


def test_the_field_report_is_found_out_as_a_whole(facts_of: list[StageFacts]) -> None:
    found = {one.ident: one.verdict for one in mistake_facts(seen(stages=facts_of))}

    assert found["E2"] == "noted"
    for ident in ("E3", "E5", "E6", "E12", "E13", "E15"):
        assert found[ident] == "finding", ident


def test_an_honest_run_has_none_of_them(facts: Facts) -> None:
    assert [one.ident for one in facts.mistakes if one.verdict == "finding"] == []
    assert facts.mistakes[1].verdict == "noted", "no keying times: TPC-C-like"
