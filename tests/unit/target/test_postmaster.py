"""A pid file is a claim: only the server that it speaks of is ever signalled."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgdyno.folders import Folder
from pgdyno.model.errors import TargetError
from pgdyno.shell import OsUser
from pgdyno.target.leftover_server import (
    PID_FILE,
    require_no_server,
    server_on,
    stop_leftover,
)
from tests import children
from tests.waiting import DEADLINE_S, until

US = OsUser("us", os.geteuid(), os.getegid())


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Folder]:
    (tmp_path / "data").mkdir()
    with Folder.hold(tmp_path / "data") as folder:
        yield folder


@pytest.fixture
def postgres(tmp_path: Path) -> Path:
    """A program of that name that sleeps: what the kernel says of it is what counts."""
    program = tmp_path / "bin" / "postgres"
    program.parent.mkdir()
    shutil.copy(shutil.which("sleep") or "", program)
    return program


def started(program: Path | str, place: Path) -> subprocess.Popen[bytes]:
    # As PostgreSQL, it does not ignore SIGQUIT, also where a shell began these tests with `&`.
    words = ["env", "--default-signal=QUIT", program, "600"]
    process = children.started(words, cwd=place)
    until(lambda: os.readlink(f"/proc/{process.pid}/exe").endswith(Path(program).name), "its start")
    return process


def claim(data: Folder, pid: int, began_s: float | None = None) -> None:
    began = int(time.time() if began_s is None else began_s)
    data.write(PID_FILE, f"{pid}\n{data.path}\n{began}\n5432\n/tmp\n\n")


def assert_spared(process: subprocess.Popen[bytes]) -> None:
    assert process.poll() is None
    process.kill()
    process.wait()


def test_our_server_is_stopped(data: Folder, postgres: Path) -> None:
    process = started(postgres, data.path)
    claim(data, process.pid)

    stop_leftover(data, US, [postgres])

    assert process.wait(DEADLINE_S) != 0


def test_another_program_is_spared(data: Folder, postgres: Path) -> None:
    process = started("sleep", data.path)
    claim(data, process.pid)

    stop_leftover(data, US, [postgres])

    assert_spared(process)


def test_a_server_on_other_data_is_spared(data: Folder, postgres: Path, tmp_path: Path) -> None:
    process = started(postgres, tmp_path)
    claim(data, process.pid)

    stop_leftover(data, US, [postgres])

    assert_spared(process)


def test_a_number_that_was_given_anew_is_spared(data: Folder, postgres: Path) -> None:
    process = started(postgres, data.path)
    claim(data, process.pid, time.time() - 3600)

    stop_leftover(data, US, [postgres])

    assert_spared(process)


def test_a_server_is_known_after_the_clock_was_set(data: Folder, postgres: Path) -> None:
    process = started(postgres, data.path)
    claim(data, process.pid, time.time() + 3600)

    with server_on(data, US) as found:
        assert found is None
    with server_on(data, US, timed=False) as found:
        assert found is not None
        assert (found.pid, found.port, found.sockets) == (process.pid, 5432, "/tmp")
    assert_spared(process)
    with server_on(data, US, timed=False) as found:
        assert found is None, "it is gone"


def test_a_server_of_another_user_is_spared(data: Folder, postgres: Path) -> None:
    process = started(postgres, data.path)
    claim(data, process.pid)

    stop_leftover(data, OsUser("somebody", US.uid + 1, US.gid), [postgres])

    assert_spared(process)


def test_a_server_of_an_unknown_installation_is_told(
    data: Folder, postgres: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pgdyno.target.leftover_server._ENDING_S", 0.0)
    process = started(postgres, data.path)
    claim(data, process.pid)

    with pytest.raises(TargetError, match="is of an installation that this run does not use"):
        stop_leftover(data, US, [Path("/usr/bin/postgres")])

    assert_spared(process)


@pytest.mark.parametrize("text", ["", "x\n", "1\n", "99999999999999999999\n/x\n1\n", "-1\n/x\n1\n"])
def test_a_file_that_says_nothing_harms_nobody(data: Folder, postgres: Path, text: str) -> None:
    data.write(PID_FILE, text)

    stop_leftover(data, US, [postgres])


def test_a_link_in_its_place_is_refused(data: Folder, postgres: Path, tmp_path: Path) -> None:
    (data.path / PID_FILE).symlink_to(tmp_path / "elsewhere")

    with pytest.raises(TargetError, match=f"read .*{PID_FILE}"):
        stop_leftover(data, US, [postgres])


def test_a_process_that_has_ended_is_no_server(data: Folder, postgres: Path) -> None:
    process = children.started([sys.executable, "-c", ""])
    process.wait()
    claim(data, process.pid)

    stop_leftover(data, US, [postgres])


def test_a_server_that_has_another_number_in_its_file_is_found_all_the_same(
    data: Folder, postgres: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one in a container has; and so a backend whose postmaster was killed."""
    monkeypatch.setattr("pgdyno.target.leftover_server._LAST_S", 0.0)
    process = started(postgres, data.path)
    for number in (None, os.getpid()):
        if number is not None:
            claim(data, number)
        with server_on(data, US, timed=False) as found:
            assert found is None
        with pytest.raises(TargetError, match=f"process {process.pid} of PostgreSQL works in"):
            require_no_server(data, US)
    process.kill()
    process.wait()
    require_no_server(data, US)


def test_a_process_of_which_nothing_can_be_told_is_taken_for_a_server(
    data: Folder, postgres: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim(data, 1)
    with pytest.raises(TargetError, match="is of process 1, and whether that is a server"):
        require_no_server(data, US)

    another = started("sleep", data.path)  # in it, by whatever name
    claim(data, another.pid)
    with pytest.raises(TargetError, match=f"is of process {another.pid}, and whether"):
        require_no_server(data, US)
    elsewhere = started(postgres, tmp_path)
    claim(data, elsewhere.pid)
    require_no_server(data, US)

    def closed(proc: Path, data: Folder) -> bool:
        raise PermissionError(proc, data)

    monkeypatch.setattr("pgdyno.target.leftover_server._is_in", closed)
    with pytest.raises(TargetError, match=f"is of process {elsewhere.pid}, and whether"):
        require_no_server(data, US)
