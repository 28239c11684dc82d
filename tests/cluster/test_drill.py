"""Drills on real servers: what is owed comes back, and what gives it up loses what it must.

Which cut does what harm is left to its seed and to the load's timing; tests state what must be.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest

import pgdyno
from pgdyno.disk.record import hand_back, make_disk
from pgdyno.drills import cut, memory
from pgdyno.folders import Folder
from pgdyno.model.drill import Device, Made
from pgdyno.model.errors import Interrupted, PlanError, TargetError
from pgdyno.model.progress import Event, StepBegun
from pgdyno.mounts import SOURCE
from pgdyno.shell import run as run_root
from tests.children import started
from tests.cluster.conftest import DEBIAN_BINDIR
from tests.cluster.test_recording import tree
from tests.cluster.test_run import assert_nothing_left
from tests.waiting import until

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.xdist_group("drill"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount"),
]
SHORT = pgdyno.DrillDesign(cuts=5, load_s=2)
POWER = pgdyno.DrillDesign(("power",), cuts=5, load_s=2)  # crashes: see the mix of changes
SHORTER = pgdyno.DrillDesign(cuts=3, load_s=2)
TPCB = {"kind": "tpcb", "scale": 1, "connections": 4, "terminals": 4}
DEBIAN = {"kind": "installed", "bindir": DEBIAN_BINDIR}


def keys_of(*stages: Mapping[str, object], **keys: object) -> dict[str, object]:
    return {
        "name": "drilled",
        "question": "What survives?",
        "workload": TPCB,
        "protocol": {"rounds": 1, "warmup_s": 1, "window_s": 2, "lowest_rung": "D6"},
        "stage": [{"why": "Drilled.", "afresh": True, **stage} for stage in stages],
        **keys,
    }


def plan(*stages: Mapping[str, object], **keys: object) -> pgdyno.Plan:
    return pgdyno.load_plan(keys_of(*stages, **keys))


_DRILLS = """
import json, sys, pgdyno
pgdyno.drill(pgdyno.load_plan(json.load(open(sys.argv[1]))), out=sys.argv[2])
"""
STOCK: dict[str, object] = {"name": "stock"}


def mounts(home: Path) -> list[str]:
    """Of ours: other tests record, too."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line for line in lines if SOURCE in line and str(home) in line]


def test_on_rung_d0_all_that_was_acknowledged_comes_back(folder: Path, home_env: Path) -> None:
    run = pgdyno.drill(plan(STOCK), design=POWER, out=folder / "run.sqlite")

    assert run.is_whole
    facts = run.drill
    (row,) = facts.rows
    assert (row.disaster, row.cuts, row.harmed.of) == ("power", 5, 0), facts.cuts
    assert all(one.acknowledged > 0 for one in facts.cuts)
    # Something was left to chance, and some of it was lost.
    assert sum(one.made.sectors_lost for one in facts.cuts) > 0
    # Faults that were planted were found, every one.
    assert len(facts.controls) == 7
    assert [one for one in facts.controls if one.found is None] == []
    assert facts.doubts == ()
    assert "What survives of drilled?" in run.report("html")
    assert json.loads(run.report("json"))["rows"][0]["harmed"]["of"] == 0
    assert mounts(home_env) == []
    assert_nothing_left(home_env)


@pytest.mark.wide
@pytest.mark.usefixtures("without_controls")
def test_what_gives_up_durability_loses_what_it_gave_up(folder: Path, home_env: Path) -> None:
    asynchronous = {
        "name": "asynchronous",
        "settings": {"synchronous_commit": "off", "wal_writer_delay": "2s"},
    }
    unsynced = {"name": "unsynced", "settings": {"fsync": "off"}}
    torn = {
        "name": "torn", "settings": {"full_page_writes": "off", "shared_buffers": "1MB"}
    }  # fmt: skip

    run = pgdyno.drill(
        plan(asynchronous, unsynced, torn), design=SHORTER, out=folder / "run.sqlite"
    )

    rows = {(one.stage, one.disaster): one for one in run.drill.rows}
    # Its commits lie in the server's memory for up to six seconds.
    assert rows["asynchronous", "crash"].lost > 0
    assert rows["asynchronous", "crash"].damaged == 0  # they are the last ones, and nothing else
    assert rows["asynchronous", "power"].lost > 0
    assert rows["asynchronous", "power"].dead == 0
    assert rows["unsynced", "crash"].harmed.of == 0  # the kernel lives
    assert rows["unsynced", "power"].harmed.of > 0
    assert rows["torn", "crash"].harmed.of == 0
    assert rows["torn", "power"].lost == 0  # pages tear, commits do not vanish
    assert mounts(home_env) == []


