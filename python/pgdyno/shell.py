"""The only module that starts processes: as another user, with a deadline, their output kept.

PostgreSQL refuses to run as root. When pgdyno is root, it runs PostgreSQL's programs as another
user (`postgres` where there is one, else `nobody`); as an ordinary user it runs them as itself.
What it runs as root must lie where nobody else can change it.

Every program has a session of its own: the terminal is not its to read or to type into, and Ctrl-C
reaches it through us only. One of another user gets none of our variables either, which may hold
secrets, but what `_foreign_environment` lists.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pgdyno.access import is_roots_folder, stranger_on_program
from pgdyno.model.errors import TargetError
from pgdyno.model.system_errors import reason

_POLL_S = 0.01
_WISHES = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # to end
_NO_UTF8 = "backslashreplace"  # what programs say may hold names of files, which are any bytes
_OURS = "PGDYNO_"  # begin of variables that are no libpq's
_SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"  # where ours names no folder that may be searched
CLOSE_IT = (
    "Take the right to write there away from others (chmod g-w,o-w), or install the program where"
    " only root writes."
)
"""What lets root find a program for another user that is left out."""
_UMASK = 0o022  # of other users, whatever root's is; PostgreSQL's programs narrow it themselves


@dataclass(frozen=True, slots=True)
class OsUser:
    """Who runs PostgreSQL."""

    name: str
    uid: int
    gid: int

    @property
    def is_other(self) -> bool:
        """Whether it is somebody else than this process."""
        return self.uid != os.geteuid()


def postgres_user(wanted: str | None = None) -> OsUser:
    """Choose the operating system user that runs PostgreSQL.

    Args:
        wanted: A user name, or None to choose.

    Raises:
        TargetError: No such user, or this process may not become another one.
    """
    if os.geteuid() != 0:
        own = pwd.getpwuid(os.geteuid())
        if wanted not in (None, own.pw_name):
            raise TargetError(
                f"user {own.pw_name} cannot run PostgreSQL as {wanted}",
                hint="Only root may run it as another user.",
            )
        return OsUser(own.pw_name, own.pw_uid, own.pw_gid)
    for name in (wanted,) if wanted else ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        if found.pw_uid == 0:
            raise TargetError(f"user {name} is root", hint="PostgreSQL refuses to run as root.")
        return OsUser(found.pw_name, found.pw_uid, found.pw_gid)
    raise TargetError(f"no user {wanted or 'postgres or nobody'}", hint="Name one that exists.")


@dataclass(frozen=True, slots=True)
class Done:
    """A process that has ended."""

    code: int
    stdout: str
    stderr: str


def run(
    args: Sequence[str | Path],
    *,
    user: OsUser | None = None,
    env: Mapping[str, str] | None = None,
    timeout_s: float = 120.0,
    check: bool = True,
    text: str | None = None,
    folder: int | Path | None = None,
    dies_with_us: signal.Signals | None = None,
) -> Done:
    """Run a program to its end, `text` on its standard input.

    Args:
        args: The program and its arguments.
        user: Who runs it; None for this process's user. Another one gets a small environment.
        env: Variables added to the environment.
        timeout_s: After so many seconds it is killed.
        check: Whether another code than 0 is an error.
        text: Its standard input; None: empty.
        folder: Where it starts, by a descriptor or by name; None: the root folder.
        dies_with_us: The signal that the kernel sends it should this process be killed.

    Raises:
        TargetError: It cannot be started, takes longer than `timeout_s`, or (with `check`) ends
            with another code than 0; the last lines of its output are in the message. Or it is to
            run as root, and others can change it.
    """
    name = Path(args[0]).name
    words = _words(args, user, dies_with_us)
    popen: subprocess.Popen[str] | None = None
    try:
        with _signals_later():
            popen = subprocess.Popen(
                words,
                env=_environment(env, user),
                stdin=subprocess.DEVNULL if text is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors=_NO_UTF8,
                cwd=_folder_words(folder),
                start_new_session=True,
                **_identity(user),
            )
        out, err = popen.communicate(text, timeout_s)
    except OSError as error:
        raise _not_started(args[0], user, error) from error
    except subprocess.TimeoutExpired as error:
        raise TargetError(f"{name} did not end within {timeout_s:.0f} s") from error
    finally:
        if popen is not None:
            _end_group(popen)
            popen.__exit__(None, None, None)
    if check and popen.returncode != 0:
        last_words = (err or out).strip()[-600:]
        raise TargetError(f"{name} ended with code {popen.returncode}: {last_words}")
    return Done(popen.returncode, out, err)


def run_whole(args: Sequence[str | Path], *, text: str | None = None) -> tuple[Done, bool]:
    """Run a program that must not be cut short, `text` on its standard input.

    It has no deadline and a session of its own; its output goes to a file. So neither Ctrl-C nor a
    hangup reaches it, and should we be killed, it still comes to its end.

    Returns:
        What became of it, and whether somebody asked us to stop meanwhile.

    Raises:
        TargetError: It cannot be started.
    """
    name = Path(args[0]).name
    with (
        tempfile.TemporaryFile("w+") as given,
        tempfile.TemporaryFile("w+", errors="replace") as out,
        tempfile.TemporaryFile("w+", errors="replace") as err,
        _signals_kept() as asked,
    ):
        given.write(text or "")
        given.seek(0)
        try:
            code = subprocess.Popen(
                _words(args, None, None),
                env=_environment(None, None), stdin=given, stdout=out, stderr=err,
                cwd="/", start_new_session=True,
            ).wait()  # fmt: skip
        except OSError as error:
            raise TargetError(f"{name} cannot be started: {reason(error)}") from error
        for file in (out, err):
            file.seek(0)
        return Done(code, out.read(), err.read()), bool(asked)


@contextmanager
def _signals_kept() -> Iterator[list[int]]:
    """Meanwhile, wishes to end are only noted. Python hears signals in its main thread alone."""
    asked: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    deaf = (signal.SIG_IGN, None)  # as nohup has it; or not Python's to give back
    before = {kind: handler for kind in _WISHES if (handler := signal.getsignal(kind)) not in deaf}
    for kind in before:
        signal.signal(kind, lambda number, _: asked.append(number))
    try:
        yield asked
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


@contextmanager
def _signals_later() -> Iterator[None]:
    """Wishes to end that come meanwhile are granted afterwards: nothing is half begun."""
    asked: list[int] = []
    try:
        with _signals_kept() as asked:
            yield
    finally:
        if asked:
            signal.raise_signal(asked[0])


class Process:
    """A program that runs beside us."""

    def __init__(self, popen: subprocess.Popen[str], name: str) -> None:
        self._popen = popen
        self.name = name
        self.pid = popen.pid

    @property
    def stdin(self) -> IO[str]:
        """Its standard input; only if it was started with pipes."""
        assert self._popen.stdin is not None
        return self._popen.stdin

    @property
    def stdout(self) -> IO[str]:
        """Its standard output; only if it was started with pipes."""
        assert self._popen.stdout is not None
        return self._popen.stdout

    def code(self) -> int | None:
        """Its exit code, or None while it runs."""
        return self._popen.poll()

    def is_stopped(self) -> bool:
        """Whether a signal keeps it from running, as SIGSTOP and a debugger do."""
        try:
            told = Path(f"/proc/{self.pid}/stat").read_text()
        except OSError:
            return False
        return told.rpartition(")")[2].split()[0] in ("T", "t")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, if it still runs."""
        if self._popen.poll() is None:
            self._popen.send_signal(number)

    def wait(self, timeout_s: float) -> int | None:
        """Wait for its end; None when it still runs after `timeout_s`."""
        try:
            return self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def wait_unreaped(self, timeout_s: float) -> int | None:
        """As `wait`, but its number stays taken until `kill_group`, which so hits no stranger."""
        deadline = time.monotonic() + timeout_s
        how = os.WEXITED | os.WNOHANG | os.WNOWAIT
        while (ended := os.waitid(os.P_PID, self.pid, how)) is None:
            if time.monotonic() >= deadline:
                return None
            time.sleep(_POLL_S)
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status

    def close_pipes(self) -> None:
        """Release its pipes; call it after its end.

        Raises:
            BrokenPipeError: It has not read what was written; the pipes are released.
        """
        with ExitStack() as stack:  # all of them, also where one fails
            for pipe in (self._popen.stdout, self._popen.stdin):
                if pipe is not None and not pipe.closed:
                    stack.callback(pipe.close)

    def kill(self) -> None:
        """End it now."""
        if self._popen.poll() is None:
            self._popen.kill()
            self._popen.wait()

    def kill_group(self) -> None:
        """End it now, with everything that it started and that is still of its group."""
        _end_group(self._popen)


