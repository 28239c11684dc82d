"""What the driver is told of a proof's blocks, and what they cost it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.drive.result import Driven, parse_result
from pgdyno.model.proof import ROUND_TRIP_NS, Block, Design, Slowdown
from pgdyno.stats.switchback import Turn
from pgdyno.trial.switchback import slowdowns, with_client_doses
from tests.unit.drive.test_driver import RESULT

DESIGN = Design(block_s=4, dropped_s=1, pairs=1, sittings=2)


def test_only_blocks_with_a_probe_of_the_driver_are_slower() -> None:
    turns = [
        Turn("cpu", ("cpu",), 0), Turn("cpu", (), 0), Turn("client", ("client",), 0),
        Turn("client", (), 0), Turn("round-trip", (), 0), Turn("round-trip", ("round-trip",), 0),
    ]  # fmt: skip
    assert slowdowns(turns, DESIGN, 900) == (
        Slowdown(8, 12, spin_ns=900), Slowdown(20, 24, delay_ns=ROUND_TRIP_NS),
    )  # fmt: skip


@pytest.fixture
def driven() -> Driven:
    """Four exchanges a transaction; the driver took a second of CPU time in all."""
    found = parse_result(RESULT)
    client = replace(found.client, user_s=0.75, system_s=0.25)
    return replace(found, client=client, round_trips_per_transaction=4.0, window_s=8.0)


def test_what_was_added_is_no_part_of_what_an_exchange_costs(driven: Driven) -> None:
    blocks = [
        Block("client", ("client",), 0, 1, 4, 30.0), Block("client", (), 0, 5, 8, 60.0),
        Block("cpu", (), 0, 9, 12, 60.0),
    ]  # fmt: skip
    spin_ns = 1_000_000

    dear, cheap, other = with_client_doses(blocks, driven, spin_ns)

    assert other == blocks[2]
    assert dear.dose is not None
    assert cheap.dose is not None
    assert (dear.dose.units, dear.dose.added_ns) == (120.0, 120.0 * spin_ns)
    assert cheap.dose.added_ns == 0
    # 30 transactions in 3 of 9 counted seconds, of a window of 8.
    added_ns = 30 * (8 / 9) * 4 * spin_ns
    each_ns = (1e9 - added_ns) / driven.transactions
    assert cheap.dose.spent_ns == pytest.approx(60 * each_ns)
    assert dear.dose.factor == pytest.approx(1 + 4 * spin_ns / each_ns)


def test_without_its_probe_nothing_is_told_of_the_client(driven: Driven) -> None:
    blocks = (Block("cpu", (), 0, 1, 4, 30.0),)
    assert with_client_doses(blocks, driven, 5) == blocks
    untold = replace(driven, round_trips_per_transaction=None)
    client = (Block("client", (), 0, 1, 4, 30.0),)
    assert with_client_doses(client, untold, 5) == client
