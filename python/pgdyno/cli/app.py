"""The command line's entry: commands, and the one place where an error becomes text and a code."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import Annotated

import typer

from pgdyno import __version__
from pgdyno.cli.bench import bench
from pgdyno.cli.check import check
from pgdyno.cli.console import say_error, stdout
from pgdyno.cli.load import load
from pgdyno.cli.report import report
from pgdyno.cli.run import resume, run
from pgdyno.model.errors import Interrupted, PgdynoError

app = typer.Typer(
    name="pgdyno",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        stdout.print(f"pgdyno {__version__}")
        raise typer.Exit


@app.callback()
def pgdyno(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it and exit.")
    ] = False,
) -> None:
    """A dynamometer for PostgreSQL: staged tuning, measured, with statistics.

    Start with [bold]pgdyno run plans/demo.toml[/].
    """


app.command()(run)
app.command()(resume)
app.command()(report)
app.command()(bench)
app.command()(load)
app.command()(check)


def _terminate(_number: int, _frame: FrameType | None) -> None:
    # A polite kill ends a run as Ctrl-C does: servers stopped, finished trials kept.
    raise KeyboardInterrupt


def main() -> None:
    """Run the command line; errors become `error: …`, `hint: …` and an exit code here only."""
    signal.signal(signal.SIGTERM, _terminate)
    # A script's background jobs inherit an ignored SIGINT; whoever sends one means it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        app(standalone_mode=True)
    except PgdynoError as error:
        say_error(error.fact, error.hint)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        say_error("stopped", "Nothing of it is still running.")
        sys.exit(Interrupted.exit_code)
