"""What is wrong with a plan, collected so that all of it is told at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pgdyno.model.errors import PlanError
from pgdyno.model.scrub import without_passwords
from pgdyno.model.wording import plural
from pgdyno.plan.schema.toml import toml_value

COMPLAINTS_MAX = 200
"""So many are looked for: each may need a search for what was meant."""

NO_TABLE = "must be a table, { KEY = VALUE }"
"""Of a value where one is wanted; the braces, since who never wrote one knows no such word."""

_HINT = "Nothing was touched."
_TOLD_MAX = 50


@dataclass(frozen=True, slots=True)
class Complaint:
    """One thing that is wrong."""

    where: str  # e.g. "stage tuned: max_wal_size"; empty for the plan as a whole
    text: str  # value, fact and what is allowed, in lower case, without full stop
    hint: str | None = None  # a sentence
    further: tuple[str, ...] = ()  # sentences of this one alone, where others share the hint

    def __str__(self) -> str:
        return f"{self.where}: {self.text}" if self.where else self.text


def shown(value: object) -> str:
    """A value of the plan as TOML has it, shortened, without passwords."""
    text = without_passwords(toml_value(value))
    return text if len(text) <= 60 else text[:57] + "..."


def leave_out(stage: str) -> str:
    """How a stage that this machine cannot carry out is left out, as a hint."""
    return f"`--set stage.{stage}.skip=true` leaves the stage out."


def refuse(source: str, complaints: Iterable[Complaint]) -> None:
    """Raise all complaints as one error; return if there are none.

    Raises:
        PlanError: There is at least one.
    """
    unique = list(dict.fromkeys(complaints))
    if not unique:
        return
    told = [text for one in unique for text in (one.hint, *one.further) if text]
    hint = " ".join([*dict.fromkeys(told), _HINT])
    if len(unique) == 1:
        raise PlanError(f"{source}: {unique[0]}", hint)
    lines = "".join(f"\n  {one}" for one in unique[:_TOLD_MAX])
    if len(unique) > _TOLD_MAX:
        lines += f"\n  and {len(unique) - _TOLD_MAX} more"
    raise PlanError(f"{source}: {plural(len(unique), 'error')}{lines}", hint)
