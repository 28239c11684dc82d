"""`pgdyno drill`: disasters rehearsed, and what survived them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from pgdyno import api
from pgdyno.cli.console import say_where, stderr, stdout
from pgdyno.cli.live_view import LiveView
from pgdyno.cli.run import BindirOption, HostOption, PlanSource, QuickOption, SetOption
from pgdyno.cli.run_file_option import RunFileOption
from pgdyno.model.drill import Recorder
from pgdyno.model.text import shell_line

_DESIGN = api.DrillDesign()
_MinutesOption = Annotated[
    float | None,
    typer.Option(
        help="Minutes for all of it, shared out over the stages, each of which has one cut at"
        " least; `pgdyno resume` makes the others in as many again. Default: as long as it takes."
    ),
]
_DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Print what would be done, and touch nothing.")
]
_RecorderOption = Annotated[
    Recorder | None,
    typer.Option(
        help="What records the disk: a file system that is mounted over it (as root, with"
        " /dev/fuse), or a library that is preloaded into the server (with a C compiler)."
        " Default: a mount, where one is possible."
    ),
]


def drill(
    plan: PlanSource,
    stage: Annotated[
        list[str] | None,
        typer.Option(help="A stage to drill; may be repeated. Default: all of the plan."),
    ] = None,
    disaster: Annotated[
        list[str] | None,
        typer.Option(
            help=f"What strikes; may be repeated: {', '.join(api.DISASTER_NAMES)}."
            f" Default: {' and '.join(_DESIGN.disasters)}."
        ),
    ] = None,
    cuts: Annotated[
        int, typer.Option(help="Times that each disaster strikes each stage.")
    ] = _DESIGN.cuts,
    load: Annotated[
        float, typer.Option(help="Seconds of load that are recorded of each stage.")
    ] = _DESIGN.load_s,
    minutes: _MinutesOption = _DESIGN.minutes,
    seed: Annotated[
        int, typer.Option(help="Decides when disasters strike, and what each disk keeps.")
    ] = _DESIGN.seed,
    shrink: Annotated[
        bool,
        typer.Option(
            "--shrink",
            help="Find the smallest loss that leaves a server damaged or dead, where one was.",
        ),
    ] = _DESIGN.shrinks,
    record: Annotated[
        float, typer.Option(help="Most that the record of a stage's load may take, in GiB.")
    ] = _DESIGN.record_max_gib,
    recorder: _RecorderOption = _DESIGN.recorder,
    beside: Annotated[
        Path | None,
        typer.Option(help="The run file of a run of this plan: what stages brought, beside it."),
    ] = None,
    overrides: SetOption = None,
    quick: QuickOption = False,
    bindir: BindirOption = None,
    host: HostOption = False,
    dry_run: _DryRunOption = False,
    out: RunFileOption = None,
) -> None:
    """Rehearse disasters against the stages of a plan, and tell what survived.

    The load of a stage is driven once, while every call to its disk is recorded. Of that record
    disks are made, each as a power cut or a crash at some instant may have left it; a server
    recovers on each, and is held against every commit that was acknowledged, and against itself.
    All of it happens on copies that are thrown away.
    It writes a run file, which `pgdyno resume` resumes, and a page.

    Example: pgdyno drill demo --cuts 20
    """
    loaded = api.load_plan(plan, set=overrides or (), quick=quick, bindir=bindir)
    design = api.DrillDesign(
        disasters=tuple(disaster or _DESIGN.disasters), cuts=cuts, load_s=load, seed=seed,
        shrinks=shrink, record_max_gib=record, recorder=recorder, minutes=minutes,
    )  # fmt: skip
    if dry_run:
        stdout.print(api.drill_preview(loaded, stage or (), design, beside=beside), markup=False)
        return
    with LiveView(stderr) as view:
        run = api.drill(
            loaded, stage or (), design=design, beside=beside, host=host, out=out,
            command=shell_line(["pgdyno", *sys.argv[1:]]), on_event=view,
        )  # fmt: skip
    stdout.print(run.summary())
    say_where(run)
