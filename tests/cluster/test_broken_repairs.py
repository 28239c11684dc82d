"""Repairs that are wrong in one way each: every one of them does harm that is found.

What a correct repair does of the same crash is in test_repair.py. Without a wrong one that is found
out, a right one proves nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
import pytest

from pgdyno.drills import checks
from pgdyno.folders import Folder
from pgdyno.guard import repair
from pgdyno.guard.relations import opened
from pgdyno.guard.source import Source, Wanted, run_of
from pgdyno.model.errors import TargetError
from pgdyno.model.lsn import lsn_of
from pgdyno.model.repair import NeededFile, RedoNeeds
from pgdyno.pages.redo import Crashed, read_redo
from pgdyno.pages.repair import PageJudge
from pgdyno.shell import postgres_user
from pgdyno.target.binaries import find_binaries
from tests.cluster.conftest import TARGETS, VERSIONS
from tests.cluster.crashed_pair import HALF, OFF, ROWS, Pair, crash, execute, pair_of, rows, torn

pytestmark = [pytest.mark.cluster, pytest.mark.long]
Patch = pytest.MonkeyPatch
SEGMENT_BYTES = 16 << 20


@pytest.fixture(params=VERSIONS)
def pair(request: pytest.FixtureRequest, folder: Path) -> Iterator[Pair]:
    with pair_of(request.param, folder) as found:
        yield found


def harm(pair: Pair, content: tuple[int, int], version: str) -> list[str]:
    """What is wrong with the primary once it is started."""
    user = postgres_user()
    binaries = find_binaries(TARGETS[version], user)
    try:
        pair.primary.start(OFF, recovers=True)
    except TargetError as error:
        return [error.fact]
    found = []
    try:
        if pair.content() != content:
            found.append("other rows")
    except (AssertionError, psycopg.Error) as error:
        found.append(f"unreadable: {error}")
    found += checks.relations(pair.primary, binaries, user)
    found += checks.visibility([pair.primary.connection()])
    summed = checks.summed_files(pair.primary)
    pair.primary.stop(clean=True)
    if summed is not None:
        with Folder.hold(pair.primary.data) as data:
            found += checks.checksums(pair.primary, data, summed, binaries, user)
    return found


def needing(monkeypatch: Patch, changed: Callable[[RedoNeeds], RedoNeeds]) -> None:
    """Let a repair believe that redo needs something else."""

    def read(data: Folder) -> Crashed:
        found = read_redo(data)
        assert found.needs is not None
        return replace(found, needs=changed(found.needs))

    monkeypatch.setattr(repair, "read_redo", read)


def without(keeps: Callable[[NeededFile], bool]) -> Callable[[RedoNeeds], RedoNeeds]:
    return lambda needs: replace(needs, files=tuple(one for one in needs.files if keeps(one)))


@dataclass(frozen=True)
class Broken:
    """A repair that is wrong in one way."""

    name: str
    breaks: Callable[[Patch], None]
    needs_checksums: bool = False  # where there are none, redo puts right what it breaks


def _leaves_visibility(monkeypatch: Patch) -> None:
    needing(monkeypatch, without(lambda one: one.fork != "vm"))


def _leaves_tables(monkeypatch: Patch) -> None:
    needing(monkeypatch, without(lambda one: one.fork != "main"))


def _repairs_a_block_of_each_run(monkeypatch: Patch) -> None:
    needing(monkeypatch, lambda needs: replace(
        needs,
        files=tuple(
            replace(one, runs=tuple((first, 1) for first, _ in one.runs)) for one in needs.files
        ),
    ))  # fmt: skip


def _writes_zeroes(monkeypatch: Patch) -> None:
    monkeypatch.setattr(
        Source, "pages", lambda _self, wanted, _bytes: (b"" for _ in wanted)
    )  # fmt: skip


def _takes_the_block_before(monkeypatch: Patch) -> None:
    """Of a standby without checksums nothing tells; with them the checksum does."""
    real = Source.pages

    def pages(self: Source, wanted: list[Wanted], block_bytes: int) -> Iterator[bytes]:
        moved = [replace(one, file_at=max(0, one.file_at - block_bytes)) for one in wanted]
        return real(self, moved, block_bytes)

    monkeypatch.setattr(Source, "pages", pages)


BROKEN = [
    Broken("leaves the visibility map", _leaves_visibility, needs_checksums=True),
    Broken("leaves tables and indexes", _leaves_tables),
    Broken("repairs a block of each run", _repairs_a_block_of_each_run),
    Broken("writes zeroes", _writes_zeroes),
    Broken("takes the block before", _takes_the_block_before),
]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda one: one.name.replace(" ", "-"))
def test_a_repair_that_is_wrong_in_one_way_is_found_out(
    broken: Broken, pair: Pair, request: pytest.FixtureRequest, monkeypatch: Patch
) -> None:
    content = crash(pair)
    assert torn(pair)
    broken.breaks(monkeypatch)
    has_checksums = pair.crashed().begin.has_checksums
    if broken.name == "takes the block before" and has_checksums:
        with pytest.raises(TargetError, match="not whole at the source"):
            pair.repair()
        return
    pair.repair()

    found = harm(pair, content, request.node.callspec.params["pair"])
    assert bool(found) == (has_checksums or not broken.needs_checksums), found


def test_pages_older_than_the_beginning_of_redo_lose_changes(
    pair: Pair, request: pytest.FixtureRequest, monkeypatch: Patch
) -> None:
    """A standby that has not replayed the checkpoint, and is believed to have."""
    content = crash(pair, unseen="UPDATE t SET v = 1 WHERE i % 10 = 0")
    torn(pair)
    monkeypatch.setattr(Source, "replayed_beyond", lambda self, *_: self.facts())
    monkeypatch.setattr("pgdyno.guard.source.lsn_of", lambda _text: 0)
    pair.repair(patience_s=1)

    assert harm(pair, content, request.node.callspec.params["pair"]) != []


def path_of(pair: Pair, table: str) -> str:
    """Where a table of the primary lies, below its data directory."""
    ((path,),) = rows(pair.primary, f"SELECT pg_relation_filepath('{table}')")
    return str(path)


def test_pages_that_only_hint_bits_changed_are_damaged_where_they_are_left(
    pair: Pair, request: pytest.FixtureRequest, monkeypatch: Patch
) -> None:
    """With checksums WAL names them, without an image; redo does nothing for them."""
    execute(pair.primary, f"CREATE TABLE hinted AS SELECT generate_series(1, {ROWS}) AS i")
    path = path_of(pair, "hinted")
    content = crash(pair, then="SELECT count(*) FROM hinted")
    has_checksums = pair.crashed().begin.has_checksums
    assert any(one == path for one, _ in torn(pair)) == has_checksums
    needing(monkeypatch, without(lambda one: one.path != path))
    pair.repair()

    found = harm(pair, content, request.node.callspec.params["pair"])
    assert bool(found) == has_checksums, found


def flushed(pair: Pair) -> str:
    """Where WAL of the primary ends that is durable."""
    ((lsn,),) = rows(pair.primary, "SELECT pg_current_wal_flush_lsn()")
    return str(lsn)


def right_by_chance(pair: Pair, path: str, block: int, judge: PageJudge) -> None:
    """Change the torn half of a page until its checksum is right: one of 65,535 is."""
    with Folder.hold(pair.primary.data) as data, opened(data, path, writes=True) as handle:
        assert handle is not None
        page = bytearray(os.pread(handle, 2 * HALF, block * 2 * HALF))
        for number in range(1 << 22):
            page[-4:] = number.to_bytes(4, "little")
            if not judge.unsound(path, block, bytes(page)):
                os.pwrite(handle, page, block * 2 * HALF)
                return
    raise AssertionError("no number makes it right")


def wrong_by_checksum(pair: Pair, judge: PageJudge | None) -> Callable[[RedoNeeds], RedoNeeds]:
    """Of what redo needs, what its checksum tells to be torn; None: there are none to tell."""

    def is_wrong(data: Folder, file: NeededFile, block: int) -> bool:
        with opened(data, file.path, writes=False) as handle:
            page = b"" if handle is None else os.pread(
                handle, 2 * HALF, (block - file.first_block) * 2 * HALF
            )  # fmt: skip
        return bool(judge and page and judge.unsound(file.path, block, page))

    def changed(needs: RedoNeeds) -> RedoNeeds:
        with Folder.hold(pair.primary.data) as data:
            files = tuple(
                replace(one, runs=tuple(
                    (block, 1)
                    for first, count in one.runs
                    for block in range(first, first + count)
                    if is_wrong(data, one, block)
                ))
                for one in needs.files
            )  # fmt: skip
        return replace(needs, files=files)

    return changed


def test_a_torn_page_may_have_the_right_checksum(
    pair: Pair, request: pytest.FixtureRequest, monkeypatch: Patch
) -> None:
    """One of 65,535 has; without checksums all have."""
    path = path_of(pair, "t")
    content = crash(pair)
    block = next(block for one, block in torn(pair) if one == path)
    begin, needs = pair.crashed().begin, pair.crashed().needs
    assert needs is not None
    judge = None
    if begin.has_checksums:
        judge = PageJudge(
            begin.block_bytes, needs.end_lsn, source_has_checksums=True, has_checksums=True
        )
        right_by_chance(pair, path, block, judge)
    needing(monkeypatch, wrong_by_checksum(pair, judge))
    pair.repair()

    assert harm(pair, content, request.node.callspec.params["pair"]) != []


def test_pages_from_beyond_the_end_of_wal_do_harm(pair: Pair, monkeypatch: Patch) -> None:
    """The disk lost WAL that it had said to be durable, and the standby's pages are believed.

    They hold rows of a transaction that nobody knows any more: the next one has its number.
    """
    execute(pair.primary, "CHECKPOINT", "UPDATE t SET v = i WHERE i % 10 = 0")
    content, kept = pair.content(), lsn_of(flushed(pair))
    execute(pair.primary, "UPDATE t SET v = -1 WHERE i % 10 = 0")
    pair.standby.wait_replayed(flushed(pair))
    pair.primary.stop(clean=False)
    needs = pair.crashed().needs
    assert needs is not None
    segment = pair.primary.data / "pg_wal" / needs.ended.file
    end = lsn_of(needs.end_lsn)
    assert end // SEGMENT_BYTES == kept // SEGMENT_BYTES
    with segment.open("r+b") as wal:
        wal.seek(kept % SEGMENT_BYTES)
        wal.write(b"\xee" * (end - kept))
    torn(pair)
    needing(monkeypatch, lambda needs: replace(needs, end_lsn="FFFFFFFF/FFFFFFFF"))
    pair.repair()

    pair.primary.start(OFF, recovers=True)
    assert pair.content() == content
    execute(pair.primary, *["SELECT txid_current()"] * 100)
    assert pair.content() != content


def test_a_repair_that_would_make_files_longer_is_refused(
    pair: Pair, request: pytest.FixtureRequest, monkeypatch: Patch
) -> None:
    """The standby has not yet cut what the primary has; redo will cut it again."""
    path = path_of(pair, "t")
    execute(pair.primary, "CHECKPOINT", "UPDATE t SET v = 7 WHERE i > 19000")
    pair.standby.wait_replayed(flushed(pair))
    pair.standby.stop(clean=True)
    execute(pair.primary, "DELETE FROM t WHERE i > 10000", "VACUUM t")
    content = pair.content()
    pair.primary.stop(clean=False)
    pair.standby.cluster.start([], recovers=True)
    bytes_ = (pair.primary.data / path).stat().st_size
    assert bytes_ < (pair.standby.cluster.data / path).stat().st_size
    torn(pair)

    with monkeypatch.context() as patched:
        patched.setattr(repair, "_present", whether_there_or_not)
        with pytest.raises(TargetError, match="became shorter"):
            pair.repair()
    done = pair.repair()
    assert (done.outcome, done.blocks_absent > 0) == ("repaired", True)
    assert (pair.primary.data / path).stat().st_size == bytes_
    assert harm(pair, content, request.node.callspec.params["pair"]) == []


def whether_there_or_not(
    _data: Folder, needs: RedoNeeds, block_bytes: int, _tally: object
) -> Iterator[Wanted]:
    """All blocks that redo names."""
    for file in needs.files:
        for first, count in file.runs:
            yield from run_of(file.path, first, first - file.first_block, count, block_bytes)
