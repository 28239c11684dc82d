"""What the sessions of the load did during the windows, stages side by side."""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.analysis import words
from pgdyno.analysis.facts import Facts
from pgdyno.analysis.session_facts import REST, SessionShare, StageSessions
from pgdyno.model.wording import listed, plural
from pgdyno.report.document import Block, Cell, Column, Figure, Section, Table, Text

_NOT_MET = Cell("–", "quiet")
_FURTHER = {
    "event": "By wait event; what runs has none.",
    "kind": "By kind of transaction.",
    "statement": "By statement.",
    "blocker": "Sessions in queues for locks, by what the session at the head of each does.",
    "relation": "Sessions in queues for locks, by relation; those of other databases have no name.",
    "process": "Background processes that do not idle, by what they do or wait for.",
}


_INTERVALS = "Below each average stands its 95% interval, drawn from whole seconds."
_NO_INTERVALS = "The windows have too few whole seconds for intervals."


def section(facts: Facts) -> Section | None:
    """Active sessions; None: they were not sampled."""
    if not facts.sessions:
        return None
    return Section("sessions", "What sessions did", tuple(_blocks(facts.sessions)))


def _blocks(stages: tuple[StageSessions, ...]) -> Iterator[Block]:
    looks = listed(
        [
            f"{one.stage} {plural(one.ticks, 'time')} in {plural(one.seconds, 'second')}"
            for one in stages
        ]
    )
    some = any(one.active.low is not None for one in stages)
    intervals = _INTERVALS if some else _NO_INTERVALS
    yield Text(
        "Active is a session that runs a statement or holds a transaction open. Two active sessions"
        f" on average are two seconds of database time in every second. {intervals} Sessions were"
        f" looked at: {looks}."
    )
    yield Figure("active_sessions")
    yield _table("Active sessions on average, by what they do or wait for.", "class", stages)
    for dimension, caption in _FURTHER.items():
        if any(one.by.get(dimension) for one in stages):
            yield _table(caption, dimension, stages, folded=True)


def _table(
    caption: str, dimension: str, stages: tuple[StageSessions, ...], *, folded: bool = False
) -> Table:
    found = [{one.name: one for one in stage.by.get(dimension, ())} for stage in stages]
    most: dict[str, SessionShare] = {}
    for share in (share for each in found for share in each.values()):
        if share.name not in most or most[share.name].average < share.average:
            most[share.name] = share
    ordered = sorted(most.values(), key=lambda one: (one.name == REST, -one.average))
    rows = [
        (
            Cell(_name(dimension, one.name), note=one.what or None),
            *(_cell(each.get(one.name)) for each in found),
        )
        for one in ordered
    ]
    if dimension == "class":
        rows.append((Cell("all active"), *(_cell(stage.active) for stage in stages)))
    columns = (Column(dimension, align="left"), *(Column(one.stage) for one in stages))
    return Table(caption, columns, tuple(rows), folded=folded)


def _name(dimension: str, name: str) -> str:
    match dimension:
        case "kind":
            return words.kind(name) if name != REST else name
        case "class" | "blocker":
            return name.replace("_", " ")
        case _:
            return name


def _cell(share: SessionShare | None) -> Cell:
    if share is None:
        return _NOT_MET
    interval = None if share.low is None else f"{share.low:.2f} to {share.high:.2f}"
    return Cell(f"{share.average:.2f}", note=interval)
