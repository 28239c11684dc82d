"""The recording file system as a file system: what is done through it is done, and written down."""

from __future__ import annotations

import os
import re
import resource
import signal
import stat
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pgdyno.disk.record import make_disk, record_span
from pgdyno.disk.recording import recording
from pgdyno.folders import Folder
from pgdyno.model.drill import Device
from pgdyno.model.errors import TargetError
from pgdyno.mounts import SOURCE, unmount_left
from pgdyno.shell import postgres_user, run
from tests.waiting import until

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount"),
]
_ROOM = 64 << 20
USER = postgres_user()


@pytest.fixture
def held(folder: Path) -> Iterator[Folder]:
    (folder / "data").mkdir(mode=0o700)
    os.chown(folder / "data", USER.uid, USER.gid)
    with Folder.hold(folder) as held:
        yield held


def mounts(held: Folder) -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line for line in lines if SOURCE in line and str(held.path) in line]


def tree(top: Path) -> dict[str, tuple[int, int, bytes | str]]:
    """Everything below: mode, owner, and bytes or target."""
    found: dict[str, tuple[int, int, bytes | str]] = {}
    for path in sorted(top.rglob("*")):
        facts = path.lstat()
        what: bytes | str = ""
        if path.is_symlink():
            what = os.readlink(path)
        elif stat.S_ISREG(facts.st_mode):
            what = path.read_bytes()
        found[str(path.relative_to(top))] = (facts.st_mode, facts.st_uid, what)
    return found


_CALLS = """
import os
os.umask(0o077)
os.mkdir("base"); os.mkdir("gone"); os.rmdir("gone")
with open("base/1", "wb") as file: file.write(bytes(range(256)) * 100)
with open("base/1", "r+b") as file: file.seek(700); file.write(b"x" * 900); file.truncate(9000)
with open("base/1", "ab") as file: file.write(b"appended")
with open("base/2", "wb") as file: os.posix_fallocate(file.fileno(), 0, 20000)
with open("base/3", "wb") as file: file.write(b"3" * 5000)
os.rename("base/3", "base/2")
os.link("base/2", "base/4"); os.symlink("/etc/shadow", "base/5"); os.chmod("base/4", 0o640)
with open("base/6", "wb") as file:
    os.unlink("base/6"); file.write(b"nobody sees it"); os.fsync(file.fileno())
with open("base/1", "wb") as file: file.write(b"again")
with open("base/7", "wb") as file: file.write(b"7" * 1_000_000); os.fdatasync(file.fileno())
os.pwrite(os.open("base/8", os.O_CREAT | os.O_WRONLY | os.O_DSYNC), b"8" * 512, 4096)
folder = os.open("base", os.O_RDONLY); os.fsync(folder)
"""


def calls(top: Path) -> None:
    """As the user that runs PostgreSQL, who may not reach our interpreter."""
    if (child := os.fork()) == 0:
        try:
            os.setgroups([])
            os.setgid(USER.gid)
            os.chdir(top)
            os.setuid(USER.uid)
            os.chdir(".")
            exec(_CALLS, {})
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def test_what_is_done_through_it_is_done_and_a_disk_of_the_end_is_the_same(
    held: Folder, tmp_path: Path
) -> None:
    tmp_path.chmod(0o755)
    (plain := held.path / "plain").mkdir(mode=0o700)
    os.chown(plain, USER.uid, USER.gid)
    (held.path / "data" / "before").write_bytes(b"before" * 1000)
    (plain / "before").write_bytes(b"before" * 1000)
    calls(plain)

    with recording(held, "data", "record", _ROOM) as current:
        calls(held.path / "data")
        through = tree(held.path / "data")
        for name in through:
            path = held.path / "data" / name
            if path.is_file() and not path.is_symlink():
                handle = os.open(path, os.O_RDONLY)
                os.fsync(handle)
                os.close(handle)

    assert through == tree(plain)
    assert tree(held.path / "data") == through  # where it lies
    assert current.recorded is not None
    assert not current.recorded.full
    span = record_span(held, "record")
    assert span.ended
    os.sync()
    make_disk(held, "record", "disk", span.until_ns, 1, Device(written_back_s=0.0))
    assert tree(held.path / "disk") == through
    assert os.stat(held.path / "disk/base/2").st_nlink == 2
    assert (held.path / "disk").stat().st_uid == USER.uid


def test_it_lets_in_whom_the_rights_let_in(held: Folder) -> None:
    stranger = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
    with recording(held, "data", "record", _ROOM):
        (held.path / "data" / "secret").write_text("of root")

        for program, what in (("ls", "data"), ("cat", "data/secret")):
            assert run([*stranger, program, held.path / what], check=False).code != 0
        assert run(["cat", held.path / "data/secret"], user=USER).stdout == "of root"


def test_a_write_with_o_dsync_is_settled(held: Folder) -> None:
    with recording(held, "data", "record", _ROOM):
        handle = os.open(held.path / "data/a", os.O_CREAT | os.O_WRONLY | os.O_DSYNC)
        os.fsync(handle)
        os.write(handle, b"a" * 4096)
        settled_ns = time.monotonic_ns()
        os.close(handle)
        (held.path / "data/later").touch()

    for seed in range(20):
        make_disk(held, "record", f"disk{seed}", settled_ns, seed)
        assert (held.path / f"disk{seed}/a").read_bytes() == b"a" * 4096


