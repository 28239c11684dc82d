"""`pgdyno calibrate`: the ceiling of this machine."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Annotated

import typer

from pgdyno import api
from pgdyno.cli.api_defaults import defaults
from pgdyno.cli.console import say_where, stderr, stdout
from pgdyno.cli.live_view import LiveView
from pgdyno.cli.run_file_option import RunFileOption
from pgdyno.model.text import shell_line
from pgdyno.model.workload import WorkloadKind

_DEFAULTS = defaults(api.calibrate)


def calibrate_command(
    workload: Annotated[
        WorkloadKind, typer.Argument(help="The workload whose statements are sent.")
    ] = _DEFAULTS["workload"],
    face: Annotated[
        list[str] | None,
        typer.Option(help="A face; may be repeated. Default: all of the workload's."),
    ] = None,
    connections: Annotated[
        int, typer.Option("--connections", "-c", help="Connections of the driver.")
    ] = _DEFAULTS["connections"],
    threads: Annotated[
        int | None, typer.Option(help="Threads of the driver. Default: half of the CPUs.")
    ] = None,
    seconds: Annotated[
        float, typer.Option("--seconds", "-T", help="Length of each window in seconds.")
    ] = _DEFAULTS["seconds"],
    rounds: Annotated[int, typer.Option(help="Windows for each face.")] = _DEFAULTS["rounds"],
    keep: Annotated[bool, typer.Option(help="Store the result for later reports.")] = _DEFAULTS[
        "keep"
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    out: RunFileOption = None,
) -> None:
    """Measure what the driver reaches on this machine against a server that does nothing.

    The result is kept in PGDYNO_HOME/calibration.json; reports then say how near to its ceiling
    the client was. Let nothing else run meanwhile.

    Example: pgdyno calibrate tpcc --connections 16
    """
    with LiveView(stderr) as view:
        run = api.calibrate(
            workload, faces=face or (), connections=connections, threads=threads, seconds=seconds,
            rounds=rounds, keep=keep, out=out, command=shell_line(["pgdyno", *sys.argv[1:]]),
            on_event=view,
        )  # fmt: skip
    if as_json:
        stdout.print_json(json.dumps([asdict(ceiling) for ceiling in run.ceilings]))
        return
    stdout.print(run.summary())
    say_where(run)
    if keep:
        stdout.print(f"kept in {api.calibration_file()}", soft_wrap=True)
