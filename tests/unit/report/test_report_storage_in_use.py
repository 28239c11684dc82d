"""A comparison of storages ends with what its own windows speak for, and with nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.analysis import storage_steps as steps
from pgdyno.analysis.disk_facts import Advice, Answer, NotForThisLoad, NotKnown, StorageInUse
from pgdyno.analysis.facts import Facts
from pgdyno.analysis.session_facts import RoundSessions
from pgdyno.analysis.storage_in_use import storage_in_use
from pgdyno.model.run import TrialRecord, TrialState
from pgdyno.plan.packaged import packaged_plans
from pgdyno.report.document import Points, Section, Table, Text
from pgdyno.report.sections import ORDER
from pgdyno.report.sections import storage as storage_section
from tests.data.miniature import a_result

DATA = Path(__file__).parents[2] / "data" / "storage"
CLOUD = {  # a second of a device that takes 1 ms for a read, 4 ms for a flush
    "reads": 3000.0, "read_s": 3.0, "writes": 900.0, "write_s": 0.45, "flushes": 250.0,
    "flush_s": 1.0,
}  # fmt: skip
LOCAL = CLOUD | {"read_s": 0.3, "flush_s": 0.0125}
WAITS = {"cpu": 0.2, "read": 0.4, "flush": 0.4}
IDLE = {"cpu": 1.0}
OTHER = "/mnt/b c"
STEADY = (0.98, 1.0, 1.02)
APART_DISKS: dict[str | None, str] = {None: "vda", OTHER: "vdb"}
READS, SHARED, APART = (
    "Ask for many pages at once", "Let commits share flushes", "Put WAL on the disk of this stage",
)  # fmt: skip
FOLDERS = "pgdyno's own folder and /mnt/b c"


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


def spoken_against(found: StorageInUse) -> dict[tuple[str, str], NotForThisLoad]:
    return {(one.where, one.what): one for one in found.not_for_load}


def answers(found: StorageInUse, step: steps.Step) -> tuple[Answer, ...]:
    """For pgdyno's own folder, and for the other one."""
    return next(one.answers for one in found.steps if one.by == step.by)


def points(facts: Facts, found: StorageInUse) -> tuple[str, ...]:
    (items,) = (one for one in section(facts, found).blocks if isinstance(one, Points))
    return items.items


def tables(facts: Facts, found: StorageInUse) -> list[Table]:
    return [one for one in section(facts, found).blocks if isinstance(one, Table)]


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
        r"Sessions wait for flushes of WAL 16% of their time \(95% interval 0% to 100%, 3 rounds\),"
        r" and it would be advised from 20% on, a threshold that is chosen, not measured\. Half a"
        r" flush takes 100 µs \(95% interval [\d.]+ µs to [\d.]+ ms, 3 rounds\), and it would be"
        r" advised from 100 µs on, a threshold that is chosen, not measured\. More rounds tell\.",
        told["initdb", SHARED].because,
    )
    drifts = in_use(facts, CLOUD, LOCAL, shares=(0.01, 0.05, 2.0))
    assert ("tuned", APART) not in advice(drifts)
    assert re.fullmatch(
        r"The disk of tuned ends flushes ×[\d.]+ as fast as that of initdb \(95% interval ×0\.\d+"
        r" to ×\d+\.\d+, 3 rounds\), and its rounds do not tell that it is faster\. More rounds"
        r" tell\.",
        unknown(drifts)["tuned", APART].because,
    )
    (shared,) = (
        one for one in points(facts, found)
        if one.startswith("initdb. Not known: let commits share flushes?")
    )  # fmt: skip
    assert shared.endswith("More rounds tell. `pgdyno run group-commit` measures it.")


