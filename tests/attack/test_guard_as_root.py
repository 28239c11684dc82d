"""Root guards a server whose user writes the guard's state, and who names any file in it.

Whatever stands there, root makes, changes and empties nothing that this user could not himself.
"""

from __future__ import annotations

import os
import shutil
import socket
import struct
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Self

import psycopg
import pytest

import pgdyno
from pgdyno.guard import arming, interlock, named
from pgdyno.guard.boot import boot_id
from pgdyno.guard.data_directory import DataDirectory, data_directory
from pgdyno.guard.heartbeat import LOCK, take_lock
from pgdyno.guard.include_file import INCLUDE, include_path, run_folder_of, write_pages
from pgdyno.guard.interlock import STATE, admit_repaired, read_armed, remove_line, write_line
from pgdyno.guard.look import primary_connection
from pgdyno.guard.observe import session
from pgdyno.guard.state import VARIABLE
from pgdyno.model.errors import TargetError
from pgdyno.model.guard import Armed, GuardLimits, Step
from pgdyno.model.record_json import to_json
from pgdyno.shell import OsUser, postgres_user, start
from pgdyno.target.leftover_server import Postmaster
from tests.reachable import reachable_folder
from tests.waiting import until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="it is about root")
SYSTEM = "7712345678901234567"


@pytest.fixture
def user() -> OsUser:
    return postgres_user()


