"""What the sessions of the load did during the windows, stages side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgdyno.analysis import words
from pgdyno.analysis.facts import Facts
from pgdyno.analysis.session_facts import REST, Blocking, SessionShare, StageSessions
from pgdyno.model.wording import listed, often, plural
from pgdyno.report.document import Block, Cell, Column, Figure, Section, Table, Text

SHOWN_MAX = 12  # rows of who blocks whom
_NOT_MET = Cell("–", "quiet")
_UNTOLD = "not known, or none of the load"
_FURTHER = {
    "event": "By wait event; what runs has none.",
    "kind": "By kind of transaction.",
    "statement": "By statement.",
    "blocker": "By what the session does that stands at the head of the queue for a lock.",
    "relation": "By the relation whose lock sessions queue for; those of other databases have no"
    " name. Of what waits for no lock, the server does not tell a relation.",
}
_PROCESSES = "Background processes that do not idle, by what they do or wait for."


_INTERVALS = (
    "Below each average stands the same as seconds of database time, of all windows of the stage,"
    " and the average's 95% interval, drawn from whole seconds."
)
_NO_INTERVALS = (
    "Below each average stands the same as seconds of database time, of all windows of the stage."
    " These have too few whole seconds for intervals."
)


def section(facts: Facts) -> Section | None:
    """Active sessions; None: they were not sampled."""
    if not facts.sessions:
        return None
    return Section("sessions", "What sessions did", tuple(_blocks(facts.sessions)))


def _blocks(stages: tuple[StageSessions, ...]) -> Iterator[Block]:
    looks = listed(
        [f"{one.stage} {often(one.ticks)} in {plural(one.seconds, 'second')}" for one in stages]
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
    if any(one.blocking for one in stages):
        yield _who_blocks_whom(stages)
    if any(one.by.get("process") for one in stages):
        yield _table(_PROCESSES, "process", stages, folded=True)


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
            *(
                _cell(each[one.name]) if one.name in each else _untold(stage, dimension, one.name)
                for stage, each in zip(stages, found, strict=True)
            ),
        )
        for one in ordered
    ]
    if dimension != "process":
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


def _cell(share: SessionShare) -> Cell:
    interval = [] if share.low is None else [f"{share.low:.2f} to {share.high:.2f}"]
    return Cell(f"{share.average:.2f}", note=" · ".join([_seconds(share.database_s), *interval]))


def _untold(stage: StageSessions, dimension: str, name: str) -> Cell:
    """Of what only other stages tell apart: what it has in this one's `others`, if anything."""
    average = stage.rest.get(dimension, {}).get(name)
    if average is None:
        return _NOT_MET
    return Cell(f"{average:.2f}", note=f"{_seconds(average * stage.seconds)} · in {REST}")


def _seconds(seconds: float) -> str:
    return f"{seconds:,.1f} s"


def _who_blocks_whom(stages: Sequence[StageSessions]) -> Table:
    found = [{_pair(one): one for one in stage.blocking} for stage in stages]
    pairs = {pair: one for each in found for pair, one in each.items()}
    most = {pair: max(each[pair].waited_s for each in found if pair in each) for pair in pairs}
    ordered = sorted(pairs, key=lambda one: -most[one])
    shown = ordered[:SHOWN_MAX]
    left = len(ordered) - len(shown)
    caption = (
        "Who blocks whom: seconds that sessions waited for a lock. Queues are looked at twice a"
        " second: shorter waits are mostly not in it. How many waited at once is the mean of the"
        " second that has most: in a row, of those behind any that did what the row says; in the"
        " last row, of those behind one process, whose turn may soon be over."
        f"{words.left_out(left, 'row')}"
    )
    heads = [Column(head, align="left") for head in ("who waits", "for", "blocked by")]
    rows = tuple(
        (*_said(pairs[pair]), *(_waited(each.get(pair)) for each in found)) for pair in shown
    )
    queue = (Cell("deepest queue behind one"), _NOT_MET, _NOT_MET, *map(_deepest, stages))
    return Table(
        caption, (*heads, *(Column(one.stage) for one in stages)), (*rows, queue), folded=True
    )


_Pair = tuple[str, ...]  # all that tells one row from another


def _pair(one: Blocking) -> _Pair:
    return (
        one.waiter_kind, one.waiter_statement, one.lock, one.mode, one.relation,
        one.blocker_kind, one.blocker_statement, one.blocker_state,
    )  # fmt: skip


def _said(one: Blocking) -> tuple[Cell, Cell, Cell]:
    """Who waits, for what, and who is in the way."""
    state = "" if one.blocker_state in ("", "active") else f"{one.blocker_state}, "
    several = len(one.blocker_does) > 1
    does = [
        _doing(name) + (f" {share:.0%}" if several else "")
        for name, share in one.blocker_does.items()
    ]
    return (
        Cell(_who(one.waiter_kind, one.waiter_statement)),
        Cell(one.relation or "no relation told", note=f"{one.lock}, {one.mode}"),
        Cell(_who(one.blocker_kind, one.blocker_statement), note=f"{state}{', '.join(does)}"),
    )


def _doing(name: str) -> str:
    known = {"": "was not met", "cpu": "runs", "cpu_wait": "wants a CPU"}
    plain = name.replace("_", " ")
    return known.get(name, plain if plain.startswith("prepared") else f"waits ({plain})")


def _who(kind: str, statement: str) -> str:
    return " · ".join(part for part in (words.kind(kind), statement) if part) or _UNTOLD


def _waited(one: Blocking | None) -> Cell:
    if one is None:
        return _NOT_MET
    each_s = one.waited_s / one.average
    interval = [] if one.low is None or one.high is None else [
        f"{one.low * each_s:,.1f} to {one.high * each_s:,.1f}"
    ]  # fmt: skip
    return Cell(_seconds(one.waited_s), note=" · ".join([*interval, f"≥ {one.deepest} at once"]))


def _deepest(stage: StageSessions) -> Cell:
    if (queue := stage.deepest) is None:  # sampled sessions knew no head yet
        return Cell("≥ 1 session") if stage.blocking else _NOT_MET
    when = f"second {queue.second:.0f} of round {queue.round}"
    return Cell(
        f"≥ {plural(queue.sessions, 'session')}", note=f"{when}; its head {_deeds(queue.head)}"
    )


def _deeds(head: Sequence[str]) -> str:
    return listed([_doing(one) for one in head if one] or ["was not met"], "or")
