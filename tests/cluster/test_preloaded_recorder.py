"""The library that records: what a program with it does is done, and written down."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from pgdyno.disk import preloaded, recording
from pgdyno.disk.preloaded import Preloading, preloading
from pgdyno.disk.record import make_disk, record_span
from pgdyno.disk.recorder import possible
from pgdyno.folders import Folder
from pgdyno.model.drill import Device, Fault
from pgdyno.model.errors import TargetError
from pgdyno.shell import postgres_user
from tests.children import started
from tests.cluster.test_recording import _CALLS, tree

pytestmark = pytest.mark.cluster
_ROOM = 64 << 20
BUFFERED = """
import ctypes, os
c = ctypes.CDLL(None)
c.fopen.restype = ctypes.c_void_p
for name, how, text in (("one", b"w", b"buffered"), ("one", b"a", b" more"), ("two", b"w+", b"2")):
    stream = ctypes.c_void_p(c.fopen(name.encode(), how))
    c.fputs(text, stream)
    c.fclose(stream)
source, copy = os.open("one", os.O_RDONLY), os.open("three", os.O_CREAT | os.O_WRONLY)
assert c.copy_file_range(source, None, copy, None, 100, 0) == 13
os.pwrite(os.open("one", os.O_WRONLY | os.O_APPEND), b"at the end all the same", 0)
"""


@pytest.fixture
def held(folder: Path) -> Iterator[Folder]:
    (folder / "data").mkdir(mode=0o700)
    with Folder.hold(folder) as held:
        yield held


@contextmanager
def recorded(held: Folder, bytes_max: int = _ROOM) -> Iterator[Preloading]:
    with preloading(held, "data", "record", bytes_max, postgres_user()) as current:
        yield current


def program(current: Preloading, held: Folder, text: str) -> list[str]:
    """What a program with the library, in the data directory, prints."""
    done = subprocess.run(
        [sys.executable, "-c", f"import os\n{text}"], cwd=held.path / "data",
        env=os.environ | dict(current.environment), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def last_disk(held: Folder) -> dict[str, tuple[int, int, bytes | str]]:
    """All that was written, whether or not it was settled."""
    os.sync()
    until_ns = record_span(held, "record").until_ns
    make_disk(held, "record", "disk", until_ns, 1, Device(written_back_s=0.0))
    return tree(held.path / "disk")


@pytest.mark.parametrize("calls", [_CALLS, BUFFERED], ids=["calls", "buffered"])
def test_what_is_done_is_done_and_a_disk_of_the_end_is_the_same(held: Folder, calls: str) -> None:
    (held.path / "data" / "before").write_bytes(b"before" * 1000)
    (plain := held.path / "plain").mkdir(mode=0o700)
    (plain / "before").write_bytes(b"before" * 1000)
    subprocess.run([sys.executable, "-c", calls], cwd=plain, check=True)

    with recorded(held) as current:
        program(current, held, calls)

    assert tree(held.path / "data") == tree(plain)
    assert current.recorded is not None
    assert not current.recorded.full
    assert record_span(held, "record").ended
    assert last_disk(held) == tree(plain)


DIRECT = """
import mmap
pages = mmap.mmap(-1, 3 << 20)
pages.write(b"d" * (3 << 20))
file = os.open("a", os.O_CREAT | os.O_WRONLY | os.O_DIRECT)
assert os.write(file, pages) == 3 << 20
assert os.pwrite(file, memoryview(pages)[:8192], 4096) == 8192
assert os.pwritev(file, [memoryview(pages)[:4096], memoryview(pages)[4096:8192]], 0) == 8192
"""


def test_what_is_written_past_the_cache_is_written(held: Folder) -> None:
    def direct(environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", f"import os\n{DIRECT}"], cwd=held.path / "data", text=True,
            env=os.environ | dict(environment), capture_output=True, check=False,
        )  # fmt: skip

    if "Invalid argument" in direct({}).stderr:
        pytest.skip("this file system has no O_DIRECT")
    os.unlink(held.path / "data/a")
    with recorded(held) as current:
        done = direct(current.environment)

    assert done.returncode == 0, done.stderr
    assert last_disk(held)["a"][2] == b"d" * (3 << 20)


def test_inodes_that_are_used_again_are_other_files(held: Folder) -> None:
    again = "\n".join(
        f"open('{n}', 'w').write('{n}'); "
        + (f"os.rename('{n}', 'kept{n}')" if n % 3 else f"os.unlink('{n}')")
        for n in range(60)
    )
    with recorded(held) as current:
        program(current, held, again)
    assert last_disk(held) == tree(held.path / "data")


def test_a_write_with_o_dsync_and_what_was_synced_is_settled(held: Folder) -> None:
    with recorded(held) as current:
        (settled_ns,) = program(current, held, """
