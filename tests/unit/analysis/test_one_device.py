"""Disks that are none: stages that differ by folders of one device."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pgdyno.analysis.one_device import on_one_device
from pgdyno.analysis.plain import plain
from pgdyno.analysis.run import analyse, compare_stages
from pgdyno.store import RunFile
from tests.data.miniature import CHARACTERS, write_miniature
from tests.data.pages import facts_of

SHARED = " lie on one file system on vda: of stages that differ by these alone, what differs"


def test_the_first_screen_says_that_two_disks_are_one(tmp_path: Path) -> None:
    facts = facts_of(tmp_path)
    first, second, *_ = facts.stages
    host = {
        "file_system.device": "/dev/vda", "file_system.disks": "vda",
        "folders./srv/a.device": "/dev/vda", "folders./srv/a.disks": "vda",
    }  # fmt: skip

    (said,) = on_one_device((first, replace(second, folder="/srv/a")), host)
    assert said.startswith(f"pgdyno's own folder and /srv/a{SHARED}")
    assert list(on_one_device((first, second), host)) == []


def test_partitions_of_one_disk_are_told_as_such(tmp_path: Path) -> None:
    facts = facts_of(tmp_path)
    first, second, *_ = facts.stages
    host = {
        "file_system.device": "/dev/vda1", "file_system.disks": "vda",
        "folders./srv/a.device": "/dev/md0", "folders./srv/a.disks": "vda, vdb",
    }  # fmt: skip

    assert list(on_one_device((first, replace(second, folder="/srv/a")), host)) == [
        "pgdyno's own folder and /srv/a share the disk vda: stages that differ by these compare"
        " what lies over it, and no two disks"
    ]


def test_a_disk_is_not_judged_against_itself(tmp_path: Path) -> None:
    """A verdict, and rounds that would bring one, would be of chance."""
    first, tuned, _ = CHARACTERS
    moved = replace(first, stage=replace(first.stage, name="moved", folder="/srv/a"))
    tuned = replace(tuned, stage=replace(tuned.stage, folder="/srv/a"))
    apart = write_miniature(tmp_path / "apart.sqlite", characters=(first, moved, tuned))
    path = write_miniature(tmp_path / "one.sqlite", characters=(first, moved, tuned), one_disk=True)
    with RunFile.read(apart) as run:
        known = analyse(run)
    with RunFile.read(path) as run:
        facts = analyse(run)
        asked = compare_stages(run, moved.stage.name, first.stage.name)

    _, itself, other = (stage.to_first for stage in facts.stages)
    _, judged, same = (stage.to_first for stage in known.stages)
    assert judged is not None
    assert itself is not None
    assert judged.verdict != "not judged"
    assert (judged.ratio, judged.low) == (itself.ratio, itself.low), "what was measured is shown"
    for one in (itself, asked):
        assert one.verdict == "not judged"
        assert one.rounds_needed is None
        assert one.reason == (
            "one file system holds these data and those of initdb, so that storage would be"
            " compared with itself"
        )
    assert other == same, "settings differ, too"
    assert any(SHARED in one.text for one in facts.answer.doubts)
    said = " ".join(plain(facts.stages))
    assert "`moved` is not judged: one file system holds its data and those of `initdb`." in said
    assert "Whether `moved` is faster" not in said, "no round will tell"
    assert "`moved` is not judged" not in " ".join(plain(known.stages))


def test_folders_of_one_file_system_in_memory_are_one(tmp_path: Path) -> None:
    facts = facts_of(tmp_path)
    first, second, *_ = facts.stages
    other = replace(second, folder="/dev/shm/a")
    host = {
        "file_system.type": "tmpfs", "file_system.mount": "/dev/shm",
        "folders./dev/shm/a.type": "tmpfs", "folders./dev/shm/a.mount": "/dev/shm",
    }  # fmt: skip

    (said,) = on_one_device((first, other), host)
    assert said.startswith("pgdyno's own folder and /dev/shm/a lie on one file system: ")
    apart = host | {"file_system.mount": "/run"}
    assert list(on_one_device((first, other), apart)) == []
