"""Each folder that is written, out of room: told as that, nothing half is left, the next works.

Builds, journals, run files, pages and probes are in `test_kills_and_full_disks`, a tablespace
under a load in `cluster/test_loader_stops`.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from pgdyno.api.runs import Run
from pgdyno.drive import pgbench
from pgdyno.host.layout import Layout, Step
from pgdyno.host.layout_steps import NAME, Book, make
from pgdyno.loader import export as exporting
from pgdyno.model.calibration import Ceiling, Estimate, Machine
from pgdyno.model.errors import PgdynoError, StoreError, TargetError
from pgdyno.model.fixture_shape import FixtureShape
from pgdyno.model.run import Fixture
from pgdyno.model.system_errors import as_pgdyno_error
from pgdyno.shell import postgres_user
from pgdyno.store.calibration import add_ceilings, read_ceilings
from pgdyno.target.binaries import find_binaries
from pgdyno.target.interface import ending, explained
from pgdyno.target.own_target import OwnTarget
from tests.attack.test_kills_and_full_disks import KIB, MIB, files, with_room
from tests.cluster.conftest import TARGETS, settings_of
from tests.cluster.test_engine_pgbench import PROTOCOL, TPCB, There, there
from tests.cluster.test_run import servers
from tests.cluster.test_storage import memory_disk
from tests.data.miniature import write_miniature
from tests.data.workloads import tpcc
from tests.reachable import reachable_folder

pytestmark = [pytest.mark.cluster, pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")]
__all__ = ["there"]  # a fixture
IDENT = "0123456789abcdef"
DISK_MIB = 160
long = pytest.mark.long


@pytest.fixture
def place() -> Iterator[Path]:
    yield from reachable_folder("full")


@contextmanager
def disk_with(place: Path, room: int) -> Iterator[Path]:
    """A disk that PostgreSQL's user can enter, with no more room than so."""
    with with_room(place / "disk", room, DISK_MIB) as disk:
        disk.chmod(0o755)
        yield disk


def leave_room(disk: Path, room: int | None = None) -> None:
    """Leave so much room, or all that there is."""
    with (disk / "filler").open("wb") as filler:
        free = shutil.disk_usage(disk).free
        if room is not None:
            os.posix_fallocate(filler.fileno(), 0, free - room)


@contextmanager
def own_target(home: Path, *folders: Path) -> Iterator[OwnTarget]:
    plan, user = TARGETS["embedded-18"], postgres_user()
    binaries = find_binaries(plan, user)
    facts = settings_of("embedded-18", binaries)
    named = [str(folder) for folder in folders]
    target = OwnTarget(plan, binaries, facts, user, home, 1 << 30, None, named)
    try:
        yield target
    finally:
        target.close()


def make_fixture(target: OwnTarget, databases: int = 1) -> None:
    target.begin_fixture(IDENT)
    target.keep_fixture(Fixture(IDENT, FixtureShape(), 0, None, (), "", reused=False), databases)


def take_trial(target: OwnTarget, folder: Path | None = None) -> None:
    target.restore(IDENT, folder=None if folder is None else str(folder))
    target.apply(())
    target.stop()


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


def trial_ended(target: OwnTarget, folder: Path | None = None) -> None:
    """A trial as the experiment takes it, stopped in any case."""
    with ending(target.stop), explained(target):
        take_trial(target, folder)


def told(work: Callable[[], object]) -> PgdynoError:
    """The error that somebody reads: it is one of ours, and tells that room is missing."""
    with pytest.raises(Exception) as raised:  # noqa: PT011 - what is told of it is asked below
        work()
    error = as_pgdyno_error(raised.value)
    assert error is not None, raised.value
    assert "o space left on device" in error.line or "free" in error.line, error.line
    return error


