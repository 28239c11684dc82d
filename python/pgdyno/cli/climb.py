"""`pgdyno climb`: from a plan's first stage, move by move, until nothing that is allowed helps."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from pgdyno import api
from pgdyno.cli.api_defaults import defaults
from pgdyno.cli.console import say_where, stderr, stdout
from pgdyno.cli.live_view import LiveView
from pgdyno.cli.next_stage import PinOption, RungOption
from pgdyno.cli.run import BindirOption, PlanSource, QuickOption, SetOption
from pgdyno.cli.run_file_option import RunFileOption
from pgdyno.model.climb import AT_ONCE_MAX
from pgdyno.model.settings import Rung
from pgdyno.model.text import shell_line

_LIMITS = api.ClimbLimits()
_LOWEST = defaults(api.ClimbLimits)["lowest"].value


def climb(
    plan: PlanSource,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print what may be tried and how long; touch nothing."),
    ] = False,
    rung: RungOption = _LOWEST,
    client: Annotated[
        bool, typer.Option("--client", help="Also try what changes how the client asks.")
    ] = _LIMITS.client,
    host: Annotated[
        bool,
        typer.Option(
            "--host",
            help="Also try settings of this machine; each is journalled, and put back after each"
            " trial.",
        ),
    ] = _LIMITS.host,
    minutes: Annotated[
        float,
        typer.Option(help="Minutes for the steps; the rounds that judge the end come after them."),
    ] = _LIMITS.minutes,
    at_once: Annotated[
        int,
        typer.Option(
            help=f"Moves that are tried beside each other in a step, {AT_ONCE_MAX} at most."
        ),
    ] = _LIMITS.at_once,
    pin: PinOption = None,
    overrides: SetOption = None,
    quick: QuickOption = False,
    bindir: BindirOption = None,
    out: RunFileOption = None,
) -> None:
    """Tune a plan's first stage: try what is against its limit, keep what helps, go on.

    At the end the moves that are not missed are left out, and what is left is measured on fresh
    rounds beside where it began, `tuned` and pgtune's rules. It writes a run file, which `pgdyno
    resume` resumes, a page, and a folder with the runs of its steps.

    Example: pgdyno climb tuning --minutes 60
    """
    loaded = api.load_plan(plan, set=overrides or (), quick=quick, bindir=bindir)
    limits = api.ClimbLimits(lowest=Rung(rung), client=client, host=host, minutes=minutes,
                              at_once=at_once, pinned=tuple(pin or ()))  # fmt: skip
    if dry_run:
        stdout.print(api.climb_preview(loaded, limits, out=out), markup=False)
        stdout.print("Nothing was touched.")
        return
    with LiveView(stderr) as view:
        run = api.climb(
            loaded, limits=limits, out=out, command=shell_line(["pgdyno", *sys.argv[1:]]),
            on_event=view,
        )  # fmt: skip
    stdout.print(run.summary())
    say_where(run)
