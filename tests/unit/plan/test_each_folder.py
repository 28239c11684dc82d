"""`--folder a,b`: stages that are repeated for each folder, and the room that they find there."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from pgdyno.model.errors import PlanError
from pgdyno.model.plan import Plan
from pgdyno.model.record_json import from_json, to_json
from pgdyno.model.settings import HostFacts, OriginKind, Place
from pgdyno.plan import read_plan, render_dry_run
from pgdyno.plan.resolve.plan import resolve
from pgdyno.target.open_target import require_folders
from tests.data.servers import GIB, HOST, installed

COMPARISON = Path(__file__).parents[3] / "plans" / "storage-comparison.toml"
LOADS = ("read-only", "read-write", "load")


def names(*folders: str, overrides: tuple[str, ...] = ()) -> list[str]:
    draft = read_plan(COMPARISON, overrides, quick=True, folders=folders)
    return [stage.name for stage in draft.document.stage]


def resolved(*folders: str, host: HostFacts = HOST) -> Plan:
    return resolve(read_plan(COMPARISON, quick=True, folders=folders), installed(18), host)


def test_without_folders_the_plan_is_what_it_was() -> None:
    assert names() == [f"{where}-{load}" for load in LOADS for where in ("here", "memory")]
    assert (
        "stages other-read-only, other-read-write and other-load are left out (skip);"
        " what brings them in is --folder" in resolved().notes
    )


def test_one_folder_brings_in_the_stages_that_six_values_did() -> None:
    by_hand = [
        one
        for load in LOADS
        for one in (f"stage.other-{load}.skip=false", f"stage.other-{load}.folder=/mnt/a")
    ]

    assert names("/mnt/a") == names(overrides=tuple(by_hand))
    short = resolved("/mnt/a")
    long = resolve(read_plan(COMPARISON, by_hand, quick=True), installed(18), HOST)
    assert short.stages == long.stages


def test_several_folders_stand_one_after_the_other() -> None:
    plan = resolved("/mnt/fast/pg", "/mnt/slow/pg")
    found = {stage.name: stage.folder for stage in plan.stages if stage.name.startswith("other")}

    assert found == {
        f"other-{load}-{end}": f"/mnt/{end.removesuffix('-pg')}/pg"
        for load in LOADS
        for end in ("fast-pg", "slow-pg")
    }
    assert plan.folders == ("/mnt/fast/pg", "/mnt/slow/pg")
    assert from_json(Plan, to_json(plan)) == plan


@pytest.mark.parametrize(
    ("folders", "ends"),
    [
        (("/mnt/a", "/mnt/b"), ("a", "b")),
        (("/mnt/A b", "/mnt/c"), ("a-b", "c")),
        (("/x/d", "/y/d"), ("x-d", "y-d")),
        (("/mnt/a-b", "/mnt/a b"), ("1", "2")),
        (("/", "/mnt"), ("1", "2")),
        (("/mnt/" + 60 * "a", "/mnt/b"), ("1", "2")),
    ],
)
def test_names_end_with_what_tells_the_folders_apart(
    folders: tuple[str, ...], ends: tuple[str, ...]
) -> None:
    found = [name for name in names(*folders) if name.startswith("other-load")]

    assert found == [f"other-load-{end}" for end in ends]


def test_a_copy_can_be_set_by_its_name() -> None:
    chosen = ("stage.other-load-b.settings.wal_buffers=64MB",)
    draft = read_plan(COMPARISON, chosen, quick=True, folders=("/mnt/a", "/mnt/b"))
    found = {stage.name: stage.settings for stage in draft.document.stage}

    assert found["other-load-b"] == {"wal_buffers": "64MB"}
    assert found["other-load-a"] == {}


def test_a_folder_that_is_named_twice_is_refused() -> None:
    with pytest.raises(PlanError, match="--folder: /mnt/a is named twice"):
        names("/mnt/a", "/mnt/a")


def test_a_plan_without_such_stages_refuses_folders() -> None:
    with pytest.raises(PlanError, match="--folder: the plan has no stage that is repeated"):
        read_plan(COMPARISON.with_name("demo.toml"), folders=("/mnt/a",))


def test_a_folder_that_is_not_there_is_said_of_who_named_it(tmp_path: Path) -> None:
    """A stage that `--folder` makes stands in no file, and was told as a mistake of one."""
    gone = str(tmp_path / "gone")
    with pytest.raises(PlanError) as refused:
        require_folders(resolved(gone), 0)
    assert refused.value.fact == f"{COMPARISON}: --folder: folder {gone} does not exist"
    assert str(refused.value.hint).startswith("Name a folder that exists, that user ")

    values = ("stage.other-load.skip=false", f"stage.other-load.folder={gone}")
    by_hand = resolve(read_plan(COMPARISON, values, quick=True), installed(18), HOST)
    with pytest.raises(PlanError, match=": stage other-load: folder "):
        require_folders(by_hand, 0)


def dry_run(host: HostFacts, *folders: str) -> str:
    console = Console(file=io.StringIO(), width=100, color_system=None)
    plan = resolved(*folders, host=host)
    console.print(render_dry_run(plan, installed(18), host))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_dry_run_shows_what_is_free_in_the_folder_that_is_used() -> None:
    places = (
        Place("/dev/shm", 12 * GIB, "tmpfs", 9),
        Place("/mnt/a", 700 * GIB, "xfs", 2, disks=("sda", "vda")),
        Place("/srv/b", 80 * GIB, "ext4", 1, disks=("vda",)),
    )
    host = replace(HOST, data_device_number=1, data_disks=("vda",), places=places)
    text = dry_run(host, "/mnt/a", "/srv/b")
    lines = [line.strip() for line in text.splitlines()]

    assert lines.count("data in /mnt/a on xfs, 700 GiB free") == 3
    needs = " ".join(" ".join(lines[lines.index(_heading(lines)) :]).split())
    assert " of 80.0 GiB in /srv/pgdyno: loaded fixture " in needs
    assert " of 700 GiB in /mnt/a: copy for the trial " in needs
    assert "together, on one file system: /srv/pgdyno and /srv/b" in needs
    assert (
        "- /srv/pgdyno and /srv/b lie on one file system on vda: of stages that differ by"
        " these alone, what differs between them is chance, or where on it their files lie; no"
        " number of rounds decides that"
    ) in needs, "before anything is measured"
    assert "- /srv/pgdyno and /mnt/a share the disk vda: stages that differ by these" in needs
    assert "lie on one file system, which has" not in needs, "both fit"


def test_a_folder_in_memory_takes_memory_and_no_disk() -> None:
    place = Place("/dev/shm/a", 12 * GIB, "tmpfs", 9)
    text = " ".join(dry_run(replace(HOST, places=(place,)), "/dev/shm/a").split())

    assert "data in /dev/shm/a on tmpfs, which is memory, 12.0 GiB free" in text
    needs = text[text.index("Needs of the hungriest") :]
    row = re.search(r"(memory|disk) [^ ]+ [GM]iB of 12.0 GiB in /dev/shm/a, ([^:]*):", needs)
    assert row is not None
    assert row[1] == "memory"
    assert row[2] == "which is memory (tmpfs), on top of the above"


def test_memory_that_does_not_hold_server_and_data_is_told() -> None:
    """Each fits alone; together the kernel would kill the server."""
    place = Place("/dev/shm/a", 100 * HOST.memory_bytes, "tmpfs", 9)
    tight = " ".join(dry_run(replace(HOST, places=(place,)), "/dev/shm/a").split())
    large = replace(HOST, memory_bytes=100 * HOST.memory_bytes, places=(place,))
    roomy = resolved("/dev/shm/a", host=large)

    assert "folder /dev/shm/a is memory: with it stage other-" in tight
    assert not [note for note in roomy.notes if "is memory: with it" in note]


def _heading(lines: list[str]) -> str:
    return next(line for line in lines if line.startswith("Needs of the hungriest"))


def test_a_folder_that_may_be_too_small_is_noted() -> None:
    place = Place("/mnt/a", GIB, "xfs", 2)
    text = " ".join(dry_run(replace(HOST, places=(place,)), "/mnt/a").split())

    assert (
        "folder /mnt/a has 1.00 GiB free, stages other-read-only, other-read-write and"
        " other-load may take up to" in text
    )
    assert "a trial that fills the disk fails; make room there, or name another folder" in text


def test_wal_is_sized_by_the_smallest_folder_that_is_compared() -> None:
    """8 GB, by pgdyno's own disk, did not go into the folder of 1.36 GiB that was compared."""

    def max_wal_size(free_bytes: int) -> set[str]:
        host = replace(HOST, places=(Place("/mnt/a", free_bytes, "xfs", 2),))
        found = resolved("/mnt/a", host=host)
        return {one.values["max_wal_size"] for one in found.stages}

    assert max_wal_size(HOST.free_disk_bytes) == max_wal_size(1 << 50)
    assert max_wal_size(8 * GIB) == {"2GB"}, "in all of them, or they could not be compared"


