"""What root runs as another user gets nothing of root's: no secret, no terminal, no descriptor.

That user may be hostile: the server's extensions, its archive_command and whoever may trace its
processes have all that these processes have.
"""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from pgdyno.builder.compile import compiler_version
from pgdyno.model.build import Recipe
from pgdyno.model.errors import TargetError
from pgdyno.shell import (
    OsUser,
    folders_left_out,
    left_out,
    postgres_user,
    run,
    search_path,
    start,
)
from tests import children
from tests.cluster.conftest import cluster_apart
from tests.reachable import reachable_folder
from tests.waiting import DEADLINE_S, until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="it is about root")

SECRET = "of-root"
SECRETS = (
    "PGPASSWORD", "AWS_SECRET_ACCESS_KEY", "VAULT_TOKEN", "SSH_AUTH_SOCK", "LD_LIBRARY_PATH",
    "PYTHONPATH", "PYTHONSTARTUP", "TMPDIR", "HOME", "USER", "LOGNAME", "XDG_RUNTIME_DIR",
    "LANGUAGE", "PGDYNO_HOME", "MAIL",
)  # fmt: skip
STAFF = 50
GIVEN = {"HOME", "LC_ALL", "LOGNAME", "PATH", "TZ", "USER"}


def to_its_end(words: Sequence[str], user: OsUser) -> str:
    return run(words, user=user, env={"ASKED": "for"}).stdout


def beside_us(words: Sequence[str], user: OsUser) -> str:
    process = start(words, user=user, env={"ASKED": "for"}, pipes=True)
    try:
        return process.stdout.read()
    finally:
        process.kill_group()
        process.close_pipes()


Started = Callable[[Sequence[str], OsUser], str]
both = pytest.mark.parametrize("started", [to_its_end, beside_us])


@pytest.fixture
def user() -> OsUser:
    return postgres_user()


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SECRETS:
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("TZ", "Asia/Tokyo")


@both
def test_no_variable_of_roots_reaches_it_but_those_that_are_listed(
    started: Started, user: OsUser, secrets: None
) -> None:
    lines = started(["env", "-0"], user).strip("\0").split("\0")
    told = dict(line.split("=", 1) for line in lines)
    assert set(told) == GIVEN | {"ASKED"}
    assert SECRET not in told.values()
    assert (told["TZ"], told["ASKED"]) == ("Asia/Tokyo", "for")
    assert (told["USER"], told["LOGNAME"]) == (user.name, user.name)
    assert told["PATH"] == search_path(user)


