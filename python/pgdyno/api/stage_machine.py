"""Settings of the machine that stages ask for: allowed or refused, and in force for a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from pgdyno.api.machine import journals
from pgdyno.host import change
from pgdyno.host.in_force import in_force, require_none_standing
from pgdyno.host.knob_location import knob_location
from pgdyno.model.errors import PgdynoError, PlanError
from pgdyno.model.plan import Plan, Stage
from pgdyno.model.wording import listed


@contextmanager
def machine_of(stage: Stage, among: Sequence[Stage] = ()) -> Iterator[Callable[[], None]]:
    """Meanwhile this machine has the settings that a stage asks for; see `host.in_force`.

    What is yielded refuses to go on once it has not; who keeps something before the end asks it.

    Args:
        stage: Whose trial or rehearsal it is.
        among: The stages that it is compared with. What they ask for, and it does not, has to be as
            the machine has it by itself, before and after.

    Raises:
        TargetError: They cannot be made, or what others ask for stands.
        MachineError: Not all could be put back.
    """
    own = {one.name for one in stage.host}
    others = sorted({one.name for other in among for one in other.host} - own)
    _require_by_itself(others)
    with ExitStack() as held:
        require: Callable[[], None] = _nothing_asked
        if stage.host:
            require = held.enter_context(in_force(_wishes(stage), journals()))
        yield require
    _require_by_itself(others)


def _nothing_asked() -> None:
    pass


def _require_by_itself(names: Sequence[str]) -> None:
    if names:
        require_none_standing(names, journals())


def looked_at(plan: Plan) -> Plan:
    """The plan with what this machine has now, where stages ask for something else of it.

    Raises:
        PlanError: It has no such setting, or does not take the value; naming the stage.
        TargetError: A value cannot be read.
    """
    return replace(plan, stages=tuple(_looked_at(stage) for stage in plan.stages))


def _looked_at(stage: Stage) -> Stage:
    try:
        change.plan(_wishes(stage))
        now = [replace(one, default=knob_location(one.name).read()) for one in stage.host]
    except PgdynoError as error:
        raise type(error)(f"stage {stage.name}: {error.fact}", error.hint) from error
    return replace(stage, host=tuple(now))


def require_allowed(stages: Sequence[Stage], *, allowed: bool) -> None:
    """Accept stages that leave the machine as it is, and others where that was asked for.

    Raises:
        PlanError: It was not; or this user may not change them, or a value cannot be.
        TargetError: Changes of an earlier run stand.
    """
    asking = [stage for stage in stages if stage.host]
    if not asking:
        return
    if not allowed:
        first = asking[0]
        names = listed([f"{one.name} = {one.value}" for one in first.host])
        raise PlanError(
            f"stage {first.name} changes settings of this machine: {names}",
            "Allow it with `--host` (`host=True`): each is journalled, and put back when the"
            " server of the trial has stopped. `pgdyno host restore` does it after a kill.",
        )
    for stage in asking:
        changes = change.plan(_wishes(stage))
        if not change.may_write(changes):
            raise PlanError(
                f"this user may not change {listed([one.key for one in changes])}",
                "Run it as root, or leave `host` out of the stages.",
            )
    require_none_standing([one.name for stage in asking for one in stage.host], journals())


def _wishes(stage: Stage) -> list[tuple[str, str]]:
    return [(one.name, one.value) for one in stage.host]
