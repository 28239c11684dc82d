"""What a transaction costs on each stage."""

from __future__ import annotations

from pgdyno.analysis import words
from pgdyno.analysis.efficiency import METRICS
from pgdyno.analysis.facts import Facts
from pgdyno.report.document import Cell, Column, Section, Table, Text


def section(facts: Facts) -> Section:
    """One line for each stage; costs that were not measured are dashes."""
    table = Table(
        "Cost of a transaction in the window, median of rounds.",
        (
            Column("stage", align="left"),
            *(Column(metric.head, metric.unit) for metric in METRICS),
        ),
        tuple(
            (
                Cell(stage.name),
                *(
                    Cell(metric.text(spread.median) if spread else words.NOTHING)
                    for metric in METRICS
                    for spread in [stage.per_transaction.get(metric.name)]
                ),
            )
            for stage in facts.stages
        ),
    )
    note = Text(
        "Counters of the window divided by the transactions that ended in it, rollbacks included."
        " Server CPU is that of the postmaster and its children, client CPU that of the driver."
        " Driver sleeps are waits of its threads with nothing to do. IPIs are interrupts of the"
        " host's CPUs by one another; waking a process on another CPU takes one."
        " Reads and writes are those of the block device of a server that is pgdyno's own, whoever"
        " asked for them; what the page"
        " cache answers is not among them. Counters of WAL come up to a second late: in short"
        " windows they differ from what is read from the WAL itself by what that shifts.",
        "quiet",
    )
    return Section("efficiency", "Efficiency", (table, note))