def _end_group(popen: subprocess.Popen[str]) -> None:
    if popen.returncode is not None:
        return  # its number may be somebody else's by now
    with suppress(ProcessLookupError):
        os.killpg(popen.pid, signal.SIGKILL)
    popen.wait()


def start(
    args: Sequence[str | Path],
    *,
    user: OsUser | None = None,
    env: Mapping[str, str] | None = None,
    log: int | None = None,
    pipes: bool = False,
    folder: int | Path | None = None,
    dies_with_us: signal.Signals | None = None,
) -> Process:
    """Start a program that runs beside us.

    Args:
        args: The program and its arguments.
        user: Who runs it; None for this process's user. Another one gets a small environment.
        env: Variables added to the environment.
        log: Descriptor that gets its standard error (and output, unless `pipes`). None: errors go
            where ours go if it has pipes and runs as this process's user, else nowhere.
        pipes: Connect standard input and output to us, as text lines.
        folder: Where it starts, by a descriptor or by name; None: the root folder.
        dies_with_us: The signal that the kernel sends it should this process be killed.

    Raises:
        TargetError: It cannot be started.
    """
    words = _words(args, user, dies_with_us)
    process: Process | None = None
    try:
        with _signals_later():
            popen = subprocess.Popen(
                words,
                env=_environment(env, user),
                stdin=subprocess.PIPE if pipes else subprocess.DEVNULL,
                stdout=subprocess.PIPE if pipes else (subprocess.DEVNULL if log is None else log),
                stderr=_errors(user, pipes) if log is None else log,
                text=True,
                errors=_NO_UTF8,
                cwd=_folder_words(folder),
                start_new_session=True,
                **_identity(user),
            )
            process = Process(popen, Path(args[0]).name)
    except OSError as error:
        raise _not_started(args[0], user, error) from error
    except BaseException:  # a wish to end: the caller never gets to know what would run on
        if process is not None:
            process.kill_group()
            process.close_pipes()
        raise
    return process


