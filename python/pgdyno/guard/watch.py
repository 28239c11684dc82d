"""The daemon: full pages are off while every condition holds, and on at once where one does not.

Its loop waits for nobody: servers are asked by `lookers`. A second process (`deadman`) turns full
pages on when the loop gives no sign of life; its end, orderly or not, does the same.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

import psycopg

from pgdyno.folders import Folder
from pgdyno.guard import notify
from pgdyno.guard.boot import since_boot_s
from pgdyno.guard.columns import TEXT
from pgdyno.guard.data_directory import DataDirectory
from pgdyno.guard.deadman import ALIVE, MODULE
from pgdyno.guard.facts import Contents, LocalFacts, Pair, PrimaryFacts, Seen, StandbyFacts
from pgdyno.guard.heartbeat import LOCK, VERSION, beat, take_lock
from pgdyno.guard.include_file import Pages, read_pages, run_folder_of, write_pages
from pgdyno.guard.interlock import admit, read_armed, repair_first, require_in_memory
from pgdyno.guard.look import look_here, primary_connection, standby_connection
from pgdyno.guard.lookers import Lag, Looker, contents_looker, primary_looker, standby_looker
from pgdyno.guard.metrics import metrics
from pgdyno.guard.named import followed
from pgdyno.guard.observe import session
from pgdyno.guard.preconditions import judged
from pgdyno.model.errors import PgdynoError, TargetError
from pgdyno.model.guard import Armed, Finding, Heartbeat, Lock, Step
from pgdyno.shell import Process, start

_TICK_S = 0.5
_LOOK_S = 1.0
_BEAT_S = 1.0
_CONTENTS_S = 30.0
_CONTENTS_FRESH_S = 600.0
_HERE_S = 2.0
_RELOAD_S = 1.0
_FOLLOW_S = 5.0  # that a server gets to do as its file says
_CHECKPOINT_S = 3600.0
_CHECKPOINT_AGAIN_S = 30.0  # where one was refused, or began a moment too early
_END_S = 10.0  # that the server gets to follow before the daemon ends
_STOPPED = "the daemon was stopped"
_ALL_WELL = "all conditions hold"

_Asks: TypeAlias = tuple[Looker[PrimaryFacts], Looker[StandbyFacts], Looker[Contents]]


@dataclass(slots=True)
class _Turning:
    """Where full pages stand, and since when."""

    pages: Pages
    at_s: float  # monotonic
    turns: int = 0
    watchdog_turns: int = 0
    good_since_s: float | None = None
    reasons: tuple[str, ...] = ()
    unlike_since_s: float | None = None  # that the server differs from the file; None: it does not
    unlike: str = ""  # see `Heartbeat`
    on_lsn: int | None = None  # of WAL that was flushed once the server had them on; None: off


@dataclass(slots=True)
class Watch:
    """One daemon on one armed server; `run` it."""

    directory: DataDirectory
    armed: Armed
    primary: str  # conninfo; empty: by postmaster.pid
    standby: str
    on_event: Callable[[str], None]
    bindir: Path | None = None  # see `read_control`
    _turning: _Turning = field(default_factory=lambda: _Turning("on", time.monotonic()))
    _lag: Lag = field(default_factory=Lag)
    _deadman: Process | None = None
    _here: tuple[float, LocalFacts] | None = None
    _reloaded_s: float = 0.0
    _admitted_s: float = 0.0
    _beaten_s: float = 0.0
    _checkpoint_s: float = 0.0
    _said: tuple[Pages, tuple[str, ...], str] | None = None

    @property
    def include(self) -> Path:
        """The file that decides."""
        return Path(self.armed.include)

    def run(self) -> None:
        """Watch until somebody stops it or the server is disarmed; full pages are on then.

        Raises:
            TargetError: Another daemon watches, or a file cannot be written.
        """
        require_in_memory(self.armed)
        with run_folder_of(self.include, self.directory.user, make=True) as folder:
            assert folder is not None, "it was made"
            handle = take_lock(folder, self.directory)
            if handle is None:
                raise TargetError(
                    f"another daemon watches {self.directory.path}",
                    "`pgdyno guard status` shows it.",
                )
            with Folder(folder.path / LOCK, handle):
                self._watch(folder)

    def _watch(self, folder: Folder) -> None:
        limits, pair_named = self.armed.limits, _pair_named(self.armed)
        asks = self._asking()
        ended = "the daemon failed"
        try:
            self._begin()
            while self._is_wanted():
                if pair_named != (pair_named := _pair_named(self.armed)):
                    asks = self._asking_another(asks)
                primary, standby = asks[0].seen(limits.silence_s), asks[1].seen(limits.silence_s)
                contents = asks[2].seen(_CONTENTS_FRESH_S)
                pair = Pair(
                    primary.facts, standby.facts, contents.facts, primary.error, standby.error
                )
                self._step(folder, self._aged(pair), primary.at_s)
                time.sleep(_TICK_S)
            ended = "the server is being disarmed"
        except KeyboardInterrupt:
            ended = _STOPPED
        finally:
            for one in asks:
                one.stop()
            self._end(folder, ended)

    # -- whom it asks -------------------------------------------------------------------------

    def _asking(self) -> _Asks:
        silence_s, primary, standby = self.armed.limits.silence_s, self.primary, self.standby
        asks = (
            primary_looker(lambda: primary_connection(self.directory, primary),
                           silence_s, _LOOK_S),
            standby_looker(lambda: standby_connection(standby), silence_s, _LOOK_S),
            contents_looker(lambda: primary_connection(self.directory, primary),
                            silence_s, _CONTENTS_S),
        )  # fmt: skip
        for one in asks:
            one.start()
        return asks

    def _asking_another(self, before: _Asks) -> _Asks:
        """Ask the pair that the server was armed with since, full pages on until that qualifies.

        Raises:
            TargetError: This user may not follow what the state names.
        """
        if read_pages(self.directory, self.include) == "off":
            self._turn("on", ("standby: the server was armed with another pair",))
        self._turning.good_since_s = None
        for one in before:
            one.stop()
        self.primary = followed(self.directory, self.armed, "primary")
        self.standby = followed(self.directory, self.armed, "standby")
        self._lag = Lag()
        return self._asking()

    # -- its begin and its end ----------------------------------------------------------------

    def _begin(self) -> None:
        found = admit(self.directory, self.bindir)
        if found in (Lock.same_boot, Lock.clean):
            self.on_event(f"the interlock is open again: {found.value}")
        if found is Lock.repair:
            self.on_event(f"pages may be torn. {repair_first(self.directory.path)}")
        else:
            self._turn("on", ("the daemon begins",))
        self._start_deadman()
        notify.ready()
        self.on_event(f"watching {self.directory.path}")

    def _start_deadman(self) -> None:
        words: list[str | Path] = [sys.executable, "-m", MODULE, self.directory.path, self.include,
                 str(self.armed.limits.silence_s)]  # fmt: skip
        self._deadman = start(words, pipes=True)
        os.set_blocking(self._deadman.stdin.fileno(), False)

    def _end(self, folder: Folder, why: str) -> None:
        """Full pages on, and followed by the server where it answers; then the watchdog may go."""
        with suppress(TargetError):  # it is gone: no server starts without a repair
            self._turn("on", (why,))
        deadline = time.monotonic() + _END_S
        with (
            suppress(psycopg.Error, TargetError),
            session(
                primary_connection(self.directory, self.primary), self.armed.limits.silence_s
            ) as asked,
        ):
            while asked.row("SHOW full_page_writes", (TEXT,)) != ("on",):
                if time.monotonic() > deadline:
                    self.on_event("the server still has full_page_writes off: see its log")
                    break
                time.sleep(_TICK_S)
        with suppress(TargetError):
            self._beat(folder, None, ())
        if self._deadman is not None:
            with suppress(OSError):
                self._deadman.close_pipes()
            self._deadman.wait(_END_S)
        self.on_event(why)

    def _is_wanted(self) -> bool:
        now = read_armed(self.directory)
        if now is not None and now.step is not Step.disarming:
            self.armed = now
            return True
        return False

    # -- a step -------------------------------------------------------------------------------

    def _aged(self, pair: Pair) -> Pair:
        flush = pair.primary.flush_lsn if pair.primary else None
        replay = pair.standby.replay_lsn if pair.standby else None
        return replace(pair, lag_s=self._lag.age_s(flush, replay, time.monotonic()))

    def _step(self, folder: Folder, pair: Pair, primary_at_s: float) -> None:
        now, turning = time.monotonic(), self._turning
        self._live()
        pages = self._pages_as_they_are()
        findings = judged(Seen(pair, self._looked_here(now), self.armed.limits),
                          self.armed.accepted)  # fmt: skip
        reasons = tuple(f"{one.name}: {one.found}" for one in findings if not one.allows)
        if pages is None:
            reasons = (f"interlock: {self.include} is gone", *reasons)
        # Who cannot be told to turn them on must not have them off.
        if turning.unlike and pages == "on":
            reasons = (f"server: {turning.unlike}", *reasons)
        if reasons:
            turning.good_since_s = None
            if pages == "off":
                self._turn("on", reasons)
            turning.reasons = reasons
            self._complete(pair.primary, now)
        else:
            turning.good_since_s = now if turning.good_since_s is None else turning.good_since_s
            well = now - turning.good_since_s >= self.armed.limits.hold_s
            # Who was stopped since this step began judged by what may be long gone.
            if pages == "on" and well and time.monotonic() - now < _TICK_S:
                self._turn("off", ())
        if pair.primary is not None and primary_at_s - turning.at_s > _LOOK_S:
            self._let_follow(pair.primary, now)
            if turning.on_lsn is None and turning.pages == "on" and pair.primary.full_pages:
                turning.on_lsn = pair.primary.flush_lsn
        elif pair.primary is None:
            turning.unlike_since_s, turning.unlike = None, ""
        self._beat(folder, pair, findings)
        notify.alive(self._words())

    def _live(self) -> None:
        """A sign of life for the watchdog, and another watchdog where it is gone."""
        assert self._deadman is not None
        with suppress(OSError):  # gone; or stopped, and its pipe is full: that must not stop us
            os.write(self._deadman.stdin.fileno(), ALIVE)
        if self._deadman.code() is None:
            return
        with suppress(OSError):
            self._deadman.close_pipes()
        self._turn("on", ("watchdog: it was gone",))
        self._turning.good_since_s = None
        self._start_deadman()

    def _pages_as_they_are(self) -> Pages | None:
        """What the file says; who turned full pages on without us was the watchdog."""
        found = read_pages(self.directory, self.include)
        if found is None and time.monotonic() - self._admitted_s > _HERE_S:
            self._admitted_s = time.monotonic()
            admit(self.directory, self.bindir)
            found = read_pages(self.directory, self.include)
        turning = self._turning
        if found == "on" and turning.pages == "off":
            turning.pages, turning.at_s, turning.good_since_s = "on", time.monotonic(), None
            turning.turns += 1
            turning.watchdog_turns += 1
            turning.reasons = ("watchdog: the daemon gave no sign of life",)
            self.on_event("full pages are on: the daemon had given no sign of life")
        return found

    def _looked_here(self, now: float) -> LocalFacts:
        if self._here is None or now - self._here[0] > _HERE_S:
            found = look_here(self.directory, self.include, self.armed.config_file)
            known = replace(found, is_armed=True, standby_life=self.armed.standby_life)
            self._here = (now, known)
        return self._here[1]

    def _turn(self, pages: Pages, reasons: tuple[str, ...]) -> None:
        write_pages(self.directory, self.include, pages)
        self.directory.reload()
        turning = self._turning
        turning.reasons = reasons
        if turning.pages != pages:
            turning.turns += pages == "on"
            turning.pages, turning.at_s, turning.on_lsn = pages, time.monotonic(), None
            turning.unlike_since_s, turning.unlike = None, ""
            self.on_event(f"full pages are {pages}: {'; '.join(reasons) or _ALL_WELL}")

    def _let_follow(self, primary: PrimaryFacts, now: float) -> None:
        """A server that missed a signal, or could not read a file, gets another one."""
        turning = self._turning
        if primary.full_pages == (turning.pages == "on"):
            turning.unlike_since_s, turning.unlike = None, ""
            return
        if turning.unlike_since_s is None:
            turning.unlike_since_s = now
        if not turning.unlike and now - turning.unlike_since_s > _FOLLOW_S:
            theirs = "on" if primary.full_pages else "off"
            turning.unlike = (
                f"the server has had full_page_writes {theirs} for {_FOLLOW_S:.0f} s, though"
                f" {self.include} says {turning.pages}: see its log, a mistake in any configuration"
                " file keeps it from reading all of them"
            )
            self.on_event(turning.unlike)
        if now - self._reloaded_s >= _RELOAD_S:
            self._reloaded_s = now
            self.directory.reload()

    def _complete(self, primary: PrimaryFacts | None, now: float) -> None:
        """From the next checkpoint on images protect every page; so it comes at once."""
        if primary is None or self._turning.on_lsn is None or self._is_complete(primary):
            return
        if now - self._checkpoint_s < _CHECKPOINT_AGAIN_S:
            return
        self._checkpoint_s = now

        def make() -> None:
            with (
                suppress(psycopg.Error, PgdynoError),
                session(primary_connection(self.directory, self.primary), _CHECKPOINT_S) as asked,
            ):
                asked.do("CHECKPOINT")

        threading.Thread(target=make, daemon=True).start()

    def _is_complete(self, primary: PrimaryFacts) -> bool:
        on_lsn = self._turning.on_lsn
        return on_lsn is not None and primary.images_since(on_lsn)

    # -- what it says -------------------------------------------------------------------------

    def _words(self) -> str:
        if self._turning.pages == "off":
            return "full pages are off, the standby qualifies"
        return f"full pages are on: {'; '.join(self._turning.reasons) or 'waiting'}"

    def _beat(self, folder: Folder, pair: Pair | None, findings: tuple[Finding, ...]) -> None:
        turning, limits, now = self._turning, self.armed.limits, time.monotonic()
        said = (turning.pages, turning.reasons, turning.unlike)
        if pair is not None and said == self._said and now - self._beaten_s < _BEAT_S:
            return
        self._said, self._beaten_s = said, now
        primary = pair.primary if pair else None
        lag_bytes = pair.lag_bytes if pair else None
        waits_s = 0.0
        if turning.pages == "on" and turning.good_since_s is not None:
            waits_s = max(limits.hold_s - (time.monotonic() - turning.good_since_s), 0.0)
        heartbeat = Heartbeat(
            VERSION, os.getpid(), since_boot_s(), turning.pages,
            since_boot_s() - (time.monotonic() - turning.at_s), turning.reasons, waits_s,
            primary is not None and self._is_complete(primary),
            lag_bytes, pair.lag_s if pair and lag_bytes is not None else None,
            primary.flush_lsn - primary.redo_lsn if primary else None,
            turning.turns, turning.watchdog_turns, _pages_of(primary), turning.unlike,
        )  # fmt: skip
        text = metrics(str(self.directory.path), self.armed.system_identifier, heartbeat, findings)
        beat(folder, self.directory, heartbeat, text)


def _pair_named(armed: Armed) -> tuple[str, str]:
    """By conninfo, as a person armed it."""
    return armed.primary, armed.standby


def _pages_of(primary: PrimaryFacts | None) -> Pages | None:
    """As the server has them."""
    if primary is None:
        return None
    return "on" if primary.full_pages else "off"
