"""What is merged over trials stays true of each of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.analysis.efficiency import transactions
from pgdyno.analysis.facts import Judgement, Spread
from pgdyno.analysis.judge import most_doubtful, placement
from pgdyno.analysis.trust import merged_audit
from pgdyno.model.run import AuditLine, TrialRecord, TrialResult, TrialState
from pgdyno.report.document import Table, Text
from pgdyno.report.sections.trust import section
from tests.data.miniature import a_result
from tests.data.pages import facts_of

SHARE = AuditLine("remote payments", "clause 9.2.2.5.4", 0.15, 1_000, 0.14, 0.16, "1")


def trials(*lines: AuditLine) -> list[TrialRecord]:
    base: TrialResult = a_result()
    return [
        TrialRecord(number, 1, "s", "", TrialState.FINISHED, result=replace(base, audit=(line,)))
        for number, line in enumerate(lines, 1)
    ]


def test_shares_are_weighted_by_their_observations() -> None:
    (merged,) = merged_audit(trials(SHARE, replace(SHARE, measured=0.18, n=3_000)), {"s": "one"})
    assert merged.measured == pytest.approx(0.1725)
    assert merged.n == 4_000
    assert not merged.ok
    assert (merged.trials, merged.trials_outside) == (2, 1)


def test_counts_are_added_to_added_limits() -> None:
    count = AuditLine("skipped districts", "clause 2.7.4.2", 2.0, 100, 0.0, 10.0, "districts")
    (merged,) = merged_audit(trials(count, count, count), {"s": "one"})
    assert (merged.measured, merged.low, merged.high) == (6.0, 0.0, 30.0)
    assert merged.ok


def test_a_band_of_one_trial_beside_a_figure_of_all_is_told_as_such(tmp_path: Path) -> None:
    count = AuditLine("skipped districts", "clause 2.7.4.2", 2.0, 100, 0.0, 10.0, "districts")
    outside = replace(SHARE, measured=0.18, n=3_000)
    found = [
        line
        for lines in ((SHARE, outside), (count, count))
        for line in merged_audit(trials(*lines), {"s": "one"})
    ]
    blocks = section(replace(facts_of(tmp_path), audit=tuple(found))).blocks
    (table,) = (one for one in blocks if isinstance(one, Table) and "asked for" in one.caption)

    assert "all finished trials together, beside the widest band that one" in table.caption
    assert [one.head for one in table.columns] == [
        "input", "all trials", "permitted in one", "observations",
        "trials within their own band", "verdict",
    ]  # fmt: skip
    share, districts = ([(cell.text, cell.note) for cell in row[2:]] for row in table.rows)
    assert share == [("14% to 16%", None), ("4,000", None), ("1 of 2", None), ("outside", None)]
    assert districts[0] == ("0 to 20 districts", "all together")
    assert districts[2:] == [("2 of 2", None), ("in the band", None)]


def test_one_surprise_in_one_trial_is_not_averaged_away() -> None:
    none = AuditLine("surprises", "clause 2.4.1.4", 0.0, 9_000, 0.0, 0.0, "transactions")
    (merged,) = merged_audit(trials(none, none, replace(none, measured=1.0)), {"s": "one"})
    assert not merged.ok


def test_the_widest_band_holds_for_the_whole() -> None:
    wide = replace(SHARE, low=0.12, high=0.18, source="widened", n=100)
    (merged,) = merged_audit(trials(SHARE, wide), {"s": "one"})
    assert (merged.low, merged.high, merged.source) == (0.12, 0.18, "widened")


def test_inputs_of_stages_that_ask_for_something_else_are_not_added_up() -> None:
    lines = (SHARE, SHARE, replace(SHARE, measured=0.5))
    asked = [
        replace(trial, stage=stage) for stage, trial in zip("stu", trials(*lines), strict=True)
    ]

    alike, other = merged_audit(asked, {"s": "one", "t": "one", "u": "another"})

    assert (alike.name, alike.trials, alike.ok) == ("remote payments (s, t)", 2, True)
    assert (other.name, other.trials, other.ok) == ("remote payments (u)", 1, False)


def placed(slowdown: float) -> list[TrialRecord]:
    """Six trials of one stage; every other one has more interrupts and fewer transactions."""
    base = a_result()
    found = []
    for number in range(6):
        crossing = number % 2
        window_s = base.window_s * (1 + slowdown * crossing) * (1 + 0.001 * number)
        ipis = transactions(base) * (0.1 + 0.6 * crossing)
        result = replace(base, window_s=window_s, deltas={**base.deltas, "host.ipis": ipis})
        found.append(TrialRecord(number + 1, 1, "s", "", TrialState.FINISHED, result=result))
    return found


def test_the_report_says_when_the_scheduler_moved_the_numbers() -> None:
    judged = placement(placed(0.2), server_on_host=True)

    assert judged.verdict == "finding"
    assert "0.10 to 0.70 interrupts between CPUs a transaction" in judged.fact
    assert placement(placed(0.0), server_on_host=True).verdict == "clear"
    assert placement(placed(0.2), server_on_host=False).verdict == "unknown"
    assert placement(trials(SHARE), server_on_host=True).verdict == "unknown"


def test_of_rounds_that_are_clear_the_most_doubtful_one_has_the_greatest_share() -> None:
    """The page said `at most 3% more` of the first of three rounds, and another had 5%."""
    rounds = [Judgement("clear", f"the client took {share} of the host", None)
              for share in ("3%", "4%", "4%")]  # fmt: skip
    worst = most_doubtful(rounds, (0.033, 0.044, 0.037))
    assert worst is not None
    assert (worst.fact, worst.rounds) == ("in 2 rounds: the client took 4% of the host", 3)
    unknown = Judgement("unknown", "the window is too short", None)
    assert most_doubtful([*rounds, unknown], (0.033, 0.044, 0.037, None)) == replace(
        unknown, of_rounds=4
    ), "a verdict weighs more than a share"


def test_what_all_rounds_have_in_common_is_not_said_of_some() -> None:
    """All three windows had 8 steps, and the page said so of one or two of them."""
    short, stalled = "the window has 8 steps", "1 s below half of the median, counted"
    both = f"{short}; {stalled}"
    for facts, said in (
        ((short, short, both), short),
        ((short, both, "the window has 5 steps"), f"in 2 rounds: {short}"),
        ((both, short, short), f"{short}; in 1 round: {stalled}"),
        ((both, both, both), both),
        ((f"a; {stalled}", f"b; {stalled}"), f"in 1 round: a; {stalled}"),
    ):
        worst = most_doubtful([Judgement("unknown", one, None) for one in facts])
        assert worst is not None
        assert (worst.fact, worst.rounds) == (said, len(facts))


def test_a_share_stands_on_the_page_as_of_the_round_that_its_caption_names(tmp_path: Path) -> None:
    facts = facts_of(tmp_path)
    share = Spread.of((0.033, 0.044, 0.037))
    stages = (replace(facts.stages[0], client_share=share, ceiling_share=share), *facts.stages[1:])
    table = section(replace(facts, stages=stages)).blocks[0]
    assert isinstance(table, Table)
    assert "most doubtful round" in table.caption
    assert [cell.text for cell in table.rows[0][1:3]] == ["4.4%", "4.4%"]


def test_that_trials_were_set_up_alike_does_not_deny_what_the_machine_did(tmp_path: Path) -> None:
    """The page said that nothing differs, and that the CPUs were faster in some rounds."""
    alike = section(replace(facts_of(tmp_path), differences=()))
    told = [block.text for block in alike.blocks if isinstance(block, Text)]
    assert "All finished trials were set up alike, but for the settings of their stages." in told
