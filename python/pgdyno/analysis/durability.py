"""What a stage may lose: what its trials read back, beside what was known when it was planned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.analysis.facts import LossFacts
from pgdyno.model.durability import NOT_KNOWN, Durability, together
from pgdyno.model.plan import Stage
from pgdyno.model.run import TrialRecord

_NOTHING_FOUND = "nothing gives up durability"


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a stage stands on the ladder."""

    rung: str  # "D0" to "D6", or NOT_KNOWN
    reason: str
    planned: str
    losses: tuple[LossFacts, ...]
    not_known: tuple[str, ...]
    read_back: bool


def standing(stage: Stage, trials: Sequence[TrialRecord]) -> Standing:
    """What was found in any trial of a stage; the plan's word where none was read back.

    Args:
        stage: Of the plan.
        trials: Of any stage, in whatever state: what may be lost does not depend on the numbers.
    """
    read = [
        trial.result.durability
        for trial in trials
        if trial.stage == stage.name and trial.result and trial.result.durability is not None
    ]
    if not read:
        planned = stage.durability or Durability()
        rung = stage.rung_known
        return Standing(
            rung, stage.rung_reason, rung, _losses(planned), planned.not_known, read_back=False
        )
    found = together(*read)
    rung = found.rung.value if found.rung is not None else NOT_KNOWN
    return Standing(
        rung, _reason(found), stage.rung.value, _losses(found), found.not_known, read_back=True
    )


def _losses(found: Durability) -> tuple[LossFacts, ...]:
    return tuple(
        LossFacts(one.rung.value, one.what, one.loses, one.layer, one.source)
        for one in found.losses
    )


def _reason(found: Durability) -> str:
    """What puts a stage on its rung, each with its layer where that is not the server."""
    lines = [
        one.said if one.layer == "server" else f"{one.said} ({one.layer})" for one in found.reasons
    ]
    lines += [f"not known: {text}" for text in found.not_known]
    return ", ".join(dict.fromkeys(lines)) or _NOTHING_FOUND