def test_a_size_by_the_smallest_folder_names_it() -> None:
    """`25% of 3.88 GiB of free disk` stood beside stages whose disk had 62 GiB free."""

    def why(number: int) -> set[str]:
        place = Place("/mnt/a", 8 * GIB, "xfs", number)
        host = replace(HOST, data_device_number=1, places=(place,))
        stages = resolved("/mnt/a", host=host).stages
        every = [one for stage in stages for one in stage.settings if one.name == "max_wal_size"]
        return {one.origin.detail for one in every if one.origin.kind is OriginKind.PROFILE}

    assert why(2) == {"25% of 8.00 GiB free in /mnt/a, down to a power of two"}
    assert why(1) == {"25% of 8.00 GiB of free disk, down to a power of two"}, "it is one disk"


def test_a_max_wal_size_that_fits_is_named() -> None:
    place = Place("/mnt/a", 3 * GIB // 2, "xfs", 2)
    (note,) = (one for one in resolved("/mnt/a", host=replace(HOST, places=(place,))).notes
               if one.startswith("folder /mnt/a has 1.50 GiB free"))  # fmt: skip
    named = re.search(r"max_wal_size = (\d+)MB in all stages that are compared would fit", note)
    assert named, note
    size = f"settings.max_wal_size={named[1]}MB"
    sized = [f"stage.{where}-{load}.{size}" for where in ("here", "other") for load in LOADS]
    draft = read_plan(COMPARISON, sized, quick=True, folders=("/mnt/a",))
    fits = resolve(draft, installed(18), replace(HOST, places=(place,)))
    assert not [one for one in fits.notes if "may take up to" in one]


def test_folders_that_may_not_fit_together_are_noted() -> None:
    places = tuple(Place(path, 3 * GIB, "xfs", 2) for path in ("/mnt/a/x", "/mnt/a/y"))
    text = " ".join(dry_run(replace(HOST, places=places), "/mnt/a/x", "/mnt/a/y").split())

    assert "/mnt/a/x and /mnt/a/y lie on one file system, which has 3.00 GiB free" in text
    assert "folder /mnt/a/x has" not in text, "each alone does"


def test_a_small_home_does_not_refuse_stages_that_lie_elsewhere() -> None:
    """What lies in a folder of a stage is no need of pgdyno's own."""
    draft = read_plan(
        COMPARISON,
        [f"stage.here-{load}.skip=true" for load in LOADS],
        quick=True,
        folders=("/mnt/a",),
    )
    host = replace(HOST, free_disk_bytes=GIB)  # the fixture alone takes half of it

    assert resolve(draft, installed(18), host).stages
    with pytest.raises(PlanError, match=r"stage here-.* needs .* /srv/pgdyno has free 1.00 GiB"):
        resolve(read_plan(COMPARISON, quick=True), installed(18), host)


def test_no_stage_of_a_folder_promises_another_disk() -> None:
    """Whether a folder lies on another disk is found out, and said by the run itself."""
    document = read_plan(COMPARISON, quick=True, folders=("/srv/a", "/srv/b")).document
    told = [stage.why for stage in document.stage if stage.name.startswith("other-")]
    assert len(told) == 2 * len(LOADS)
    assert [why for why in told if "another disk" in why.lower()] == []


def test_what_was_reported_of_other_commits_is_told_as_such() -> None:
    """*As reported* stood beside commits that wait, of some that did not."""
    earlier = read_plan(COMPARISON).document.earlier
    assert earlier is not None
    assert "commits not waiting (here they wait)" in earlier.source
