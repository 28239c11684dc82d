"""What a climb does next: which moves are refused, what is kept, when it ends."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from pgdyno.api import climb_plans
from pgdyno.api.experiments import climb
from pgdyno.api.planning import load_plan
from pgdyno.api.runs import Run
from pgdyno.cli.app import app
from pgdyno.cli.console import stdout
from pgdyno.model.climb import FUTILE_MAX, ClimbAsked, Climbed, ClimbLimits, Seen
from pgdyno.model.errors import PlanError, StoreError
from pgdyno.model.proposal import Changed
from pgdyno.model.settings import Rung
from tests.data.climbs import BEYOND, STEPS, a_climb, a_step, tried
from tests.data.miniature import write_miniature


def test_what_did_not_help_is_asked_again_once_something_did() -> None:
    now = a_climb()
    assert climb._refused_since(replace(now, steps=STEPS[:1])) == {"group-commit"}
    assert climb._refused_since(replace(now, steps=STEPS[:2])) == set()
    assert climb._refused_since(now) == {"group-commit"}


def test_it_ends_when_several_steps_bring_nothing() -> None:
    now = a_climb()
    nothing = tuple(a_step(n, "initdb", *STEPS[2].tried, accepted=None) for n in range(FUTILE_MAX))
    assert climb._futile(replace(now, steps=nothing[1:])) is None
    assert climb._futile(replace(now, steps=(*nothing[1:], STEPS[0]))) is None
    assert (
        climb._futile(replace(now, steps=nothing)) == "3 steps one after the other brought nothing."
    )


def test_the_best_of_those_that_are_shown_to_be_better_is_kept(tmp_path: Path) -> None:
    run = Run(write_miniature(tmp_path / "run.sqlite", invalid=()))
    stages = {one.name: one.to_first for one in run.facts.stages}
    step = a_step(
        1, "initdb", *(tried(name, "x", "1", 1.1, None) for name in ("tuned", "async-commit")),
        accepted=None,
    )  # fmt: skip
    done = climb._outcome(replace(step, seconds=None), run, 12.0)
    assert done.accepted == "async-commit"
    assert (done.run, done.seconds) == (run.info.ident, 12.0)
    for one in done.tried:
        found = stages[one.move]
        assert found is not None
        assert one.found is not None
        assert (one.found.ratio, one.found.verdict) == (found.ratio, found.verdict)


def test_a_stage_whose_slowest_requests_suffer_is_not_kept(tmp_path: Path) -> None:
    run = Run(write_miniature(tmp_path / "run.sqlite", invalid=()))
    first, *others = run.facts.stages
    suffering = [
        replace(one, tails=tuple(replace(tail, low=1.3, high=1.6) for tail in one.tails))
        for one in others
    ]
    assert all(one.tails for one in suffering)
    run.__dict__["facts"] = replace(run.facts, stages=(first, *suffering))
    step = a_step(1, "initdb", tried("tuned", "x", "1", 1.1, None), accepted=None)
    done = climb._outcome(step, run, 12.0)
    assert done.accepted is None
    assert done.tried[0].found is not None
    assert done.tried[0].found.reason.endswith("take longer by a fifth or more")


def test_without_a_move_things_are_as_before_it() -> None:
    one = tried("m", "wal_buffers", "64MB", 1.1, None)
    changes = (*one.changes, Changed("face", "statement", "pipeline", of_client=True),
               Changed("jit", "", "off"))  # fmt: skip
    stage = climb_plans.without(replace(one, changes=changes))
    assert stage.name == "without-m"
    assert (stage.settings, stage.client) == ({"wal_buffers": "default"}, {"face": "statement"})


@pytest.mark.parametrize("wrong", [{"minutes": 0}, {"at_once": 0}, {"at_once": 5}])
def test_limits_that_allow_nothing_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(PlanError):
        ClimbLimits(**wrong)  # type: ignore[arg-type]


def test_a_server_that_is_not_ours_is_not_climbed_on(tmp_path: Path) -> None:
    plan = load_plan({
        "name": "p", "question": "Q?", "workload": {"kind": "tpcb"},
        "stage": [{"name": "a", "why": "W."}],
    })  # fmt: skip
    record = replace(plan.record, target=replace(plan.record.target, kind="running"))
    with pytest.raises(PlanError, match="this one is not pgdyno's own"):
        climb.climb(replace(plan, record=record), out=tmp_path / "climb.sqlite")
    assert list(tmp_path.iterdir()) == []


def the_end(settings: dict[str, str], *pinned: str) -> dict[str, dict[str, str]]:
    """Settings of the last run's stages, by stage, of a climb that begins with these."""
    plan = load_plan({
        "name": "p", "question": "Q?", "workload": {"kind": "tpcb"},
        "protocol": {"checkpoints": "cycles"},
        "stage": [{"name": "a", "why": "W.", "settings": settings}],
    })  # fmt: skip
    asked = ClimbAsked(plan.record, ClimbLimits(pinned=pinned))
    reached = climb_plans.climbed([tried("m", "wal_buffers", "32MB", 1.1, None)])
    found, left_out = climb_plans.last_plan(asked, [reached])
    assert left_out == []
    return {one.name: {held.name: held.value for held in one.settings} for one in found.stages}


