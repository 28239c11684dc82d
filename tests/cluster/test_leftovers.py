"""The check at the end of a session of tests notices whatever a test may leave."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import leftovers as check
from tests.leftovers import PREFIX, SESSION, leftovers, machine
from tests.waiting import until

pytestmark = pytest.mark.cluster


@contextmanager
def sleeping(folder: Path, env: dict[str, str] | None = None) -> Iterator[int]:
    """A process that is there, environment and all: the kernel shows that a little later."""
    with subprocess.Popen(["sleep", "600"], cwd=folder, env=env) as process:
        until(Path(f"/proc/{process.pid}/environ").read_bytes, "its environment")
        yield process.pid
        process.kill()


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a session within this one."""
    monkeypatch.setattr(check, "PATIENCE_S", 0.0)
    monkeypatch.setattr(check, "PLACES", (tmp_path / "places",))
    folder = tmp_path / "places" / f"{PREFIX}tests-{os.getpid()}-x"
    folder.mkdir(parents=True)
    monkeypatch.setenv(SESSION, str(folder))
    return folder


def test_a_process_is_noticed_wherever_it_works(session: Path, tmp_path: Path) -> None:
    before = machine(session)
    assert leftovers(before, tmp_path) == []

    with sleeping(Path("/")) as pid:
        found = leftovers(before, tmp_path)

    assert found == [f"process {pid}: sleep 600"]
    assert leftovers(before, tmp_path) == []


def test_a_process_without_an_environment_of_ours_is_noticed_by_its_folder(
    session: Path, tmp_path: Path
) -> None:
    before = machine(session)
    data = session / "data"
    data.mkdir()

    with sleeping(data, {"PATH": os.environ["PATH"]}) as pid:
        found = leftovers(before, tmp_path)

    assert found == [f"process {pid}: sleep 600", str(data)]


def test_folders_are_noticed_but_not_those_of_others(session: Path, tmp_path: Path) -> None:
    before = machine(session)
    (session / "home").mkdir()
    ours = session.parent / f"{PREFIX}sockets"
    ours.mkdir()
    (session.parent / f"{PREFIX}tests-1-y").mkdir()  # process 1 always runs
    (session.parent / f"{PREFIX}tests-{2**31 - 1}-y").mkdir()  # and none has that number: killed
    theirs = Path(tempfile.mkdtemp(prefix=PREFIX, dir=session.parent))
    stranger = {name: value for name, value in os.environ.items() if name != SESSION}

    with sleeping(theirs, stranger):
        found = leftovers(before, tmp_path / "elsewhere")

    assert sorted(found) == sorted([str(session / "home"), str(ours)])


def test_a_defect_is_that_of_the_checkout_whose_files_it_names(
    session: Path, tmp_path: Path
) -> None:
    before = machine(session)
    ours, theirs = (session.parent / f"{PREFIX}defect-{name}.txt" for name in ("a", "b"))
    ours.write_text(f'  File "{Path(__file__).resolve().parents[2]}/python/pgdyno/x.py", line 1')
    theirs.write_text('  File "/somewhere/else/python/pgdyno/x.py", line 1')

    assert leftovers(before, tmp_path) == [str(ours)]


def test_a_mount_is_noticed(session: Path, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    before = machine(session)
    place = tmp_path / "mounted"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", place], check=True)
    try:
        (found,) = leftovers(before, tmp_path)
    finally:
        subprocess.run(["umount", place], check=True)

    assert found.startswith(f"mount none {place} tmpfs ")
    assert leftovers(before, tmp_path) == []
