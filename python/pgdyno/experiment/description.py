"""What the stages of a plan drive, in the words of the core."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pgdyno.drive.driver import workload_spec
from pgdyno.loader.copy import describe
from pgdyno.model.errors import DriveError, PlanError
from pgdyno.model.plan import Plan, Stage

_TOLD = ("deviations", "round_trips", "mix", "conditions")  # of a description, to be told


def describe_stages(plan: Plan) -> dict[str, dict[str, Any]]:
    """What each stage drives, as the core describes it.

    Raises:
        PlanError: The core refuses a stage's workload.
    """
    found = {}
    for stage in plan.stages:
        try:
            found[stage.name] = describe(workload_spec(stage.workload, None))
        except DriveError as error:
            hint = f"{error.hint} Nothing was touched." if error.hint else "Nothing was touched."
            raise PlanError(f"{_where(plan, stage, error)}: {error.fact}", hint) from error
    return found


def _where(plan: Plan, stage: Stage, error: DriveError) -> str:
    """The stage, and its files unless the error names one."""
    files = [file.path for file in stage.workload.files]
    told = "" if any(Path(file).name in error.fact for file in files) else ", ".join(files)
    return f"{plan.source}: stage {stage.name}{f': {told}' if told else ''}"


def differences(plan: Plan, described: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What of its description each stage has otherwise than the plan as a whole."""
    base = describe(workload_spec(plan.workload, None))
    return {
        stage.name: {"face": stage.workload.face}
        | {
            key: described[stage.name][key]
            for key in _TOLD
            if key in described[stage.name] and described[stage.name][key] != base.get(key)
        }
        for stage in plan.stages
    }
