"""What it costs to bring a transaction to the server: faces, round trips, time and CPU."""

from __future__ import annotations

from pgdyno.analysis import words
from pgdyno.analysis.facts import Facts, ProtocolCost, Spread
from pgdyno.report.document import Cell, Column, Section, Table, Text

HEADS = (
    ("service_us", "service time"),
    ("client_cpu_us", "client CPU"),
    ("server_cpu_us", "server CPU"),
)


def section(facts: Facts) -> Section:
    """One line for each stage; with several faces also what each costs beyond the leanest."""
    priced = any(cost.price for cost in facts.protocol)
    table = Table(
        "Mean of a transaction over the mix, median of rounds (lowest to highest).",
        (
            Column("stage", align="left"),
            Column("face", align="left"),
            Column("round trips"),
            Column("statements"),
            *(Column(head, "µs") for _, head in HEADS),
        ),
        tuple(_row(cost, priced=priced) for cost in facts.protocol),
    )
    note = (
        "Service time runs from when a connection took the request up to its answer; it holds the"
        " server's work, the round trips, and the waits for a core on both sides."
    )
    if priced:
        note += (
            " The second line of a cell is the price of the protocol: the share of it that the"
            f" stage with the fewest round trips, `{_lean(facts)}`, does without."
        )
    return Section("protocol", "The price of the protocol", (table, Text(note, "quiet")))


def _lean(facts: Facts) -> str:
    return next(cost.price.base for cost in facts.protocol if cost.price)


def _row(cost: ProtocolCost, *, priced: bool) -> tuple[Cell, ...]:
    return (
        Cell(cost.stage),
        Cell(cost.face),
        Cell(f"{cost.round_trips:.2f}"),
        Cell(f"{cost.statements:.2f}"),
        *(_cell(cost, name, priced=priced) for name, _ in HEADS),
    )


def _cell(cost: ProtocolCost, name: str, *, priced: bool) -> Cell:
    spread = cost.costs.get(name)
    if spread is None:
        return Cell(words.NOTHING)
    share = cost.price.shares.get(name) if cost.price else None
    if priced:
        return Cell(f"{spread.median:,.0f}", note=_share(share) if share else None)
    return Cell(f"{spread.median:,.0f}", note=_range(spread))


def _range(spread: Spread) -> str | None:
    if len(spread.rounds) < 2:
        return None
    return f"{min(spread.rounds):,.0f} to {max(spread.rounds):,.0f}"


def _share(spread: Spread) -> str:
    text = f"{spread.median:.0%} of it"
    if len(spread.rounds) > 1:
        text += f", {min(spread.rounds):.0%} to {max(spread.rounds):.0%}"
    return text
