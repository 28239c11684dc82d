"""What the stages of a plan drive, in the words of the core."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pgdyno.model.description import Description, StageDescription
from pgdyno.model.errors import DriveError, PlanError
from pgdyno.model.plan import Plan, Stage
from pgdyno.model.workload import Face
from pgdyno.workload.describe import describe


def describe_stages(plan: Plan) -> dict[str, Description]:
    """What each stage drives, as the core describes it.

    Raises:
        PlanError: The core refuses a stage's workload.
    """
    found = {}
    for stage in plan.stages:
        try:
            found[stage.name] = describe(stage.workload)
        except DriveError as error:
            hint = f"{error.hint} Nothing was touched." if error.hint else "Nothing was touched."
            raise PlanError(f"{_where(plan, stage, error)}: {error.fact}", hint) from error
    return found


def _where(plan: Plan, stage: Stage, error: DriveError) -> str:
    """The stage, and its files unless the error names one."""
    files = [file.path for file in stage.workload.files]
    is_named = any(Path(file).name in error.fact for file in files)
    which = f": {', '.join(files)}" if files and not is_named else ""
    return f"{plan.source}: stage {stage.name}{which}"


def differences(
    plan: Plan, base: Description, described: Mapping[str, Description]
) -> dict[str, StageDescription]:
    """What of its description each stage has otherwise than the plan as a whole, `base`."""
    return {
        stage.name: _difference(stage.workload.face, base, described[stage.name])
        for stage in plan.stages
    }


def _difference(face: Face, base: Description, own: Description) -> StageDescription:
    return StageDescription(
        face,
        own.deviations if own.deviations != base.deviations else None,
        own.mix if own.mix != base.mix else None,
        own.conditions if own.conditions != base.conditions else None,
    )