def test_a_window_measured_once_tells_nothing_for_sure(facts: Facts) -> None:
    once = in_use(facts, CLOUD, LOCAL, shares=(1.0,), waited=(1.0,))
    assert once.advice == ()
    assert set(unknown(once)) == {
        ("initdb", READS), ("tuned", READS), ("initdb", SHARED), ("tuned", APART),
        ("initdb and tuned", steps.SPREAD.what), ("initdb and tuned", steps.WRITES.what),
        (FOLDERS, steps.MAINTENANCE.what), (FOLDERS, steps.SCANS.what),
    }  # fmt: skip
    assert "40% of their time, measured once," in unknown(once)["initdb", READS].because
    low = in_use(facts, CLOUD, LOCAL, {"read": 0.1, "flush": 0.1}, (1.0,), (1.0,))
    assert low.advice == ()
    assert set(unknown(low)) == {(FOLDERS, steps.MAINTENANCE.what), (FOLDERS, steps.SCANS.what)}


def test_what_was_not_sampled_is_not_known_and_never_zero(facts: Facts) -> None:
    found = in_use(facts, {}, CLOUD, waits=None)
    assert (found.disks[0].read_s, found.disks[0].reads_per_s) == (None, None)
    assert found.advice == ()
    table, _ = tables(facts, found)
    assert {cell.text for cell in table.rows[0][1:]} == {"–"}
    assert {answer for one in found.steps for answer in one.answers} == {"not known"}
    assert all(
        "What sessions of initdb waited for was not sampled." in one.because
        and 'Telemetry tells it (`telemetry = "default"`)' in one.because
        for (where, _), one in unknown(found).items() if where == "initdb"
    )  # fmt: skip


def test_the_section_names_the_probe_and_the_figures(facts: Facts) -> None:
    found = in_use(facts, CLOUD, LOCAL)
    about, table, *_, plans, _ = section(facts, found).blocks
    assert isinstance(about, Text)
    assert about.text.startswith("These are things to try.")
    assert "under what this load and other programs ask of it" in about.text, (
        "counters are a disk's"
    )
    assert "`pgdyno storage '/mnt/b c'` (name PGDYNO_HOME beside them), whose report" in about.text
    assert isinstance(table, Table)
    assert [cell.text for cell in table.rows[0]][1:] == [
        "3,000/s", "1.00 ms", "3.00", "900/s", "500 µs", "250/s", "4.00 ms", "40%", "40%"
    ]  # fmt: skip
    assert any("`pgdyno run parallel-io` measures it." in one for one in points(facts, found))
    assert isinstance(plans, Text)
    assert "the disk below PGDYNO_HOME" in plans.text


def test_each_thing_has_an_answer_for_each_disk_and_where_they_differ_is_said(facts: Facts) -> None:
    found = in_use(facts, CLOUD, LOCAL)
    assert [one.by for one in found.steps] == [one.by for one in steps.STEPS]
    assert {one.by: one.answers for one in found.steps} == {
        steps.READS.by: ("try", "try"),
        steps.MAINTENANCE.by: ("not known", "not known"),
        steps.SCANS.by: ("not known", "not known"),
        steps.SPREAD.by: ("try", "try"),
        steps.WRITES.by: ("not known", "not known"),
        steps.WAL_APART.by: ("try", "not for this load"),
        steps.COMMITS.by: ("try", "not for this load"),
    }
    _, told, against = tables(facts, found)
    assert told.caption.endswith("The folders differ in WAL on a disk of its own and commit_delay.")
    assert [one.head for one in told.columns] == ["", "pgdyno's own folder", OTHER]
    assert [cell.text for cell in told.rows[-1]] == ["commit_delay", "try", "not for this load"]
    assert against.folded
    assert [cell.text for cell in against.rows[-1]] == [
        "tuned", SHARED, "Half a flush takes 25.0 µs (95% interval 25.0 µs to 25.0 µs, 3 rounds)"
        ", and it would"
        " be advised from 100 µs on.",
    ]  # fmt: skip


def test_folders_of_one_file_system_are_not_told_to_differ(facts: Facts) -> None:
    """Their answers are told all the same: each is of its own windows."""
    alike = {f"{key}.device": "/dev/vda1" for key in ("file_system", f"folders.{OTHER}")}
    apart = alike | {f"folders.{OTHER}.device": "/dev/vdb1"}
    found = in_use(facts, CLOUD, LOCAL)
    captions = [
        tables(replace(facts, host={**facts.host, **host}), found)[1].caption
        for host in (alike, apart)
    ]
    assert captions[0].endswith("for the data in each folder.")
    assert captions[1].endswith("The folders differ in WAL on a disk of its own and commit_delay.")


