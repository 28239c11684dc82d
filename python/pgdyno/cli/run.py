"""`pgdyno run` and `pgdyno resume`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from pgdyno import api
from pgdyno.cli.console import stderr, stdout
from pgdyno.cli.live_options import LiveOption, MetricsOption, watched
from pgdyno.cli.live_view import LiveView
from pgdyno.cli.run_file_option import RunFileOption
from pgdyno.model.errors import PlanError


def _names(incomplete: str) -> list[str]:
    """What a shell may complete to, beside files."""
    names = [str(row["name"]) for row in api.plans().rows()]
    return [name for name in names if name.startswith(incomplete)]


PlanSource = Annotated[
    str,
    typer.Argument(
        metavar="PLAN",
        help="A plan file (TOML), or the name of one of `pgdyno plans`, e.g. demo.",
        autocompletion=_names,
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="A.B=C", help="Change a value of the plan; may be repeated."),
]
QuickOption = Annotated[bool, typer.Option("--quick", help="Run the plan's own short version.")]
AaOption = Annotated[
    bool, typer.Option("--aa", help="Measure the first stage twice, for the noise floor.")
]
BindirOption = Annotated[
    Path | None,
    typer.Option(
        help="Folder of an installed PostgreSQL's programs, instead of the plan's target."
    ),
]
ConninfoOption = Annotated[
    str | None,
    typer.Option(
        "--conninfo",
        "-d",
        help="A running server, as libpq names it, instead of the plan's target.",
    ),
]
EngineOption = Annotated[
    Literal["pgdyno", "pgbench"] | None,
    typer.Option(help="Who drives, instead of the plan's engine, where no stage says otherwise."),
]
HostOption = Annotated[
    bool,
    typer.Option(
        "--host",
        help="Let stages change settings of this machine, where they ask for it; each is journalled"
        " and put back when the server of the trial has stopped.",
    ),
]
FolderOption = Annotated[
    str | None,
    typer.Option(
        "--folder",
        metavar="A,B",
        help="Folders, e.g. on several disks, for each of which the plan's stages of `each_folder`"
        " are repeated.",
    ),
]


def run(
    plan: PlanSource,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List trials, settings and times; touch nothing.")
    ] = False,
    overrides: SetOption = None,
    quick: QuickOption = False,
    aa: AaOption = False,
    bindir: BindirOption = None,
    conninfo: ConninfoOption = None,
    engine: EngineOption = None,
    folder: FolderOption = None,
    host: HostOption = False,
    live: LiveOption = None,
    metrics: MetricsOption = None,
    out: RunFileOption = None,
) -> None:
    """Measure every stage of a plan, and write a run file and a report.

    Example: pgdyno run demo --set protocol.rounds=5 --dry-run
    """
    loaded = api.load_plan(
        plan, set=overrides or (), quick=quick, aa=aa, folders=_folders(folder), bindir=bindir,
        conninfo=conninfo, engine=engine,
    )  # fmt: skip
    if dry_run:
        stdout.print(loaded.preview())
        loaded.require_possible(out)
        return
    with LiveView(stderr) as view, watched(view, live, metrics) as listener:
        done = api.run(loaded, host=host, out=out, on_event=listener)
    _end(done)


def resume(
    run_file: Annotated[Path, typer.Argument(help="The run file of a stopped run.")],
    again: Annotated[
        bool,
        typer.Option(
            "--again", help="Repeat rounds, too, that failed when they were measured again."
        ),
    ] = False,
    live: LiveOption = None,
    metrics: MetricsOption = None,
) -> None:
    """Resume a run that was stopped or in which trials failed, on the machine it was begun on.

    Rounds are measured as a whole: one that was interrupted, or in which a trial failed or was
    invalid, is measured again, and what it gave before stays in the file. What fails a second time
    is not repeated unless asked for.

    Example: pgdyno resume runs/demo.sqlite
    """
    with LiveView(stderr) as view, watched(view, live, metrics) as listener:
        done = api.resume(run_file, again=again, on_event=listener)
    _end(done)


def _end(run: api.Run) -> None:
    stdout.print(run.summary())
    stdout.print(f"report   {run.path.with_suffix('.html')}", markup=False, soft_wrap=True)
    if not run.is_whole:
        raise typer.Exit(1)


def _folders(text: str | None) -> list[str]:
    """The paths of `--folder`; one that holds a comma cannot be named."""
    named = [] if text is None else [part.strip() for part in text.split(",")]
    if not all(named):
        raise PlanError(f"--folder is {text!r}", "Write paths with commas between them: /a,/b.")
    return named
