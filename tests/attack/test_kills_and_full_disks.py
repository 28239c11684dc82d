"""Storage and builds, killed at each step and out of room: nothing half is left, the next works."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pgdyno.builder import compile as compiling
from pgdyno.builder.compile import How, build
from pgdyno.builder.source import look
from pgdyno.host.change import apply, plan
from pgdyno.host.journal import Journal
from pgdyno.host.knob_location import knob_location
from pgdyno.model.build import Recipe
from pgdyno.model.errors import PgdynoError, PlanError, StoreError, TargetError
from pgdyno.probe.folder import own_folder
from pgdyno.shell import postgres_user
from pgdyno.store import RunFile
from pgdyno.store.output_file import write_page
from pgdyno.target.home import locked_home, our_folder
from pgdyno.target.kept_builds import kept_builds
from tests.cluster.test_build_steps import Case, _untrained
from tests.cluster.test_run import PLAN
from tests.cluster.test_storage import memory_disk
from tests.data.miniature import write_miniature
from tests.reachable import reachable_folder
from tests.tally import survived
from tests.waiting import DEADLINE_S

pytestmark = [pytest.mark.cluster, pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")]
KIB, MIB = 1 << 10, 1 << 20


def killed(work: Callable[[], object]) -> bool:
    """Do something in a process of its own; tells whether it killed itself."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException as error:
            os.write(2, f"{error!r}\n".encode())
            os._exit(1)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert status in (0, signal.SIGKILL), status
    if status == signal.SIGKILL:
        survived("kills of a probe or a build at a call or phase")
    return status == signal.SIGKILL


class Countdown:
    """Kills this process at the n-th call of any function that it is put in front of."""

    def __init__(self, step: int) -> None:
        self.left = step

    def __call__(self, function: Callable[..., object]) -> Callable[..., object]:
        def counted(*arguments: object, **named: object) -> object:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **named)

        return counted


def files(folder: Path) -> dict[str, bytes | None]:
    return {str(one): one.read_bytes() if one.is_file() else None for one in folder.rglob("*")}


def test_a_probe_killed_at_any_call_leaves_only_what_the_next_removes(tmp_path: Path) -> None:
    for name in ("stranger", ".pgdyno-storage-stranger", ".pgdyno-storage-"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "data").write_text("theirs")
    before = files(tmp_path)

    def work(step: int) -> None:
        count = Countdown(step)
        for name in ("open", "close", "unlink", "rmdir", "mkdir"):
            setattr(os, name, count(getattr(os, name)))
        with own_folder(tmp_path) as folder:
            (folder / "data").write_bytes(b"x" * 8192)
            (folder / "path0").symlink_to(tmp_path / "stranger")

    step = 1
    while killed(lambda step=step: work(step)):  # type: ignore[misc]
        with own_folder(tmp_path) as folder:
            ours = {one for one in files(tmp_path) if one.startswith(str(folder))}
            assert set(files(tmp_path)) - ours == set(before), f"after a kill at call {step}"
        assert files(tmp_path) == before, f"after a kill at call {step}"
        step += 1
    assert step > 8


@pytest.fixture
def case(monkeypatch: pytest.MonkeyPatch) -> Iterator[Case]:
    for folder in reachable_folder("attack"):
        yield Case.made(folder, monkeypatch)


PHASES = ("unpack", "configure", "compile", "install", "start", "record")
OF_EVERY_DAY = ("compile", "record")


