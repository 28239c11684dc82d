"""What a recorder has kept, told to who looks on while another thread goes on keeping."""

from __future__ import annotations

import threading
from collections import Counter

from pgdyno.model.glance import Grown, Met
from pgdyno.sample.increments import Increments
from pgdyno.sample.kept import BEGIN, NS, KeptSeries, KeptTally
from pgdyno.sample.sampler import Column, Sampler, Tally
from pgdyno.sample.samplers.server_sessions import SESSIONS

COLUMNS = (Column("disk.reads", "1"), Column("disk.in_flight", "1", "gauge"), Column("x", "1"))
KEY = ("backend", "cpu", "", "active", "new_order", "", "")


def kept_series() -> KeptSeries:
    return KeptSeries(Sampler("disk", COLUMNS, dict))


def kept_tally() -> KeptTally:
    return KeptTally(Tally("sessions", SESSIONS, list))


def told(name: str) -> bool:
    return name.startswith("disk.")


def test_counters_that_are_wanted_grow_from_one_look_to_the_next() -> None:
    series = kept_series()
    series.add(1 * NS, {"disk.reads": 10.0, "disk.in_flight": 3.0, "x": 1.0})
    increments = Increments([series], None, told)

    assert increments.grown() == (), "nothing was sampled since"
    series.add(3 * NS, {"disk.reads": 30.0, "disk.in_flight": 1.0, "x": 9.0})
    series.add(4 * NS, {"disk.reads": 35.0, "disk.in_flight": 1.0, "x": 9.0})
    assert increments.grown() == (Grown(3.0, {"disk.reads": 25.0}),)
    assert increments.grown() == ()


def test_who_begins_anew_or_is_gone_has_no_growth() -> None:
    series = kept_series()
    series.add(1 * NS, {"disk.reads": 10.0})
    increments = Increments([series], None, told)
    series.add(2 * NS, {"disk.reads": 4.0})
    assert increments.grown() == ()
    series.add(3 * NS, {})
    assert increments.grown() == ()
    series.add(4 * NS, {"disk.reads": 5.0})
    assert increments.grown() == (), "of the time in which it was gone nothing is known"
    series.add(5 * NS, {"disk.reads": 7.0})
    assert increments.grown() == (Grown(1.0, {"disk.reads": 2.0}),)


def test_a_series_without_a_sample_comes_later() -> None:
    series = kept_series()
    increments = Increments([series], None, told)
    assert increments.grown() == ()
    series.add(1 * NS, {"disk.reads": 1.0})
    assert increments.grown() == ()
    series.add(2 * NS, {"disk.reads": 2.0})
    assert increments.grown() == (Grown(1.0, {"disk.reads": 1.0}),)


def test_sessions_are_told_by_whole_seconds_that_are_over() -> None:
    tally = kept_tally()
    tally.add(1 * NS, [KEY])
    increments = Increments([], tally, told)
    for tenth in range(10):
        tally.add(2 * NS + tenth * NS // 10, [KEY, KEY, ("backend", "wal", *KEY[2:])])

    assert increments.met() == Met(1, (("backend", "active", "cpu", 1),))
    assert increments.met() is None, "the second is not over"
    tally.add(3 * NS, [])
    found = increments.met()
    assert found is not None
    assert found.looks == 10
    assert Counter(found.counts) == {
        ("backend", "active", "cpu", 20): 1, ("backend", "active", "wal", 10): 1,
    }  # fmt: skip


def test_a_second_in_which_nobody_was_met_was_looked_at() -> None:
    tally = kept_tally()
    increments = Increments([], tally, told)
    for second in range(3):
        tally.add(second * NS, [])
    assert increments.met() == Met(2, ())
    assert Increments([], None, told).met() is None


def test_nothing_is_lost_or_told_twice_while_another_thread_keeps() -> None:
    tally, series = kept_tally(), kept_series()
    series.add(1, {"disk.reads": 0.0})
    increments = Increments([series], tally, told)

    def keep() -> None:
        for number in range(20_000):
            tally.add(number * NS // 4, [(*KEY[:4], f"kind {number % 50}", "", "")])
            series.add(number + 2, {"disk.reads": float(number)})

    thread = threading.Thread(target=keep)
    thread.start()
    looks = met = 0
    grown = 0.0
    going_on = True
    while going_on:
        going_on = thread.is_alive()
        for one in increments.grown():
            grown += one.columns["disk.reads"]
        if found := increments.met():
            looks += found.looks
            met += sum(count for *_, count in found.counts)
    assert looks == met == 20_000 - 4, "the last second is not over"
    assert grown == 19_999
    assert tally.since(BEGIN)[1] == looks
