"""From a TOML file to a resolved plan: settings with their origins, and trials in order."""

from pgdyno.plan.dry_run import render_dry_run
from pgdyno.plan.estimate.needs import DEFAULT_COSTS, Costs
from pgdyno.plan.remaining import rest_of
from pgdyno.plan.resolve.builds import Builds, stage_builds
from pgdyno.plan.resolve.fixture import fixture_ident, fixture_shape
from pgdyno.plan.resolve.plan import resolve, resolve_target, resolve_workload
from pgdyno.plan.same_machine import require_same
from pgdyno.plan.schema.read import PlanDraft, read_plan

__all__ = [
    "DEFAULT_COSTS",
    "Builds",
    "Costs",
    "PlanDraft",
    "fixture_ident",
    "fixture_shape",
    "read_plan",
    "render_dry_run",
    "require_same",
    "resolve",
    "resolve_target",
    "resolve_workload",
    "rest_of",
    "stage_builds",
]
