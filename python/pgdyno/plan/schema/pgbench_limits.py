"""What of a workload the real pgbench cannot do: refused, never left out in silence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pgdyno.model.wording import plural
from pgdyno.model.workload import Workload

BUILTIN = {"tpcb": "tpcb-like", "simple-update": "simple-update", "select-only": "select-only"}
"""pgbench's names of its own scripts, by kind."""

_REQUEST = ":request_id"


@dataclass(frozen=True, slots=True)
class Unmapped:
    """A key of the workload that pgbench has nothing for."""

    key: str
    text: str  # what is the case
    allowed: str


def unmapped(workload: Workload) -> Iterator[Unmapped]:
    """What pgbench cannot do of a workload that it is to drive; nothing for our own driver."""
    if workload.engine != "pgbench":
        return
    without = "does not go with engine pgbench"
    if workload.script is None and workload.kind not in BUILTIN:
        yield Unmapped("kind", f"{workload.kind} {without}", f"{', '.join(BUILTIN)}, script")
    yield from _numbered(workload, without)
    if workload.face != "statement":
        why = f"{workload.face} {without}, which sends one prepared statement at a time"
        yield Unmapped("face", why, "statement")
    if workload.isolation != "read committed":
        why = f"{workload.isolation} {without}, whose scripts say how they isolate"
        yield Unmapped("isolation", why, "read committed")
    if workload.terminals != workload.connections:
        why = f"{workload.terminals} over {plural(workload.connections, 'connection')} {without}"
        yield Unmapped("terminals", why, "as many as connections")
    if workload.arrivals.kind == "open" and workload.arrivals.spacing == "even":
        why = f"spacing even {without}, whose rate is a Poisson process"
        yield Unmapped("arrivals", why, "poisson")
    if workload.steps:
        yield Unmapped("steps", f"a division of the window {without}", "none")
    if workload.databases > 1:
        yield Unmapped("databases", f"{workload.databases} {without}", "1")
    if workload.requests_max is not None:
        why = f"{workload.requests_max} {without}, which is driven for a time"
        yield Unmapped("requests_max", why, "none")


def _numbered(workload: Workload, without: str) -> Iterator[Unmapped]:
    for file in workload.script.files if workload.script is not None else ():
        if _REQUEST in file.text:
            why = f"{_REQUEST} in {file.path} {without}, which gives requests no numbers"
            yield Unmapped("file", why, "engine pgdyno")
