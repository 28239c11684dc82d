"""The trial that runs, as glances tell it: what is shown, what is counted, and when it is over."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pgdyno.live.latest_parts import LatestParts
from pgdyno.live.message import Message
from pgdyno.live.over_time import POINTS_MAX, OverTime
from pgdyno.live.run_progress import Moment
from pgdyno.live.running import Running
from pgdyno.live.telemetry import EVENTS_MAX
from pgdyno.live.watched import Watched
from pgdyno.model.glance import Grown
from pgdyno.model.record_json import from_json, to_json
from tests.data.glances import BEGAN_NS, CPUS, DEVICE, glance

DRIVEN = Moment("drive", 0, 9, 100.0, number=1, round=1, stage="tuned")
BETWEEN = replace(DRIVEN, phase="restore")


def after(*seconds: int) -> Running:
    running = Running()
    running.hear(DRIVEN)
    for second in seconds:
        running.glance(glance(second))
    return running


def rows(table: Any) -> dict[str, list[str]]:
    return {row[0]["text"]: [cell["text"] for cell in row[1:]] for row in table["rows"]}


def test_sessions_are_averages_of_looks_and_no_other_process_counts() -> None:
    running = after(7)

    assert running.sessions == {"cpu": 2.0, "flush": 1.5, "client": 0.5}
    part: Any = running.part()
    assert rows(part["classes"])["all active"] == ["4.0"]
    assert {one["name"]: one["values"][7] for one in part["sessions"]["groups"]} == {
        "cpu": 2.0, "wal": 1.5, "client": 0.5,
    }  # fmt: skip
    assert part["sessions"]["groups"][0]["values"][0] is None, "nobody looked then"


def test_devices_and_cpus_are_rates_of_the_last_second() -> None:
    running = after(1)
    part: Any = running.part()

    assert rows(part["devices"])["vda"][0] == "62.0"
    assert rows(part["devices"])["vda"][3] == "500 µs", "a read, on average"
    assert rows(part["devices"])["vda"][-2:] == ["400", "500 µs"]
    assert running.cpus["busy"] == pytest.approx(0.7)
    assert part["cpus"]["text"].startswith("70% busy in the last second: user 50%, system 20%")
    running.glance(replace(glance(3), grown=(Grown(2.0, CPUS),)))
    assert running.cpus["user"] == pytest.approx(0.25), "of two seconds, of both CPUs"


def test_devices_that_did_nothing_are_counted_and_no_more() -> None:
    idle = {name.replace("vda", "loop0"): 0.0 for name in DEVICE}
    running = Running()
    running.hear(DRIVEN)
    running.glance(replace(glance(1), grown=(Grown(1.0, {**DEVICE, **idle}),)))
    part: Any = running.part()
    assert [*rows(part["devices"])] == ["vda"]
    assert "1 more had no request since it began" in part["devices"]["caption"]

    quiet = {**idle, **{name: 0.0 for name in DEVICE}}
    running.glance(replace(glance(2), grown=(Grown(1.0, quiet),)))
    part = running.part()
    assert [*rows(part["devices"])] == ["vda"], "it was used before"


def test_a_cpu_state_that_nobody_knows_is_not_made_up() -> None:
    half = {name: value for name, value in CPUS.items() if name != "cpu.steal_s"}
    running = Running()
    running.hear(DRIVEN)
    running.glance(replace(glance(1), grown=(Grown(1.0, half),)))

    assert running.cpus == {}
    assert running.part()["cpus"] is None
    assert running.part()["devices"] is None


def test_events_are_listed_while_they_go_on_and_the_last_first() -> None:
    part: Any = after(5, 6).part()
    first, second, third = part["events"]["rows"]

    assert [cell["text"] for cell in first] == [
        "checkpoint",
        "3.0",
        "goes on, 3.00 s so far, cause time",
    ]
    assert second[1]["text"] == "5.5"
    assert third[1]["text"] == "4.5"


def test_many_events_leave_the_first_ones_out_and_all_are_counted() -> None:
    running = after(*range(1, EVENTS_MAX + 11))
    part: Any = running.part()

    assert "10 earlier ones are left out" in part["events"]["caption"]
    assert running.happened == {("tuned", "lock_wait"): EVENTS_MAX + 10}


def test_another_trial_begins_anew_and_what_was_counted_stays() -> None:
    running = after(1, 2)
    running.hear(BETWEEN)
    assert not running.is_shown
    running.glance(glance(3))
    assert not running.is_shown, "the last of a trial that is not driven any more"
    running.hear(replace(DRIVEN, number=2, stage="initdb"))
    running.glance(glance(1, began_ns=BEGAN_NS + 5))

    assert running.is_shown
    part: Any = running.part()
    assert len(part["events"]["rows"]) == 1
    assert running.happened == {("tuned", "lock_wait"): 3, ("initdb", "lock_wait"): 1}


def test_what_is_not_read_is_said() -> None:
    running = Running()
    running.hear(DRIVEN)
    quiet = replace(glance(1), ended=(), counts={})
    running.glance(replace(quiet, follows_log=False))
    assert "ran before pgdyno came" in str(running.part()["log"])
    running.glance(quiet)
    assert running.part()["log"] == "The server has logged nothing since the load began."
    running.glance(replace(glance(2), unread_bytes=3 << 20))
    assert "3.00 MiB of it were skipped" in str(running.part()["log"])


def test_a_day_is_as_long_as_a_page_is_wide() -> None:
    over = OverTime()
    for second in range(86_400):
        over.take(second, {"cpu": 6.0, "never": 0.0}, 2)

    assert over.names == {"cpu"}
    assert POINTS_MAX // 2 < len(over.values("cpu")) <= POINTS_MAX
    assert set(over.values("cpu")) == {3.0}
    assert set(over.values("wal")) == {0.0}, "it was looked, and none was met"


def test_a_second_that_stood_out_is_kept_of_a_day() -> None:
    over = OverTime()
    assert over.ends("cpu") == []
    for second in range(86_400):
        over.take(second, {"lock": 16.0} if second == 40_000 else {"cpu": 6.0}, 2)

    assert max(value or 0.0 for value in over.values("lock")) < 0.1, "the mean does not tell"
    met = [at for at, ends in enumerate(over.ends("lock")) if ends == [0.0, 8.0]]
    assert met == [40_000 // over.step_s]
    assert over.ends("cpu")[met[0]] == [0.0, 3.0]
    assert over.ends("cpu")[0] == [3.0, 3.0]


def test_the_page_has_it_until_the_load_is_over() -> None:
    latest = LatestParts()
    watched = Watched(latest)

    def shown() -> bytes | None:
        return dict(latest.newer(0, 0.0)[1]).get("running")

    watched.hear(Message(moment=DRIVEN))
    assert shown() is None
    told = from_json(Message, to_json(Message(glance=glance(4))))
    assert told == Message(glance=glance(4)), "it comes through a pipe as it was"
    watched.hear(told)
    assert b"goes on, 1.00 s so far" in (shown() or b"")
    assert 'pgdyno_trial_active_sessions{class="cpu"} 2.4' in watched.exposition()
    watched.hear(Message(moment=BETWEEN))
    assert shown() == b"null"
    assert "pgdyno_trial_active_sessions{" not in watched.exposition()
    assert 'pgdyno_logged_events_total{stage="tuned",kind="lock_wait"} 1' in watched.exposition()
