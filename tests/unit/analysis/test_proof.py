"""What the blocks of a proof amount to, in sentences that say no more than was measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.analysis.judged import plan_in
from pgdyno.analysis.proof import proof_facts
from pgdyno.analysis.proof_facts import ProofFacts
from pgdyno.model.errors import PgdynoError
from pgdyno.model.plan import Plan
from pgdyno.model.proof import Proved
from pgdyno.store import RunFile
from tests.data.miniature import write_miniature
from tests.data.proofs import BUSY, DESIGN, INFO, proof


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    with RunFile.read(write_miniature(tmp_path_factory.mktemp("run") / "run.sqlite")) as run:
        return plan_in(run.info())


def of(proved: Proved) -> ProofFacts:
    return proof_facts(proved, INFO)


def states(facts: ProofFacts) -> dict[str, str]:
    return {one.probe.name: one.state for one in facts.probes}


def test_what_throughput_follows_limits_it_and_the_rest_is_cleared(plan: Plan) -> None:
    facts = of(proof(plan, BUSY | {"wal-flush": 1.0}))

    assert states(facts) == {
        "nothing": "noise", "cpu": "limits", "client": "limits", "round-trip": "costs",
        "wal-flush": "cleared", "read": "unused",
        "wal-flush-free": "gains", "commit-free": "gains", "page-images-free": "gains",
    }  # fmt: skip
    first, free, added, total, noise = facts.sentences
    assert "; for the client's CPU time by 3.7% (elasticity 0.40" in first
    assert added.startswith("The driver sends each exchange 250 µs later: throughput ×0.80 (0.")
    assert first.startswith(
        f"CPU time limits stage {plan.stages[-1].name}: where it is 10% dearer,"
    )
    assert "throughput falls by 7.6% (elasticity 0.83 (0.82 to 0.84))" in first
    assert first.endswith("It does not follow the price of flushes of WAL.")
    assert free.startswith("Throughput if one of these were free: waits of commits ×1.12 (1.1")
    assert "CPU time and flushes of WAL add up to 0.8" in total
    assert "something that no probe touched takes the rest" in total
    assert "(±" in noise
    assert "12 pairs" in noise
    assert facts.doubts == ()


def test_a_second_resource_that_is_followed_less_is_named_after_the_first(plan: Plan) -> None:
    first = of(proof(plan, BUSY | {"wal-flush": 0.96})).sentences[0]
    assert first.startswith("CPU time limits stage")
    assert " and for flushes of WAL by 2.1% (elasticity 0.2" in first


def test_two_that_cannot_be_told_apart_are_named_together(plan: Plan) -> None:
    first = of(proof(plan, BUSY | {"wal-flush": 0.861})).sentences[0]
    assert first.startswith("CPU time and flushes of WAL limit stage")


def test_where_nothing_is_followed_nothing_is_named(plan: Plan) -> None:
    facts = of(proof(plan, dict.fromkeys(BUSY, 1.0)))
    assert facts.sentences[0].endswith(
        " does not follow the price of CPU time, the client's CPU time or flushes of WAL."
    )
    assert states(facts)["round-trip"] == "nothing"
    assert states(facts)["commit-free"] == "nothing"
    assert facts.sum is not None
    assert facts.sum.state == "missing"


def test_wide_intervals_name_nothing(plan: Plan) -> None:
    proved = proof(plan)
    noisy = tuple(
        replace(one, blocks=tuple(
            replace(block, ended=block.ended * (3 if (block.pair + one.number) % 2 else 1 / 3))
            if block.on else block
            for block in one.blocks
        ))
        for one in proved.sittings
    )  # fmt: skip
    facts = of(replace(proved, sittings=noisy))
    assert "is not settled" in facts.sentences[0]
    assert facts.sum is not None
    assert facts.sum.state == "wide"
    assert "How much blocks differ with nothing changed is not known: too few pairs." in (
        facts.sentences
    )
    assert any("too wide to say whether something else" in one for one in facts.sentences)


def test_a_sum_above_one_is_a_tie(plan: Plan) -> None:
    facts = of(proof(plan, BUSY | {"cpu": 0.85, "wal-flush": 0.85}))
    assert facts.sum is not None
    assert facts.sum.state == "above"


def test_what_speaks_against_a_proof_is_said(plan: Plan) -> None:
    proved = proof(plan)
    first = replace(proved.sittings[0], failed=3, late_ns=700_000_000)
    doubts = " ".join(of(replace(proved, sittings=(first,))).doubts)
    for text in ("Only 1 of 3 sittings took", "3 transactions failed", "toggled 700 ms after"):
        assert text in doubts

    off = of(proof(plan, BUSY | {"nothing": 0.95})).doubts
    assert any("With nothing changed, blocks differ beyond their interval" in one for one in off)


def test_blocks_in_which_nothing_ended_are_counted_out(plan: Plan) -> None:
    proved = proof(plan)
    broken = tuple(
        replace(one, blocks=tuple(
            replace(block, ended=0.0) if block.probe == "cpu" and block.pair == 0 else block
            for block in one.blocks
        ))
        for one in proved.sittings
    )  # fmt: skip
    facts = of(replace(proved, sittings=broken))
    assert "Pairs in which nothing ended are left out, of 12 each: cpu (9)." in facts.doubts


def test_prices_together_are_told_where_combinations_were_made(plan: Plan) -> None:
    assert of(proof(plan)).prices is None
    facts = of(proof(plan, design=replace(DESIGN, prices=True)))
    assert facts.prices is not None
    assert facts.prices.repetitions == 12
    (said,) = [one for one in facts.sentences if one.startswith("All of them free")]
    assert said.startswith("All of them free: ×1.23 (1.2")
    assert said.endswith(
        "which is ×1.12 for waits of commits, ×1.09 for flushes of WAL and ×1.01 for full page"
        " images."
    )


def test_a_proof_without_a_sitting_has_no_facts(plan: Plan) -> None:
    with pytest.raises(PgdynoError, match="broken off in its first sitting"):
        of(replace(proof(plan), sittings=()))
