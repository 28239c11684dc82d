"""The plans of a climb: its begin, what was reached, and what that is held beside at the end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pgdyno.api.planning import Plan, against_follow_up, load_follow_up
from pgdyno.model.climb import ClimbAsked, Tried
from pgdyno.model.durability import LADDER
from pgdyno.model.errors import PgdynoError, PlanError
from pgdyno.model.proposal import Changed, NotTried
from pgdyno.model.units import seconds_text
from pgdyno.model.wording import listed, plural, small
from pgdyno.plan.dry_run_trials import in_all_text
from pgdyno.plan.follow_up import ROUNDS, TriedStage, follow_up
from pgdyno.plan.schema.toml_text import toml_text
from pgdyno.plan.settings.values import default_text

START_ROUNDS = 3
_RIVALS = ("tuned", "pgtune")
"""Profiles that people would take instead, measured beside the best stage at the end."""


def start_plan(asked: ClimbAsked) -> Plan:
    """The first stage alone, in as many rounds as a diagnosis wants."""
    document = follow_up(asked.plan, asked.plan.stages[0], (), asked.limits.lowest)
    document["protocol"]["rounds"] = START_ROUNDS
    return load_follow_up(asked.plan, document)


def require_time(asked: ClimbAsked) -> None:
    """Refuse minutes in which not even one move can be measured beside its base.

    Raises:
        PlanError: They are too few.
    """
    needed = 2 * ROUNDS * start_plan(asked).estimate.measuring_s / START_ROUNDS
    if needed > asked.limits.minutes * 60:
        raise PlanError(
            f"a step of one move may take {seconds_text(needed)}, and"
            f" {seconds_text(asked.limits.minutes * 60)} are allowed for all of them",
            "Allow more minutes, or let windows be shorter.",
        )


def foretold(asked: ClimbAsked) -> str:
    """What a climb does, and how long each part of it may take, in lines."""
    record, limits = asked.plan, asked.limits
    first = record.stages[0]
    begin, (end, left_out) = start_plan(asked), last_plan(asked, [climbed([])])
    lowest = max(limits.lowest, first.rung)
    parts = [
        ("begin", f"{plural(START_ROUNDS, 'round')} of {first.name} alone: {_takes(begin)}"),
        ("steps", f"{limits.minutes:g} min at most (--minutes); each tries up to"
                  f" {plural(limits.at_once, 'move')} beside the best stage so far (--at-once)"),
        ("allowed", f"settings down to rung {lowest} (--rung): {LADDER[lowest.value]}"),
        ("", f"how the client asks {'may change' if limits.client else 'stays (--client)'};"
             f" settings of this machine {'may change' if limits.host else 'stay (--host)'}"),
        *[("pinned", listed(limits.pinned))] * bool(limits.pinned),
        ("then", "where more than one move is kept, a run without each of them"),
        ("end", f"{plural(ROUNDS, 'round')} of {listed(_beside(end))}: {_takes(end)}"),
        *(("left out", f"{one.move}: {one.why}") for one in left_out),
    ]  # fmt: skip
    lines = [f"A climb from stage {first.name} of plan {record.name}: {first.why}"]
    lines += [f"  {name:<9} {what}" for name, what in parts]
    return "\n".join(lines)


def _beside(end: Plan) -> list[str]:
    first, _, *rivals = [one.name for one in end.stages]
    return [first, "what was reached", *rivals]


def _takes(plan: Plan) -> str:
    return in_all_text(plan.record, plan.server, plan.host, plan.builds)


def without(one: Tried) -> TriedStage:
    """The stage without a move: as things were before it."""
    before = ((change, change.before) for change in one.changes if change.before)
    why = f"Whether {one.move} is still missed."
    return _stage(f"without-{one.move}", why, before)


def climbed(kept: Sequence[Tried]) -> TriedStage:
    """The stage with all that is left of what helped, and nothing else."""
    after = ((change, change.after) for one in kept for change in one.changes)
    why = f"What the climb reached: {listed([one.move for one in kept]) or 'nothing'}."
    return _stage("climbed", why, after)


def _stage(name: str, why: str, values: Iterable[tuple[Changed, str]]) -> TriedStage:
    """A stage that gives these values to what was changed."""
    keys: dict[str, dict[str, str]] = {"settings": {}, "client": {}, "host": {}}
    for change, value in values:
        keys[change.table][change.name] = value
    return TriedStage(name, why, keys["settings"], keys["client"], keys["host"])


def plan_file(asked: ClimbAsked, reached: Sequence[TriedStage]) -> str:
    """A plan of the first stage and that one alone, to be run again by itself."""
    record, lowest = asked.plan, asked.limits.lowest
    document = follow_up(record, record.stages[0], reached, lowest)
    return toml_text({**document, "name": f"{record.name}-climbed"})


def last_plan(asked: ClimbAsked, reached: list[TriedStage]) -> tuple[Plan, list[NotTried]]:
    """First stage, what was reached if anything, and the profiles that can be carried out here."""
    record, lowest = asked.plan, asked.limits.lowest
    stages, client = list(reached), reached[0].client if reached else {}

    def plan() -> Plan:
        document = follow_up(record, record.stages[0], stages, lowest)
        # What is decided beside the first stage would be measured no further beside the others.
        document["protocol"] |= {"stop": "rounds", "rounds": ROUNDS}
        return load_follow_up(record, document)

    left_out, found = [], plan()
    pinned = _pinned(asked, found)
    for name in _RIVALS:
        why = f"What people would take: profile {name}."
        stages.append(TriedStage(name, why, pinned, client, profile=name))
        try:
            found = plan()
        except PgdynoError as error:
            stages.pop()
            left_out.append(NotTried(name, small(against_follow_up(error))))
    return found, left_out


def _pinned(asked: ClimbAsked, known: Plan) -> dict[str, str]:
    """What the first stage has of the settings that no stage changes."""
    first = asked.plan.stages[0]
    held = {one.name: one.value for one in first.settings}
    names = asked.limits.pinned
    values = {name: held.get(name) or default_text(known.server.knobs[name]) for name in names}
    return {name: value for name, value in values.items() if value}