@pytest.mark.parametrize(
    "last",
    [pytest.param(one, marks=() if one in OF_EVERY_DAY else pytest.mark.wide) for one in PHASES],
)
def test_a_build_killed_in_any_phase_is_never_used(
    case: Case, last: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with locked_home(case.home) as place:
        our_folder(place, "builds").close()
    stranger = case.home / "builds" / "of-somebody-else"
    stranger.mkdir()
    (stranger / "work").write_text("theirs")
    monkeypatch.setattr(compiling, "server_settings", lambda *_: None)

    def said(phase: str) -> None:
        if phase == last:
            os.kill(os.getpid(), signal.SIGKILL)

    def work() -> None:
        def kept(*_: object) -> None:
            said("record")

        monkeypatch.setattr(compiling, "keep_build", kept)
        how = How("half", None, said)
        build(look(case.source), Recipe(), case.home, postgres_user(), _untrained, how)

    assert killed(work)
    assert kept_builds(case.home) == ()
    done, known = case.build(Recipe(), "half")
    assert not known
    assert kept_builds(case.home) == (done,)
    assert (stranger / "work").read_text() == "theirs"


def test_a_record_is_whole_or_not_there(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "server_settings", lambda *_: None)

    def work() -> None:
        renamed = os.rename

        def rename(source: str, target: str, **folders: int) -> None:
            if target == "build.json":
                os.kill(os.getpid(), signal.SIGKILL)
            renamed(source, target, **folders)

        os.rename = rename  # type: ignore[assignment]
        case.build(Recipe())

    assert killed(work)
    assert kept_builds(case.home) == ()
    assert not case.build(Recipe())[1]


@contextmanager
def with_room(place: Path, room_bytes: int, size_mib: int = 64) -> Iterator[Path]:
    """A file system that has no more room than so; who empties its `filler` makes some."""
    with memory_disk(place, size_mib) as disk:
        filler = disk / "filler"
        with filler.open("wb") as handle:
            handle.write(b"x")
            os.posix_fallocate(handle.fileno(), 0, max(size_mib * MIB - room_bytes, 1))
        yield disk
        assert filler.exists()
        survived("disks without room")


@pytest.mark.parametrize(
    "room",
    [20 * KIB, *(pytest.param(one * KIB, marks=pytest.mark.wide) for one in (0, 8, 40, 80))],
)
def test_a_build_without_room_is_none(
    case: Case, tmp_path: Path, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (case.source / "large").write_bytes(b"x" * (64 * KIB))
    monkeypatch.setattr(compiling, "_SPACE_BYTES", 0)
    monkeypatch.setattr(compiling, "server_settings", lambda *_: None)
    with with_room(case.home / "disk", room) as disk:
        disk.chmod(0o755)
        small = Case(case.source, disk / "home")
        with pytest.raises((PgdynoError, OSError)):
            small.build(Recipe())
        assert kept_builds(small.home) == ()
        assert not list(small.home.glob("builds/*/install/*"))
        (disk / "filler").write_bytes(b"")
        assert not small.build(Recipe())[1], "with room again, it works"


@pytest.mark.xdist_group("machine")
def test_a_journal_without_room_forbids_changes(tmp_path: Path) -> None:
    swappiness = knob_location("vm.swappiness")
    before = swappiness.read()
    with with_room(tmp_path / "disk", 0) as disk:
        changes = plan([("vm.swappiness", str(int(before) + 1))])
        for path in (disk / "journal.jsonl", disk / "new/journal.jsonl"):
            with pytest.raises(TargetError, match="write the journal"):
                apply(changes, Journal(path))
            assert swappiness.read() == before
        assert all(one.stat().st_size == 0 for one in disk.rglob("*.jsonl"))


EARLIER = '<meta name="generator" content="pgdyno 0.1.0">'


@pytest.mark.parametrize("room", [0, 4 * KIB, 64 * KIB])
def test_a_probe_without_room_leaves_nothing(tmp_path: Path, room: int) -> None:
    with with_room(tmp_path / "disk", room) as disk:
        before = files(disk)
        with pytest.raises((PlanError, OSError)), own_folder(disk) as folder:
            (folder / "data").write_bytes(b"x" * MIB)
        assert files(disk) == before


@pytest.mark.parametrize("room", [0, 4 * KIB, 64 * KIB, 512 * KIB])
def test_a_run_file_without_room_is_whole_or_not_there(tmp_path: Path, room: int) -> None:
    whole = write_miniature(tmp_path / "run.sqlite")
    with RunFile.read(whole) as run:
        info, trials = run.info(), run.trials()
    with with_room(tmp_path / "disk", room) as disk:
        before = files(disk)
        path = disk / "run.sqlite"
        if room < 512 * KIB:
            with pytest.raises(StoreError, match="cannot be written"):
                RunFile.create(path, info, trials[:1])
            assert files(disk) == before
            return
        with RunFile.create(path, info, trials[:1]) as fresh:
            kept = fresh.trials()
            with pytest.raises(StoreError, match="cannot be written"):
                fresh.put_log("server.log", "x" * MIB)
            assert fresh.trials() == kept, "what was kept stays"
        with RunFile.read(path) as again:
            assert (again.info(), again.trials()) == (info, kept)


@pytest.mark.parametrize("room", [0, 4 * KIB, 64 * KIB])
def test_a_page_without_room_leaves_the_one_before(tmp_path: Path, room: int) -> None:
    with with_room(tmp_path / "disk", room) as disk:
        (disk / "old.html").write_text(EARLIER[:room] + "x" * (room // 2))
        before = files(disk)
        for page in (disk / "new.html", disk / "old.html"):
            with pytest.raises(StoreError, match="no space left on device"):
                write_page(page, "y" * MIB)
            assert files(disk) == before


def test_a_report_without_room_is_told(tmp_path: Path) -> None:
    run = write_miniature(tmp_path / "run.sqlite")
    with with_room(tmp_path / "disk", 0) as disk:
        before, page = files(disk), disk / "page.md"
        done = subprocess.run(
            [sys.executable, "-m", "pgdyno", "report", str(run), "-f", "md", "--out", str(page)],
            capture_output=True, text=True, timeout=DEADLINE_S, check=False,
        )  # fmt: skip
        assert done.returncode == 6, done.stderr
        told = " ".join(done.stderr.split())
        assert f"report {page} cannot be written: no space left on device" in told
        assert files(disk) == before


def test_a_report_goes_through_links_and_to_devices(tmp_path: Path) -> None:
    """Nothing is put in the place of a device, even where that could be done."""
    target = tmp_path / "target.html"
    target.write_text(EARLIER)
    link = tmp_path / "link.html"
    link.symlink_to(target)
    write_page(link, "now")
    assert (link.is_symlink(), target.read_text()) == (True, "now")
    write_page(Path("/dev/null"), "nothing")
    assert Path("/dev/null").is_char_device()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link.html", "target.html"]


@pytest.mark.wide
def test_a_run_file_that_cannot_be_written_is_told_before_anything_is_loaded(
    folder: Path, tmp_path: Path
) -> None:
    plan, home = folder / "small.toml", folder / "home"
    plan.write_text(PLAN)
    with memory_disk(tmp_path / "disk", 16) as disk:
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        done = subprocess.run(
            [sys.executable, "-m", "pgdyno", "run", str(plan), "--out", str(disk / "run.sqlite")],
            env=os.environ | {"PGDYNO_HOME": str(home)},
            capture_output=True, text=True, timeout=DEADLINE_S, check=False,
        )  # fmt: skip
    assert done.returncode == 6, done.stderr
    assert f"error: run file {disk / 'run.sqlite'} cannot be written" in done.stderr
    assert not list(home.glob("fixtures/*/fixture.json"))
