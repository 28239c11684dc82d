"""What settings and statements give up of durability, by the catalogue. Storage: `stage.storage`.

Pure functions on values: planned ones, or those that a running session was read to have.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from pgdyno.catalog import knobs
from pgdyno.model.durability import Durability, Loss
from pgdyno.model.settings import Rung, ServerKnob
from pgdyno.model.workload import Workload
from pgdyno.plan.settings.values import BadValue, canonical

_REPLICATED = ("synchronous_commit", "synchronous_standby_names")

Read = Callable[[str], tuple[str, str, str] | None]
"""Of a setting: its value in the server's words, its layer and where it was read; None: unknown."""


GUARDED = "with a guard: one failure at a time, on machines with power of their own"
"""The condition under which nothing is lost that a guard repairs."""


def settings_losses(read: Read, *, guarded: bool = False) -> tuple[Loss, ...]:
    """Every value that stands on a lower rung, whatever else is lower still.

    Args:
        read: Of each setting.
        guarded: Whether a guard repairs what it can: that stands on D0, with its condition.
    """
    found = []
    for name, knob in knobs().items():
        if not knob.fall or (value := read(name)) is None:
            continue
        word, layer, source = value
        for fall in knob.fall:
            if fall.holds(word) and guarded and fall.needs_guard:
                what = f"{name} = {word} ({GUARDED})"
                loses = "nothing: torn pages are repaired from the standby before a start"
                found.append(Loss(Rung.D0, what, loses, layer, source))
            elif fall.holds(word):
                found.append(Loss(fall.rung, f"{name} = {word}", fall.loses, layer, source))
    return (*found, *_local_commits(read))


def lying_disk_losses(source: str) -> Durability:
    """What a disk gives up that acknowledges flushes it has not made.

    Args:
        source: Where it was asked for, or seen.
    """
    what = "a disk that acknowledges flushes it has not made"
    loses = "what was flushed may not be on the disk"
    return Durability((Loss(Rung.D5, what, loses, "device", source),))


def _local_commits(read: Read) -> Iterator[Loss]:
    """Commits that do not wait for the standbys that somebody asked for."""
    commit, standbys = (read(name) for name in _REPLICATED)
    if commit and standbys and standbys[0] and commit[0] == "local":
        _, layer, source = commit
        what = f"synchronous_commit = local, with synchronous_standby_names = {standbys[0]}"
        yield Loss(Rung.D2, what, "a failover may lose the last commits", layer, source)


def workload_losses(workload: Workload, server: dict[str, ServerKnob]) -> tuple[Loss, ...]:
    """What the statements of a mix or of scripts set for themselves.

    Args:
        workload: What a stage drives.
        server: The settings of its server, by name.
    """
    files = workload.script.files if workload.script else ()
    if workload.mix is not None:
        files = (workload.mix.file,)
    if files and (setup := workload.data.setup) is not None:
        files = (*files, setup)
    return tuple(
        Loss(fall.rung, f"{name} = {word}", fall.loses, "workload", f"a statement of {file.path}")
        for file in files
        for name, knob in knobs().items()
        for word in _set_in(file.text, name, server)
        for fall in knob.fall
        if fall.holds(word)
    )


def _set_in(text: str, name: str, server: dict[str, ServerKnob]) -> Iterator[str]:
    """Values that SQL gives to a setting, in the server's words."""
    if (knob := server.get(name)) is None or not knobs()[name].fall:
        return
    value = r"'?([\w.]+)'?"
    given = rf'\bset\s+(?:session\s+|local\s+)?"?{name}"?\s*(?:=|\bto\b)\s*{value}'
    called = rf"\bset_config\s*\(\s*'{name}'\s*,\s*{value}"
    for one in dict.fromkeys(re.findall(f"{given}|{called}", text, re.IGNORECASE)):
        try:
            yield canonical(knob, one[0] or one[1])
        except BadValue:
            continue