def test_a_load_that_waits_for_no_disk_tells_nothing_of_what_vacuum_reads(facts: Facts) -> None:
    found = in_use(facts, LOCAL, LOCAL, IDLE)
    assert found.advice == ()
    assert set(unknown(found)) == {(FOLDERS, steps.MAINTENANCE.what), (FOLDERS, steps.SCANS.what)}
    assert unknown(found)[FOLDERS, steps.SCANS.what].because == (
        "The windows do not tell what vacuum and index builds read apart from the load. `pgdyno"
        " storage` tells, by reads in sequence, by several processes against one."
    )
    assert answers(found, steps.READS) == ("not for this load", "not for this load")
    assert spoken_against(found)["tuned", READS].because == (
        "Sessions wait for reads 0% of their time (95% interval 0% to 0%, 3 rounds)"
        ", and it would be advised"
        " from 20% on."
    )


def test_tables_are_spread_where_sessions_wait_for_reads_on_either_disk(facts: Facts) -> None:
    (spread,) = (one for one in in_use(facts, CLOUD, LOCAL).advice if one.what == steps.SPREAD.what)
    assert spread.where == "initdb and tuned"
    assert spread.because == (
        "sessions wait for reads 40% (39% to 41%) of their time in initdb, with 3,000 (3,000 to"
        " 3,000) reads a second, and 40% (39% to 41%) of their time in tuned, with 3,000 (3,000 to"
        " 3,000) reads a second; what both disks serve together was not measured"
    )
    one_disk: dict[str | None, str] = {None: "vda", OTHER: "vda"}
    found = in_use(facts, CLOUD, LOCAL, disks=one_disk)
    assert (
        answers(found, steps.SPREAD)
        == answers(found, steps.WAL_APART)
        == ("not known", "not known")
    )
    assert unknown(found)["initdb and tuned", steps.SPREAD.what].because == (
        "No second disk was measured with this load. Name a folder on another disk by `--folder`."
    )


def test_writes_are_handed_over_otherwise_where_sessions_wait_for_them(facts: Facts) -> None:
    found = in_use(facts, CLOUD, LOCAL, {"cpu": 0.7, "write": 0.3})
    writes = advice(found)["initdb", steps.WRITES.what]
    assert writes.because == (
        "sessions wait for writes of pages 30% (29% to 31%) of their time; of 900 writes a second"
        " each takes the disk 500 µs (490 µs to 510 µs)"
    )
    assert "checkpoint_flush_after and bgwriter_flush_after say" in writes.limits
    assert writes.plan == "handed-over-writes"
    commits = unknown(in_use(facts, CLOUD, LOCAL))["initdb and tuned", steps.WRITES.what]
    assert commits.because.startswith("Sessions wait for flushes of WAL 40% of their time")
    assert "commits beside them" in commits.because
    quiet = in_use(facts, CLOUD, LOCAL, IDLE)
    assert answers(quiet, steps.WRITES) == ("not for this load", "not for this load")


def test_an_answer_of_a_disk_is_that_of_the_load_it_matters_to(facts: Facts) -> None:
    """A folder is read, read-written and loaded: one of these may wait for its disk."""
    first, second = facts.stages[0], replace(facts.stages[1], folder=OTHER)
    trials = [
        trial(2 * round_ + place, stage.name, CLOUD, round_)
        for round_ in (1, 2, 3)
        for place, stage in enumerate((first, second))
    ]
    alone = replace(first, name="other-load", to_first=None)
    trials += [trial(10 + round_, alone.name, CLOUD, round_) for round_ in (1, 2, 3)]

    def met(one: TrialRecord) -> RoundSessions:
        return RoundSessions(8.0, WAITS if one.stage == alone.name else IDLE)

    stages = (first, second, alone)
    found = storage_in_use(stages, trials, met, lambda one: (APART_DISKS[one],), lambda _: False)
    assert found is not None
    assert answers(found, steps.READS) == ("try", "not for this load")
    assert answers(found, steps.SPREAD) == ("not known", "not for this load")


