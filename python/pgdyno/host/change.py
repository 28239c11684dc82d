"""Changes of the running machine: planned, journalled, made, read back.

`host.undo` puts them back.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from pgdyno.catalog import MachineKnob
from pgdyno.host.file_tree import system
from pgdyno.host.journal import Change, Journal, Standing
from pgdyno.host.knob_location import ROOT, KnobLocation, knob_location, mask
from pgdyno.host.undo import OnStep, put_back
from pgdyno.linter import check, source
from pgdyno.model.errors import MachineError, PlanError, TargetError

_BOOLS = {"on": "1", "off": "0", "yes": "1", "no": "0"}
_EXCESS = ("huge-pages-beyond-memory", "too-much-kept-free")  # rules of the linter


def parse(wish: str) -> tuple[str, str]:
    """`NAME=VALUE` or `NAME@DEVICE=VALUE`.

    Raises:
        PlanError: It is neither.
    """
    key, equals, value = wish.partition("=")
    if not equals or not key.strip() or not value.strip():
        raise PlanError(f"{wish!r} is not NAME=VALUE", "For example vm.swappiness=1.")
    return key.strip(), " ".join(value.split())


def plan(wishes: Sequence[tuple[str, str]], root: Path = ROOT) -> tuple[Change, ...]:
    """What has to be changed so that all wishes are true together, in this order.

    What is so already is left out, unless one of the changes moves it: then it is made so again.

    Raises:
        PlanError: A wish that cannot be: an unknown knob, a device that is not here, a value that
            the knob does not take, two values for one or for two that exclude each other, more
            memory than the machine can spare.
        TargetError: A value cannot be read.
    """
    wished = _wished(wishes, root)
    changes = [one for one in wished if one.differs]
    _refuse_excess(changes, root)
    return _ordered(
        [one for one in wished if one.differs or any(_moves(other, one) for other in changes)]
    )


def unmet(wishes: Sequence[tuple[str, str]], root: Path = ROOT) -> tuple[Change, ...]:
    """What is not as wished for, as the changes that would make it so.

    Raises:
        PlanError: As `plan`, but for memory.
        TargetError: A value cannot be read.
    """
    return tuple(one for one in _wished(wishes, root) if one.differs)


def _wished(wishes: Sequence[tuple[str, str]], root: Path) -> tuple[Change, ...]:
    changes: dict[str, Change] = {}
    for key, wanted in wishes:
        one = knob_location(key, root)
        if not one.path.exists():
            raise PlanError(f"this machine has no {one.shown_path}", _where_else(one.knob))
        value = _allowed(one, wanted)
        if key in changes and changes[key].after != value:
            raise PlanError(f"{key} is to be {changes[key].after!r} and {value!r}")
        before = one.read()
        changes[key] = Change(key, before, value, _also(one, root) if before != value else ())
    for first, second in combinations(changes.values(), 2):
        if _exclude_each_other(first, second) and "0" not in (first.after, second.after):
            raise PlanError(
                f"{first.key} is to be {first.after!r} and {second.key} {second.after!r}, of which"
                " either sets the other to 0",
                "Ask for one of them; where the other is inherited, set that to 0.",
            )
    return tuple(changes.values())


def _moves(one: Change, other: Change) -> bool:
    return other.key in knob_location(one.key).moves


def _exclude_each_other(one: Change, other: Change) -> bool:
    return knob_location(one.key).excludes(knob_location(other.key))


def _ordered(changes: Sequence[Change]) -> tuple[Change, ...]:
    """What moves another one of them comes before it; else they keep their order."""
    found: list[Change] = []
    for one in changes:
        at = (place for place, other in enumerate(found) if _comes_before(one, other))
        found.insert(next(at, len(found)), one)
    return tuple(found)


def _comes_before(one: Change, other: Change) -> bool:
    return _moves(one, other) and (one.after != "0" or not _exclude_each_other(one, other))


def _refuse_excess(changes: Sequence[Change], root: Path) -> None:
    """The kernel takes whatever memory is left for these, and the machine stands still."""
    text = "\n".join(f"{one.key} = {one.after}" for one in changes if "@" not in one.key)
    for one in check([source.parse("", "sysctl", text)], system(root)):
        if one.rule in _EXCESS:
            raise PlanError(f"{one.at.shown}: {one.text}", one.hint)


def _where_else(knob: MachineKnob) -> str:
    if knob.module:
        return f"It exists only while the module {knob.module} is loaded."
    return f"Instead: {knob.instead}." if knob.instead else "The kernel or the device lacks it."


def _allowed(one: KnobLocation, wanted: str) -> str:
    knob = one.knob
    if knob.apply == "read only":
        raise PlanError(f"{one.name} can only be read")
    value = _BOOLS.get(wanted, wanted) if knob.type in ("bool", "flag") else wanted
    choices = one.choices() or knob.values
    if choices and value not in choices and value not in knob.special:
        raise PlanError(f"{one.key} is {wanted!r}, allowed are {', '.join(choices)}")
    if knob.type in ("integer", "float", "size", "time"):
        _check_number(one, value)
    if knob.type == "mask":
        value = _mask(one, value)
    if any(not part.isprintable() for part in value):
        raise PlanError(f"{one.key}: {wanted!r} holds characters that cannot be written")
    return value


def _mask(one: KnobLocation, value: str) -> str:
    try:
        return mask(value)
    except ValueError:
        raise PlanError(f"{one.key} is {value!r}, expected CPUs as a hexadecimal mask") from None


def _check_number(one: KnobLocation, value: str) -> None:
    try:
        number = float(value)
    except ValueError:
        raise PlanError(f"{one.key} is {value!r}, expected a number") from None
    low, high = one.knob.min, one.knob.max
    if value in one.knob.special:
        return
    if (low is not None and number < low) or (high is not None and number > high):
        bounds = " to ".join(f"{bound:g}" for bound in (low, high) if bound is not None)
        more = " and more" if high is None else ""
        raise PlanError(f"{one.key} is {value}, allowed are {bounds}{more}")


def _also(one: KnobLocation, root: Path) -> tuple[tuple[str, str], ...]:
    """Locations that this one moves, too, as they are now."""
    found = []
    for key in one.moves:
        beside = knob_location(key, root)
        if beside.path.exists():
            found.append((beside.key, beside.read()))
    return tuple(found)


def commands(changes: Sequence[Change], root: Path = ROOT) -> list[str]:
    """The same by hand, for somebody who may."""
    return [_command(one.key, one.after, root) for one in changes if not _comes_about(one, changes)]


def _comes_about(one: Change, changes: Sequence[Change]) -> bool:
    """Whether it is set to 0 by another one of them, which it would set to 0 itself."""
    return one.after == "0" and any(
        other.after != "0" and _exclude_each_other(one, other) for other in changes
    )


def commands_back(changes: Sequence[Change], root: Path = ROOT) -> list[str]:
    """What puts the changes back by hand, the last one first."""
    return [
        _command(key, value, root)
        for change in reversed(changes)
        if change.differs
        for key, value in _back(change)
    ]


def _command(key: str, value: str, root: Path) -> str:
    path = knob_location(key, root).shown_path
    return f"echo {shlex.quote(value)} | sudo tee {shlex.quote(path)}"


def _back(change: Change) -> list[tuple[str, str]]:
    """Of two values where one sets the other to 0, the one that was not 0 is written."""
    beside = [(key, value) for key, value in change.also if value != "0"]
    if change.before == "0" and beside:
        return beside
    return [(change.key, change.before), *beside]


def may_write(changes: Sequence[Change], root: Path = ROOT) -> bool:
    """Whether this user may make these changes."""
    return all(os.access(knob_location(change.key, root).path, os.W_OK) for change in changes)


def apply(
    changes: Sequence[Change], journal: Journal, on_step: OnStep = lambda _: None, root: Path = ROOT
) -> tuple[Standing, ...]:
    """Make the changes, each journalled before and read back after; all or none of them stand.

    All are read back once more at the end: what the kernel moves with one may be another one.

    Args:
        changes: Of `plan`.
        journal: Of this machine.
        on_step: Hears of every step before it is taken: `journal KEY`, `write KEY`, `read KEY`,
            `keep KEY`, and of those of `undo.undo` where something fails.
        root: Of the file tree.

    Returns:
        Them as they stand, in this order.

    Raises:
        TargetError: The kernel refuses a value or makes another one of it, or somebody else changed
            one since it was planned; what was changed by then is put back.
        MachineError: The same, and not all could be put back.
    """
    with journal.locked():
        made: list[Standing] = []
        try:
            for change in changes:
                _make(change, journal, made, on_step, root)
            _require_all(changes, root)
        except BaseException as error:
            try:
                put_back(made, journal, on_step, root)
            except MachineError as left:
                first = f"{error}" or "stopped"
                raise MachineError(f"{first}, and {left.fact}", left.hint) from error
            raise
        return tuple(made)


def _make(
    change: Change, journal: Journal, made: list[Standing], on_step: OnStep, root: Path
) -> None:
    one = knob_location(change.key, root)
    before = one.read()
    due = before != change.after  # else it is so still, or an earlier one has made it so
    planned, change = change, replace(change, before=before, also=_also(one, root) if due else ())
    _require_ours(planned, change, made)
    if not due:
        return
    on_step(f"journal {change.key}")
    made.append(journal.intend(change))
    on_step(f"write {change.key}")
    try:
        one.write(change.after)
    finally:  # also what a refusal or Ctrl-C left half done is told from what others do later
        on_step(f"read {change.key}")
        now = one.read()
        also = tuple((key, knob_location(key, root).read()) for key, _ in change.also)
        on_step(f"keep {change.key}")
        made[-1] = replace(made[-1], became=now, also_became=also)
        journal.done(made[-1])
    if now != change.after:
        hint = "The kernel took what it could get. All is put back as it was."
        raise TargetError(
            f"{change.key} was set to {change.after!r} and is {now!r}",
            f"{hint} {one.knob.if_less}" if one.knob.if_less else hint,
        )


def _require_ours(planned: Change, now: Change, made: Sequence[Standing]) -> None:
    """Refuse to go on where something differs from what was planned, but by our own changes.

    Raises:
        TargetError: Naming it.
    """
    known = {planned.key: planned.before, **dict(planned.also)}
    for one in made:
        known |= dict(one.also_became)
        known[one.change.key] = one.became or one.change.after
    for key, found in ((now.key, now.before), *now.also):
        if found != known.get(key, found):
            raise TargetError(
                f"{key} is {found!r}, and was {known[key]!r} when it was looked at",
                "Somebody else changes it at this very moment. Nothing of ours stands.",
            )


def _require_all(changes: Sequence[Change], root: Path) -> None:
    """Refuse what another change moved after it was made.

    Raises:
        TargetError: Naming it.
    """
    for change in changes:
        if (found := knob_location(change.key, root).read()) != change.after:
            raise TargetError(
                f"{change.key} is to be {change.after!r} and is {found!r} once all were set",
                "The kernel moves it with another one of them. All is put back as it was.",
            )
