"""The standby and the guard of a guarded stage, while its load is driven.

It is the guard that people run, as a process of its own: full pages go off once the standby
qualifies. Where it turns them on in the window, the trial is none of that stage.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pgdyno.folders import Folder
from pgdyno.guard.arming import arm
from pgdyno.guard.data_directory import DataDirectory, data_directory
from pgdyno.guard.heartbeat import last_beat
from pgdyno.guard.include_file import read_pages, run_folder_of
from pgdyno.guard.look import Wanted, look
from pgdyno.guard.preconditions import judged
from pgdyno.model.errors import TargetError
from pgdyno.model.guard import GuardLimits, Heartbeat
from pgdyno.model.plan import Stage
from pgdyno.model.wording import listed
from pgdyno.session import own_session
from pgdyno.shell import start
from pgdyno.target.interface import Ready, Target
from pgdyno.target.standby import require_in_sync
from pgdyno.trial.fixture import build_of
from pgdyno.trial.preparing import Phase, settings_of

_ACCEPTED = ("checkpoint-timeout", "checksums", "separate-power", "unlogged")
_LIMITS = GuardLimits(hold_s=1.0)
_PATIENCE_S = 120.0
_END_S = 20.0
_PAUSE_S = 0.1


@contextmanager
def guarding(stage: Stage, target: Target, ready: Ready, phase: Phase) -> Iterator[Guarding | None]:
    """Meanwhile a standby follows the server, and the guard keeps full pages off; None: no guard.

    Raises:
        TargetError: There is no standby, it does not qualify, or full pages do not go off.
    """
    if not stage.guard:
        yield None
        return
    assert ready.data_folder is not None, "only clusters of ours have a standby of their own"
    with phase("standby"):
        standby = target.follow(settings_of(stage), build_of(stage))
    directory = data_directory(ready.data_folder)
    above = _in_memory()
    Folder.made(above).close()
    primary = ready.connection.to("postgres").shown()
    wanted = Wanted(primary, standby.shown(), _LIMITS, above)
    seen = look(directory, wanted)
    findings = judged(seen, _ACCEPTED)
    if refused := [f"{one.name} ({one.found})" for one in findings if not one.allows]:
        raise TargetError(f"the guard refuses stage {stage.name}: {listed(refused)}")
    include = Path(arm(directory, wanted, seen, _ACCEPTED, is_kept=False).include)
    # As root it follows no conninfo that another user could have written.
    daemon = start([sys.executable, "-m", "pgdyno", "guard", "watch", directory.path,
                    "--standby", wanted.standby, "--primary", wanted.primary],
                   dies_with_us=signal.SIGTERM)  # fmt: skip
    try:
        found = Guarding(directory, include)
        with phase("guard"):
            found.wait_off(ready)
        if stage.synchronous:
            with phase("synchronous"):
                _wait_for_it(ready)
        yield found
    finally:
        daemon.signal(signal.SIGTERM)
        if daemon.wait(_END_S) is None:
            daemon.kill()
        with Folder.hold(above) as folder:
            folder.remove_folder(include.parent.name)
            is_last = not folder.names()
        if is_last:
            with suppress(OSError):
                above.rmdir()


class Guarding:
    """A guard that holds full pages off."""

    def __init__(self, directory: DataDirectory, include: Path) -> None:
        self._directory = directory
        self._include = include
        self._turns = 0

    def wait_off(self, ready: Ready) -> None:
        """Wait until the server has them off.

        Raises:
            TargetError: It has not in time; why, as the guard says it.
        """
        deadline = time.monotonic() + _PATIENCE_S
        with own_session(ready.connection) as session:
            while session.execute("SHOW full_page_writes").fetchone() != ("off",):
                if time.monotonic() > deadline:
                    raise TargetError(
                        f"the guard left full pages on for {_PATIENCE_S:.0f} s: {self._reasons()}"
                    )
                time.sleep(_PAUSE_S)
        beat = self._beat()
        self._turns = 0 if beat is None else beat.turns

    def held(self) -> str:
        """A note that they were off all the time since.

        Raises:
            TargetError: They were not; why, as the guard says it.
        """
        beat = self._beat()
        turns = None if beat is None else beat.turns
        if read_pages(self._directory, self._include) != "off" or turns != self._turns:
            raise TargetError(f"the guard turned full pages on in the window: {self._reasons()}")
        assert beat is not None
        return (
            "The guard held full pages off all the time. The standby ran beside the server, on the"
            f" same machine; at the end of the window it was {beat.lag_bytes or 0} bytes behind."
        )

    def _beat(self) -> Heartbeat | None:
        with run_folder_of(self._include, self._directory.user) as folder:
            return None if folder is None else last_beat(folder, self._directory)

    def _reasons(self) -> str:
        beat = self._beat()
        return "; ".join(beat.reasons) if beat and beat.reasons else "it gave no reason"


def _wait_for_it(ready: Ready) -> None:
    """Let commits wait for the standby from now on; before it was there, none would have ended.

    Raises:
        TargetError: The server does not take it for synchronous.
    """
    with own_session(ready.connection) as session:
        session.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        session.execute("SELECT pg_reload_conf()")
        require_in_sync(session, _PATIENCE_S)


def _in_memory() -> Path:
    """A folder of this user's; that it is not somebody else's is looked at where it is opened."""
    return Path("/dev/shm") / f"pgdyno-guard-{os.geteuid()}"  # noqa: S108
