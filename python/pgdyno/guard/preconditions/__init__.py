"""Under which conditions full pages may be off: each one judged by itself, from what was seen.

A module of this package holds the conditions of one kind, each a function of `Seen` that yields
its findings; nothing here asks a server. Who adds one names it in its module's `JUDGED`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from pgdyno.guard.facts import Seen
from pgdyno.guard.preconditions import contents, identity, local, replication, settings
from pgdyno.model.errors import PlanError
from pgdyno.model.guard import ACCEPTABLE, Finding
from pgdyno.model.wording import listed, plural


def judged(seen: Seen, accepted: Collection[str]) -> tuple[Finding, ...]:
    """All findings, in the order in which a person mends them.

    Args:
        seen: Both servers and the machine.
        accepted: Names out of `ACCEPTABLE`.
    """
    found: list[Finding] = []
    for part in (identity, settings, replication, contents, local):
        for judge in part.JUDGED:
            found += judge(seen)
    return tuple(
        replace(one, accepted=True) if not one.passed and _is_accepted(one, accepted) else one
        for one in found
    )


def _is_accepted(found: Finding, accepted: Collection[str]) -> bool:
    return found.may_be_accepted and found.name in accepted


def require_acceptable(names: Collection[str]) -> tuple[str, ...]:
    """The names, if each is one of a condition that may be accepted.

    Raises:
        PlanError: One is not.
    """
    strange = [name for name in names if name not in ACCEPTABLE]
    if strange:
        raise PlanError(
            f"{plural(len(strange), 'name')} of no condition that may be accepted:"
            f" {', '.join(strange)}",
            f"These may be: {listed(ACCEPTABLE)}.",
        )
    return tuple(dict.fromkeys(names))