def test_a_measured_comparison_ends_with_all_that_may_be_done(facts: Facts) -> None:
    """Of two folders on one disk, whose flushes are short."""
    saved = json.loads((DATA / "comparison.json").read_text())["trials"]
    sessions = {one["number"]: RoundSessions(one["active"], one["classes"]) for one in saved}
    trials = [
        TrialRecord(one["number"], one["round"], one["stage"], "x", TrialState.FINISHED,
                    result=replace(a_result(), window_s=one["window_s"], deltas=one["deltas"]))
        for one in saved
    ]  # fmt: skip
    names = dict.fromkeys(one["stage"] for one in saved)
    stages = [
        replace(facts.stages[0], name=name, folder=None if name.startswith("here") else "/srv/b",
                to_first=None)
        for name in sorted(names)
    ]  # fmt: skip
    found = storage_in_use(
        stages, trials, lambda one: sessions[one.number], lambda _: ("vda",), lambda _: False
    )
    assert found is not None
    assert {one.by: one.answers for one in found.steps} == {
        steps.READS.by: ("not for this load",) * 2,
        steps.MAINTENANCE.by: ("not known",) * 2,
        steps.SCANS.by: ("not known",) * 2,
        steps.SPREAD.by: ("not for this load",) * 2,
        steps.WRITES.by: ("not known",) * 2,
        steps.WAL_APART.by: ("not known",) * 2,
        steps.COMMITS.by: ("not for this load",) * 2,
    }
    assert spoken_against(found)["here-read-write", SHARED].because == (
        "Half a flush takes 16.0 µs (95% interval 13.2 µs to 20.1 µs, 3 rounds), and it would be"
        " advised from 100 µs on."
    )
    assert unknown(found)["other-read-write", steps.WRITES.what].because == (
        "Sessions wait for flushes of WAL 32% of their time (95% interval 15% to 56%, 3 rounds);"
        " the windows do not tell whether what checkpoints write beside them is the cause."
        " `pgdyno storage` tells, by random writes,"
        " many at once against one at a time, and commits beside them."
    )


def test_every_plan_that_is_named_comes_with_pgdyno() -> None:
    named = {one.plan for one in steps.STEPS if one.plan}
    assert named == {"parallel-io", "parallel-maintenance", "handed-over-writes", "group-commit"}
    assert named <= {one.name for one in packaged_plans()}


def test_without_advice_nothing_is_called_a_thing_to_try(facts: Facts) -> None:
    about, *_ = section(facts, in_use(facts, LOCAL, LOCAL, IDLE)).blocks
    assert isinstance(about, Text)
    assert "things to try" not in about.text


def test_memory_is_not_named_for_a_probe_of_disks(facts: Facts) -> None:
    found = in_use(facts, CLOUD, LOCAL, memory=lambda one: one == OTHER)
    about, *_ = section(facts, found).blocks
    assert (found.folders, found.own) == ((), True)
    assert isinstance(about, Text)
    assert "pgdyno storage" not in about.text
    assert [len(one.answers) for one in found.steps] == [1] * len(steps.STEPS)
    assert {one.where for one in found.advice} == {"initdb"}, "memory is given no advice"
    nothing = in_use(facts, LOCAL, LOCAL, memory=lambda _: True)
    *_, last = section(facts, nothing).blocks
    assert isinstance(last, Text)
    assert last.text.startswith("No disk was measured")


def test_a_time_that_is_not_told_is_explained(facts: Facts) -> None:
    short = CLOUD | {"flush_s": 0.0001}
    _, table, *_ = section(facts, in_use(facts, short, CLOUD)).blocks
    assert isinstance(table, Table)
    assert [table.rows[0][at].text for at in (6, 7)] == ["250/s", "–"]
    assert "less than 10 ms together in a window" in table.caption
