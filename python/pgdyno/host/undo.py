"""Puts changes of the machine back, and leaves alone what somebody else changed since.

A value is ours while it is the one that we read back when we made it. One that is neither that nor
the one before was set by somebody else: it stays, and is said, unless whoever calls names it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pgdyno.host.journal import Change, Journal, JournalError, Standing, Values, standing_changes
from pgdyno.host.knob_location import ROOT, KnobLocation, knob_location
from pgdyno.model.errors import MachineError, PgdynoError, PlanError
from pgdyno.model.system_errors import as_pgdyno_error
from pgdyno.model.wording import listed

OnStep = Callable[[str], None]
_HINT = "`pgdyno host restore` tries it again."
_RESTORED = "restored"
_WAS_SO = "was so"


@dataclass(frozen=True, slots=True)
class Undone:
    """What became of a change that was to be undone."""

    change: Change
    fate: str  # restored | was so | gone by a reboot | kept as it is | left: REASON

    @property
    def ok(self) -> bool:
        """Whether nothing of it stands any more."""
        return not self.fate.startswith("left")

    @property
    def line(self) -> str:
        """It in a line: the value before is named alone where it stands again."""
        value = f"{self.change.before}: " if self.fate in (_RESTORED, _WAS_SO) else ""
        return f"{self.change.key}: {value}{self.fate}"


@dataclass(frozen=True, slots=True)
class Resolutions:
    """What is to become of values that somebody else changed since, by their keys."""

    overwrite: Collection[str] = ()  # put back all the same
    keep: Collection[str] = ()  # left as they are, and no more ours to put back


def restore(
    journals: Sequence[Journal],
    on_step: OnStep = lambda _: None,
    root: Path = ROOT,
    resolutions: Resolutions = Resolutions(),
) -> tuple[Undone, ...]:
    """Undo every change that still stands, the last one first.

    A value that somebody else has changed since is left, and said.

    Args:
        journals: Of this machine, the latest first; those that do not exist are passed over.
        on_step: Hears of every step before it is taken, as of `undo`.
        root: Of the file tree.
        resolutions: For values that somebody else changed.

    Raises:
        PlanError: Something is willed of a key that no change is of.
        TargetError: A journal cannot be read or written; all that could be undone is undone.
    """
    _require_known(journals, resolutions)
    found: list[Undone] = []
    for journal in journals:
        with journal.locked(make=False) as there:
            if there:
                found += undo(journal.standing(), journal, on_step, root, resolutions)
    return tuple(found)


def _require_known(journals: Sequence[Journal], resolutions: Resolutions) -> None:
    wanted = {*resolutions.overwrite, *resolutions.keep}
    if both := set(resolutions.overwrite) & set(resolutions.keep):
        raise PlanError(f"{min(both)} is to be overwritten and kept", "Ask for one of the two.")
    standing = {one.key for one in standing_changes(journals)} if wanted else set()
    if unknown := wanted - standing:
        raise PlanError(
            f"nothing is changed of {min(unknown)}",
            f"Changed by pgdyno are {', '.join(sorted(standing)) or 'no values'}.",
        )


def undo(
    standing: Sequence[Standing],
    journal: Journal,
    on_step: OnStep = lambda _: None,
    root: Path = ROOT,
    resolutions: Resolutions = Resolutions(),
) -> tuple[Undone, ...]:
    """Undo some changes of a locked journal, in this order.

    Args:
        standing: The changes, the last one first.
        journal: Where they stand.
        on_step: Hears of every step before it is taken: `undo KEY`, `back KEY` (of it and of those
            that it moves), `note KEY`, `undone KEY`.
        root: Of the file tree.
        resolutions: For values that somebody else changed.

    Raises:
        TargetError: The journal cannot be written; the values are put back nevertheless.
    """
    found, failed = [], None
    for one in standing:
        on_step(f"undo {one.change.key}")
        try:
            fate = _Undoing(one, journal, on_step, root, resolutions).fate()
            done = Undone(one.change, fate)
            if done.ok:
                on_step(f"undone {one.change.key}")
                journal.undone(one)
        except JournalError as error:
            failed, done = error, Undone(one.change, f"left: {error.fact}")
        found.append(done)
    if failed is not None:
        raise failed
    return tuple(found)


def put_back(
    made: Sequence[Standing],
    journal: Journal,
    on_step: OnStep = lambda _: None,
    root: Path = ROOT,
) -> None:
    """Undo changes that a locked journal has, and that were to stand for a while only.

    Args:
        made: The changes, in the order in which they were made.
        journal: Where they stand.
        on_step: See `undo`.
        root: Of the file tree.

    Raises:
        MachineError: Not all of them could be put back; the others are.
    """
    with told_as_standing(made):
        left = [one for one in undo(made[::-1], journal, on_step, root) if not one.ok]
    if left:
        fates = "; ".join(f"{one.change.key} {one.fate}" for one in left)
        raise MachineError(f"not all settings of this machine could be put back: {fates}", _HINT)


@contextmanager
def told_as_standing(made: Sequence[Standing]) -> Iterator[None]:
    """Meanwhile, whatever keeps changes from being put back is told as what stands by it.

    Raises:
        MachineError: They may still stand. Also for Ctrl-C, since nobody puts them back after it.
    """
    try:
        yield
    except MachineError:
        raise
    except BaseException as error:
        known = as_pgdyno_error(error)
        if known is None and not isinstance(error, KeyboardInterrupt):
            raise
        keys, why = listed([one.change.key for one in made]), known.fact if known else "stopped"
        raise MachineError(
            f"{keys} may still stand changed on this machine: {why}", _HINT
        ) from error


@dataclass(frozen=True, slots=True)
class _Undoing:
    """One change that is being undone."""

    one: Standing
    journal: Journal
    on_step: OnStep
    root: Path
    resolutions: Resolutions

    def fate(self) -> str:
        """Undo it, and tell what became of it; errors of its files are told, not raised."""
        change = self.one.change
        if self.one.boot != self.journal.boot:
            return "gone by a reboot"  # what stands there now was never ours
        if change.key in self.resolutions.keep:
            return "kept as it is"
        try:
            locations = {
                key: knob_location(key, self.root) for key in (change.key, *dict(change.also))
            }
            return self._fate(locations, {key: one.read() for key, one in locations.items()})
        except JournalError:
            raise
        except PgdynoError as error:
            return f"left: {error.fact}"

    def _fate(self, locations: dict[str, KnobLocation], now: dict[str, str]) -> str:
        change = self.one.change
        overwrite = change.key in self.resolutions.overwrite
        main, made = now[change.key], self.one.became or change.after
        if main not in (change.before, made) and not overwrite:
            return f"left: it is {main!r} now, pgdyno had made it {made!r} of {change.before!r}"
        foreign = {} if overwrite else dict(self._foreign(now))
        # What others set beside it stays, also where the kernel moves it once more by our write.
        wanted = {**dict(change.also), **foreign, change.key: change.before}
        self._write(locations, wanted)
        if wrong := [key for key in wanted if locations[key].read() != wanted[key]]:
            key = wrong[0]
            return f"left: {key} is {locations[key].read()!r} and does not become {wanted[key]!r}"
        if foreign:
            return self._left_beside(*next(iter(foreign.items())))
        return _WAS_SO if now == wanted else _RESTORED

    def _left_beside(self, key: str, value: str) -> str:
        made = dict(self.one.also_became).get(key)
        how = f"that had made it {made!r}" if made else "what that had made of it is not known"
        before = dict(self.one.change.also)[key]
        return f"left: {key}, which it moves, is {value!r} now; {how}, and before it was {before!r}"

    def _foreign(self, now: dict[str, str]) -> Iterator[tuple[str, str]]:
        """Values beside it that neither we nor the kernel after us left there.

        Where a kill kept from the journal what the kernel made of them, only the 0 is known: of two
        values that exclude each other one sets the other to that.
        """
        became = dict(self.one.also_became)
        for key, before in self.one.change.also:
            if now[key] not in (before, became.get(key, "0")):
                yield key, now[key]

    def _write(self, locations: dict[str, KnobLocation], wanted: dict[str, str]) -> None:
        """Write what differs; of two values where one sets the other to 0, the one that is not 0.

        Where the first write moved others, that is written down before they are written.
        """
        key = self.one.change.key
        beside = [name for name in locations if name != key]
        excluded = wanted[key] == "0" and any(wanted[name] != "0" for name in beside)
        for name in (*(() if excluded else (key,)), *beside, key):
            if locations[name].read() == wanted[name]:
                continue
            self.on_step(f"back {name}")
            locations[name].write(wanted[name])
            if name == key:
                self._note_moves(locations)

    def _note_moves(self, locations: dict[str, KnobLocation]) -> None:
        moved: Values = tuple((name, locations[name].read()) for name, _ in self.one.change.also)
        if moved not in (self.one.also_became, self.one.change.also):
            self.on_step(f"note {self.one.change.key}")
            self.journal.moved(self.one, moved)