def test_a_record_that_is_full_keeps_the_load_going(held: Folder) -> None:
    with recording(held, "data", "record", 1 << 20) as current:
        (held.path / "data/a").write_bytes(b"a" * (4 << 20))
        assert (held.path / "data/a").read_bytes() == b"a" * (4 << 20)

    assert current.recorded is not None
    assert current.recorded.full
    assert (held.path / "record").stat().st_size <= 1 << 20
    assert record_span(held, "record").full


def test_room_that_is_not_there_is_said_with_its_number(held: Folder) -> None:
    with (
        pytest.raises(TargetError, match=r"\d+ bytes are free, the record may take \d{19}"),
        recording(held, "data", "record", 2**62),
    ):
        pass
    assert mounts(held) == []


def test_a_link_in_place_of_the_data_is_refused(held: Folder) -> None:
    (held.path / "link").symlink_to("data")

    with pytest.raises(TargetError, match="open what is recorded"), \
            recording(held, "link", "record", _ROOM):  # fmt: skip
        pass
    assert mounts(held) == []


def test_a_recorder_may_have_all_open_that_lies_below(held: Folder) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        with recording(held, "data", "record", _ROOM):
            for number in range(600):
                (held.path / f"data/{number}").touch()
            names = os.listdir(held.path / "data")
            assert {os.stat(held.path / "data" / name).st_size for name in names} == {0}
            assert len(names) == 600
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


_MAY_OPEN = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[2]), int(sys.argv[2])))
from pathlib import Path
from pgdyno.disk.recording import recording
from pgdyno.folders import Folder
from pgdyno.model.errors import TargetError
try:
    with Folder.hold(Path(sys.argv[1])) as held, recording(held, "data", "record", 1 << 20):
        for number in range(2000):
            (held.path / f"data/new{number}").touch()
except TargetError as error:
    print(error.line)
"""


@pytest.mark.parametrize(
    ("most", "wanted"),
    [
        (300, r"recorder failed: it may have 300 files open, and 30 lie in .*, which takes 1084"),
        (1084, r"recorder failed: .*calls failed since the recorder has no more than 1084 files"),
    ],
)
def test_what_too_few_files_broke_is_an_error_and_no_disaster(
    held: Folder, most: int, wanted: str
) -> None:
    for number in range(30):
        (held.path / f"data/{number}").touch()

    words = [sys.executable, "-c", _MAY_OPEN, str(held.path), str(most)]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout

    assert re.search(wanted, said), said
    assert mounts(held) == []


_HOLDS = """
import sys, time
from pathlib import Path
from pgdyno.disk.recording import recording
from pgdyno.folders import Folder
with Folder.hold(Path(sys.argv[1])) as held, recording(held, "data", "record", 1 << 20):
    print("mounted", flush=True)
    time.sleep(600)
"""


def test_nothing_stays_mounted_when_who_began_it_is_killed(held: Folder) -> None:
    words = [sys.executable, "-c", _HOLDS, str(held.path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "mounted\n"
        assert len(mounts(held)) == 1
        still_open = (held.path / "data/open").open("wb")
        process.kill()
        process.wait()
        until(lambda: not mounts(held), "the mount to go")
        with suppress(OSError):  # nobody serves it any more, or somebody does for a last moment
            still_open.close()

    assert (held.path / "data/open").exists()  # what lies below is seen again


def test_nothing_stays_mounted_when_the_recorder_is_killed(held: Folder) -> None:
    with pytest.raises(TargetError, match="recorder"), recording(held, "data", "record", _ROOM):
        os.kill(recorder_of(held), signal.SIGKILL)

    assert mounts(held) == []


def recorder_of(held: Folder) -> int:
    """The process that serves the mount: the worker that works in this folder."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes()
            if b"pgdyno.disk.worker" in words and (entry / "cwd").readlink() == held.path:
                return int(entry.name)
        except OSError:
            continue
    raise AssertionError("there is no recorder")


def test_what_was_left_mounted_is_cleared(held: Folder) -> None:
    words = [sys.executable, "-c", _HOLDS, str(held.path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "mounted\n"
        recorder = recorder_of(held)
        process.send_signal(signal.SIGSTOP)  # it unmounts nothing
        os.kill(recorder, signal.SIGKILL)
        until(lambda: _dead(recorder), "the recorder to end")
        assert len(mounts(held)) == 1
        process.kill()

    unmount_left(held)

    assert mounts(held) == []


def _dead(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("Z")


def test_many_at_once_are_written_down_in_one_order(held: Folder) -> None:
    def write(number: int) -> None:
        with (held.path / f"data/{number}").open("wb") as file:
            for turn in range(50):
                file.write(bytes([turn + 1]) * 512)
                file.flush()
                os.fsync(file.fileno())

    with recording(held, "data", "record", _ROOM):
        writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for one in writers:
            one.start()
        for one in writers:
            one.join()

    make_disk(held, "record", "disk", record_span(held, "record").until_ns, 7)
    for number in range(4):
        wanted = b"".join(bytes([turn + 1]) * 512 for turn in range(50))
        assert (held.path / f"disk/{number}").read_bytes() == wanted