def _words(
    args: Sequence[str | Path], user: OsUser | None, dies_with_us: signal.Signals | None
) -> list[str]:
    """The command line, after a look at who could have changed its programs."""
    words = [str(arg) for arg in args]
    if dies_with_us is not None:
        _require_ours(words[0], user)
        words = ["setpriv", "--pdeathsig", dies_with_us.name.removeprefix("SIG"), "--", *words]
    _require_ours(words[0], user)
    return words


def _require_ours(program: str, user: OsUser | None) -> None:
    """As root, refuse a program that somebody else could have put there.

    The interpreter that runs us is not asked: whoever can change it is root by it already.
    """
    if os.geteuid() != 0 or (user is not None and user.is_other) or program == sys.executable:
        return
    found = shutil.which(program)
    if found is None:
        raise TargetError(f"{Path(program).name} cannot be started: there is no program {program}")
    if where := stranger_on_program(Path(found)):
        raise TargetError(
            f"{program} is not run as root: others than root can change {where}",
            "Name a program that lies where only root writes, or run pgdyno as another user.",
        )


def _folder_words(folder: int | Path | None) -> str:
    # The child changes to it before it becomes another user, and closes the descriptor after.
    if isinstance(folder, int):
        return f"/proc/self/fd/{folder}"
    return str(folder or "/")


def forget_postgres_variables() -> None:
    """Drop what the user's shell tells libpq (PGOPTIONS, PGTZ, PGSERVICE, …) from this process.

    Some of it no argument of a connection can override. Whoever connects to a server of ours calls
    this before; a running server is named with these variables, and by then is resolved.
    """
    for name in [name for name in os.environ if _is_of_libpq(name)]:
        del os.environ[name]


def _is_of_libpq(name: str) -> bool:
    return name.startswith("PG") and not name.startswith(_OURS)


def search_path(user: OsUser | None) -> str:
    """Where programs of a user are looked for, as PATH has it.

    Root looks for what another user is to run in folders only that nobody but root can change.
    """
    path = os.environ.get("PATH", os.defpath)
    if user is None or not user.is_other:
        return path
    return ":".join(one for one in path.split(":") if is_roots_folder(one)) or _SYSTEM_PATH


def left_out(program: str, user: OsUser | None) -> str:
    """Why a program that lies on PATH is not found for another user; empty: it does not, or is.

    Debian lets its group staff write into /usr/local/bin, where what is installed by hand lies.
    """
    found = shutil.which(program) if Path(program).name == program else None
    path = search_path(user)
    if found is None or path == os.environ.get("PATH", os.defpath):
        return ""
    if shutil.which(program, path=path) is not None:
        return ""
    where = stranger_on_program(Path(found)) or Path(found).parent
    return f"{found} is not looked at, since others than root can change {where}"


def folders_left_out(user: OsUser | None) -> list[str]:
    """Folders of our PATH that programs of another user are not looked for in."""
    kept = search_path(user).split(":")
    return [one for one in os.environ.get("PATH", os.defpath).split(":") if one not in kept]


def _not_started(program: str | Path, user: OsUser | None, error: OSError) -> TargetError:
    name = Path(program).name
    if user is not None and (why := left_out(str(program), user)):
        return TargetError(f"{name} cannot be started as user {user.name}: {why}", CLOSE_IT)
    return TargetError(f"{name} cannot be started: {reason(error)}")


def _environment(extra: Mapping[str, str] | None, user: OsUser | None) -> dict[str, str]:
    if user is not None and user.is_other:
        own = _foreign_environment(user)
    else:
        # PG* variables of the user would redirect our own servers' programs to somebody else's.
        own = {name: value for name, value in os.environ.items() if not _is_of_libpq(name)}
    return {**own, "LC_ALL": "C.UTF-8", **(extra or {})}


def _foreign_environment(user: OsUser) -> dict[str, str]:
    """What another user's program begins with. LC_ALL, which all get, overrides LANG and LC_*."""
    try:
        home = pwd.getpwuid(user.uid).pw_dir
    except KeyError:
        home = "/"
    own = {"PATH": search_path(user), "HOME": home, "USER": user.name, "LOGNAME": user.name}
    return own | {name: os.environ[name] for name in ("TZ",) if name in os.environ}


def _errors(user: OsUser | None, pipes: bool) -> int | None:
    # Ours may be root's terminal, open for reading too.
    return None if pipes and (user is None or not user.is_other) else subprocess.DEVNULL


def _identity(user: OsUser | None) -> dict[str, Any]:
    if user is None or not user.is_other:
        return {}
    return {"user": user.uid, "group": user.gid, "extra_groups": [], "umask": _UMASK}