@pytest.mark.parametrize(
    "room",
    [
        44 * MIB,
        *(pytest.param(room, marks=long) for room in (
            0, 4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB, 48 * KIB, 64 * KIB, 256 * KIB, MIB,
            8 * MIB, 24 * MIB,
            32 * MIB, 37 * MIB, 38 * MIB, 39 * MIB, 40 * MIB, 41 * MIB, 42 * MIB, 43 * MIB,
            46 * MIB, 48 * MIB, 50 * MIB, 52 * MIB, 54 * MIB, 56 * MIB, 58 * MIB, 60 * MIB,
        )),
    ],
)  # fmt: skip
def test_a_fixture_without_room_is_none(place: Path, room: int) -> None:
    with disk_with(place, room) as disk:
        home = disk / "home"

        def work() -> None:
            with (
                own_target(home) as target,
                ending(target.drop_half_fixture),
                explained(target),
            ):
                make_fixture(target, databases=4)

        told(work)
        assert names(home / "fixtures") | names(home / "work") <= {".pgdyno"}
        assert servers(home) == []
        leave_room(disk)
        with own_target(home) as target:
            assert target.find_fixture(IDENT) is None
            make_fixture(target)
            take_trial(target)


TRIAL_ROOMS = (
    0, *(pytest.param(room, marks=long) for room in (4 * KIB, 16 * KIB, MIB, 44 * MIB))
)  # fmt: skip


@pytest.mark.parametrize("room", TRIAL_ROOMS)
def test_a_trial_without_room_fails_and_the_next_does_not(place: Path, room: int) -> None:
    with disk_with(place, DISK_MIB * MIB) as disk, own_target(disk / "home") as target:
        make_fixture(target)

        def filled_after_the_copy() -> None:
            with ending(target.stop), explained(target):
                leave_room(disk)
                target.restore(IDENT)
                leave_room(disk, min(room, MIB))
                ready = target.apply(())
                with psycopg.connect(**ready.connection.arguments(), autocommit=True) as session:
                    session.execute("CREATE TABLE large AS SELECT generate_series(1, 99999)")

        leave_room(disk, room)
        for work in (lambda: trial_ended(target), filled_after_the_copy):
            told(work)
            assert names(disk / "home" / "work") <= {".pgdyno"}
            assert servers(disk) == []
        leave_room(disk)
        take_trial(target)


@pytest.mark.parametrize("room", TRIAL_ROOMS)
def test_a_stages_folder_without_room_fails_its_trial_alone(place: Path, room: int) -> None:
    with disk_with(place, DISK_MIB * MIB) as disk, memory_disk(place / "own", DISK_MIB) as own:
        own.chmod(0o755)
        (disk / "theirs").write_text("theirs")
        before = files(disk).keys()
        with own_target(own / "home", disk) as target:
            make_fixture(target)
            leave_room(disk, room)
            told(lambda: trial_ended(target, disk))
            assert servers(disk) == []
            take_trial(target)
            leave_room(disk)
            take_trial(target, disk)
        assert files(disk).keys() == before


@pytest.mark.parametrize("room", [0])
def test_a_stages_folder_that_takes_no_mark_is_left_as_it_was(place: Path, room: int) -> None:
    with disk_with(place, room) as disk:
        before = files(disk).keys()

        def work() -> None:
            with own_target(place / "home", disk):
                raise AssertionError("a folder without room was taken")

        told(work)
        assert files(disk).keys() == before