import time
handle = os.open("a", os.O_CREAT | os.O_WRONLY | os.O_DSYNC)
os.fsync(handle)
os.write(handle, b"a" * 4096)
other = os.open("b", os.O_CREAT | os.O_WRONLY)
os.write(other, b"b" * 4096)
os.fsync(other)
os.write(other, b"c" * 4096)
print(time.monotonic_ns())
open("later", "w")
""")  # fmt: skip

    lost = 0
    for seed in range(20):
        make_disk(held, "record", f"disk{seed}", int(settled_ns), seed)
        assert (held.path / f"disk{seed}/a").read_bytes() == b"a" * 4096
        b = (held.path / f"disk{seed}/b").read_bytes()
        assert b[:4096] == b"b" * 4096
        lost += b[4096:] != b"c" * 4096
    assert lost > 0, "what nobody synced may be lost"


def test_a_record_that_is_full_keeps_the_load_going(held: Folder) -> None:
    with recorded(held, 1 << 20) as current:
        program(current, held, "open('a', 'wb').write(b'a' * (4 << 20))")

    assert (held.path / "data/a").read_bytes() == b"a" * (4 << 20)
    assert current.recorded is not None
    assert current.recorded.full
    assert (held.path / "record").stat().st_size <= 1 << 20
    assert record_span(held, "record").full


def test_many_processes_are_written_down_in_one_order(held: Folder) -> None:
    with recorded(held) as current:
        program(current, held, """
pids = []
for number in range(4):
    if (pid := os.fork()) == 0:
        with open(str(number), "wb") as file:
            for turn in range(50):
                file.write(bytes([turn + 1]) * 512)
                file.flush()
                os.fsync(file.fileno())
        os._exit(0)
    pids.append(pid)
assert all(os.waitpid(pid, 0)[1] == 0 for pid in pids)
""")  # fmt: skip

    make_disk(held, "record", "disk", record_span(held, "record").until_ns, 7)
    wanted = b"".join(bytes([turn + 1]) * 512 for turn in range(50))
    for number in range(4):
        assert (held.path / f"disk/{number}").read_bytes() == wanted


TRIES = """
import sys
file = os.open("a", os.O_CREAT | os.O_RDWR)
os.mkdir("pg_wal"); wal = os.open("pg_wal/1", os.O_CREAT | os.O_RDWR); os.write(wal, b"1" * 512)
def told(what, *words):
    try:
        what(*words)
        return 0
    except OSError as error:
        return error.errno
print(flush=True); sys.stdin.readline()
print(told(os.write, file, b"a"), told(os.fsync, file), told(os.pwrite, wal, b"2", 0),
      told(os.open, "pg_wal/2", os.O_CREAT | os.O_RDWR), told(os.rename, "a", "b"))
