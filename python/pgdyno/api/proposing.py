"""What to try next: moves against a run's limit, each a plan, with what is believed beforehand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pgdyno.analysis.judged import plan_in
from pgdyno.analysis.recommended import best_stage
from pgdyno.api.planning import Plan, against_follow_up, load_follow_up
from pgdyno.api.printed import Printed
from pgdyno.api.runs import Run
from pgdyno.catalog import NEEDED_PAGES, Move
from pgdyno.diagnosis.moves import LEAST, Candidate, candidates, found_in_some
from pgdyno.host import change
from pgdyno.model.durability import rung_named
from pgdyno.model.errors import PgdynoError, PlanError
from pgdyno.model.plan import Plan as PlanRecord
from pgdyno.model.plan import Stage
from pgdyno.model.proposal import Allowed, Changed, NotTried, Proposed, Try
from pgdyno.model.settings import ServerKnob
from pgdyno.model.text import one_line
from pgdyno.model.wording import listed, small
from pgdyno.plan.estimate.needs import huge_pages_needed
from pgdyno.plan.follow_up import TriedStage, follow_up
from pgdyno.plan.resolve.machine import as_asked
from pgdyno.plan.resolve.profile import size_profile
from pgdyno.plan.settings.allowed import out_of_reach, unknown_setting
from pgdyno.plan.settings.checkpoints import shapes_cycle
from pgdyno.plan.settings.configured import Configured
from pgdyno.plan.settings.values import BadValue, canonical, default_text, number_of
from pgdyno.report.proposal import lines
from pgdyno.store.run_file import as_written

_HUGE_PAGES = "huge_pages"


@dataclass(frozen=True, slots=True)
class Proposal(Printed):
    """What to try next, the best first; see `plan` for measuring it."""

    facts: Proposed
    _record: PlanRecord = field(repr=False)
    _base: Stage = field(repr=False)
    _stages: Mapping[str, TriedStage] = field(repr=False)  # by move

    def lines(self) -> Iterator[str]:
        """What a terminal prints."""
        return lines(self.facts)

    def plan(self, *moves: str) -> Plan:
        """The plan that measures moves beside what they build on.

        Args:
            moves: Their names, none twice; none: the first one.

        Raises:
            PlanError: Nothing is proposed, or one of them is not; or together they cannot be
                carried out here.
        """
        names = [one.move for one in self.facts.tries]
        if not names:
            raise PlanError("nothing is proposed that could be measured", self.facts.sentence)
        for move in moves:
            if move not in names:
                raise PlanError(f"no move {move!r} is proposed, there are {listed(names)}")
        stages = [self._stages[move] for move in moves or names[:1]]
        lowest = self.facts.lowest_rung
        return load_follow_up(self._record, follow_up(self._record, self._base, stages, lowest))


def propose(
    run_file: str | Path,
    stage: str | None = None,
    *,
    lowest_rung: str = "D0",
    client: bool = False,
    host: bool = False,
    pinned: Sequence[str] = (),
) -> Proposal:
    """Say what to try next on a stage: moves against what limits it, the best first.

    The best is what is believed to gain most by the time that measuring it takes. A belief is a
    share of what the limit's resource could bring at most, and is written into the plan, so that a
    run shows how far off it was.

    Args:
        run_file: The file of a plan's run.
        stage: To build on; None: the best one that the rung allows, else the first.
        lowest_rung: Of durability, that a stage may stand on.
        client: Also moves that change how the client asks, e.g. in fewer round trips.
        host: Also moves that change settings of this machine while trials run; see `run`.
        pinned: Settings of the server that no move changes.

    Raises:
        StoreError: It is no run file, or cannot be read.
        PlanError: No plan was run, there is no such stage or setting, or its plan cannot be run
            here.
    """
    run, lowest = Run(run_file), rung_named(lowest_rung)
    if stage is None:
        name = best_stage(run.facts, lowest).name
    else:
        name = plan_in(run.info).named(stage).name
    return proposal(run, name, Allowed(lowest, client, host, tuple(pinned)))


def proposal(run: Run, stage: str, allowed: Allowed) -> Proposal:
    """See `propose`; of a stage that there is."""
    diagnosed = run.facts.diagnosed(stage)
    record = plan_in(run.info)
    base = record.stage(stage)
    with as_written(run.path):  # the plan's own text may be another one than its record says
        document = follow_up(record, base, (), allowed.lowest)
    known = load_follow_up(record, document)
    require_settings(allowed.pinned, known)
    tries, not_tried, stages = [], [], {}
    for one in candidates(diagnosed):
        found = _tried(one, record, base, known, allowed)
        if isinstance(found, NotTried):
            not_tried.append(found)
        else:
            tries.append(found[0])
            stages[one.move.name] = found[1]
    window = diagnosed.window
    return Proposal(
        Proposed(
            run.info.ident, stage, diagnosed.sentence, window.deciding if window else None,
            allowed.lowest,
            tuple(sorted(tries, key=lambda one: -one.gain_per_hour)), tuple(not_tried),
            found_in_some(diagnosed),
        ),
        record, base, stages,
    )  # fmt: skip


def _tried(
    one: Candidate, record: PlanRecord, base: Stage, known: Plan, allowed: Allowed
) -> tuple[Try, TriedStage] | NotTried:
    move, lowest = one.move, allowed.lowest
    try:
        why = _out_of_reach(move, base, known) or _not_allowed(move, allowed)
        changes = () if why else _changes(move, base, known)
    except PgdynoError as error:  # of the machine
        why = small(error.fact)
    if why := why or _pinned(changes, allowed) or _against(changes, known):
        return NotTried(move.name, why)
    if one.predicted.ratio < LEAST:
        return NotTried(move.name, f"it is believed to bring less than ×{LEAST:g}")
    tried = TriedStage(
        stage_of(move.name, base.name),
        move.why,
        {one.name: one.after for one in changes if one.table == "settings"},
        move.client,
        {one.name: one.after for one in changes if one.of_host},
        expects=one.predicted,
    )
    try:
        plan = load_follow_up(record, follow_up(record, base, (tried,), lowest))
    except PgdynoError as error:
        return NotTried(move.name, f"its plan cannot be carried out: {against_follow_up(error)}")
    stage = plan.stages[-1]
    if stage.rung > lowest:
        return NotTried(move.name, f"it stands on rung {stage.rung}, {lowest} is allowed")
    seconds = plan.estimate.measuring_s + plan.estimate.other_s
    found = Try(
        move.name, move.why, one.against.title, stage.rung, changes, one.predicted, seconds,
        plan.to_toml(),
    )  # fmt: skip
    return found, tried


def stage_of(move: str, base: str) -> str:
    """What the stage is called in which a move is tried on a base, perhaps on itself."""
    return move if move != base else f"{move}-again"


def _changes(move: Move, base: Stage, known: Plan) -> tuple[Changed, ...]:
    """What really differs from the stage, sized to the machine as the stage would have it."""
    before = {one.name: one.value for one in base.settings}
    machine = as_asked(known.host, {one.name: one for one in base.host})
    sized, _ = size_profile(move, {}, before, known.server, machine)
    found = _of_machine(move, base, known)
    for one in sized:
        knob = known.server.knobs[one.name]
        now = before.get(one.name) or default_text(knob) or ""
        if not _has(knob, now, one.value, move.direction):
            found.append(Changed(one.name, now, one.value))
    load = base.workload
    for key, wanted in move.client.items():
        held = getattr(load, key, None)
        if str(held) != str(wanted):
            found.append(Changed(key, str(held), str(wanted), of_client=True))
    return tuple(found)


def _has(knob: ServerKnob, now: str, wanted: str, direction: str | None) -> bool:
    """Whether a setting has a value already, or more, or less, where the move leads there."""
    try:
        if now and canonical(knob, now) == canonical(knob, wanted):
            return True
        if direction is None or not now:
            return False
        less = number_of(knob, now) < number_of(knob, wanted)
    except BadValue:
        return now == wanted
    return less is (direction == "down")


def _of_machine(move: Move, base: Stage, known: Plan) -> list[Changed]:
    """What differs of the machine.

    Raises:
        PgdynoError: The machine has no such setting, does not take the value, or not of this user.
    """
    asked = {one.name: one.value for one in base.host}
    config = Configured(known.server, {one.name: one.value for one in base.settings})
    wanted = {
        name: str(huge_pages_needed(config, known.host)) if one.value == NEEDED_PAGES else one.value
        for name, one in move.host.items()
    }
    changes = change.plan(tuple(wanted.items()))
    if not change.may_write(changes):
        raise PlanError(f"this user may not change {listed([one.key for one in changes])}")
    before = wanted | {one.key: one.before for one in changes if one.differs} | asked
    return [
        Changed(name, before[name], value, of_host=True)
        for name, value in wanted.items()
        if before[name] != value
    ]


def _out_of_reach(move: Move, base: Stage, known: Plan) -> str | None:
    """Why nothing that anybody allows has it tried on a server that runs; None: it can be.

    It is said before what was not allowed: that sends people to an option.
    """
    if known.record.target.kind != "running":
        return None
    if move.host:
        return "it changes settings of the machine of a running server, which is left as it is"
    set_there = [one.name for one in _changes(move, base, known) if one.table == "settings"]
    names = out_of_reach(set_there, known.server)
    return f"it sets {listed(names)}, which cannot be set on a running server" if names else None


def _not_allowed(move: Move, allowed: Allowed) -> str | None:
    """Why nobody wants it tried; None: it is allowed."""
    if move.rung > allowed.lowest:
        return f"it stands on rung {move.rung}, {allowed.lowest} is allowed"
    if move.client and not allowed.client:
        return "it changes the client, which was not allowed"
    if move.host and not allowed.host:
        return "it changes settings of this machine, which was not allowed"
    return None


def require_settings(pinned: Sequence[str], plan: Plan) -> None:
    """Refuse to pin what the plan's server does not have.

    Raises:
        PlanError: One is no setting of it.
    """
    for name in pinned:
        if name not in plan.server.knobs:
            raise PlanError(
                f"{one_line(name)} is to be pinned, and {unknown_setting(name, plan.server)}",
                "`pgdyno knobs` lists settings.",
            )


def _pinned(changes: tuple[Changed, ...], allowed: Allowed) -> str | None:
    """Why a move is not tried that changes what is pinned; None: it changes none of that."""
    names = [one.name for one in changes if one.name in allowed.pinned]
    if not names:
        return None
    return f"it changes {listed(names)}, which {'is' if len(names) == 1 else 'are'} pinned"


def _against(changes: tuple[Changed, ...], known: Plan) -> str | None:
    """Why a move is not tried; None: nothing speaks against it."""
    if not changes:
        return "the stage has all of it already"
    names = [one.name for one in changes]
    if _HUGE_PAGES in names and all(one.after == "off" for one in changes):
        return "the host has no free huge pages to hold the shared memory"
    cyclic = [name for name in names if shapes_cycle(name)]
    if cyclic and known.record.protocol.checkpoints == "ignore":
        return (
            f"it changes {listed(cyclic)}, which can put costs off beyond a window; let windows"
            ' follow checkpoints, e.g. with protocol.checkpoints = "cycles"'
        )
    return None