@pytest.mark.parametrize("room", [12 * KIB, *(
    pytest.param(room, marks=long) for room in (0, 4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB)
)])  # fmt: skip
def test_pgbench_without_room_for_its_log_is_no_result(
    there: There, place: Path, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with disk_with(place, room) as disk:
        before = files(disk).keys()
        monkeypatch.setattr(pgbench, "_log_folder", lambda: disk)
        program, user = there.bindir / "pgbench", postgres_user()
        told(lambda: pgbench.drive_pgbench(program, there.connection, TPCB, PROTOCOL,
                                           user=user))  # fmt: skip
        assert files(disk).keys() == before


@pytest.mark.parametrize(
    "room", [MIB, *(pytest.param(room, marks=long) for room in (0, 4 * KIB, 64 * KIB, 30 * MIB))]
)
def test_an_export_without_room_leaves_nothing(
    place: Path, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with disk_with(place, room) as disk:
        before = files(disk).keys()
        told(lambda: exporting.export(disk / "rows", tpcc(1)))
        assert files(disk).keys() == before
        # Others may fill a disk that had room when it was looked at.
        monkeypatch.setattr(exporting, "_require_room", lambda *_: None)
        told(lambda: exporting.export(disk / "rows", tpcc(1)))
        assert files(disk).keys() == before
        leave_room(disk)
        assert exporting.export(disk / "rows", tpcc(1)).files


@pytest.mark.parametrize(
    "room", [8 * KIB, *(pytest.param(room, marks=long) for room in (0, 4 * KIB, 64 * KIB))]
)
def test_a_run_in_parquet_files_without_room_leaves_nothing(
    place: Path, room: int, tmp_path: Path
) -> None:
    run = Run(write_miniature(tmp_path / "run.sqlite"))
    with disk_with(place, room) as disk:
        before = files(disk).keys()
        told(lambda: run.parquet(disk))
        assert files(disk).keys() == before
        leave_room(disk)
        assert run.parquet(disk).files


STEP = Step("A file system.", ("mkfs.ext4", "/dev/" + "x" * 1500))


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("room", [0, 4 * KIB, 8 * KIB])
def test_a_book_of_layouts_holds_whole_lines_without_room(place: Path, room: int) -> None:
    with disk_with(place, room) as disk:
        book = Book(disk / "state" / NAME)
        with book.locked():

            def work() -> None:
                for _ in range(room // 1500 + 1):  # bytes of a line
                    book.write("begin", "1 of 1", STEP, ["/dev/x"])

            told(work)
            kept = lines(book.path)
            leave_room(disk)
            book.write("end", "1 of 1", STEP, ["/dev/x"])
            assert lines(book.path)[:-1] == kept
            assert lines(book.path)[-1]["what"] == "end"


def test_a_step_that_cannot_be_written_down_is_not_taken(place: Path) -> None:
    taken = place / "taken"
    with disk_with(place, 0) as disk:
        layout = Layout((Step("Touch.", ("touch", str(taken))),), "", None, ())
        with pytest.raises(TargetError, match=r"step 1 of 1 failed: cannot write .*no space left"):
            make(layout, Book(disk / "state" / NAME))
    assert not taken.exists()


def test_of_a_step_that_was_taken_nothing_else_is_said_where_its_end_found_no_room(
    place: Path,
) -> None:
    taken = place / "taken"
    with disk_with(place, 4 * KIB) as disk:
        fill = f"head -c 4000 /dev/zero >> {disk / NAME}; touch {taken}"
        layout = Layout((Step("Touch.", ("sh", "-c", fill)),), "", None, ())
        with pytest.raises(TargetError) as raised:
            make(layout, Book(disk / NAME))
    assert taken.exists()
    assert "step 1 of 1 was taken, but its end could not be written down" in raised.value.fact
    assert "no space left on device" in raised.value.fact


def ceiling(name: str) -> Ceiling:
    one = Estimate(1.0, None, None, 1, 0.95)
    return Ceiling(
        name, "plain", 1, 1, one, one, one, one, 1.0, 1.0, None, "driver", (0,), (1,), 1.0,
        Machine("cpu", 2, "6.1"), "0.1", 1,
    )  # fmt: skip


@pytest.mark.parametrize("room", [0, pytest.param(4 * KIB, marks=long)])
def test_ceilings_without_room_leave_those_before(place: Path, room: int) -> None:
    with disk_with(place, room + 64 * KIB) as disk:
        add_ceilings(disk / "home", [ceiling("before")])
        leave_room(disk, room)
        before = files(disk)
        with pytest.raises(StoreError, match=r"cannot be written: .*no space left on device"):
            add_ceilings(disk / "home", [ceiling(str(at)) for at in range(20)])
        assert files(disk) == before
        leave_room(disk)
        add_ceilings(disk / "home", [ceiling("after")])
        assert {one.workload for one in read_ceilings(disk / "home")} == {"before", "after"}
