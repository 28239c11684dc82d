"""The guard of a primary: full pages off while a standby qualifies, and nothing torn after a cut.

`pgdyno guard` calls these. `pgdyno.guard` is the package that does it, so this class has its name
in capitals.
"""

from __future__ import annotations

import grp
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from pgdyno.api.interrupts import interruptible
from pgdyno.api.repair import rejoined, repaired, undone
from pgdyno.guard import arming, named
from pgdyno.guard.data_directory import data_directory
from pgdyno.guard.facts import Seen
from pgdyno.guard.include_file import RUN_FOLDER
from pgdyno.guard.interlock import admit_repaired, is_copy, judge, read_armed, require_original
from pgdyno.guard.look import (
    Wanted,
    look,
    look_here,
    primary_connection,
    require_no_password,
    standby_connection,
)
from pgdyno.guard.preconditions import judged, require_acceptable
from pgdyno.guard.preconditions.settings import advice
from pgdyno.guard.rejoin import RejoinAsked
from pgdyno.guard.repair import RepairAsked
from pgdyno.guard.status import require_armed, status_of
from pgdyno.guard.unit import unit
from pgdyno.guard.watch import Watch
from pgdyno.model.bounds import require_within
from pgdyno.model.errors import PgdynoError, PlanError, TargetError
from pgdyno.model.guard import (
    ONCE,
    Armed,
    Checked,
    GuardLimits,
    LimitsAsked,
    Lock,
    Status,
    Step,
)
from pgdyno.model.repair import PATIENCE_S, SESSIONS, RejoinReport, RepairReport
from pgdyno.model.wording import listed

__all__ = ["RUN_FOLDER", "Guard"]

_FETCH = "They fetch pages side by side."
_REPAIR_ACCEPTS = (*ONCE, Lock.same_boot.value)


