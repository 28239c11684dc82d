"""The disks of a plan's clusters: taken while it is carried out, only looked at by a dry run."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from pgdyno.host.disk_lock import disks_taken, require_free
from pgdyno.model.plan import Plan
from pgdyno.target.open_target import data_folder


def plan_disks_taken(plan: Plan) -> AbstractContextManager[None]:
    """Hold them meanwhile: who compares storage has them alone, other runs are beside each other.

    Raises:
        TargetError: Another pgdyno has one of them.
    """
    if plan.target.kind == "running":
        return nullcontext()
    return disks_taken(_folders(plan), alone=_compares_storage(plan))


def require_plan_disks_free(plan: Plan) -> None:
    """Refuse as `plan_disks_taken` would now, and take nothing.

    Raises:
        TargetError: See `plan_disks_taken`.
    """
    if plan.target.kind != "running":
        require_free(_folders(plan), alone=_compares_storage(plan))


def _folders(plan: Plan) -> list[Path]:
    return [data_folder(), *map(Path, sorted(_places(plan)))]


def _compares_storage(plan: Plan) -> bool:
    return len(_places(plan)) > 1


def _places(plan: Plan) -> set[str]:
    return {stage.folder or str(data_folder()) for stage in plan.stages}
