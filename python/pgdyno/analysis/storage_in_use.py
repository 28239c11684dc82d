"""What stages on several storages saw of their disks, and what follows for a server on each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from pgdyno.analysis.disk_facts import (
    Advice,
    Answer,
    NotForThisLoad,
    NotKnown,
    StepAnswers,
    StorageInUse,
)
from pgdyno.analysis.disk_windows import DiskWindows, disk_windows
from pgdyno.analysis.facts import StageFacts
from pgdyno.analysis.session_facts import RoundSessions
from pgdyno.analysis.storage_answers import Told, never_told, told_of
from pgdyno.analysis.storage_steps import STEPS, Step
from pgdyno.model.run import TrialRecord
from pgdyno.model.shared_storage import OWN_FOLDER
from pgdyno.model.wording import listed

_ANSWERS: Mapping[type[Told], Answer] = {
    Advice: "try",
    NotKnown: "not known",
    NotForThisLoad: "not for this load",
}
"""Of several loads on a disk, the first of these that one of them gives is the disk's."""

_ByPlace = Sequence[tuple[Step, str | None, Told]]  # what is told, with the folder that it is of


def storage_in_use(
    stages: Sequence[StageFacts],
    trials: Sequence[TrialRecord],
    sessions: Callable[[TrialRecord], RoundSessions | None],
    disks_of: Callable[[str | None], Sequence[str]],
    in_memory: Callable[[str | None], bool],
) -> StorageInUse | None:
    """What was seen, and what follows; None: all stages have one storage.

    Args:
        stages: In the order of the plan.
        trials: Those whose numbers are used.
        sessions: What they did in the window of a trial.
        disks_of: Whole disks below a folder of stages, None is pgdyno's own; (): not known.
        in_memory: Whether such a folder is kept in memory, which is no disk.
    """
    if len({one.folder for one in stages}) < 2:
        return None
    used = [disk_windows(one, trials, sessions, disks_of(one.folder)) for one in stages]
    on_disks = [one for one in used if not in_memory(one.disk.folder)]
    named = dict.fromkeys(one.disk.folder for one in on_disks)
    found = StorageInUse(
        disks=tuple(one.disk for one in used),
        folders=tuple(one for one in named if one is not None),
        own=None in named,
        steps=(),
        advice=(),
        not_known=(),
        not_for_load=(),
    )
    return _with_answers(found, on_disks) if on_disks else found


def _with_answers(found: StorageInUse, used: Sequence[DiskWindows]) -> StorageInUse:
    names = [one or OWN_FOLDER for one in found.places]
    told: list[tuple[Step, str | None, Told]] = [
        *((step, one.disk.folder, each) for one in used for step, each in told_of(one, used)),
        *((step, place, each) for step, each in never_told(names) for place in found.places),
    ]
    told.sort(key=lambda one: STEPS.index(one[0]))
    every = [each for _, _, each in told]
    return replace(
        found,
        steps=tuple(
            StepAnswers(step.by, tuple(_answer(step, place, told) for place in found.places))
            for step in STEPS
        ),
        advice=_once(one for one in every if isinstance(one, Advice)),
        not_known=_together([one for one in every if isinstance(one, NotKnown)]),
        not_for_load=tuple(one for one in every if isinstance(one, NotForThisLoad)),
    )


def _answer(step: Step, place: str | None, told: _ByPlace) -> Answer:
    kinds = {type(each) for of, where, each in told if of is step and where == place}
    return next(answer for kind, answer in _ANSWERS.items() if kind in kinds)


def _once(found: Iterable[Advice]) -> tuple[Advice, ...]:
    """Each but once: two disks that are used together are told of by the stages of both."""
    kept: list[Advice] = []
    for one in found:
        if one not in kept:
            kept.append(one)
    return tuple(kept)


def _together(found: Sequence[NotKnown]) -> tuple[NotKnown, ...]:
    """What is not known of several stages, or folders, for one reason, told once."""
    alike: dict[NotKnown, list[str]] = {}
    for one in found:
        named = alike.setdefault(replace(one, where=""), [])
        named += [one.where] if one.where not in named else []
    return tuple(replace(one, where=listed(named)) for one, named in alike.items())