class Guard:
    """The guard of one primary, by its data directory on this machine."""

    def __init__(
        self,
        data: str | Path,
        standby: str = "",
        *,
        primary: str = "",
        run_folder: str | Path | None = None,
        limits: GuardLimits | LimitsAsked | None = None,
        bindir: Path | None = None,
    ) -> None:
        """Name the pair; nothing is asked or changed yet.

        Args:
            data: The primary's data directory.
            standby: Conninfo of the standby; empty: as it was armed with, which root follows only
                if root armed it so. Passwords in it are used and never kept: later calls find them
                in ~/.pgpass, or are given them.
            primary: Conninfo of the primary; empty: as it was armed with, or by postmaster.pid and
                the role of the server's user.
            run_folder: A folder on a file system in memory; None: /run/pgdyno-guard.
            limits: How far the standby may be behind; those that are not named: as it was armed
                with, or the defaults.
            bindir: PostgreSQL's programs; None: those that the server was started with last.

        Raises:
            TargetError: It is no data directory, or neither ours nor are we root.
        """
        self._directory = data_directory(Path(data))
        self._standby, self._primary, self._bindir = standby, primary, bindir
        self._run_folder = None if run_folder is None else Path(run_folder).absolute()
        self._limits = limits or LimitsAsked()

    def check(self, accept: Sequence[str] = ()) -> Checked:
        """May full pages be off? Every condition by its name; nothing is changed.

        Args:
            accept: Names of conditions that are well as they are; of an armed server those that
                were accepted then are accepted still.

        Raises:
            PlanError: No standby is named, a conninfo cannot be used, or a name cannot be accepted.
        """
        with interruptible("stopped", "Nothing was changed."):
            return self._checked(accept)[0]

    def arm(self, accept: Sequence[str] = ()) -> Checked:
        """Put the interlock in place, if every condition allows it. Full pages stay on.

        Only `watch` turns them off. What is returned tells whether it was done: `allowed`.

        Raises:
            PlanError: As `check`.
            TargetError: A file cannot be written, or the server does not follow it.
        """
        with interruptible("stopped", "`pgdyno guard status` says how far it came."):
            checked, seen = self._checked(accept)
            if checked.allowed:
                arming.arm(self._directory, self._wanted(), seen, self._accepted(accept))
            return checked

    def disarm(self, *, on_event: Callable[[str], None] = lambda _: None) -> None:
        """Turn full pages on, wait until they protect every page, and take the interlock out.

        Args:
            on_event: Told what is waited for.

        Raises:
            TargetError: It is not armed; the server has to be repaired or started first; a step
                failed: then it is still armed, and this can be called again.
        """
        with interruptible("stopped", "It is still armed: `pgdyno guard status`."):
            arming.disarm(self._directory, self._primary, self._bindir, on_event)

    def status(self) -> Status:
        """How it stands, from files alone.

        Raises:
            TargetError: A file is a link, somebody else's, or not understood.
        """
        return status_of(self._directory, self._bindir)

    def watch(self, *, on_event: Callable[[str], None] = lambda _: None) -> None:
        """Keep full pages off while every condition holds, until Ctrl-C or `disarm`; on then.

        Args:
            on_event: Told each turn, with its reasons.

        Raises:
            PlanError: No standby is named, or a conninfo cannot be used.
            TargetError: It is not armed, or watched already; or a file cannot be written.
        """
        armed = require_armed(self._directory)
        if armed.step is not Step.armed:
            raise TargetError(
                f"{self._directory.path} is not armed: {armed.step.value} was cut short",
                "`pgdyno guard status` says what ends it.",
            )
        require_original(self._directory, armed)
        wanted = self._wanted()
        standby_connection(wanted.standby)
        if wanted.primary:
            primary_connection(self._directory, wanted.primary)
        Watch(
            self._directory, armed, wanted.primary, wanted.standby, on_event, self._bindir
        ).run()  # fmt: skip

    def repair(
        self,
        *,
        standby_data: str | Path | None = None,
        journals: str | Path | None = None,
        sessions: int = SESSIONS,
        patience_s: float = PATIENCE_S,
        accept: Sequence[str] = (),
        dry_run: bool = False,
        on_event: Callable[[str], None] = lambda _: None,
    ) -> RepairReport:
        """Repair what a power cut tore, by pages of the standby; then the server may be started.

        Args:
            standby_data: The standby's data directory, where it is on this host: it is given the
                crashed cluster's WAL if it lags.
            journals: A folder for old and new bytes, twice what is fetched at most; None: one in
                /var/lib/pgdyno-guard.
            sessions: That fetch side by side.
            patience_s: For a standby that makes no progress.
            accept: `standby-power`, where the standby was restarted since the server was armed, and
                its pages are known to be whole; `same-boot`, where pages may be torn though the
                kernel lived on: the interlock is shut until the repair is done.
            dry_run: Find out all, and write nothing.
            on_event: Told what is done.

        Raises:
            PlanError: No standby is named, its conninfo cannot be used, or a name that is accepted
                is of nothing that a repair asks.
            TargetError: It cannot be repaired, or may not: nothing was changed then, or what was
                begun is finished by the next repair.
        """
        require_within("sessions", sessions, 1, None, _FETCH)
        require_within("patience_s", patience_s, 0, None, "With 0 nobody waits.")
        if strange := [one for one in accept if one not in _REPAIR_ACCEPTS]:
            raise PlanError(
                f"a repair asks nothing that {listed(strange)} would accept",
                f"It may be told: {listed(_REPAIR_ACCEPTS)}.",
            )
        with interruptible("stopped", "What was begun is finished by the next repair."):
            armed = self._armed()
            standby = standby_connection(self._standby_of(armed))
            asks_whole = armed is not None and "standby-power" not in accept
            life = armed.standby_life if armed is not None else None
            asked = RepairAsked(sessions, patience_s, dry_run, asks_whole, life)
            report = repaired(self._directory, standby, standby_data, journals, asked, on_event,
                              same_boot=Lock.same_boot.value in accept)  # fmt: skip
            if not dry_run and armed is not None:
                admit_repaired(self._directory, armed)
            return report

    def rejoin(
        self,
        *,
        follow: str = "",
        slot: str = "",
        journals: str | Path | None = None,
        sessions: int = SESSIONS,
        whole: bool = False,
        dry_run: bool = False,
        on_event: Callable[[str], None] = lambda _: None,
    ) -> RejoinReport:
        """Make what a power cut tore a standby of a running primary; then it may be started.

        For a primary whose standby was promoted meanwhile, and for a standby that lost power. The
        primary is the one that this guard was given, else the standby that was armed with.

        Args:
            follow: Conninfo by which it streams, its primary_conninfo, without password; empty: as
                it is configured. A standby's stays as it is.
            slot: A physical slot of the primary, which keeps WAL for it from now on; empty: as it
                is configured, and the role, which has REPLICATION, makes one meanwhile.
            journals: As `repair`.
            sessions: That fetch side by side.
            whole: Copy every file, whatever WAL says, where WAL does not say enough.
            dry_run: Find out all, and write nothing; the primary makes a checkpoint all the same.
            on_event: Told what is done.

        Raises:
            PlanError: No primary is named, or a conninfo cannot be used.
            TargetError: It cannot be done, or may not: nothing was changed then, or what was begun
                is finished by the next call.
        """
        require_within("sessions", sessions, 1, None, _FETCH)
        require_no_password(follow)
        with interruptible("stopped", "What was begun is finished by the next call."):
            armed = self._armed()
            primary = self._primary or self._standby
            if not primary.strip() and armed is not None:
                primary = named.followed(self._directory, armed, "standby", "--primary")
            if not primary.strip():
                raise PlanError(
                    "no primary is named", "Name its conninfo: --primary 'host=… user=…'."
                )
            asked = RejoinAsked(follow, slot, sessions, whole, dry_run)
            report = rejoined(
                self._directory, standby_connection(primary), journals, asked, on_event
            )
            if not dry_run and armed is not None:
                admit_repaired(self._directory, armed)
            return report

    def undo(self, *, journals: str | Path | None = None) -> str:
        """Put back what the latest repair or rejoin overwrote; the server was not started since.

        Args:
            journals: As that was told.

        Returns:
            The folder of its journal.

        Raises:
            TargetError: There is none, or the server was started since.
        """
        with interruptible("stopped", "Do it again: it writes the same bytes."):
            return undone(self._directory, journals)

    def unit(self, server: str = "postgresql.service") -> str:
        """A systemd unit for `watch`; no password stands in it.

        Args:
            server: The unit of the server, e.g. `postgresql@18-main.service`.

        Raises:
            PlanError: A name holds what no unit file can.
            TargetError: It is not armed.
        """
        armed, gid = require_armed(self._directory), self._directory.user.gid
        try:
            group = grp.getgrgid(gid).gr_name
        except KeyError:
            group = str(gid)
        return unit(self._directory, armed, server, group)

    # -- what is meant ------------------------------------------------------------------------

    def _armed(self) -> Armed | None:
        return read_armed(self._directory)

    def _wanted(self) -> Wanted:
        armed = self._armed()
        folder = Path(armed.include).parent.parent if armed else RUN_FOLDER
        primary, standby = self._primary, self._standby_of(armed)
        if not primary and armed is not None:
            primary = named.followed(self._directory, armed, "primary")
        limits = self._limits
        if isinstance(limits, LimitsAsked):
            limits = limits.over(armed.limits if armed else GuardLimits())
        return Wanted(primary, standby, limits, self._run_folder or folder)

    def _standby_of(self, armed: Armed | None) -> str:
        standby = self._standby
        if not standby and armed is not None:
            standby = named.followed(self._directory, armed, "standby")
        if not standby.strip():
            raise PlanError("no standby is named", "Name its conninfo: --standby 'host=… user=…'.")
        return standby

    def _accepted(self, accept: Sequence[str]) -> tuple[str, ...]:
        armed = self._armed()
        return require_acceptable((*(armed.accepted if armed else ()), *accept))

    def _checked(self, accept: Sequence[str]) -> tuple[Checked, Seen]:
        accepted, wanted = self._accepted(accept), self._wanted()
        seen = look(self._directory, wanted)
        if armed := self._armed():
            local, is_silent = seen.local, seen.pair.primary is None
            if is_silent and not is_copy(self._directory, armed):  # then its state says where
                local = look_here(self._directory, Path(armed.include), armed.config_file)
            is_shut = is_silent and judge(self._directory, armed, self._bindir) is Lock.repair
            seen = replace(seen, local=replace(
                local, is_armed=armed.step is Step.armed, standby_life=armed.standby_life,
                is_shut=is_shut,
            ))  # fmt: skip
        checked = Checked(
            str(self._directory.path), self._shown(wanted),
            standby_connection(wanted.standby).shown(), judged(seen, accepted),
            tuple(advice(seen)),
        )  # fmt: skip
        return checked, seen

    def _shown(self, wanted: Wanted) -> str:
        try:
            return primary_connection(self._directory, wanted.primary).shown()
        except PlanError:
            raise
        except PgdynoError as error:
            return error.fact
