"""A comparison of storages ends with what its own windows speak for, and with nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from pgdyno.analysis.disk_facts import Advice, NotKnown, StorageInUse
from pgdyno.analysis.facts import Facts
from pgdyno.analysis.session_facts import RoundSessions
from pgdyno.analysis.storage_in_use import storage_in_use
from pgdyno.model.run import TrialRecord, TrialState
from pgdyno.report.document import Points, Section, Table, Text
from pgdyno.report.sections import ORDER
from pgdyno.report.sections import storage as storage_section
from tests.data.miniature import a_result

CLOUD = {  # a second of a device that takes 1 ms for a read, 4 ms for a flush
    "reads": 3000.0, "read_s": 3.0, "writes": 900.0, "write_s": 0.45, "flushes": 250.0,
    "flush_s": 1.0,
}  # fmt: skip
LOCAL = CLOUD | {"read_s": 0.3, "flush_s": 0.0125}
WAITS = {"cpu": 0.2, "read": 0.4, "flush": 0.4}
OTHER = "/mnt/b c"
STEADY = (0.98, 1.0, 1.02)
APART_DISKS: dict[str | None, str] = {None: "vda", OTHER: "vdb"}
READS, SHARED, APART = (
    "Ask for many pages at once", "Let commits share flushes", "Put WAL on the disk of this stage",
)  # fmt: skip


def trial(number: int, stage: str, per_s: dict[str, float], round_: int = 1) -> TrialRecord:
    result = a_result()
    deltas = {f"disk.{name}": value * result.window_s for name, value in per_s.items()}
    return TrialRecord(number, round_, stage, "x", TrialState.FINISHED,
                       result=replace(result, deltas=deltas))  # fmt: skip


def wobbled(per_s: dict[str, float], share: float) -> dict[str, float]:
    """A round in which requests took so many times as long, and sessions waited as much longer."""
    times = {"read_s", "write_s", "flush_s"}
    return {name: value * (share if name in times else 1.0) for name, value in per_s.items()}


def in_use(
    facts: Facts,
    here: dict[str, float],
    there: dict[str, float],
    waits: dict[str, float] | None = WAITS,
    shares: tuple[float, ...] = STEADY,
    waited: tuple[float, ...] = STEADY,
    disks: dict[str | None, str] = APART_DISKS,
    memory: Callable[[str | None], bool] = lambda _: False,
) -> StorageInUse:
    """Two stages in rounds, in which times of the first are these shares of its own."""
    first, second = facts.stages[0], replace(facts.stages[1], folder=OTHER)

    def met(one: TrialRecord) -> RoundSessions | None:
        if waits is None:
            return None
        share = waited[one.round - 1]
        return RoundSessions(8.0, {name: each * share for name, each in waits.items()})

    trials = [
        trial(
            2 * number + place, stage.name, wobbled(disk, share if stage is first else 1.0), number
        )
        for number, share in enumerate(shares, 1)
        for place, (stage, disk) in enumerate(((first, here), (second, there)))
    ]
    found = storage_in_use((first, second), trials, met, lambda one: (disks[one],), memory)
    assert found is not None
    return found


def advice(found: StorageInUse) -> dict[tuple[str, str], Advice]:
    return {(one.where, one.what): one for one in found.advice}


def unknown(found: StorageInUse) -> dict[tuple[str, str], NotKnown]:
    return {(one.where, one.what): one for one in found.not_known}


def section(facts: Facts, found: StorageInUse) -> Section:
    one = storage_section.section(replace(facts, storage=found))
    assert one is not None
    return one


def test_stages_on_one_storage_have_no_such_section(facts: Facts) -> None:
    assert storage_in_use(facts.stages, [], lambda _: None, lambda _: (), bool) is None
    assert facts.storage is None
    assert storage_section.section(facts) is None
    assert ORDER[-1] is storage_section


def test_waits_for_one_page_at_a_time_lead_to_the_plan_that_asks_for_many(facts: Facts) -> None:
    told = advice(in_use(facts, CLOUD, CLOUD))
    reads = told["initdb", READS]
    assert reads.because == (
        "sessions wait for reads 40% (39% to 41%) of their time, 3.2 of them on average, with 3.0"
        " reads under way; of 3,000 reads a second each takes 1.00 ms (980 µs to 1.02 ms)"
    )
    assert reads.plan == "parallel-io"


@pytest.mark.parametrize(
    ("disk", "waits"),
    [
        (CLOUD, WAITS | {"read": 0.1}),  # they wait for something else
        (CLOUD | {"read_s": 30.0}, WAITS),  # each asks for many already
        ({name: CLOUD[name] for name in ("writes", "flushes", "flush_s")}, WAITS),  # not known
    ],
)
def test_reads_are_not_advised_upon_otherwise(
    facts: Facts, disk: dict[str, float], waits: dict[str, float]
) -> None:
    assert ("initdb", READS) not in advice(in_use(facts, disk, disk, waits))


def test_flushes_that_sessions_wait_for_are_worth_sharing_if_they_take_long(facts: Facts) -> None:
    told = advice(in_use(facts, CLOUD, LOCAL))
    assert told["initdb", SHARED].settings["commit_delay"] == "2000"
    assert told["initdb", SHARED].because == (
        "sessions wait for flushes of WAL 40% (39% to 41%) of their time; of 250 flushes a second"
        " each takes the device 4.00 ms (3.92 ms to 4.08 ms)"
    )
    assert ("tuned", SHARED) not in told, "25 µs drown in the timer's slack"


def test_wal_goes_to_the_disk_with_the_quicker_flush_under_one_load(facts: Facts) -> None:
    apart = advice(in_use(facts, CLOUD, LOCAL))["tuned", APART]
    assert apart.because == (
        "a flush takes 50.0 µs (50.0 µs to 50.0 µs) there and 4.00 ms (3.92 ms to 4.08 ms) in"
        " initdb, where sessions wait for flushes 40% (39% to 41%) of their time"
    )
    assert not [one for _, one in advice(in_use(facts, CLOUD, CLOUD)) if one == APART]
    stages = (facts.stages[0], replace(facts.stages[1], to_first=None), *facts.stages[2:])
    found = in_use(replace(facts, stages=stages), CLOUD, LOCAL)
    assert not [one for _, one in advice(found) if one == APART], "they have not one load"
    one_disk: dict[str | None, str] = {None: "vda", OTHER: "vda"}
    found = in_use(facts, CLOUD, LOCAL, disks=one_disk)
    assert not [one for _, one in advice(found) if one == APART], "chance, of one disk"


def test_what_rounds_do_not_tell_is_not_known(facts: Facts) -> None:
    """An average over all windows told a single slow round as the rule."""
    found = in_use(facts, CLOUD, LOCAL, WAITS, (0.03, 0.05, 0.2), (0.2, 0.4, 1.8))
    assert found.advice == ()
    told = unknown(found)
    assert re.fullmatch(
        r"Sessions wait for flushes of WAL 16% of their time \(0% to 100% in 3 rounds\), and it"
        r" would be advised from 20% on, a threshold that is chosen, not measured\. Half a flush"
        r" takes 100 µs \([\d.]+ µs to [\d.]+ ms in 3 rounds\), and it would be advised from 100"
        r" µs on, a threshold that is chosen, not measured\. More rounds tell\.",
        told["initdb", SHARED].because,
    )
    drifts = in_use(facts, CLOUD, LOCAL, shares=(0.01, 0.05, 2.0))
    assert ("tuned", APART) not in advice(drifts)
    assert re.fullmatch(
        r"The disk of tuned ends flushes ×[\d.]+ as fast as that of initdb \(×0\.\d+ to"
        r" ×\d+\.\d+ in 3 rounds\), and its rounds do not tell that it is faster\. More rounds"
        r" tell\.",
        unknown(drifts)["tuned", APART].because,
    )
    items = section(facts, found).blocks[-1]
    assert isinstance(items, Points)
    assert any(
        one.startswith("initdb. Not known: let commits share flushes?") for one in items.items
    )


def test_a_window_measured_once_tells_nothing_for_sure(facts: Facts) -> None:
    once = in_use(facts, CLOUD, LOCAL, shares=(1.0,), waited=(1.0,))
    assert once.advice == ()
    assert set(unknown(once)) == {
        ("initdb", READS), ("tuned", READS), ("initdb", SHARED), ("tuned", APART),
    }  # fmt: skip
    assert "40% of their time, measured once," in unknown(once)["initdb", READS].because
    low = in_use(facts, CLOUD, LOCAL, {"read": 0.1, "flush": 0.1}, (1.0,), (1.0,))
    assert (low.advice, low.not_known) == ((), ())


def test_what_was_not_sampled_is_not_known_and_never_zero(facts: Facts) -> None:
    found = in_use(facts, {}, CLOUD, waits=None)
    assert (found.disks[0].read_s, found.disks[0].reads_per_s) == (None, None)
    assert found.advice == ()
    about, table, nothing = section(facts, found).blocks
    assert isinstance(about, Text)
    assert isinstance(table, Table)
    assert {cell.text for cell in table.rows[0][1:]} == {"–"}
    assert isinstance(nothing, Text)
    assert nothing.text.startswith("What follows is not known")


def test_the_section_names_the_probe_and_the_figures(facts: Facts) -> None:
    about, table, points = section(facts, in_use(facts, CLOUD, LOCAL)).blocks
    assert isinstance(about, Text)
    assert about.text.startswith("These are things to try.")
    assert "`pgdyno storage '/mnt/b c'` (name PGDYNO_HOME beside them), whose report" in about.text
    assert isinstance(table, Table)
    assert [cell.text for cell in table.rows[0]][1:] == [
        "3,000/s", "1.00 ms", "3.00", "900/s", "500 µs", "250/s", "4.00 ms", "40%", "40%"
    ]  # fmt: skip
    assert isinstance(points, Points)
    assert any("`pgdyno run parallel-io` measures it." in one for one in points.items)
    (quiet,) = section(facts, in_use(facts, LOCAL, LOCAL, {"cpu": 1.0})).blocks[2:]
    assert isinstance(quiet, Text)
    assert quiet.text.startswith("Nothing follows")


def test_without_advice_nothing_is_called_a_thing_to_try(facts: Facts) -> None:
    about, *_ = section(facts, in_use(facts, LOCAL, LOCAL, {"cpu": 1.0})).blocks
    assert isinstance(about, Text)
    assert "things to try" not in about.text


def test_memory_is_not_named_for_a_probe_of_disks(facts: Facts) -> None:
    found = in_use(facts, CLOUD, LOCAL, memory=lambda one: one == OTHER)
    about, *_ = section(facts, found).blocks
    assert (found.folders, found.own) == ((), True)
    assert isinstance(about, Text)
    assert "pgdyno storage" not in about.text


def test_a_time_that_is_not_told_is_explained(facts: Facts) -> None:
    short = CLOUD | {"flush_s": 0.0001}
    _, table, *_ = section(facts, in_use(facts, short, CLOUD)).blocks
    assert isinstance(table, Table)
    assert [table.rows[0][at].text for at in (6, 7)] == ["250/s", "–"]
    assert "less than 10 ms together in a window" in table.caption
