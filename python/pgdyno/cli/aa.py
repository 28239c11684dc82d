"""`pgdyno aa`: a stage against itself."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from pgdyno import api
from pgdyno.cli.console import say_where, stderr, stdout
from pgdyno.cli.live_options import LiveOption, MetricsOption, watched
from pgdyno.cli.live_view import LiveView
from pgdyno.cli.run import PlanSource, QuickOption, SetOption
from pgdyno.cli.run_file_option import RunFileOption
from pgdyno.model.text import shell_line


def aa(
    plan: PlanSource,
    stage: Annotated[str | None, typer.Option(help="The stage. Default: the plan's first.")] = None,
    rounds: Annotated[
        int, typer.Option(help="Rounds; the stage runs twice in each.")
    ] = api.AA_ROUNDS,
    overrides: SetOption = None,
    quick: QuickOption = False,
    live: LiveOption = None,
    metrics: MetricsOption = None,
    out: RunFileOption = None,
) -> None:
    """Measure a stage of a plan against itself: what differs is noise.

    Prints how far apart two equal servers lie on this machine, and how many rounds a plan needs to
    see differences of 1, 3, 5 and 10%. Run it before you trust a small difference.

    Example: pgdyno aa tuning --stage tuned
    """
    loaded = api.load_plan(plan, set=overrides or (), quick=quick)
    command = shell_line(["pgdyno", *sys.argv[1:]])
    with LiveView(stderr) as view, watched(view, live, metrics) as listener:
        run = api.aa(
            loaded, stage=stage, rounds=rounds, out=out, command=command, on_event=listener
        )
    stdout.print(run.summary())
    say_where(run)
    if not run.is_whole:
        raise typer.Exit(1)
