"""A comparison of storages ends with what its own windows speak for, and with nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.analysis.disk_facts import Advice, StorageInUse
from pgdyno.analysis.facts import Facts
from pgdyno.analysis.session_facts import SessionShare, StageSessions
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
READS, SHARED, APART = (
    "Ask for many pages at once", "Let commits share flushes", "Put WAL on the disk of this stage",
)  # fmt: skip


def trial(number: int, stage: str, per_s: dict[str, float]) -> TrialRecord:
    result = a_result()
    deltas = {f"disk.{name}": value * result.window_s for name, value in per_s.items()}
    return TrialRecord(number, 1, stage, "x", TrialState.FINISHED,
                       result=replace(result, deltas=deltas))  # fmt: skip


def met(stage: str, waits: dict[str, float], active: float = 8.0) -> StageSessions:
    classes = tuple(
        SessionShare(name, share * active, None, None, share) for name, share in waits.items()
    )
    return StageSessions(stage, 30, 300, SessionShare("active", active, None, None, 1.0),
                         {"class": classes}, ())  # fmt: skip


def in_use(
    facts: Facts,
    here: dict[str, float],
    there: dict[str, float],
    waits: dict[str, float] | None = WAITS,
    active: float = 8.0,
) -> StorageInUse:
    first, second = facts.stages[0], replace(facts.stages[1], folder=OTHER)
    sessions = [met(one.name, waits, active) for one in (first, second)] if waits else []
    trials = [trial(1, first.name, here), trial(2, second.name, there)]
    found = storage_in_use((first, second), trials, sessions)
    assert found is not None
    return found


def advice(found: StorageInUse) -> dict[tuple[str, str], Advice]:
    return {(one.where, one.what): one for one in found.advice}


def section(facts: Facts, found: StorageInUse) -> Section:
    one = storage_section.section(replace(facts, storage=found))
    assert one is not None
    return one


def test_stages_on_one_storage_have_no_such_section(facts: Facts) -> None:
    assert storage_in_use(facts.stages, [], []) is None
    assert facts.storage is None
    assert storage_section.section(facts) is None
    assert ORDER[-1] is storage_section


def test_waits_for_one_page_at_a_time_lead_to_the_plan_that_asks_for_many(facts: Facts) -> None:
    told = advice(in_use(facts, CLOUD, CLOUD))
    reads = told["initdb", READS]
    assert reads.because == (
        "sessions wait for reads 40% of their time, 3.2 of them on average, with 3.0 reads under"
        " way; of 3,000 reads a second each takes 1.00 ms"
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
    assert "40% of their time; of 250 flushes a second each takes the device 4.00 ms" in (
        told["initdb", SHARED].because
    )
    assert ("tuned", SHARED) not in told, "25 µs drown in the timer's slack"


def test_wal_goes_to_the_disk_with_the_quicker_flush_under_one_load(facts: Facts) -> None:
    apart = advice(in_use(facts, CLOUD, LOCAL))["tuned", APART]
    assert apart.because == (
        "a flush takes 50.0 µs there and 4.00 ms in initdb, where sessions wait for flushes 40% of"
        " their time"
    )
    assert not [one for _, one in advice(in_use(facts, CLOUD, CLOUD)) if one == APART]
    first, other = facts.stages[0], replace(facts.stages[1], folder=OTHER, to_first=None)
    trials = [trial(1, first.name, CLOUD), trial(2, other.name, LOCAL)]
    found = storage_in_use((first, other), trials, [met(first.name, WAITS)])
    assert found is not None
    assert not [one for _, one in advice(found) if one == APART], "they have not one load"


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
    assert "`pgdyno storage '/mnt/b c'`, and PGDYNO_HOME beside them," in about.text
    assert isinstance(table, Table)
    assert [cell.text for cell in table.rows[0]][1:] == [
        "3,000/s", "1.00 ms", "3.00", "900/s", "500 µs", "250/s", "4.00 ms", "40%", "40%"
    ]  # fmt: skip
    assert isinstance(points, Points)
    assert any("`pgdyno run parallel-io` measures it." in one for one in points.items)
    (quiet,) = section(facts, in_use(facts, LOCAL, LOCAL, {"cpu": 1.0})).blocks[2:]
    assert isinstance(quiet, Text)
    assert quiet.text.startswith("Nothing follows")
