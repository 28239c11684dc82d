"""Which files a rejoin copies, what histories say, and what WAL of a checkpoint is not enough."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pgdyno.folders import Folder
from pgdyno.guard import leader as leader_module
from pgdyno.guard.blocks_in_wal import BlocksInWal
from pgdyno.guard.copying import Copier
from pgdyno.guard.journal import Step
from pgdyno.guard.leader import Leader, LeaderFacts
from pgdyno.guard.look import require_no_password
from pgdyno.guard.relations import made, opened, removed
from pgdyno.guard.timelines import lines_of
from pgdyno.guard.tree import (
    FILE_BYTES_MAX,
    Relation,
    Trees,
    relation_of,
    require_sizes,
    trees_of,
)
from pgdyno.model.errors import PlanError, TargetError
from pgdyno.model.repair import RedoBegin
from pgdyno.model.wal import NamedRelation, WalKind

VERSION = "PG_18_1"


def test_a_path_is_a_file_of_a_relation_or_of_none() -> None:
    assert relation_of("base/5/16384") == Relation("base/5/16384", "main", 0)
    assert relation_of("base/5/16384_fsm.2") == Relation("base/5/16384", "fsm", 2)
    assert relation_of("global/1262.1") == Relation("global/1262", "main", 1)
    stem = f"pg_tblspc/9/{VERSION}/5/7"
    assert relation_of(f"{stem}_vm") == Relation(stem, "vm", 0)
    for other in ("base/5/PG_VERSION", "base/5/t3_16384", "pg_xact/0000", "base/5/pg_filenode.map"):
        assert relation_of(other) is None


def test_what_is_temporary_or_unlogged_is_left_alone_and_the_rest_becomes_the_sources() -> None:
    source = dict.fromkeys(
        ("base/5/1", "base/5/2", "base/5/2_init", "base/5/t3_4", "global/pg_control",
         "pg_xact/0000", f"pg_tblspc/9/{VERSION}/5/7", "pg_tblspc/9/PG_17_1/5/7",
         "base/5/pg_internal.init.77",
         "base/pgsql_tmp/pgsql_tmp1.0"), 8192)  # fmt: skip
    local = dict.fromkeys(("base/5/1", "base/5/2", "base/5/3", "base/5/3_init", "base/5/t3_9"), 1)

    trees = trees_of(source, local, VERSION)

    assert set(trees.source) == {
        "base/5/1", "base/5/2_init", "pg_xact/0000", f"pg_tblspc/9/{VERSION}/5/7",
    }  # fmt: skip
    assert trees.removed == ["base/5/3", "base/5/3_init"]


BEGIN = RedoBegin(
    18, "7", "in production", False, False, "0/1", "0/1", 1, True, False, 1, 8192, 131072, 16 << 20
)


def test_sizes_that_no_file_has_are_refused_before_room_is_made_for_them(tmp_path: Path) -> None:
    """The primary tells them: a list of the blocks of an exbibyte has no room in memory."""
    require_sizes({"base/5/1": 1 << 30, "base/5/1.1": 0, "pg_xact/0000": FILE_BYTES_MAX}, BEGIN)
    for path, bytes_, most in (
        ("base/5/1", (1 << 30) + 1, 1 << 30),
        ("base/5/1_vm", 1 << 62, 1 << 30),
        ("base/5/1", -1, 1 << 30),
        ("pg_xact/0000", FILE_BYTES_MAX + 1, FILE_BYTES_MAX),
    ):
        told = f"{path} of the primary has {bytes_} bytes, expected are {most} at most"
        with pytest.raises(TargetError, match=told):
            require_sizes({"base/5/2": 8192, path: bytes_}, BEGIN)
    (tmp_path / "pg_xact").mkdir()
    with (tmp_path / "pg_xact" / "0000").open("wb") as file:
        file.truncate(1 << 40)  # which no memory holds
    with Folder.hold(tmp_path) as data:
        unwritten: Any = None
        copier = Copier(data, BEGIN, "0/1", Trees({}, {}), unwritten)
        with pytest.raises(TargetError, match=f"pg_xact/0000 has {1 << 40} bytes"):
            copier.put("pg_xact/0000", b"new", Step.files)


ELSEWHERE = (
    "base/../../etc/ld.so.preload", "../stolen", "/etc/ld.so.preload", "base//1", "base/./1", "",
    "base/5/", "..", "base/5\0/1",
)  # fmt: skip


@pytest.mark.parametrize("path", ELSEWHERE)
def test_what_a_primary_tells_leads_to_no_file_outside_of_the_data(
    tmp_path: Path, path: str
) -> None:
    """Root writes what it tells, under names that it tells."""
    data, etc = tmp_path / "data", tmp_path / "etc"
    for one in (data / "base", etc):
        one.mkdir(parents=True)
    (etc / "passwd").write_text("root's own")
    before = sorted(tmp_path.rglob("*"))
    refused = pytest.raises(TargetError, match="is no path of a file below a data directory")
    with Folder.hold(data) as folder:
        with refused, made(folder, path):
            pytest.fail("it was made")
        with refused, opened(folder, path, writes=True):
            pytest.fail("it was opened")
        with refused:
            removed(folder, path)
    assert sorted(tmp_path.rglob("*")) == before


def told_by(rows: Iterable[tuple[str, int]]) -> Any:
    """A primary whose folders hold these, and whether its answer was left before its end."""
    closed: list[bool] = []

    def give(*_: object) -> Iterator[tuple[str, int]]:
        try:
            yield from rows
        except GeneratorExit:
            closed.append(True)

    session = SimpleNamespace(rows=give)
    leader: Any = Leader.__new__(Leader)
    leader.connection, leader.session = None, session
    return leader, closed


@pytest.mark.parametrize("path", [*ELSEWHERE, "pg_hba.conf", "pg_wal/1"])
def test_a_primary_that_tells_of_files_elsewhere_is_refused(path: str) -> None:
    told = {"base/5/1": 8192, path: 8}
    leader, _ = told_by(told.items())
    with pytest.raises(TargetError, match=r"no path of a file below|tells of pg_.*, asked for"):
        leader.tree(["base", "global"])
    del told[path]
    leader, _ = told_by(told.items())
    assert leader.tree(["base", "global"]) == told


def test_a_primary_that_tells_of_files_without_end_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It makes them up as it goes; each would be a name in memory."""
    for name, most, refused in (
        ("FILES_MAX", 1000, "tells of 1,001 files at least, whose names have 9.67 KiB; taken are"
         " 1,000 and 512 MiB at most"),
        ("NAMES_BYTES_MAX", 1024, r"tells of 114 files at least, whose names have 1.01 KiB; taken"
         " are 4,000,000 and 1.00 KiB at most"),
    ):  # fmt: skip
        with monkeypatch.context() as patched:
            patched.setattr(leader_module, name, most)
            for ask in ("tree", "spaces"):
                without_end = ((f"base/5/{n}", 0) for n in count(1))
                rows: Any = without_end if ask == "tree" else ((one,) for one, _ in without_end)
                leader, closed = told_by(rows)
                with pytest.raises(TargetError, match=refused):
                    leader.tree(["base"]) if ask == "tree" else leader.spaces()
                assert closed, "nobody waits for the rest"


