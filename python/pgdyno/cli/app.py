"""The command line's entry: commands, and the one place where an error becomes text and a code."""

from __future__ import annotations

import signal
import sys
from importlib import import_module
from types import FrameType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from pgdyno import __version__
from pgdyno.cli.console import say_error, stdout
from pgdyno.model.errors import Interrupted, PgdynoError

COMMANDS = {
    "run": "pgdyno.cli.run:run",
    "resume": "pgdyno.cli.run:resume",
    "report": "pgdyno.cli.report:report",
    "bench": "pgdyno.cli.bench:bench",
    "load": "pgdyno.cli.load:load",
    "export": "pgdyno.cli.export:export",
    "check": "pgdyno.cli.check:check",
    "calibrate": "pgdyno.cli.calibrate:calibrate_command",
    "knee": "pgdyno.cli.knee:knee_command",
    "storage": "pgdyno.cli.storage:storage",
    "knobs": "pgdyno.cli.knobs:knobs",
    "lint": "pgdyno.cli.lint:lint",
    "host": "pgdyno.cli.host:app",
    "build": "pgdyno.cli.build:build_command",
    "builds": "pgdyno.cli.build:app",
}
"""Where each command is: module and function."""


class Commands(TyperGroup):
    """Imports a command when it is called: what reports need takes longer than a small load."""

    def list_commands(self, ctx: object) -> list[str]:
        """In the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: object, cmd_name: str) -> Any:  # noqa: ANN401  typer hides it
        """The command, if there is one of that name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, function = COMMANDS[cmd_name].partition(":")
        found = getattr(import_module(module), function)
        if isinstance(found, typer.Typer):  # several commands under one name
            return typer.main.get_command(found)
        one = typer.Typer(**_STYLE)
        one.command(cmd_name)(found)
        return typer.main.get_command(one)


_STYLE: dict[str, Any] = {
    "pretty_exceptions_enable": False,
    "add_completion": False,
    "rich_markup_mode": "rich",
    "context_settings": {"help_option_names": ["-h", "--help"]},
}
app = typer.Typer(name="pgdyno", cls=Commands, no_args_is_help=True, **_STYLE)


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
