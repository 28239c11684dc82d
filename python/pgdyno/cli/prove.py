"""`pgdyno prove`: what limits a stage, by what happens without it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from pgdyno import api
from pgdyno.cli.console import say_where, stderr, stdout
from pgdyno.cli.live_view import LiveView
from pgdyno.cli.run import HostOption
from pgdyno.cli.run_file_option import RunFileOption
from pgdyno.model.text import shell_line

_DESIGN = api.Design()


def prove(
    run_file: Annotated[Path, typer.Argument(help="The run file of a plan.")],
    stage: Annotated[str | None, typer.Option(help="One of its stages. Default: the last.")] = None,
    probe: Annotated[
        list[str] | None,
        typer.Option(
            help=f"A probe to make; may be repeated: {', '.join(api.PROBE_NAMES)}. Default: all"
            " that can be made here."
        ),
    ] = None,
    block: Annotated[
        int, typer.Option(help="Seconds of load with a probe on, or off.")
    ] = _DESIGN.block_s,
    pairs: Annotated[
        int, typer.Option(help="Pairs of blocks of each probe in a sitting.")
    ] = _DESIGN.pairs,
    sittings: Annotated[
        int, typer.Option(help="Times that all begins anew, on a fresh copy of the data.")
    ] = _DESIGN.sittings,
    seed: Annotated[
        int, typer.Option(help="Decides the order of probes and blocks.")
    ] = _DESIGN.seed,
    prices: Annotated[
        bool,
        typer.Option(
            "--prices",
            help="Also make all combinations of what is free, for what each is worth among them.",
        ),
    ] = _DESIGN.prices,
    host: HostOption = False,
    out: RunFileOption = None,
) -> None:
    """Prove what limits a stage: make resources dearer, or free, and measure what that does.

    Probes are switched on and off while the load of the stage runs: flushes take longer or are left
    out, CPU time is taken away, page images are not written. What that loses is lost on a copy of
    the loaded data, which is thrown away; a server that is not pgdyno's own is never touched.
    It writes a run file, which `pgdyno resume` resumes, and a page.

    Example: pgdyno prove runs/demo.sqlite --stage tuned
    """
    design = api.Design(block_s=block, pairs=pairs, sittings=sittings, seed=seed, prices=prices)
    with LiveView(stderr) as view:
        run = api.prove(
            run_file, stage, probes=probe or (), design=design, host=host, out=out,
            command=shell_line(["pgdyno", *sys.argv[1:]]), on_event=view,
        )  # fmt: skip
    stdout.print(run.summary())
    say_where(run)
