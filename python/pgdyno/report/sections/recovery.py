"""What a crash costs: how long each stage's server took to come back after it was killed."""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.analysis import words
from pgdyno.analysis.facts import Facts, RecoveryFacts, Spread
from pgdyno.model.units import bytes_text, digits_text
from pgdyno.model.wording import listed
from pgdyno.report.document import Block, Cell, Column, Figure, Section, Table, Text


def section(facts: Facts) -> Section | None:
    """A line for each stage; none where no server was killed."""
    if not facts.recovery:
        return None
    stages = {stage.name: stage for stage in facts.stages}
    table = Table(
        "Crash recovery after the load, median of rounds (lowest to highest).",
        (
            Column("stage", align="left"),
            Column("until it answers", "s"),
            Column("of that, replay", "s"),
            Column("WAL replayed"),
            Column("replayed a second"),
            Column(f"{facts.headline} to {facts.base}"),
        ),
        tuple(
            (
                Cell(one.stage, rung=stages[one.stage].rung),
                _seconds(one.ready_s),
                _seconds(one.redo_s),
                Cell(bytes_text(one.replayed_bytes.median)),
                Cell(_rate(one)),
                Cell(words.ratio(stages[one.stage].to_first)),
            )
            for one in facts.recovery
        ),
    )
    note = (
        "Each server was stopped at once when its load ended, without a checkpoint, and started"
        " again with the same settings; the seconds are those of its own log. What there is to"
        " replay depends on how far the next checkpoint was. The kernel and the disk stayed up:"
        " a power cut would also empty the page cache. Consistency was checked after recovery."
    )
    return Section("recovery", "After a crash", (*_front(facts), table, Text(note, "quiet")))


def _front(facts: Facts) -> Iterator[Block]:
    """The picture of both, and in words which stages nobody surpasses; none of a single stage."""
    front = [one.stage for one in facts.recovery if one.on_front]
    if not front:
        return
    yield Figure("recovery")
    yield Text(
        f"By the medians, no stage beats {listed(front)} in both throughput and recovery."
        " Whether a difference in throughput is more than noise is said with the stages."
    )
    if guarded := [one.stage for one in facts.recovery if one.guarded]:
        yield Text(
            f"The server of {listed(guarded)} was killed as the others were, which tears no page."
            " After a power cut it is repaired from its standby before it recovers: those"
            " seconds come on top, and follow the pages that were changed.",
            "quiet",
        )


def _seconds(spread: Spread) -> Cell:
    note = None
    if len(spread.rounds) > 1:
        note = f"{digits_text(min(spread.rounds))} to {digits_text(max(spread.rounds))}"
    return Cell(digits_text(spread.median), note=note)


def _rate(one: RecoveryFacts) -> str:
    if one.redo_s.median == 0:
        return words.NOTHING
    return bytes_text(one.replayed_bytes.median / one.redo_s.median)
