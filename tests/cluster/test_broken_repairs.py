"""Repairs that are wrong in one way each: every one of them does harm that is found.

What a correct repair does of the same crash is in test_repair.py. Without a wrong one that is found
out, a right one proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
import pytest

from pgdyno.drills import checks
from pgdyno.folders import Folder
from pgdyno.guard import repair
from pgdyno.guard.source import Source, Wanted
from pgdyno.model.errors import TargetError
from pgdyno.model.repair import NeededFile, RedoNeeds
from pgdyno.pages.redo import Crashed, read_redo
from pgdyno.shell import postgres_user
from pgdyno.target.binaries import find_binaries
from tests.cluster.conftest import TARGETS, VERSIONS
from tests.cluster.crashed_pair import OFF, Pair, crash, pair_of, torn

pytestmark = [pytest.mark.cluster, pytest.mark.long]
Patch = pytest.MonkeyPatch


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
