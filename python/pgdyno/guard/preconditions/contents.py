"""Does everything in the primary's databases log the blocks that it changes?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgdyno.guard.facts import Seen
from pgdyno.model.guard import Finding
from pgdyno.model.wording import plural

_NAMED_MAX = 10


def _registering(seen: Seen) -> Iterator[Finding]:
    primary, contents = seen.pair.primary, seen.pair.contents
    if primary is not None:
        managers = primary.foreign_managers
        yield Finding(
            "resource-managers", not managers, ", ".join(managers) or "PostgreSQL's own",
            "PostgreSQL's own alone", "Take the extension out of shared_preload_libraries: nobody"
            " knows which blocks its WAL changes." if managers else "",
        )  # fmt: skip
    if contents is None:
        yield Finding(
            "databases-seen", False, "none yet", "all of them",
            "The primary has to answer first." if primary is None else
            "Let the guard's role connect to the primary's databases.",
        )  # fmt: skip
        return
    methods = contents.foreign_methods
    yield Finding(
        "access-methods", not methods,
        ", ".join(methods) or "PostgreSQL's own, or known to name each block in WAL",
        "those that are known to name each block in WAL",
        "Drop the extension where it is not used; what it stores could not be repaired."
        if methods else "",
    )  # fmt: skip
    yield Finding(
        "unlogged", not contents.unlogged, _some(contents.unlogged, "relation"), "none",
        "ALTER TABLE … SET LOGGED, or accept that a crash empties them, as it always does."
        if contents.unlogged else "", may_be_accepted=True,
    )  # fmt: skip
    yield Finding(
        "databases-seen", not contents.unseen,
        f"not entered: {', '.join(contents.unseen)}" if contents.unseen else "all of them",
        "all of them", "Let the guard's role connect, so that it sees what they hold; a database"
        " that allows no connections (datallowconn) has to, or to go. Those called pgdyno_ are"
        " pgdyno's fixtures, and may be dropped."
        if contents.unseen else "", may_be_accepted=True,
    )  # fmt: skip


def _tablespaces(seen: Seen) -> Iterator[Finding]:
    primary, standby = seen.pair.primary, seen.pair.standby
    if primary is None or standby is None or standby.tablespaces is None:
        return  # what the role may not see is told by rights-standby
    missing = [name for oid, name in primary.tablespaces.items() if oid not in standby.tablespaces]
    shown = _some(tuple(primary.tablespaces.values()), "tablespace")
    yield Finding(
        "tablespaces", not missing,
        f"not on the standby: {', '.join(missing)}" if missing else shown,
        "the same on the standby", "Let the standby replay their creation." if missing else "",
    )  # fmt: skip


def _some(names: Sequence[str], noun: str) -> str:
    if not names:
        return "none"
    more = f" and {len(names) - _NAMED_MAX} more" if len(names) > _NAMED_MAX else ""
    return f"{plural(len(names), noun)}: {', '.join(names[:_NAMED_MAX])}{more}"


JUDGED = (_registering, _tablespaces)