def test_profiles_at_the_end_are_not_held_down_by_what_the_first_stage_sets() -> None:
    stages = the_end({"shared_buffers": "16MB", "deadlock_timeout": "2s"})
    assert stages["climbed"]["shared_buffers"] == "16MB"
    for name in ("tuned", "pgtune"):
        assert stages[name]["shared_buffers"] not in ("16MB", "128MB")
        assert stages[name]["deadlock_timeout"] == "2s", "which no profile has a value for"


def test_what_is_pinned_stays_in_profiles_too() -> None:
    stages = the_end({"shared_buffers": "160MB"}, "shared_buffers", "max_wal_size", "min_wal_size")
    for name in ("tuned", "pgtune"):
        assert stages[name]["shared_buffers"] == "160MB"
        assert stages[name].get("max_wal_size", "1GB") == "1GB"
        assert stages[name]["random_page_cost"] == "1.1"


def test_a_setting_that_the_server_lacks_cannot_be_pinned(tmp_path: Path) -> None:
    plan = load_plan({
        "name": "p", "question": "Q?", "workload": {"kind": "tpcb"},
        "stage": [{"name": "a", "why": "W."}],
    })  # fmt: skip
    with pytest.raises(PlanError, match="has no such setting; did you mean max_wal_size"):
        climb.climb(plan, limits=ClimbLimits(pinned=("max_wal_sizes",)), out=tmp_path / "c.sqlite")
    assert list(tmp_path.iterdir()) == []


def test_minutes_in_which_no_move_can_be_measured_are_refused_before_anything_is(
    tmp_path: Path,
) -> None:
    plan = load_plan({
        "name": "p", "question": "Q?", "workload": {"kind": "tpcb"},
        "protocol": {"warmup_s": 10, "window_s": 20},
        "stage": [{"name": "a", "why": "W."}],
    })  # fmt: skip
    with pytest.raises(PlanError, match=r"a step of one move may take 8 min .*, and 2 min"):
        climb.climb(plan, limits=ClimbLimits(minutes=2), out=tmp_path / "c.sqlite")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("minutes", "moves"), [(25.0, 2), (15.0, 1), (5.0, 0)])