def test_blocks_are_counted_before_they_are_listed() -> None:
    """Each file may be one of a gigabyte, all of whose blocks are to be fetched."""
    source = {f"base/5/{n}": 1 << 30 for n in range(20_000)}
    with Folder.hold(Path("/")) as data:
        unwritten: Any = None
        copier = Copier(data, BEGIN, "0/1", Trees(source, {}), unwritten)
        assert copier.blocks_wanted(None) == 20_000 * (1 << 17)
        named = BlocksInWal(VERSION)
        named.add([NamedRelation(1663, 5, 7, (1, 3, 200_000))], [], "primary")
        local = {"base/5/7": 6 * 8192, "base/5/7_vm": 8192}
        copier.trees = Trees({"base/5/7": 8 * 8192, "base/5/7_vm": 8192, "base/5/9": 8192}, local)
        wanted = list(copier.wanted(named))
        assert copier.blocks_wanted(named) == sum(one.blocks for one in wanted) == 6


def test_a_history_tells_where_a_timeline_was_left() -> None:
    history = "1\t0/3000110\tno recovery target specified\n\n# a comment\n2\t0/5000000\tx\n"
    assert lines_of(history) == [(1, "0/3000110"), (2, "0/5000000")]
    facts = LeaderFacts(3, "0/6000000", VERSION, history)
    assert facts.fork_from(2) == "0/5000000"
    assert facts.fork_from(4) is None
    for wrong in ("1\n", "one 0/1\n", "1 place\n"):
        with pytest.raises(TargetError, match="a history of timelines has the line"):
            lines_of(wrong)


def kind(manager: str, name: str) -> WalKind:
    return WalKind(manager, name, 1, 50, 0, 0)


def test_blocks_are_named_by_their_relations_first_file() -> None:
    named = BlocksInWal(VERSION)
    named.add(
        [NamedRelation(1663, 5, 7, (1, 200_000)), NamedRelation(1664, 0, 7, (1,)),
         NamedRelation(9, 5, 7, (2,))],
        [kind("Heap", "UPDATE")], "primary",
    )  # fmt: skip
    named.add([NamedRelation(1663, 5, 7, (1, 3))], [], "crashed cluster")
    assert named.blocks == {
        "base/5/7": {1, 3, 200_000}, "global/7": {1}, f"pg_tblspc/9/{VERSION}/5/7": {2},
    }  # fmt: skip
    assert (named.count, named.doubts) == (5, {})


@pytest.mark.parametrize(
    ("manager", "name", "doubt"),
    [("Database", "CREATE", "a database copied"),
     ("Database", "CREATE_FILE_COPY", "a database copied"),
     ("custom128", "?", "records of an extension (custom128)")],
)  # fmt: skip
def test_what_no_record_names_is_a_doubt(manager: str, name: str, doubt: str) -> None:
    named = BlocksInWal(VERSION)
    for _ in range(2):
        named.add([], [kind(manager, name)], "primary")
    (told,) = named.doubts
    assert doubt in told
    named.add([], [kind("Database", "CREATE_WAL_LOG")], "primary")
    assert len(named.doubts) == 1


def test_a_password_is_not_followed_by() -> None:
    require_no_password("")
    require_no_password("host=a user=b passfile=/x")
    with pytest.raises(PlanError, match="has a password"):
        require_no_password("host=a password=b")
