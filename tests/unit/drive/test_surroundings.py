"""What a host of the load did besides: between two readings of its counters."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from pgdyno.drive.surroundings import Reading, between, read

FIRST = Reading(
    at_s=100.0, cpus=4, idle_s=350.0, total_s=400.0, ours_s=5.0, carriers_s={"ray": 2.0},
    card_bytes={"eth0": (1_000, 5_000), "eth1": (0, 0)}, card_bits_s={"eth0": 1_000_000_000},
)  # fmt: skip


def test_what_passed_is_the_growth_between_both() -> None:
    last = Reading(
        at_s=110.0, cpus=4, idle_s=375.0, total_s=440.0, ours_s=13.0,
        carriers_s={"ray": 2.5, "ssh": 9.0},
        card_bytes={"eth0": (2_000, 1_000_005_000), "eth1": (7, 7), "eth2": (9, 9)},
        card_bits_s={"eth0": 1_000_000_000},
    )  # fmt: skip

    found = between(FIRST, last)

    assert (found.seconds, found.cpu_busy_s, found.cpu_ours_s) == (10.0, 15.0, 8.0)
    assert found.idle_share == pytest.approx(1 - 15 / 40)
    assert found.carriers_cpu_s == {"ray": 0.5}, "of what was there all the time"
    (card,) = found.cards
    assert (card.name, card.received_bytes, card.sent_bytes) == ("eth0", 1_000, 1_000_000_000)
    assert found.card_share == pytest.approx(0.8)


def test_ticks_that_a_virtual_machine_lost_were_not_idle() -> None:
    last = replace(FIRST, at_s=110.0, idle_s=370.0, total_s=430.0)

    found = between(FIRST, last)

    assert (found.cpu_total_s, found.cpu_busy_s) == (40.0, 20.0), "four CPUs for ten seconds"
    assert found.idle_share == 0.5


def test_what_is_not_known_is_told_as_such() -> None:
    found = between(FIRST, FIRST)

    assert found.idle_share is None
    assert found.card_share is None


def test_a_reading_of_this_host_counts_on() -> None:
    first, last = read(), read()

    assert 0 < first.idle_s < first.total_s
    assert first.total_s <= last.total_s
    assert first.ours_s <= os.times().user + os.times().system + 0.1
    assert "lo" not in first.card_bytes
