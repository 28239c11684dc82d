"""Wait events of all versions under one name."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.catalog.waits import OTHER, wait_classes, wait_of

SAVED = Path(__file__).parents[2] / "data" / "wait_events"


def events(version: str) -> list[tuple[str, str]]:
    """All of a version, as its documentation (12) or its program (15) lists them."""
    lines = (SAVED / f"{version}.txt").read_text().splitlines()
    return [
        (kind, name.strip())
        for kind, _, names in (line.partition(":") for line in lines)
        for name in names.split(",")
    ]


@pytest.mark.parametrize(
    ("wait_class", "now", "before"),
    [
        ("flush", "IO:WalSync", ["IO:WALSync"]),
        ("flush", "LWLock:WALWrite", ["LWLock:WALWriteLock"]),
        ("wal_write", "IO:WalInitSync", ["IO:WALInitSync"]),
        ("wal_write", "LWLock:WALBufMapping", ["LWLock:WALBufMappingLock"]),
        ("wal_insert", "LWLock:WALInsert", ["LWLock:wal_insert"]),
        ("read", "IPC:BufferIo", ["LWLock:buffer_io", "LWLock:BufferIO", "IPC:BufferIO"]),
        ("page", "LWLock:BufferContent", ["LWLock:buffer_content"]),
        ("mapping", "LWLock:BufferMapping", ["LWLock:buffer_mapping"]),
        ("snapshot", "LWLock:ProcArray", ["LWLock:ProcArrayLock"]),
        ("snapshot", "IPC:ProcarrayGroupUpdate", ["IPC:ProcArrayGroupUpdate"]),
        ("slru", "LWLock:XactSLRU", ["LWLock:CLogControlLock"]),
        ("slru", "LWLock:XactBuffer", ["LWLock:clog"]),
        ("slru", "IO:SlruRead", ["IO:SLRURead"]),
        ("slru", "IPC:XactGroupUpdate", ["IPC:ClogGroupUpdate"]),
        ("lock_table", "LWLock:LockManager", ["LWLock:lock_manager"]),
        ("lock_table", "LWLock:LockFastPath", ["LWLock:proc"]),
        ("lock", "Lock:spectoken", ["Lock:speculative token"]),
        ("spill", "IO:BuffileRead", ["IO:BufFileRead"]),
        ("parallel", "IPC:HashGrowBatchesReallocate",
         ["IPC:Hash/GrowBatches/Allocating", "IPC:HashGrowBatchesAllocate"]),
        ("row", "Lock:transactionid", ["Lock:transactionid"]),
        ("replication", "IPC:SyncRep", ["IPC:SyncRep"]),
        ("replication", "LWLock:SyncRep", ["LWLock:SyncRepLock"]),
    ],
)  # fmt: skip
def test_an_event_has_one_name_and_class_in_every_version(
    wait_class: str, now: str, before: list[str]
) -> None:
    for name in (now, *before):
        wait = wait_of(*name.split(":", 1))
        assert (wait.wait_class, wait.event, wait.is_listed) == (wait_class, now, True), name


@pytest.mark.parametrize("version", ["12", "15"])
def test_every_event_of_a_version_is_listed(version: str) -> None:
    unknown = [event for event in events(version) if not wait_of(*event).is_listed]
    assert unknown == []


def test_what_is_not_known_is_other_and_says_so() -> None:
    wait = wait_of("LWLock", "SomethingOfAnExtension")
    assert (wait.wait_class, wait.event) == (OTHER, "LWLock:SomethingOfAnExtension")
    assert not wait.is_listed


def test_types_whose_events_have_names_of_their_own_are_known_as_a_whole() -> None:
    custom = wait_of("Extension", "PgSentinelMain")
    assert (custom.wait_class, custom.event) == ("extension", "Extension:PgSentinelMain")
    assert custom.is_listed
    assert wait_of("Activity", "SomethingNewMain").wait_class == "idle"


def test_every_class_says_what_it_means() -> None:
    classes = wait_classes()
    assert len(classes) > 20
    assert all(what.endswith(".") for what in classes.values())