@pytest.mark.wide
def test_a_crash_empties_unlogged_tables_and_the_drill_says_so(
    folder: Path, home_env: Path
) -> None:
    design = pgdyno.DrillDesign(("crash",), cuts=2, load_s=2)
    unlogged = {"name": "unlogged", "unlogged": True}
    run = pgdyno.drill(plan(unlogged), design=design, out=folder / "run.sqlite")
    facts = run.drill
    (row,) = facts.rows
    assert (row.rung, row.lost, row.damaged, row.dead) == ("D6", 2, 0, 0), facts.cuts
    assert [one.lost for one in facts.cuts] == [one.acknowledged for one in facts.cuts]
    assert all(one.acknowledged > 0 for one in facts.cuts)
    said = "All rows of 3 unlogged tables are gone, those that were loaded as well: pgbench_"
    assert all(one.reasons[0].startswith(said) for one in facts.cuts), facts.cuts
    assert facts.answers == ("Stage unlogged (D6): crash took all rows of its tables in 2 of 2.",)
    assert facts.controls == ()  # nothing is left that faults could be planted in
    assert said in run.report("md")
    assert mounts(home_env) == []
    assert_nothing_left(home_env)


@pytest.mark.long
@pytest.mark.parametrize("face", ["statement", "pipeline", "procedure"])
def test_tpcc_finds_its_orders_payments_and_deliveries_again(
    face: str, folder: Path, home_env: Path
) -> None:
    load = {"kind": "tpcc", "warehouses": 2, "connections": 4, "terminals": 4, "face": face,
            "delivery": "inline"}  # fmt: skip
    run = pgdyno.drill(plan(STOCK, workload=load, target=DEBIAN),
                       design=pgdyno.DrillDesign(("power", "power-twice"), cuts=2, load_s=4),
                       out=folder / "run.sqlite")  # fmt: skip

    facts = run.drill
    assert [one.harmed.of for one in facts.rows] == [0, 0], facts.cuts
    assert [one for one in facts.controls if one.found is None] == []


@pytest.mark.long
@pytest.mark.parametrize(
    "disasters",
    [
        ("write-error", "sync-error", "disk-full", "disk-hangs"),
        ("kill-postmaster", "kill-backend", "kill-checkpointer"),
    ],
    ids=["disk", "processes"],
)
def test_what_strikes_a_load_takes_nothing_that_was_acknowledged(
    disasters: tuple[str, ...], folder: Path, home_env: Path
) -> None:
    run = pgdyno.drill(plan(STOCK), design=pgdyno.DrillDesign(disasters, cuts=1, load_s=3),
                       out=folder / "run.sqlite")  # fmt: skip

    facts = run.drill
    assert [(one.disaster, one.harmed.of) for one in facts.rows] == [
        (one, 0) for one in disasters
    ], facts.cuts  # fmt: skip
    assert len(facts.loads) == len(disasters)
    assert all(one.acknowledged > 0 for one in facts.cuts)
    down = {one.disaster for one in facts.cuts if one.outage and one.outage.needs_somebody}
    assert all(one.outage is not None for one in facts.cuts)
    assert ("kill-postmaster" in disasters) == ("kill-postmaster" in down)
    assert down.isdisjoint({"kill-backend", "kill-checkpointer", "disk-hangs"})
    assert mounts(home_env) == []
    assert_nothing_left(home_env)


@pytest.mark.wide
@pytest.mark.parametrize(
    "target",
    [
        pytest.param({"kind": "embedded"}, id="18"),
        pytest.param(DEBIAN, id="15", marks=pytest.mark.long),
    ],
)
def test_a_mix_of_schema_changes_finds_again_what_it_noted(
    target: dict[str, object], folder: Path, home_env: Path
) -> None:
    load = {"kind": "mix", "connections": 4, "file": "plans/mixes/ddl.toml",
            "setup": "plans/mixes/ddl.sql"}  # fmt: skip

    run = pgdyno.drill(plan(STOCK, workload=load, target=target), design=SHORTER,
                       out=folder / "run.sqlite")  # fmt: skip

    facts = run.drill
    assert [(one.disaster, one.cuts, one.harmed.of) for one in facts.rows] == [
        ("crash", 3, 0), ("power", 3, 0),
    ], facts.cuts  # fmt: skip
    assert all(one.acknowledged > 0 for one in facts.cuts)
    assert [one for one in facts.controls if one.found is None] == []


