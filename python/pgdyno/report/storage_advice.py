"""What follows from probes of storage, in sentences: to do, why, by which settings, its limits."""

from __future__ import annotations

from pgdyno.analysis.disk_facts import Advice, NotKnown
from pgdyno.analysis.storage_advice import THRESHOLDS, not_known, storage_advice
from pgdyno.analysis.storage_facts import StorageFacts
from pgdyno.model.wording import listed, small
from pgdyno.report.document import Block, Points, Section, Text

_NOTHING = (
    "Nothing follows that the probes speak for: many requests at once are not much faster than one"
    " at a time, and commits are not much slower beside other writes."
)
_NO_DISK = "No disk was measured, and nothing is advised: {} in memory."
_ABOUT = (
    "These are things to try. The probes measured devices and no server; what a server gains is"
    " told by a plan with and without it."
)
_UNSTEADY = (
    "What was measured was not steady, as the warnings say: measure again when the machine is idle"
    " before you set anything."
)


def advice_section(facts: StorageFacts) -> Section:
    """The last section of the report."""
    items, unknown = sentences(facts), doubtful(facts)
    blocks: list[Block] = [Text(" ".join(before_advice(facts)))] if items or unknown else []
    blocks += [Points(items)] if items else []
    blocks += [Points(unknown)] if unknown else []
    blocks = blocks or [Text(nothing(facts))]
    return Section("advice", "What follows", tuple(blocks))


def before_advice(facts: StorageFacts) -> tuple[str, ...]:
    """What a reader is told before advice, and before what is not known of it: all outputs."""
    about = _ABOUT if storage_advice(facts) else ""
    return tuple(part for part in (about, THRESHOLDS, caution(facts)) if part)


def nothing(facts: StorageFacts) -> str:
    """Why there is neither advice nor doubt."""
    paths = [one.path for one in facts.paths]
    if all(one.claims.in_memory for one in facts.paths):
        return _NO_DISK.format(f"{listed(paths)} {'lies' if len(paths) == 1 else 'lie'}")
    return f"{_NOTHING} {THRESHOLDS}"


def caution(facts: StorageFacts) -> str:
    """What to do first, where the figures below the advice are not steady; empty: they are."""
    return _UNSTEADY if facts.unsteady else ""


def sentences(facts: StorageFacts) -> tuple[str, ...]:
    """One for each piece of advice."""
    return tuple(sentence(one) for one in storage_advice(facts))


def doubtful(facts: StorageFacts) -> tuple[str, ...]:
    """One for each piece of advice whose figures do not tell whether it holds."""
    return tuple(doubt(one) for one in not_known(facts))


def doubt(one: NotKnown) -> str:
    """What is not known, and what would tell, in sentences."""
    told = f"{one.where}. Not known: {small(one.what)}? {one.because}"
    return f"{told} {_measured_by(one.plan)}" if one.plan else told


def sentence(one: Advice) -> str:
    """A piece of advice in sentences: what to do, why, by which settings, and its limits."""
    settings = ", ".join(f"`{name} = {value}`" for name, value in one.settings.items())
    parts = [
        f"{one.where}. {one.what}: {one.because}.",
        f"Try {settings}." if settings else "",
        one.limits,
        _measured_by(one.plan) if one.plan else "",
    ]
    return " ".join(part for part in parts if part)


def _measured_by(plan: str) -> str:
    return f"`pgdyno run {plan}` measures it."
