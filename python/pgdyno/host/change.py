"""Changes of the running machine: planned, journalled, made, read back.

`host.undo` puts them back.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
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
    """What has to be changed so that the wishes are true; what is so already is left out.

    Raises:
        PlanError: A wish that cannot be: an unknown knob, a device that is not here, a value that
            the knob does not take, two values for one, more memory than the machine can spare.
        TargetError: A value cannot be read.
    """
    changes = unmet(wishes, root)
    _refuse_excess(changes, root)
    return changes


def unmet(wishes: Sequence[tuple[str, str]], root: Path = ROOT) -> tuple[Change, ...]:
    """What is not as wished for, as the changes that would make it so.

    Raises:
        PlanError: As `plan`, but for memory.
        TargetError: A value cannot be read.
    """
    changes: dict[str, Change] = {}
    for key, wanted in wishes:
        one = knob_location(key, root)
        if not one.path.exists():
            raise PlanError(f"this machine has no {one.shown_path}", _where_else(one.knob))
        value = _allowed(one, wanted)
        if key in changes and changes[key].after != value:
            raise PlanError(f"{key} is to be {changes[key].after!r} and {value!r}")
        before = one.read()
        if before != value:
            changes[key] = Change(key, before, value, _also(one, root))
    return tuple(changes.values())


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
    return [_command(change.key, change.after, root) for change in changes]


def commands_back(changes: Sequence[Change], root: Path = ROOT) -> list[str]:
    """What puts the changes back by hand, the last one first."""
    return [
        _command(key, value, root) for change in reversed(changes) for key, value in _back(change)
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
    if (found := one.read()) != change.before:
        raise TargetError(
            f"{change.key} is {found!r}, and was {change.before!r} when it was looked at",
            "Somebody else changes it at this very moment. Nothing of ours stands.",
        )
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