@pytest.mark.parametrize("mode", [0o755, 0o1777])
def test_no_program_is_found_in_a_folder_that_others_can_change(
    user: OsUser, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    """Sticky or theirs: what they put there would run in place of what we mean."""
    for folder in reachable_folder("theirs"):
        fake = folder / "id"
        fake.write_text("#!/bin/sh\necho fake\n")
        fake.chmod(0o755)
        folder.chmod(mode)
        if mode == 0o755:
            os.chown(folder, user.uid, user.gid)
        monkeypatch.setenv("PATH", f"{folder}::.:relative:/no/such:{os.environ['PATH']}")
        assert run(["id", "-u"], user=user).stdout == f"{user.uid}\n"
        assert not {str(folder), "", ".", "relative", "/no/such"} & set(
            search_path(user).split(":")
        )
        monkeypatch.setenv("PATH", str(folder))
        assert run(["id", "-u"], user=user).stdout == f"{user.uid}\n"


@both
def test_a_program_that_is_left_out_is_told_with_who_could_change_it(
    started: Started, user: OsUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian's /usr/local/bin is the group staff's as well; what is built by hand lies there."""
    for folder in reachable_folder("staff"):
        for name in ("pg_ctl-by-hand", "pgbouncer", "gcc-by-hand"):
            (folder / name).write_text("#!/bin/sh\n")
            (folder / name).chmod(0o755)
        os.chown(folder, 0, STAFF)
        folder.chmod(0o2775)
        monkeypatch.setenv("PATH", f"{folder}:/usr/sbin:/bin")
        told = f"by-hand is not looked at, since others than root can change {folder}"
        with pytest.raises(TargetError, match=f"as user {user.name}: .*{told}") as caught:
            started(["pg_ctl-by-hand", "-V"], user)
        assert "chmod g-w" in (caught.value.hint or "")
        with pytest.raises(TargetError, match="no such file or directory"):
            started(["there-is-none"], user)
        with pytest.raises(TargetError, match=told):
            compiler_version(Recipe(compiler="gcc-by-hand"), user)
        assert folders_left_out(user) == [str(folder)]
        monkeypatch.setenv("PATH", str(folder))
        assert left_out("pg_ctl-by-hand", user)
        folder.chmod(0o755)
        assert left_out("pg_ctl-by-hand", user) == ""
        assert started(["pg_ctl-by-hand"], user) == ""


@both
def test_it_has_its_own_group_a_told_mask_and_no_descriptor_of_roots(
    started: Started, user: OsUser
) -> None:
    ours = os.open("/etc/shadow", os.O_RDONLY)
    os.set_inheritable(ours, True)
    mask, groups = os.umask(0), os.getgroups()
    os.setgroups([0, 4, 6])
    try:
        told = started(["sh", "-c", "id -G; umask; ls /proc/$$/fd; :"], user)
    finally:
        os.umask(mask)
        os.setgroups(groups)
        os.close(ours)
    assert told.split() == [str(user.gid), "0022", "0", "1", "2"]


def test_the_server_has_nothing_of_roots_either(secrets: None, user: OsUser) -> None:
    """Nor what a server starts: an archive_command gets what the postmaster has."""
    with cluster_apart("embedded-18", "socket") as cluster:
        pid = cluster.pid
        environment = Path(f"/proc/{pid}/environ").read_bytes()
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    assert SECRET.encode() not in environment
    session, terminal = stat[3:5]
    assert (session, terminal) == (str(pid), "0")


# -- on a terminal -------------------------------------------------------------------------------

ASK = "ps -o sid=,tty= -p $$; echo $$; readlink /proc/$$/fd/2; :"
TELL = f"""
from tests.attack.test_programs_of_another_user import beside_us, to_its_end
from pgdyno.shell import postgres_user
words = ["sh", "-c", {ASK!r}]
print(to_its_end(words, postgres_user()), beside_us(words, postgres_user()), flush=True)
"""
WAIT = """
import sys
from pgdyno.shell import postgres_user, run
words = ["sh", "-c", "sleep 600 & echo $$ $! > pids.new; mv pids.new pids; wait"]
run(words, user=postgres_user(), folder=sys.argv[1], timeout_s=600)
"""


@contextmanager
def on_a_terminal(code: str, *words: object) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """Python's code in the foreground of a terminal, and the side where a person types."""
    with ExitStack() as stack:
        typing, terminal = pty.openpty()
        stack.callback(os.close, typing)
        stack.callback(os.close, terminal)
        args = ["setsid", "--ctty", sys.executable, "-c", code, *map(str, words)]
        yield (
            typing,
            children.started(
                args, stdin=terminal, stdout=subprocess.PIPE, stderr=terminal, text=True
            ),
        )


def test_the_terminal_is_not_its_to_read_or_to_type_into() -> None:
    with on_a_terminal(TELL) as (_, process):
        said = process.communicate(timeout=DEADLINE_S)[0].split()
    assert process.returncode == 0
    for session, terminal, pid, errors in (said[:4], said[4:]):
        assert (session, terminal) == (pid, "?")
        assert errors.startswith("pipe:") or errors == "/dev/null"


@pytest.fixture
def theirs(user: OsUser) -> Iterator[Path]:
    for folder in reachable_folder("theirs"):
        os.chown(folder, user.uid, user.gid)
        yield folder


def test_a_ctrl_c_ends_it_and_what_it_started(theirs: Path) -> None:
    """The terminal no longer tells them."""
    pids = theirs / "pids"
    with on_a_terminal(WAIT, theirs) as (typing, process):
        until(pids.exists, "its children")
        os.write(typing, b"\x03")
        process.communicate(timeout=DEADLINE_S)
    assert process.returncode == -2, "by that signal, as Python ends"
    left = pids.read_text().split()
    until(lambda: all(map(_has_ended, left)), f"the end of processes {left}")


def _has_ended(pid: str) -> bool:
    """Gone, or nobody has asked for its code yet."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True