def test_a_step_has_as_many_moves_as_the_minutes_allow(
    minutes: float, moves: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = (BEYOND, replace(BEYOND, move="group-commit"))
    facts = SimpleNamespace(stage="initdb", sentence="The limit is L.", tries=tries, not_tried=())

    def plan(*names: str) -> object:
        return SimpleNamespace(estimate=SimpleNamespace(measuring_s=600 * len(names), other_s=1))

    asked = replace(a_climb().asked, limits=ClimbLimits(minutes=minutes))
    under_way = climb._Climb(tmp_path, Climbed(asked), lambda _: None, lambda _: None)
    found = SimpleNamespace(facts=facts, plan=plan)
    monkeypatch.setattr(under_way, "_proposal", lambda _: found)
    monkeypatch.setattr(under_way, "_last", lambda: (None, "initdb"))
    monkeypatch.setattr(climb, "seen", lambda *_: Seen())
    proposed = under_way._proposed()
    if moves:
        assert not isinstance(proposed, str)
        assert [one.move for one in proposed[0].tried] == [one.move for one in tries[:moves]]
    else:
        assert proposed == "The next step may take 10 min 01 s, and 0 s of 5 minutes are used."


def test_the_end_has_what_was_kept_in_its_order_and_no_more() -> None:
    plan = load_plan({
        "name": "p", "question": "Q?", "workload": {"kind": "tpcb"},
        "stage": [{"name": "a", "why": "W.", "settings": {"work_mem": "8MB"}}],
    })  # fmt: skip
    kept = [tried(move, "wal_buffers", value, 1.1, None) for move, value in
            (("first", "32MB"), ("second", "64MB"))]  # fmt: skip
    for moves in (kept, kept[1:]):  # the first is not missed, and has no say in the second
        asked = ClimbAsked(plan.record, ClimbLimits())
        found, _ = climb_plans.last_plan(asked, [climb_plans.climbed(moves)])
        assert [one.name for one in found.stages[:2]] == ["a", "climbed"]
        protocol = found.record.protocol
        assert (protocol.stop, protocol.rounds) == ("rounds", 8), "all are compared with each other"
        settings = {one.name: one.value for one in found.stages[1].settings}
        assert settings == {"work_mem": "8MB", "wal_buffers": "64MB"}


def test_its_dry_run_tells_each_part_and_refuses_what_the_climb_would(tmp_path: Path) -> None:
    plan = load_plan({
        "name": "p", "question": "Q?", "workload": {"kind": "tpcb"},
        "protocol": {"checkpoints": "ignore", "warmup_s": 5, "window_s": 15},
        "stage": [{"name": "a", "why": "W."}],
    })  # fmt: skip
    limits = ClimbLimits(pinned=("max_wal_size",), minutes=90)
    told = climb.climb_preview(plan, limits)
    assert told.startswith("A climb from stage a of plan p: W.\n")
    parts = {line[2:11].strip(): line[12:] for line in told.splitlines()[1:]}
    assert parts["begin"].startswith("3 rounds of a alone: about ")
    assert parts["steps"].startswith("90 min at most (--minutes); each tries up to 2 moves")
    assert parts["allowed"] == "settings down to rung D0 (--rung): nothing is lost"
    assert parts["pinned"] == "max_wal_size"
    # pgtune's min_wal_size does not fit the pinned max_wal_size: only a resolved plan knows.
    assert parts["end"].startswith("8 rounds of a, what was reached and tuned: about ")
    assert parts["left out"].startswith("pgtune: ")
    assert "where little WAL is written" not in told

    low = climb.climb_preview(plan, ClimbLimits(lowest=Rung.D2, client=True, host=True))
    assert "D2 (--rung): a crash may lose the last commits" in low
    assert "how the client asks may change; settings of this machine may change" in low
    assert "what was reached, tuned and pgtune: about " in low
    assert "left out" not in low
    assert "pinned" not in low

    out = tmp_path / "climb.sqlite"
    with pytest.raises(PlanError, match="1 min 00 s are allowed"):
        climb.climb_preview(plan, ClimbLimits(minutes=1))
    out.with_suffix("").mkdir()
    with pytest.raises(PlanError, match="steps would be put into it"):
        climb.climb_preview(plan, limits, out=out)
    out.touch()
    with pytest.raises(StoreError, match="exists"):
        climb.climb_preview(plan, limits, out=out)


def test_its_dry_run_tells_how_long_cycles_may_make_it() -> None:
    plan = load_plan({
        "name": "p", "question": "Q?", "workload": {"kind": "tpcb"},
        "protocol": {"checkpoints": "cycles"}, "stage": [{"name": "a", "why": "W."}],
    })  # fmt: skip
    told = climb.climb_preview(plan, ClimbLimits(minutes=9_999))
    assert told.count("where little WAL is written") == 2, "of the begin and of the end"


def test_the_commands_dry_run_writes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "climb.sqlite"
    words = ["climb", "tuning", "--dry-run", "--rung", "D1", "--at-once", "1", "--out", str(out)]
    with stdout.capture() as shown:
        assert CliRunner().invoke(app, words).exit_code == 0
    printed = " ".join(shown.get().split())  # a terminal breaks lines where it likes
    assert "A climb from stage initdb of plan tuning: " in printed
    assert "each tries up to 1 move beside the best stage so far" in printed
    assert "D1 (--rung): nothing is lost; full pages are compressed" in printed
    assert printed.endswith(" Nothing was touched.")
    assert list(tmp_path.iterdir()) == []
