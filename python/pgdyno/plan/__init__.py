"""From a TOML file to a resolved plan: settings with their origins, and trials in order."""

from pgdyno.plan.again import rest_of
from pgdyno.plan.begun_on import require_same
from pgdyno.plan.builds import Builds, stage_builds
from pgdyno.plan.dryrun import render_dry_run
from pgdyno.plan.fixture import fixture_ident, fixture_shape
from pgdyno.plan.needs import DEFAULT_COSTS, Costs
from pgdyno.plan.read import PlanDraft, read_plan
from pgdyno.plan.resolve import resolve, resolve_target, resolve_workload

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
