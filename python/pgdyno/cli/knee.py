"""`pgdyno knee`: the highest load that keeps a latency limit."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from pgdyno import api
from pgdyno.cli import bench_options as options
from pgdyno.cli.api_defaults import defaults
from pgdyno.cli.console import say_where, stderr, stdout
from pgdyno.cli.database_option import ConninfoOption
from pgdyno.cli.live_view import LiveView
from pgdyno.cli.run_file_option import RunFileOption
from pgdyno.model.knee import Load
from pgdyno.model.text import shell_line

_ASKED, _SEARCH, _KNEE = defaults(api.Asked), defaults(api.Search.of), defaults(api.knee)
LoadOption = Annotated[
    Load,
    typer.Option(
        help="What the load is: requests a second, answered or not, or terminals that wait."
    ),
]


def knee_command(
    workload: options.WorkloadArgument,
    file: options.FileArgument = None,
    conninfo: ConninfoOption = "",
    p99_ms: Annotated[
        float, typer.Option("--p99-ms", help="The limit of the 99th percentile, ms.")
    ] = 100.0,
    by: LoadOption = _KNEE["by"],
    kind: Annotated[
        list[str] | None,
        typer.Option(help="A kind of transaction whose response times count. Default: all."),
    ] = None,
    start: Annotated[float, typer.Option(help="The first load.")] = _SEARCH["start"],
    most: Annotated[float, typer.Option(help="The highest load to try.")] = _SEARCH["most"],
    width: Annotated[
        float,
        typer.Option(help="The search ends when the bracket is this narrow, as a share."),
    ] = _SEARCH["width"],
    repeats: Annotated[int, typer.Option(help="Windows at each end of the bracket.")] = _SEARCH[
        "repeats"
    ],
    points: Annotated[int, typer.Option(help="The search ends after this many windows.")] = _SEARCH[
        "points"
    ],
    connections: options.Connections = _ASKED["connections"],
    threads: options.Threads = None,
    warmup: options.Warmup = _KNEE["windows"].warmup_s,
    seconds: options.Seconds = _KNEE["windows"].window_s,
    face: options.FaceOption = _ASKED["face"],
    isolation: options.Isolation = _ASKED["isolation"],
    even: Annotated[
        bool,
        typer.Option(
            "--even", help="Requests come at even intervals. Default: at random ones (Poisson)."
        ),
    ] = False,
    keying: options.Keying = None,
    think: options.Think = None,
    out: RunFileOption = None,
) -> None:
    """Search the highest load whose 99th percentile of response times keeps a limit.

    Each load is driven for a short window; the search doubles, then halves the bracket, then
    repeats its ends. It prints every window and writes a run file, which `pgdyno resume` resumes,
    and a page with the curve.

    Example: pgdyno knee tpcc -d 'dbname=tpcc' --p99-ms 50
    """
    asked = api.Asked(
        kind=workload, file=file, connections=connections, threads=threads, face=face,
        isolation=isolation, keying=keying, think=think, spelled=options.spelled,
    )  # fmt: skip
    asked.refuse_strangers()
    search = api.Search.of(
        p99_ms, by=by, start=start, most=most, width=width, repeats=repeats, points=points
    )
    with LiveView(stderr) as view:
        run = api.knee(
            asked, conninfo, search, by=by, kinds=kind or (), even=even,
            windows=api.Windows(warmup, seconds), out=out,
            command=shell_line(["pgdyno", *sys.argv[1:]]), on_event=view,
        )  # fmt: skip
    stdout.print(run.summary())
    say_where(run)