@pytest.fixture
def data(user: OsUser) -> Iterator[Path]:
    """A data directory of the server's user, whose configuration has the guard's line."""
    for folder in reachable_folder("root-guards"):
        path = folder / "data"
        (path / "global").mkdir(parents=True)
        (path / "PG_VERSION").write_text("18\n")
        (path / "postgresql.conf").write_text(f"include '/x' {interlock._MARK}\n")
        for one in (path, *path.rglob("*")):
            os.chown(one, user.uid, user.gid)
        yield path


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder of root's, in memory."""
    path = Path(tempfile.mkdtemp(prefix="pgdyno-guard-root-", dir="/dev/shm"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def state(
    data: Path, include: Path | str, system: str = SYSTEM, config: Path | None = None
) -> Armed:
    return Armed(
        interlock.VERSION, Step.armed, system, boot_id(),
        str(config or data / "postgresql.conf"), str(include), "", "host=b", (), GuardLimits(),
        str(data),
    )  # fmt: skip


def planted(data: Path, armed: Armed, user: OsUser) -> DataDirectory:
    """What the server's user wrote into his own directory."""
    path = data / STATE
    path.write_text(to_json(armed))
    os.chown(path, user.uid, user.gid)
    return data_directory(data)


COMMANDS: dict[str, Callable[[pgdyno.Guard], object]] = {
    "status": lambda guard: guard.status(),
    "watch": lambda guard: guard.watch(),
    "disarm": lambda guard: guard.disarm(),
    "repair": lambda guard: guard.repair(),
    "undo": lambda guard: guard.undo(),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_of_roots_is_neither_made_nor_is_its_folder_emptied(
    data: Path, memory: Path, user: OsUser, command: str
) -> None:
    """As /etc/ld.so.preload would be: its folder is root's, and has a folder above."""
    etc = memory / "etc"
    etc.mkdir()
    (etc / "passwd").write_text("root's own")
    planted(data, state(data, etc / "ld.so.preload"), user)
    with pytest.raises(TargetError):
        COMMANDS[command](pgdyno.Guard(data))
    assert {one.name: one.read_text() for one in etc.iterdir()} == {"passwd": "root's own"}


def test_the_folder_of_a_server_is_its_users_alone(data: Path, memory: Path, user: OsUser) -> None:
    include = include_path(memory, SYSTEM)
    include.parent.mkdir()
    directory = planted(data, state(data, include), user)
    armed = read_armed(directory)
    assert armed is not None
    with pytest.raises(TargetError, match="belongs to user root, expected"):
        admit_repaired(directory, armed)
    assert list(include.parent.iterdir()) == []
    os.chown(include.parent, user.uid, user.gid)
    admit_repaired(directory, armed)
    assert [one.name for one in include.parent.iterdir()] == [INCLUDE]


def test_no_folder_is_made_because_a_state_says_so(
    data: Path, memory: Path, user: OsUser, tmp_path: Path
) -> None:
    """One would keep all users out (/run/nologin), another outlive a power cut."""
    missing = include_path(memory / "nologin", SYSTEM)
    with pytest.raises(TargetError, match="for the run files is missing"):
        write_pages(data_directory(data), missing, "on", make=True)
    assert list(memory.iterdir()) == []
    on_disk = state(data, include_path(tmp_path, SYSTEM))
    directory = planted(data, on_disk, user)
    with pytest.raises(TargetError, match="expected a file system in memory"):
        admit_repaired(directory, on_disk)
    with pytest.raises(TargetError, match="expected a file system in memory"):
        pgdyno.Guard(data, "host=b").watch()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("include", "system"),
    [
        (f"/run/{INCLUDE}", "run"),
        (f"/run/{SYSTEM}/other.conf", SYSTEM),
        (f"/run/8/{INCLUDE}", SYSTEM),
        (f"/run/../etc/{SYSTEM}/{INCLUDE}", SYSTEM),
        (f"run/{SYSTEM}/{INCLUDE}", SYSTEM),
        (f"/run/x'\n* * * * * root id\n/{SYSTEM}/{INCLUDE}", SYSTEM),
        (f"/run/7'\n* * * * * root id/{INCLUDE}", "7'\n* * * * * root id"),
    ],
)
def test_a_state_that_no_guard_wrote_is_neither_read_nor_written(
    data: Path, user: OsUser, include: str, system: str
) -> None:
    """The server tells its system identifier itself when it is armed."""
    armed = state(data, include, system)
    directory = planted(data, armed, user)
    with pytest.raises(TargetError, match="the interlock's file is"):
        read_armed(directory)
    (data / STATE).unlink()
    with pytest.raises(TargetError, match="the interlock's file is"):
        interlock.write_armed(directory, armed)
    assert not (data / STATE).exists()


def test_no_configuration_is_changed_but_one_of_the_servers_user(
    data: Path, user: OsUser, memory: Path
) -> None:
    directory, include = data_directory(data), include_path(memory, SYSTEM)
    ours = data / "postgresql.conf"
    roots, linked, given = memory / "crontab", data / "linked.conf", memory / "given.conf"
    for path in (roots, linked, given):
        path.write_text(f"a\ninclude '/x' {interlock._MARK}\n")
    os.chown(linked, user.uid, user.gid)
    os.link(linked, data / "another-name.conf")
    for path in (roots, linked):
        before = path.read_text()
        with pytest.raises(TargetError, match=f"expected {user.name} alone"):
            write_line(directory, path, include)
        with pytest.raises(TargetError, match=f"expected {user.name} alone"):
            remove_line(directory, path)
        assert path.read_text() == before
    os.chown(given, user.uid, user.gid)
    given.chmod(0o4640)
    for path in (ours, given):  # one lies in root's folder, as below /etc/postgresql
        write_line(directory, path, include)
        assert interlock.included(path) == include
        assert path.stat().st_uid == user.uid
    assert given.stat().st_mode & 0o7777 == 0o640
    remove_line(directory, given)
    assert given.read_text() == "a\n"


def test_what_was_armed_with_another_users_configuration_is_found_by_check(
    data: Path, user: OsUser, memory: Path
) -> None:
    roots = memory / "postgresql.conf"
    roots.write_text("port = 1\n")
    with pytest.raises(TargetError, match="belongs to user root"):
        interlock.require_changeable(data_directory(data), roots)
    os.chown(roots, user.uid, user.gid)
    interlock.require_changeable(data_directory(data), roots)


def test_root_and_the_servers_user_take_the_same_lock_of_the_daemon(
    data: Path, memory: Path, user: OsUser
) -> None:
    """The printed unit runs the daemon as that user; root asks how it stands, and disarms."""
    include = include_path(memory, SYSTEM)
    directory = planted(data, state(data, include), user)
    with run_folder_of(include, user, make=True) as folder:
        assert folder is not None
        handle = take_lock(folder, directory)
        assert handle is not None
        lock = include.parent / LOCK
        assert lock.stat().st_uid == user.uid, "a daemon of that user can take it after root"
        assert pgdyno.Guard(data).status().daemon_runs
        os.close(handle)
        lock.unlink()
        words = ["flock", str(lock), "sh", "-c", "echo held; read line"]
        theirs = start(words, user=user, pipes=True)
        try:
            assert theirs.stdout.readline() == "held\n"
            assert lock.stat().st_uid == user.uid
            assert pgdyno.Guard(data).status().daemon_runs
            assert take_lock(folder, directory) is None
        finally:
            theirs.kill_group()
            theirs.close_pipes()
        # What flock started has the lock, too, and may die a moment later.
        until(lambda: not pgdyno.Guard(data).status().daemon_runs, "the end of who had the lock")


def test_what_lies_in_the_place_of_the_lock_does_not_change_hands(
    data: Path, memory: Path, user: OsUser
) -> None:
    include = include_path(memory, SYSTEM)
    directory, roots = planted(data, state(data, include), user), memory / "roots"
    roots.touch()
    puts: list[Callable[[Path, Path], None]] = [Path.symlink_to, Path.hardlink_to]
    with run_folder_of(include, user, make=True) as folder:
        assert folder is not None
        for put in puts:
            put(include.parent / LOCK, roots)
            with suppress(TargetError):
                os.close(take_lock(folder, directory) or -1)
            (include.parent / LOCK).unlink()
    assert roots.stat().st_uid == 0


# -- whom root connects to -----------------------------------------------------------------------

SECRET = "of-roots-password-file"


class Listener:
    """A server of the data's user, which asks whoever comes for a password in clear."""

    def __init__(self) -> None:
        self.heard = b""
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._socket.getsockname()[1])
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(30)

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            with client, suppress(OSError, struct.error):
                self._ask(client)

    def _ask(self, client: socket.socket) -> None:
        client.settimeout(30)
        while (code := struct.unpack("!II", client.recv(8, socket.MSG_PEEK))[1]) >= 80877103:
            client.recv(8)
            self.heard += str(code).encode()
            client.sendall(b"N")  # neither TLS nor GSSAPI
        self.heard += client.recv(4096)
        client.sendall(struct.pack("!cII", b"R", 8, 3))
        self.heard += client.recv(4096)


@pytest.fixture
def listener(memory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Listener]:
    """It listens, and root has a password for every server, in all places where libpq looks."""
    for name in [name for name in os.environ if name.startswith("PG")]:
        monkeypatch.delenv(name)
    home, state = memory / "root", memory / "state"
    home.mkdir(0o700)
    (home / ".pgpass").write_text(f"*:*:*:*:{SECRET}\n")
    (home / ".pg_service.conf").write_text(f"[all]\npassword={SECRET}\n")
    for one in home.iterdir():
        one.chmod(0o600)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv(VARIABLE, str(state))
    with Listener() as found:
        yield found


FOLLOWING: dict[str, Callable[[pgdyno.Guard], object]] = {
    "check": lambda guard: guard.check(),
    "arm": lambda guard: guard.arm(),
    "watch": lambda guard: guard.watch(),
    "repair": lambda guard: guard.repair(),
    "rejoin": lambda guard: guard.rejoin(),
}


@pytest.mark.parametrize("command", FOLLOWING)
def test_a_conninfo_of_the_state_is_not_followed(
    data: Path, memory: Path, user: OsUser, listener: Listener, command: str
) -> None:
    """It is the server's user who could be sent root's passwords by it."""
    conninfo = f"host=127.0.0.1 port={listener.port} user=u dbname=d service=all"
    armed = replace(state(data, include_path(memory, SYSTEM)), standby=conninfo)
    directory = planted(data, armed, user)
    with pytest.raises(
        TargetError, match=r"standby of the state .*, root armed it with none"
    ) as caught:
        FOLLOWING[command](pgdyno.Guard(data))
    assert "run this as" in (caught.value.hint or "")
    named.keep(directory, "", "host=b")
    with pytest.raises(TargetError, match="root armed it with 'host=b'"):
        FOLLOWING[command](pgdyno.Guard(data))
    assert listener.heard == b""


def test_what_root_named_is_followed_with_roots_passwords(
    data: Path, memory: Path, user: OsUser, listener: Listener
) -> None:
    conninfo = f"host=127.0.0.1 port={listener.port} user=u dbname=d"
    include = include_path(memory, SYSTEM)
    directory = planted(data, replace(state(data, include), standby=conninfo), user)
    named.keep(directory, "", conninfo)
    kept = list((memory / "state").rglob("*.json"))
    assert [one.stat().st_mode & 0o777 for one in kept] == [0o600]
    pgdyno.Guard(data).check()
    assert SECRET.encode() in listener.heard
    named.forget(directory)
    with pytest.raises(TargetError, match="root armed it with none"):
        pgdyno.Guard(data).check()


def test_what_a_pid_file_says_is_followed_without_roots_passwords(
    data: Path, user: OsUser, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's user writes it, and can name any address in it."""

    @contextmanager
    def server(_: DataDirectory) -> Iterator[Postmaster]:
        yield Postmaster(os.getpid(), -1, listener.port, "", "127.0.0.1")

    monkeypatch.setattr(DataDirectory, "server", server)
    directory = data_directory(data)
    for name, value in {"PGPASSWORD": SECRET, "PGSERVICE": "all"}.items():
        monkeypatch.setenv(name, value)
        with pytest.raises(psycopg.OperationalError, match="no password supplied"):
            session(primary_connection(directory, ""), 5.0)
        monkeypatch.delenv(name)
    assert user.name.encode() in listener.heard
    assert SECRET.encode() not in listener.heard


def test_disarming_follows_no_conninfo_of_the_state(
    data: Path, memory: Path, user: OsUser, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def server(_: DataDirectory) -> Iterator[Postmaster]:
        yield Postmaster(os.getpid(), -1, 1, "", "127.0.0.1")

    conninfo = f"host=127.0.0.1 port={listener.port} user=u dbname=d"
    include = include_path(memory, SYSTEM)
    directory = planted(data, replace(state(data, include), primary=conninfo), user)
    before = (data / STATE).read_text()
    monkeypatch.setattr(DataDirectory, "server", server)
    with pytest.raises(TargetError, match=r"primary of the state .*, root armed it with none"):
        arming.disarm(directory, "", None, lambda _: None)
    assert (data / STATE).read_text() == before, "nothing was begun"
    assert listener.heard == b""
