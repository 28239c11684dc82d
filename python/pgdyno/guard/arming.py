"""Arming and disarming: an order of steps that may be cut anywhere, and begun again.

Whatever was reached, either full pages are on and complete, or the interlock stands; `status` names
what is half. Arming turns nothing off: the daemon does, while the standby qualifies.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import psycopg

from pgdyno.folders import Folder
from pgdyno.guard.boot import boot_id
from pgdyno.guard.control import flush, read_control
from pgdyno.guard.data_directory import DataDirectory, claim
from pgdyno.guard.facts import PrimaryFacts, Seen
from pgdyno.guard.heartbeat import LOCK, take_lock
from pgdyno.guard.include_file import read_pages, run_folder_of, write_pages
from pgdyno.guard.interlock import (
    VERSION,
    forget_armed,
    inode_of,
    is_copy,
    judge,
    read_armed,
    release_copy,
    remove_line,
    repair_first,
    write_armed,
    write_line,
)
from pgdyno.guard.look import Wanted, primary_connection, without_passwords
from pgdyno.guard.named import followed, forget, keep
from pgdyno.guard.observe import first_line, look_at_primary, session
from pgdyno.model.errors import TargetError
from pgdyno.model.guard import ONCE, Armed, Lock, Step
from pgdyno.target.leftover_server import require_no_server

_PATIENCE_S = 60.0  # a reload takes a moment; the daemon ends within a look
_CHECKPOINT_S = 3600.0
_CHECKPOINTS_MAX = 3
_PAUSE_S = 0.05
_ANSWER_S = 10.0


def arm(
    directory: DataDirectory, wanted: Wanted, seen: Seen, accepted: tuple[str, ...],
    *, is_kept: bool = True,
) -> Armed:  # fmt: skip
    """Put the interlock in place, full pages on. All conditions were judged before.

    Args:
        directory: The data directory.
        wanted: The pair.
        seen: What was found of it.
        accepted: Names of conditions that are well as they are.
        is_kept: Whether it is to be known later what root named (`named`).

    Raises:
        TargetError: A file cannot be written, or the server does not follow it.
    """
    primary, standby = seen.pair.primary, seen.pair.standby
    assert primary is not None, "a primary that does not answer is refused before"
    assert standby is not None, "so is a standby"
    include = Path(seen.local.include)
    before = read_armed(directory)
    _require_same(before, include)
    armed = Armed(
        VERSION, Step.arming, primary.system_identifier, boot_id(), seen.local.config_file,
        str(include), without_passwords(wanted.primary), without_passwords(wanted.standby),
        tuple(one for one in accepted if one not in ONCE), wanted.limits, seen.local.data,
        standby.life, inode_of(directory),
    )  # fmt: skip
    if before is not None and before.step is Step.armed and seen.local.line_include == str(include):
        armed = replace(armed, step=Step.armed)  # what is guarded stays so meanwhile
    if is_kept:
        keep(directory, armed.primary, armed.standby)
    write_armed(directory, armed)
    if read_pages(directory, include) is None:
        write_pages(directory, include, "on", make=True)
    write_line(directory, Path(armed.config_file), include)
    _follow(directory, wanted.primary, lambda facts: facts.full_pages_source == str(include),
            f"it does not take full_page_writes from {include}")  # fmt: skip
    armed = replace(armed, step=Step.armed)
    write_armed(directory, armed)
    return armed


def _require_same(before: Armed | None, include: Path) -> None:
    if before is not None and before.include != str(include):
        raise TargetError(
            f"it is armed with {before.include} already, not with {include}",
            "Disarm it first, or name the same folder.",
        )


def disarm(
    directory: DataDirectory, primary: str, bindir: Path | None, on_event: Callable[[str], None]
) -> None:
    """Turn full pages on, wait until they protect every page, and take the interlock out.

    Args:
        directory: The data directory.
        primary: Conninfo; empty: as it was armed with.
        bindir: See `read_control`.
        on_event: Told what is waited for.

    Raises:
        TargetError: It is not armed; the server has to be repaired, or started, first; a step
            failed: then it is still armed.
    """
    armed = read_armed(directory)
    if armed is None:
        raise TargetError(
            f"{directory.path} is not armed", "`pgdyno guard status` says what lies there."
        )
    include, runs = Path(armed.include), _runs(directory)
    if runs:  # before anything is changed
        primary = primary or followed(directory, armed, "primary")
    elif is_copy(directory, armed):
        _disarm_copy(directory, bindir)
        return
    else:
        _require_clean(directory, armed, bindir)
    write_armed(directory, replace(armed, step=Step.disarming))
    _turn_on(directory, include)
    with ExitStack() as held:
        if (lock := _without_daemon(directory, include, on_event)) is not None:
            held.enter_context(lock)
        _turn_on(directory, include)  # the daemon may have turned them off meanwhile
        if not runs:
            held.enter_context(_kept_shut(directory))
            if _has_started(directory, armed, bindir):
                runs, primary = True, primary or followed(directory, armed, "primary")
        _take_out(directory, armed, primary if runs else None, on_event)


def _take_out(
    directory: DataDirectory, armed: Armed, primary: str | None, on_event: Callable[[str], None]
) -> None:
    """Take the interlock out, full pages on; without a primary no server runs or can start."""
    include, configuration = Path(armed.include), Path(armed.config_file)
    if primary is not None:
        _complete(directory, primary, include, on_event)
    remove_line(directory, configuration)
    if primary is not None:
        _require_on(directory, primary, configuration, include)
    with run_folder_of(include, directory.user) as folder:
        if folder is not None:
            folder.clear()
    forget_armed(directory)
    forget(directory)


def _turn_on(directory: DataDirectory, include: Path) -> None:
    if read_pages(directory, include) is not None:
        write_pages(directory, include, "on")


def _runs(directory: DataDirectory) -> bool:
    with directory.server() as found:
        return found is not None


@contextmanager
def _kept_shut(directory: DataDirectory) -> Iterator[None]:
    """Meanwhile nobody else opens the interlock.

    Raises:
        TargetError: A repair works on the data.
    """
    with directory.opened() as data:
        if not claim(data, _PATIENCE_S):
            raise TargetError(
                f"a repair or rejoin works on {directory.path}", "Wait for its end; run it again."
            )
        yield


def _has_started(directory: DataDirectory, armed: Armed, bindir: Path | None) -> bool:
    """Shut the interlock, so that no server starts before the line is gone, too.

    One that started since the first look may have full pages off by what the file said then: the
    interlock is open again for it, and it has to follow.

    Raises:
        TargetError: One is about to start, or was started and is gone: then it is open again.
    """
    include = Path(armed.include)
    with run_folder_of(include, directory.user) as folder:
        was_open = folder is not None and folder.has(include.name)
        if folder is not None and was_open:
            folder.remove(include.name)
    try:
        time.sleep(_PAUSE_S)  # who has just read it works in the data by now
        if not _runs(directory):
            with directory.opened() as data:
                require_no_server(data, directory.user)
            _require_clean(directory, armed, bindir)
            return False
    except BaseException:
        if was_open:
            write_pages(directory, include, "on", make=True)
        raise
    write_pages(directory, include, "on", make=True)
    return True


def _require_on(directory: DataDirectory, primary: str, configuration: Path, include: Path) -> None:
    """Without our line full pages are on; else it is put back, and who has them off is told."""
    try:
        _follow(directory, primary, lambda facts: facts.full_pages_source != str(include),
                f"it still takes full_page_writes from {include}")  # fmt: skip
        _follow(directory, primary, lambda facts: facts.full_pages,
                "without the guard's line it has full_page_writes off, by another one",
                _PAUSE_S, reload=False)  # fmt: skip
    except BaseException:
        write_line(directory, configuration, include)
        directory.reload()
        raise


def _disarm_copy(directory: DataDirectory, bindir: Path | None) -> None:
    """Take the line out of a copy of an armed directory, which no server runs on.

    Raises:
        TargetError: It is neither a base backup that was never started nor was it shut down.
    """
    with directory.opened() as data:
        is_backup = data.has("backup_label")  # full pages were on while it was made
    if not is_backup and not read_control(directory, bindir).is_clean:
        raise TargetError(
            f"{directory.path} is a copy, and neither a base backup nor of a server that was shut"
            " down",
            "Its pages may be torn: make the copy by pg_basebackup.",
        )
    release_copy(directory)
    if directory.reload():
        raise TargetError(
            f"a server was started on {directory.path} while the interlock was taken out of it",
            "It may have full_page_writes off since: restart it.",
        )


def _require_clean(directory: DataDirectory, armed: Armed, bindir: Path | None) -> None:
    """Refuse data whose pages may be torn, now or by the next power cut."""
    control = read_control(directory, bindir)
    if control.is_clean:
        return
    lock = judge(directory, armed, bindir)
    if control.is_stopped_standby and lock in (Lock.open, Lock.same_boot):
        flush(directory, bindir)
        return
    if lock is Lock.repair:
        raise TargetError(
            f"the machine of {directory.path} lost power, and its pages may be torn",
            repair_first(directory.path),
        )
    raise TargetError(
        f"the server on {directory.path} was not shut down, and does not run",
        "Start it, so that it recovers; disarm it then.",
    )


def _without_daemon(
    directory: DataDirectory, include: Path, on_event: Callable[[str], None]
) -> Folder | None:
    """Wait until the daemon has seen that it is not wanted any more, and take its place."""
    deadline = time.monotonic() + _PATIENCE_S
    on_event("waiting for the end of the daemon")
    while time.monotonic() < deadline:
        with run_folder_of(include, directory.user) as folder:
            if folder is None:
                return None
            handle = take_lock(folder, directory)
            if handle is not None:
                return Folder(folder.path / LOCK, handle)
        time.sleep(_PAUSE_S)
    raise TargetError(
        f"the daemon of {directory.path} does not end within {_PATIENCE_S:.0f} s",
        "Stop it: `systemctl stop`, or by the pid that `pgdyno guard status` shows.",
    )


def _complete(
    directory: DataDirectory, primary: str, include: Path, on_event: Callable[[str], None]
) -> None:
    """Let images protect every page: they are on, and a checkpoint began since.

    One that began before will not do, though they were on then: pages that were first changed
    after it and while they were off have no image, and get none before the next.
    """
    _follow(
        directory, primary, lambda facts: facts.full_pages, f"{include} says on, the server off"
    )
    on_event("checkpoint")
    try:
        with session(primary_connection(directory, primary), _CHECKPOINT_S) as asked:
            facts = look_at_primary(asked, None)
            on_lsn = facts.flush_lsn
            for _ in range(_CHECKPOINTS_MAX):  # the first may begin before the reload is heard
                if facts.images_since(on_lsn) or not facts.may_checkpoint:
                    break
                asked.do("CHECKPOINT")
                facts = look_at_primary(asked, None)
    except psycopg.Error as error:
        raise _refused(directory, error) from error
    _follow(directory, primary, lambda facts: facts.images_since(on_lsn),
            "no checkpoint began since full pages are on",
            _CHECKPOINT_S, reload=False)  # fmt: skip


def _follow(
    directory: DataDirectory,
    primary: str,
    does: Callable[[PrimaryFacts], bool],
    otherwise: str,
    patience_s: float = _PATIENCE_S,
    *,
    reload: bool = True,
) -> None:
    """Have the server read its configuration, and wait until it does as it says."""
    if reload:
        directory.reload()
    deadline = time.monotonic() + patience_s
    try:
        with session(primary_connection(directory, primary), _ANSWER_S) as asked:
            while not does(look_at_primary(asked, None)):
                if time.monotonic() >= deadline:
                    raise TargetError(
                        f"a server runs on {directory.path}, but {otherwise}",
                        "Does its log name an error in a configuration file?",
                    )
                time.sleep(_PAUSE_S)
    except psycopg.Error as error:
        raise _refused(directory, error) from error


def _refused(directory: DataDirectory, error: psycopg.Error) -> TargetError:
    return TargetError(
        f"the server on {directory.path} does not answer: {first_line(error)}",
        "What was begun stays as it is: run the command again.",
    )
