"""What stages ask of the machine: inherited, overridden, refused, a part of what is measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.model.errors import PlanError
from pgdyno.model.plan import Plan
from pgdyno.model.settings import OriginKind, Rung
from pgdyno.plan.follow_up import TriedStage, follow_up
from pgdyno.plan.resolve.plan import resolve
from pgdyno.plan.schema.read import read_plan_text
from pgdyno.plan.schema.toml_text import toml_text
from tests.data.servers import HOST, installed

HEAD = """
name = "machine"
question = "Does the machine matter?"
[workload]
kind = "tpcb"
scale = 1
[[stage]]
name = "before"
why = "As it is."
"""
ASKS = """
[[stage]]
name = "asks"
why = "Asked."
host = { "vm.swappiness" = 1, net.ipv4.tcp_rmem = "4096 131072  6291456" }
[[stage]]
name = "more"
why = "More."
host = { "kernel.sched_autogroup_enabled" = false }
[[stage]]
name = "anew"
why = "Without."
afresh = true
"""


def resolved(text: str, *overrides: str, aa: bool = False) -> Plan:
    draft = read_plan_text(HEAD + text, "machine.toml", Path.cwd(), overrides, aa=aa)
    return resolve(draft, installed(18), HOST)


def asked(plan: Plan) -> dict[str, dict[str, str]]:
    return {one.name: {each.name: each.value for each in one.host} for one in plan.stages}


def test_stages_build_on_what_those_before_them_asked_for() -> None:
    first = {"vm.swappiness": "1", "net.ipv4.tcp_rmem": "4096 131072 6291456"}
    assert asked(resolved(ASKS)) == {
        "before": {}, "asks": first, "more": first | {"kernel.sched_autogroup_enabled": "0"},
        "anew": {},
    }  # fmt: skip


def test_an_override_replaces_one_and_says_so() -> None:
    stage = resolved(ASKS, "stage.asks.host.vm.swappiness=10").stage("asks")
    (one,) = (one for one in stage.host if one.name == "vm.swappiness")
    assert (one.value, one.origin.kind) == ("10", OriginKind.OVERRIDE)


def test_the_twin_of_a_stage_asks_for_the_same() -> None:
    plan = resolved('host = { "vm.swappiness" = 1 }', aa=True)
    assert plan.stages[-1].host == plan.stages[0].host != ()


def test_what_is_asked_for_is_a_part_of_what_a_trial_measures() -> None:
    idents = [
        {trial.ident for trial in resolved(ASKS, *change).trials if trial.stage == "asks"}
        for change in ((), ("stage.asks.host.vm.swappiness=10",))
    ]
    assert not idents[0] & idents[1]


def test_the_next_stage_builds_on_it() -> None:
    plan = resolved(ASKS)
    tried = TriedStage("next", "Tried.", host={"vm.swappiness": "5"})
    document = follow_up(plan, plan.stage("more"), (tried,), Rung.D0)
    draft = read_plan_text(toml_text(document), "follow-up", Path.cwd())
    found = asked(resolve(draft, installed(18), HOST))
    assert found["more"] == asked(plan)["more"]
    assert found["next"] == asked(plan)["more"] | {"vm.swappiness": "5"}


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ('"vm.swapiness" = 1', 'stage before: vm.swapiness = "1" is no setting of a machine'),
        ('shared_buffers = "1GB"', 'shared_buffers = "1GB" is no setting of a machine'),
        ('numa = "off"', 'numa = "off" is of layer boot, and not of a machine that runs'),
        ('"vm.swappiness" = ""', 'vm.swappiness = "" cannot be written'),
        ('"queue/write_cache@vda" = "write through"', 'puts it on rung D5, below protocol.lowest'),
    ],
)  # fmt: skip
def test_what_no_machine_has_is_refused(host: str, words: str) -> None:
    with pytest.raises(PlanError) as it:
        resolved(f"host = {{ {host} }}\n")
    assert words in it.value.line


def test_what_a_machine_gives_up_is_on_the_ladder() -> None:
    text = 'host = { "queue/write_cache@vda" = "write through" }\n'
    (stage,) = resolved(text, "protocol.lowest_rung=D5").stages
    assert stage.rung is Rung.D5
    assert stage.durability is not None
    assert any(one.layer == "device" for one in stage.durability.losses)


def test_the_machine_of_a_server_that_is_not_ours_is_left_as_it_is() -> None:
    text = HEAD.replace(
        "[workload]", '[target]\nkind = "running"\nconninfo = "host=/run"\n[workload]'
    )
    draft = read_plan_text(text + 'host = { "vm.swappiness" = 1 }\n', "machine.toml", Path.cwd())
    with pytest.raises(PlanError, match="its machine is left as it is"):
        resolve(draft, installed(18), HOST)


def test_huge_pages_that_a_stage_reserves_are_there_for_its_server() -> None:
    pages = 'settings = { huge_pages = "on" }\n'
    with pytest.raises(PlanError, match="are free"):
        resolved(pages)
    assert resolved(f'{pages}host = {{ "vm.nr_hugepages" = 4000 }}\n').stages


def test_what_puts_writing_off_is_said_not_to_be_judged_in_windows_by_the_clock() -> None:
    text = ASKS.replace('"vm.swappiness" = 1', '"vm.dirty_background_bytes" = 67108864')
    notes = " ".join(resolved(text).notes)
    assert "stages asks and more will not be judged against before: they change vm.dirty" in notes
    assert "anew" not in notes
    assert "`--set protocol.checkpoints=cycles` has windows follow them" in notes
    only_reads = resolved(text, "workload.kind=select-only")
    assert "will not be judged" not in " ".join(only_reads.notes), "it puts nothing off"
