"""`pgdyno next`: what to try next against a stage's limit."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.text import Text

from pgdyno import api
from pgdyno.cli.api_defaults import defaults
from pgdyno.cli.console import say_where, stderr, stdout
from pgdyno.cli.live_view import LiveView
from pgdyno.cli.run_file_option import RunFileOption

_DEFAULTS = defaults(api.propose)
RungOption = Annotated[
    Literal["D0", "D1", "D2", "D3", "D4", "D5", "D6"],
    typer.Option(help="The lowest rung of durability that is allowed."),
]
PinOption = Annotated[
    list[str] | None,
    typer.Option(
        "--pin",
        metavar="NAME",
        help="A setting of the server that no stage changes; may be repeated.",
    ),
]


def next_command(
    run_file: Annotated[Path, typer.Argument(help="The run file of a plan.")],
    stage: Annotated[
        str | None,
        typer.Option(help="A stage to build on. Default: the best that the rung allows."),
    ] = None,
    rung: RungOption = _DEFAULTS["lowest_rung"],
    client: Annotated[
        bool, typer.Option("--client", help="Also propose what changes how the client asks.")
    ] = False,
    host: Annotated[
        bool,
        typer.Option(
            "--host",
            help="Also propose settings of this machine; each is journalled, and put back after"
            " each trial.",
        ),
    ] = False,
    pin: PinOption = None,
    measure: Annotated[
        bool, typer.Option("--run", help="Measure the first of them, beside what it builds on.")
    ] = False,
    move: Annotated[
        str | None, typer.Option(help="Measure or print this one instead of the first.")
    ] = None,
    out: RunFileOption = None,
    format_: Annotated[
        Literal["text", "json", "plan"],
        typer.Option("--format", "-f", help="text, json, or the plan that measures it."),
    ] = "text",
) -> None:
    """Say what to try next on a stage: moves against what limits it, the best first.

    The best is what is believed to gain most by the time that measuring it takes. The belief is
    written into the plan before it is measured, so that a run shows how far off it was.

    Example: pgdyno next runs/demo.sqlite --run
    """
    found = api.propose(run_file, stage, lowest_rung=rung, client=client, host=host,
                        pinned=pin or ())  # fmt: skip
    chosen = () if move is None else (move,)
    if format_ == "plan":
        sys.stdout.write(found.plan(*chosen).to_toml())
        return
    if format_ == "json":
        sys.stdout.write(found.json())
    else:
        for line in found.lines():
            stdout.print(Text(line))
    if measure:
        with LiveView(stderr) as view:
            run = api.run(found.plan(*chosen), host=host, out=out, on_event=view)
        stdout.print(run.summary())
        for one in run.facts.stages:
            if one.predicted:
                stdout.print(Text(one.predicted))
        say_where(run)