"""


def tries(held: Folder, fault: Fault | None) -> tuple[list[int], Preloading]:
    """Errors of calls while the disk has a fault, or (None) after its power went.

    A write that grows, a sync, a write of WAL over what is there, a new file of WAL, a rename.
    """
    with recorded(held) as current:
        process = started(
            [sys.executable, "-c", f"import os\n{TRIES}"], cwd=held.path / "data", text=True,
            env=os.environ | dict(current.environment), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )  # fmt: skip
        assert process.stdout.readline() == "\n"
        if fault is None:
            current.cut()
        else:
            current.fail(fault)
        said, _ = process.communicate("\n")
    return [int(one) for one in said.split()], current


@pytest.mark.parametrize(
    ("fault", "errors"),
    [
        (Fault("write", "error", 60), [errno.EIO, 0, errno.EIO, errno.EIO, 0]),
        (Fault("sync", "error", 60), [0, errno.EIO, 0, 0, 0]),
        (Fault("grow", "full", 60, "pg_wal"), [0, 0, 0, errno.ENOSPC, 0]),
        (Fault("grow", "full", 60, "pg_wal", elsewhere=True), [errno.ENOSPC, 0, 0, 0, 0]),
        (None, [errno.EIO] * 5),
    ],
)
def test_faults_are_met_by_what_they_concern(
    held: Folder, fault: Fault | None, errors: list[int]
) -> None:
    found, current = tries(held, fault)
    assert found == errors
    assert current.recorded is not None
    assert current.recorded.met == sum(error > 0 for error in errors) * (fault is not None)


def test_a_disk_that_hangs_answers_in_the_end(held: Folder) -> None:
    begun_ns = time.monotonic_ns()
    found, _ = tries(held, Fault("sync", "nothing", 0.5))
    assert found == [0, 0, 0, 0, 0]
    assert time.monotonic_ns() - begun_ns >= 500_000_000


def test_nothing_of_what_comes_after_a_cut_is_in_the_record(held: Folder) -> None:
    tries(held, None)
    assert set(last_disk(held)) == {"a", "pg_wal", "pg_wal/1"}


KILLED = """
import ctypes, signal
file = os.open("a", os.O_CREAT | os.O_RDWR)
os.write(file, b"known")
"""


def test_who_is_killed_in_the_middle_of_a_call_ends_the_record(held: Folder) -> None:
    def act() -> None:
        with recorded(held) as current:
            program(current, held, KILLED)
            current._library.put(
                preloaded._Word.BUSY, 4_000_000
            )  # as one that was killed leaves it
            program(current, held, "open('b', 'w')")

    with pytest.raises(TargetError, match="killed in the middle of a call"):
        act()


def test_who_is_killed_between_two_calls_disturbs_nothing(held: Folder) -> None:
    with recorded(held) as current:
        dying = subprocess.run(
            [sys.executable, "-c", f"import os\n{KILLED}\nos.kill(os.getpid(), signal.SIGKILL)"],
            cwd=held.path / "data", env=os.environ | dict(current.environment), check=False,
        )  # fmt: skip
        assert dying.returncode == -signal.SIGKILL
        program(current, held, "os.truncate('a', 3)")
    assert last_disk(held)["a"][2] == b"kno"


def test_a_server_without_the_library_is_told(held: Folder) -> None:
    with pytest.raises(TargetError, match="had the library that records"), recorded(held):
        (held.path / "data/a").write_text("nobody saw it")


def test_what_others_made_is_told_once_it_is_changed(held: Folder) -> None:
    def act() -> None:
        with recorded(held) as current:
            (held.path / "data/a").write_text("made by us")
            program(current, held, "os.truncate('a', 3)")

    with pytest.raises(TargetError, match=r"inode .* was made by a process that has no library"):
        act()


def test_a_record_of_which_somebody_says_that_it_is_longer_is_refused(held: Folder) -> None:
    def act() -> None:
        with recorded(held, 1 << 20) as current:
            program(current, held, "open('a', 'w')")
            os.truncate(held.path / "record", 2 << 20)
            current._library.put(preloaded._Word.BYTES, 2 << 20)

    with pytest.raises(TargetError, match="has 2097152 bytes, the library writes at most 1048576"):
        act()


def test_room_that_is_not_there_is_said_with_its_number(held: Folder) -> None:
    with (
        pytest.raises(TargetError, match=r"\d+ bytes are free, the record may take \d{19}"),
        recorded(held, 2**62),
    ):
        pass


def test_a_link_in_place_of_the_data_is_refused(held: Folder) -> None:
    (held.path / "link").symlink_to("data")
    with pytest.raises(TargetError, match="open what is recorded"), \
            preloading(held, "link", "record", _ROOM, postgres_user()):  # fmt: skip
        pass


def test_a_library_records_where_nothing_can_be_mounted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "_DEVICE", folder / "fuse")
    assert possible(None) == possible("library") == "library"
    with pytest.raises(TargetError, match=r"there is no .*fuse, which a file system that records"):
        possible("mount")
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(TargetError, match="there is no C compiler"):
        possible(None)


def test_the_words_are_where_the_library_has_them() -> None:
    header = Path(preloaded.__file__).parent / "library" / "record.h"
    names = re.findall(r"^  ([A-Z_]+),", header.read_text().partition("enum word {")[2], re.M)
    ours = [one.name.removeprefix("_") for one in preloaded._Word]
    assert names[: len(ours)] == ours
