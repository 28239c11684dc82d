"""The preloaded library: what it counts, delays and leaves out, told by its words."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pgdyno import preload
from pgdyno.intervention.shim import DATA, READ, WAL, Shim, Skipped, Slower, preloadable
from pgdyno.model.errors import TargetError
from pgdyno.model.proof import Dose
from pgdyno.shell import Done, postgres_user, run, start
from tests.waiting import DEADLINE_S

CALLS = 30
PROGRAM = """
import os, sys
wal, data = (os.open(name, os.O_RDWR | os.O_CREAT) for name in sys.argv[1:3])
for _ in range(int(sys.argv[3])):
    os.fdatasync(wal)
    os.fsync(data)
    os.pread(data, 1, 0)
try:
    os.fsync(10_000)
except OSError as error:
    print(error.errno)
"""


@pytest.fixture
def shim() -> Iterator[Shim]:
    with preloadable(postgres_user()) as one:
        yield one


def calls(shim: Shim, folder: Path) -> str:
    """What a program with the library says after its flushes and reads."""
    (folder / "pg_wal").mkdir(exist_ok=True)
    names = [folder / "pg_wal" / "0001", folder / "data"]
    process = start(
        [sys.executable, "-c", PROGRAM, *names, str(CALLS)],
        env=shim.environment, pipes=True, dies_with_us=signal.SIGKILL,
    )  # fmt: skip
    said = process.stdout.read()
    assert process.wait(DEADLINE_S) == 0
    process.close_pipes()
    return said


def doses(shim: Shim) -> list[Dose]:
    return [shim.dose(kind) for kind in (WAL, DATA, READ)]


def test_flushes_of_wal_of_data_and_reads_are_told_apart_and_errors_stay(
    shim: Shim, tmp_path: Path
) -> None:
    assert calls(shim, tmp_path) == "9\n", "EBADF of the real call"

    wal, data, read = doses(shim)
    assert (wal.units, data.units) == (CALLS, CALLS + 1)
    assert read.units >= CALLS
    assert all(one.spent_ns > 0 and one.added_ns == 0 for one in (wal, data, read))


def test_only_what_is_slower_is_slower_by_a_share_of_what_it_took(
    shim: Shim, tmp_path: Path
) -> None:
    calls(shim, tmp_path)
    before = shim.dose(WAL)
    slower = Slower(shim, WAL)

    slower.turn(True)
    calls(shim, tmp_path)

    wal, data, read = doses(shim)
    mean_ns = before.spent_ns / before.units
    assert wal.added_ns >= 0.2 * mean_ns * CALLS * 0.99
    assert data.added_ns == read.added_ns == 0
    slower.turn(False)
    calls(shim, tmp_path)
    assert shim.dose(WAL).added_ns == wal.added_ns


def test_what_was_never_called_is_not_made_slower(shim: Shim, tmp_path: Path) -> None:
    Slower(shim, WAL).turn(True)
    calls(shim, tmp_path)
    assert shim.dose(WAL).added_ns == 0


def test_flushes_that_are_left_out_are_no_part_of_what_one_takes(
    shim: Shim, tmp_path: Path
) -> None:
    skipped = Skipped(shim, WAL)
    skipped.turn(True)
    assert calls(shim, tmp_path) == "9\n", "flushes of data go on, and so do their errors"
    assert shim.dose(WAL) == Dose(0.0, 0.0, 0.0)
    assert shim.dose(DATA).units == CALLS + 1
    skipped.turn(False)
    calls(shim, tmp_path)
    assert shim.dose(WAL).units == CALLS


def test_what_a_lying_disk_acknowledges_is_counted_and_errors_stay(
    shim: Shim, tmp_path: Path
) -> None:
    shim.lie()
    assert calls(shim, tmp_path) == "9\n", "EBADF, as of the real call"
    assert (shim.dose(WAL).units, shim.dose(DATA).units) == (CALLS, CALLS + 1)


def test_without_its_file_everything_passes_through(shim: Shim, tmp_path: Path) -> None:
    shim.preloaded.words.unlink()
    assert calls(shim, tmp_path) == "9\n"
    assert shim.dose(WAL).units == 0, "the old file, which we still hold"


def test_words_that_somebody_cuts_short_are_an_error_and_no_signal(shim: Shim) -> None:
    os.truncate(shim.preloaded.words, 8)
    with pytest.raises(TargetError, match="was cut short by somebody else"):
        shim.dose(READ)


def test_nothing_is_left_of_it(tmp_path: Path) -> None:
    with preloadable(postgres_user()) as one:
        folder = one.preloaded.library.parent
        assert folder.is_dir()
        owner = one.preloaded.words.stat()
        assert (owner.st_uid, owner.st_mode & 0o777) == (postgres_user().uid, 0o600)
    assert not folder.exists()


def test_it_is_compiled_once_in_a_process_and_anew_once_it_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[Path] = []

    def counted(words: list[str | Path], **more: Any) -> Done:
        compiled.append(Path(words[-3]))
        return run(words, **more)

    monkeypatch.setattr(preload, "run", counted)
    source = tmp_path / "once.c"
    libraries = []
    for number in (1, 1, 2):
        source.write_text(f"int pgdyno_number_{os.getpid()} = {number};\n")
        with preload.preloaded([source], 1, postgres_user()) as one:
            libraries.append(one.library.read_bytes())

    assert len(compiled) == 2
    assert libraries[0] == libraries[1] != libraries[2]


def test_the_servers_user_can_read_it_whatever_the_umask_is() -> None:
    umask = os.umask(0o077)
    try:
        with preloadable(postgres_user()) as one:
            for path in (one.preloaded.library, one.preloaded.library.parent):
                assert path.stat().st_mode & 0o777 == 0o755, path
    finally:
        os.umask(umask)


def test_a_server_without_it_is_told(shim: Shim, tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="no process of the server had the library that changes"):
        shim.require_loaded()
    calls(shim, tmp_path)
    shim.require_loaded()


def test_without_a_compiler_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(TargetError, match="there is no C compiler"), preloadable(postgres_user()):
        pass


def test_a_full_disk_is_told(shim: Shim, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(TargetError, match=r"write .*words: "):
        Slower(shim, WAL).turn(False)