@pytest.mark.long
def test_a_script_is_drilled_by_the_numbers_that_it_stored(
    folder: Path, home_env: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    (folder / "note.sql").write_text("INSERT INTO noted VALUES (:request_id);")
    (folder / "setup.sql").write_text("CREATE TABLE noted (id bigint, n int DEFAULT 1);")
    load = {"kind": "script", "file": "note.sql", "setup": "setup.sql", "connections": 2,
            "witness": {"note.sql": "SELECT id FROM noted"},
            "invariants": [{"title": "n is 1", "sql": "SELECT 1 FROM noted WHERE n <> 1"}],
            }  # fmt: skip
    once = pgdyno.DrillDesign(("power",), cuts=1, load_s=1)

    run = pgdyno.drill(plan(STOCK, workload=load), design=once, out=folder / "run.sqlite")

    assert [one.harmed.of for one in run.drill.rows] == [0], run.drill.cuts
    assert run.drill.cuts[0].acknowledged > 0
    assert [one for one in run.drill.controls if one.found is None] == []

    for number, (query, wrong) in enumerate((
        ("SELECT nobody FROM noted", "witness of note.sql cannot be asked: column .nobody. does"),
        ("SELECT 7 UNION ALL SELECT id FROM noted", "asked before the load begins, finds 1 row"),
    )):  # fmt: skip
        load["witness"] = {"note.sql": query}
        with pytest.raises(PlanError, match=wrong):
            pgdyno.drill(
                plan(STOCK, workload=load), design=once, out=folder / f"wrong{number}.sqlite"
            )
    assert mounts(home_env) == []


SMALL_SEGMENTS = {"kind": "embedded", "initdb": ["--wal-segsize=1"]}


@pytest.mark.long
def test_a_disk_that_is_full_of_wal_or_of_data_is_met_and_takes_nothing(
    folder: Path, home_env: Path
) -> None:
    run = pgdyno.drill(
        plan(STOCK, target=SMALL_SEGMENTS),
        # By this seed both strike in the first second of the load; WAL needs room in the others.
        design=pgdyno.DrillDesign(("wal-full", "data-full"), cuts=1, load_s=6, seed=24),
        out=folder / "run.sqlite",
    )

    facts = run.drill
    assert [(one.disaster, one.harmed.of) for one in facts.rows] == [
        ("wal-full", 0), ("data-full", 0)
    ], facts.cuts  # fmt: skip
    wal, data = facts.cuts
    assert wal.met, "WAL needed new room"
    assert wal.outage is not None
    assert data.outage is not None
    assert not data.outage.needs_somebody, "data find no room, but nothing ends for it"


@pytest.mark.long
def test_the_kernel_takes_who_asks_for_more_memory_than_there_is(
    folder: Path, home_env: Path
) -> None:
    run = pgdyno.drill(plan(STOCK), design=pgdyno.DrillDesign(("out-of-memory",), 1, 3),
                       out=folder / "run.sqlite")  # fmt: skip

    (row,) = run.drill.rows
    assert row.harmed.of == 0, run.drill.cuts
    assert row.stayed_down == 0, "the postmaster starts the others anew"
    assert row.outage_s is not None
    assert list(Path("/sys/fs/cgroup").rglob("pgdyno-*")) == []


@pytest.mark.long
def test_a_standby_takes_over_with_what_commits_waited_for(folder: Path, home_env: Path) -> None:
    disasters = ("failover", "failover-behind", "failover-sync")
    run = pgdyno.drill(plan(STOCK), design=pgdyno.DrillDesign(disasters, cuts=1, load_s=4),
                       out=folder / "run.sqlite")  # fmt: skip

    rows = {one.disaster: one for one in run.drill.rows}
    # Whatever is lost is lost from the end, and nothing else is wrong.
    assert all(one.dead == one.damaged == 0 for one in rows.values()), run.drill.cuts
    assert rows["failover-behind"].lost == 1, "nothing was sent to it for a second"
    assert rows["failover-sync"].harmed.of == 0
    assert all(one.recovery_s is not None for one in rows.values())
    assert not [one for one in run.drill.doubts if "failover" in one]
    assert mounts(home_env) == []
    assert_nothing_left(home_env)


@pytest.mark.long
def test_a_standby_that_is_lost_takes_commits_only_where_they_wait_for_it(
    folder: Path, home_env: Path
) -> None:
    disasters = ("standby-lost", "standby-lost-sync", "both-lost")
    run = pgdyno.drill(plan(STOCK), design=pgdyno.DrillDesign(disasters, cuts=1, load_s=4),
                       out=folder / "run.sqlite")  # fmt: skip

    rows = {one.disaster: one for one in run.drill.rows}
    assert all(one.harmed.of == 0 for one in rows.values()), run.drill.cuts
    assert rows["standby-lost"].stayed_down == 0
    assert rows["standby-lost-sync"].stayed_down == 1, "commits wait for what does not come back"
    assert rows["both-lost"].stayed_down == 1
    assert_nothing_left(home_env)


@pytest.mark.wide
@pytest.mark.usefixtures("without_controls")
def test_a_disk_that_is_cut_while_it_is_in_use_is_the_one_that_a_copy_has(
    folder: Path, home_env: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[int] = []

    def watched(
        held: Folder, record: str, data: str, instant_ns: int, seed: int, device: Device
    ) -> Made:
        for again in range(8):  # the first is the drill's own, and taken last
            wanted = make_disk(held, record, "copy", instant_ns, seed + again, device)
            run_root(["cp", "-a", held.path / data, held.path / "back"])
            made = hand_back(held, record, "back", instant_ns, seed + again, device)
            assert made == wanted
            left, right = tree(held.path / "back"), tree(held.path / "copy")
            assert left.keys() == right.keys()
            assert [name for name in left if left[name] != right[name]] == []
            compared.append(len(left))
            for name in ("copy", "back"):
                held.remove_folder(name)
        return hand_back(held, record, data, instant_ns, seed, device)

    monkeypatch.setattr(cut, "hand_back", watched)
    run = pgdyno.drill(plan(STOCK), design=pgdyno.DrillDesign(("power-live",), 1, 2),
                       out=folder / "run.sqlite")  # fmt: skip

    (row,) = run.drill.rows
    (made,) = run.drill.cuts
    assert row.harmed.of == 0, made
    assert made.acknowledged > 0
    assert made.outage is not None
    assert made.outage.needs_somebody
    assert len(compared) == 8
    assert min(compared) > 900
    assert "the service in 1 of 1" in run.report("md") or "stays down" in run.report("md")
    assert mounts(home_env) == []
    assert_nothing_left(home_env)


@pytest.mark.long
@pytest.mark.usefixtures("without_controls")
def test_what_a_drill_took_stands_in_the_report_of_another_run(
    folder: Path, home_env: Path
) -> None:
    asynchronous = {
        "name": "asynchronous",
        "settings": {"synchronous_commit": "off", "wal_writer_delay": "2s"},
    }
    made = plan(STOCK, asynchronous)
    drilled = pgdyno.drill(made, design=pgdyno.DrillDesign(("crash",), 2, 2),
                           out=folder / "drill.sqlite")  # fmt: skip
    measured = pgdyno.run(made, out=folder / "run.sqlite")

    words = {one.stage: one for one in drilled.drill.rows}
    assert words["asynchronous"].lost > 0
    done = run_root([sys.executable, "-m", "pgdyno", "report", measured.path,
                     "--losses", drilled.path, "--format", "md", "--out", "-"])  # fmt: skip
    assert "| stage | crash took |" in done.stdout
    assert "nothing in 2 cuts" in done.stdout
    assert f"of commits in {words['asynchronous'].lost} of 2" in done.stdout
    with pytest.raises(PlanError, match="drilled nothing"):
        pgdyno.Run(measured.path, losses=measured.path)


@pytest.mark.wide
@pytest.mark.same_machine
@pytest.mark.usefixtures("without_controls")
def test_a_drill_that_is_stopped_goes_on_with_the_cuts_that_are_left(
    folder: Path, home_env: Path
) -> None:
    def stop(event: Event) -> None:
        if isinstance(event, StepBegun) and "cut 2 of 4" in event.what:
            raise KeyboardInterrupt

    out = folder / "run.sqlite"
    design = pgdyno.DrillDesign(cuts=2, load_s=1)
    with pytest.raises(Interrupted, match="what was measured is kept"):
        pgdyno.drill(plan(STOCK), design=design, out=out, on_event=stop)
    assert mounts(home_env) == []
    first = pgdyno.Run(out)
    assert not first.is_whole
    assert len(first.drilled.cuts) == 1

    run = pgdyno.resume(out)

    assert run.is_whole
    assert run.drilled.cuts[0] == first.drilled.cuts[0]
    assert len(run.drilled.cuts) == 4
    assert_nothing_left(home_env)


@pytest.mark.long
def test_a_drill_that_is_killed_with_its_recorder_leaves_nothing_to_the_next(
    folder: Path, home_env: Path
) -> None:
    path = folder / "plan.json"
    path.write_text(json.dumps(keys_of(STOCK)))
    killed = started([sys.executable, "-c", _DRILLS, str(path), str(folder / "killed.sqlite")],
                     stderr=subprocess.DEVNULL)  # fmt: skip
    until(lambda: bool(mounts(home_env)), "the recording to begin")
    children = psutil.Process(killed.pid).children(recursive=True)
    recorder = [one for one in children if "pgdyno.disk.worker" in " ".join(one.cmdline())]
    assert len(recorder) == 1
    recorder[0].send_signal(signal.SIGSTOP)
    killed.send_signal(signal.SIGKILL)
    recorder[0].send_signal(signal.SIGKILL)
    until(lambda: not any(one.is_running() for one in children), "all processes to end")

    run = pgdyno.drill(plan(STOCK), design=pgdyno.DrillDesign(cuts=1, load_s=1),
                       out=folder / "next.sqlite")  # fmt: skip

    assert run.is_whole
    assert mounts(home_env) == []
    assert_nothing_left(home_env)


@pytest.mark.parametrize(
    ("changed", "wrong"),
    [
        ({"engine": "pgbench"}, "real pgbench, which keeps no ledger"),
        ({"kind": "select-only"}, "leaves nothing by which its commits"),
    ],
)
def test_a_load_without_a_ledger_is_refused_before_anything_is_touched(
    changed: dict[str, object], wrong: str, folder: Path, home_env: Path
) -> None:
    with pytest.raises(PlanError, match=wrong):
        pgdyno.drill(plan(STOCK, workload=TPCB | changed), design=SHORT, out=folder / "run.sqlite")
    assert not (folder / "run.sqlite").exists()


def test_room_that_is_not_there_is_said_before_the_load_begins(
    folder: Path, home_env: Path
) -> None:
    design = pgdyno.DrillDesign(cuts=1, load_s=1, record_max_gib=1e6)

    with pytest.raises(TargetError, match=r"free; a record may take 977 TiB, and each of two"):
        pgdyno.drill(plan(STOCK), design=design, out=folder / "run.sqlite")

    assert mounts(home_env) == []
    assert_nothing_left(home_env)


def test_without_a_memory_cgroup_nothing_is_begun(
    folder: Path, home_env: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "_own_cgroup", lambda _process: folder / "memory")

    with pytest.raises(TargetError, match="memory cannot be divided here") as refused:
        pgdyno.drill(plan(STOCK), design=pgdyno.DrillDesign(("out-of-memory",)),
                     out=folder / "run.sqlite")  # fmt: skip

    assert refused.value.hint is not None
    assert "kill-backend" in refused.value.hint
    assert not (folder / "run.sqlite").exists()


def test_a_disaster_and_a_stage_that_are_not_known_are_refused(home_env: Path) -> None:
    with pytest.raises(PlanError, match=r"no disaster is called 'flood', known are crash, power"):
        pgdyno.drill(plan(STOCK), design=pgdyno.DrillDesign(disasters=("flood",)))
    with pytest.raises(PlanError, match="no stage is called 'tuned'"):
        pgdyno.drill(plan(STOCK), ["tuned"], design=SHORT)


@pytest.mark.long
@pytest.mark.usefixtures("without_controls")
def test_a_guarded_stage_without_page_images_loses_nothing(folder: Path, home_env: Path) -> None:
    torn = {"full_page_writes": "off", "shared_buffers": "1MB"}
    guarded = {"name": "guarded", "settings": torn, "guard": True}
    design = pgdyno.DrillDesign(("power", "power-4k", "power-twice"), cuts=2, load_s=3)

    run = pgdyno.drill(plan(guarded), design=design, out=folder / "run.sqlite")

    facts = run.drill
    assert [(one.disaster, one.rung, one.harmed.of) for one in facts.rows] == [
        ("power", "D0", 0), ("power-4k", "D0", 0), ("power-twice", "D0", 0),
    ], facts.cuts  # fmt: skip
    repairs = [one.repair for one in facts.cuts]
    assert all(one is not None and one.blocks_needed > 0 for one in repairs)
    assert [one.repairs for one in facts.rows] == [2, 2, 2]
    assert "repaired from a standby before" in run.report("md")
    assert mounts(home_env) == []
    assert_nothing_left(home_env)
