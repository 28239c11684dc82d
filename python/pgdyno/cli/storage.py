"""`pgdyno storage`: what storage can do, what it claims, and what follows for commits."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ByteSize, TypeAdapter, ValidationError
from rich.console import Console

from pgdyno import api
from pgdyno.cli.console import say_where, stderr, stdout
from pgdyno.cli.live_view import LiveView
from pgdyno.cli.run_file_option import RunFileOption
from pgdyno.model.errors import PlanError
from pgdyno.model.floor import QUICK, QUICK_ROUNDS, ROUNDS, ROUNDS_MAX, ROUNDS_MIN, USUAL, Wish
from pgdyno.model.text import shell_line
from pgdyno.model.units import bytes_text

_SIZE, _SECONDS = bytes_text(USUAL.size_bytes), USUAL.seconds
_DEPTHS, _JOBS = (",".join(map(str, numbers)) for numbers in (USUAL.depths, USUAL.jobs))

RoundsOption = Annotated[
    int | None,
    typer.Option(
        help="Rounds in which flushes and commits are probed on every path in turn,"
        f" {ROUNDS_MIN} to {ROUNDS_MAX}. Default: {ROUNDS}, with --quick {QUICK_ROUNDS}.",
    ),
]
SecondsOption = Annotated[
    int | None,
    typer.Option(
        "--seconds",
        "-T",
        help=f"Seconds of each window. Default: {_SECONDS}, with --quick {QUICK.seconds}.",
    ),
]

TransactionOption = Annotated[
    int | None,
    typer.Option(
        help="CPU time that one of your transactions takes, in µs; the report then adds the"
        " commits a second that flushes and CPUs allow together.",
    ),
]


def storage(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Folders to measure in.")],
    size: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Size of the file on each path, with its unit."
            f" Default: {_SIZE}, with --quick {bytes_text(QUICK.size_bytes)}.",
        ),
    ] = None,
    seconds: SecondsOption = None,
    depths: Annotated[
        str | None,
        typer.Option(metavar="N,N", help=f"Requests that a job has under way. Default: {_DEPTHS}."),
    ] = None,
    jobs: Annotated[
        str | None,
        typer.Option(
            metavar="N,N",
            help="Jobs that run at once, each with its requests."
            f" Default: {_JOBS}, with --quick {','.join(map(str, QUICK.jobs))}.",
        ),
    ] = None,
    rounds: RoundsOption = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Take a first look: short windows, a small grid.")
    ] = False,
    transaction_us: TransactionOption = None,
    bindir: Annotated[
        Path | None,
        typer.Option(help="Folder of PostgreSQL's programs. Default: the embedded ones."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what it takes, and measure nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    out: RunFileOption = None,
) -> None:
    """Measure storage with pg_test_fsync, pg_test_timing and fio, several paths side by side.

    Files are made in a folder of our own below each path, and always removed. It reads and writes
    as fast as the storage can, which slows whoever shares it: do not run it beside a server that
    matters.

    Example: pgdyno storage /var/lib/postgresql /mnt/data --quick
    """
    wish = Wish.of(
        *paths, quick=quick, size_bytes=_bytes("--size", size), seconds=seconds,
        depths=_numbers("--depths", depths), jobs=_numbers("--jobs", jobs), rounds=rounds,
        transaction_us=transaction_us,
    )  # fmt: skip
    if dry_run and as_json:
        raise PlanError(
            "--dry-run measures nothing, and --json prints what was measured", "Leave out one."
        )
    _announce(wish, bindir, stdout if dry_run else stderr)
    if dry_run:
        stdout.print("Nothing was touched.")
        api.require_storage_free(wish, out)
        return
    with LiveView(stderr) as view:
        run = api.storage(
            wish, bindir=bindir, out=out, command=shell_line(["pgdyno", *sys.argv[1:]]),
            on_event=view,
        )  # fmt: skip
    if as_json:
        sys.stdout.write(run.report("json"))
        return
    stdout.print(run.summary())
    say_where(run)


def _bytes(option: str, text: str | None) -> int | None:
    try:
        return None if text is None else int(TypeAdapter(ByteSize).validate_python(text))
    except ValidationError as error:
        raise PlanError(
            f"{option} is {text!r}", "Write a size with its unit, e.g. 4GiB."
        ) from error


def _numbers(option: str, text: str | None) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")] if text is not None else []
    if not all(part.isdecimal() for part in parts):
        raise PlanError(f"{option} is {text!r}", "Write whole numbers, e.g. 1,4,16.")
    return tuple(map(int, parts))


def _announce(wish: Wish, bindir: Path | None, console: Console) -> None:
    needed = api.storage_cost(wish, bindir)
    console.print(needed.sentence, soft_wrap=True)
    for path, free_bytes in needed.free_bytes.items():
        said = f"{path} has {bytes_text(free_bytes)} free, {needed.places[path]}"
        console.print(said, soft_wrap=True, markup=False)
    for sentence in needed.shared:
        console.print(f"{sentence}.", soft_wrap=True, markup=False)
