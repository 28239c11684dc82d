"""A log that is followed: what has ended, what goes on, and messages that come in pieces."""

from __future__ import annotations

from pgdyno.sample.server_log import LogFollower, read_log

LINES = (
    "2026-11-21 08:00:00.000 UTC [7] LOG:  checkpoint starting: time",
    "2026-11-21 08:00:01.000 UTC [9] LOG:  process 9 still waiting for ShareLock on transaction 5"
    " after 1000.1 ms",
    "2026-11-21 08:00:01.500 UTC [8] ERROR:  deadlock detected",
    "\tProcess 8 waits for ShareLock on transaction 6; blocked by process 9.",
    "2026-11-21 08:00:02.000 UTC [9] LOG:  process 9 acquired ShareLock on transaction 5 after"
    " 2000.1 ms",
    "2026-11-21 08:00:03.000 UTC [7] LOG:  checkpoint complete: wrote 9 buffers (0.1%);"
    " write=2.5 s, sync=0.2 s, total=3.0 s",
)


def test_it_tells_in_the_end_what_is_read_at_once() -> None:
    follower = LogFollower()
    told = [event for line in LINES for event in follower.hear([line])]
    told += follower.hear([])

    assert sorted(told, key=lambda one: one.start_ns) == [*read_log(LINES).events]
    assert follower.under_way == ()


def test_what_has_begun_goes_on_until_its_end_is_told() -> None:
    follower = LogFollower()
    follower.hear(LINES[:2])
    assert [one.kind for one in follower.under_way] == ["checkpoint"], "more of a message may come"
    assert follower.hear([]) == ()
    assert sorted(one.kind for one in follower.under_way) == ["checkpoint", "lock_wait"]
    ended = follower.hear(LINES[2:])
    assert [one.kind for one in ended] == ["error", "lock_wait"]
    assert [one.kind for one in follower.under_way] == ["checkpoint"]
    assert [one.kind for one in follower.hear([])] == ["checkpoint"]


def test_a_message_in_two_pieces_is_one() -> None:
    follower = LogFollower()
    follower.hear(LINES[2:3])
    follower.hear(LINES[3:4])
    (event,) = follower.hear([])

    assert event.detail.text == (
        "ERROR: deadlock detected Process 8 waits for ShareLock on transaction 6; blocked by"
        " process 9."
    )


def test_a_flood_is_told_second_by_second() -> None:
    follower = LogFollower()
    for _ in range(3):
        assert len(follower.hear([LINES[2]] * 1500)) == 1000
