"""The command line's entry: commands, and the one place where an error becomes text and a code."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from importlib import import_module
from types import FrameType
from typing import IO, Annotated, Any

import typer

from pgdyno.cli.completion import stay_behind_a_name
from pgdyno.cli.console import say_error, stdout
from pgdyno.cli.help import STYLE, Command, Group, argument_name
from pgdyno.model.errors import Interrupted, PgdynoError, PlanError
from pgdyno.model.scrub import scrubbed
from pgdyno.model.system_errors import SystemFailure, as_pgdyno_error, reason
from pgdyno.model.text import visible
from pgdyno.model.version import VERSION
from pgdyno.model.wording import listed, small

COMMANDS = {
    "demo": "pgdyno.cli.plans:demo",
    "plans": "pgdyno.cli.plans:plans",
    "init": "pgdyno.cli.plans:init",
    "run": "pgdyno.cli.run:run",
    "aa": "pgdyno.cli.aa:aa",
    "resume": "pgdyno.cli.run:resume",
    "report": "pgdyno.cli.report:report",
    "diagnose": "pgdyno.cli.diagnose:diagnose",
    "prove": "pgdyno.cli.prove:prove",
    "drill": "pgdyno.cli.drill:drill",
    "compare": "pgdyno.cli.compare:compare",
    "history": "pgdyno.cli.history:history",
    "next": "pgdyno.cli.next_stage:next_command",
    "climb": "pgdyno.cli.climb:climb",
    "bench": "pgdyno.cli.bench:bench",
    "load": "pgdyno.cli.load:load",
    "export": "pgdyno.cli.export:export",
    "import": "pgdyno.cli.imports:import_command",
    "check": "pgdyno.cli.check:check",
    "calibrate": "pgdyno.cli.calibrate:calibrate_command",
    "knee": "pgdyno.cli.knee:knee_command",
    "fleet": "pgdyno.cli.fleet:app",
    "storage": "pgdyno.cli.storage:storage",
    "knobs": "pgdyno.cli.knobs:knobs",
    "wal": "pgdyno.cli.wal:wal",
    "lint": "pgdyno.cli.lint:lint",
    "host": "pgdyno.cli.host:app",
    "guard": "pgdyno.cli.guard:app",
    "build": "pgdyno.cli.build:build_command",
    "builds": "pgdyno.cli.build:app",
}
"""Where each command is: module and function."""


class Commands(Group):
    """Imports a command when it is called: what reports need takes longer than a small load."""

    def make_context(self, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401
        """As typer does; what was typed is shown as it is, also where it is refused."""
        with _seen():
            return super().make_context(*arguments, **named)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401
        """As typer does; a word that is nearly a command is told which."""
        if (
            args
            and args[0] not in COMMANDS
            and (close := get_close_matches(args[0], COMMANDS, n=1))
        ):
            ctx.fail(f"No such command {args[0]!r}. Did you mean {close[0]}?")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        """The same of the command's own arguments."""
        with _seen():
            return super().invoke(ctx)

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
        one = typer.Typer(**STYLE)
        one.command(cmd_name, cls=Command)(found)
        return typer.main.get_command(one)


_OF_PYDANTIC = "Value error, "  # before what a refusal of a value says
_STOPPED = ("stopped", "Nothing of it is still running.")  # fact and hint
_WITHOUT = re.compile(r"^Option '(.+)' requires an argument\.$")
_TOO_MANY = re.compile(r"^Got unexpected extra argument\(s\) \((.*)\)$", re.DOTALL)
_ONE_MORE = "No further argument is expected"
_NO_NUMBER = {"int_parsing": "no whole number", "float_parsing": "no number"}  # kinds of pydantic's


@contextmanager
def _seen() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:  # typer would end without a word
        raise Interrupted(*_STOPPED) from None
    except Exception as error:
        if hasattr(error, "format_message"):  # a refusal of typer's
            _in_our_voice(error)
        raise


def _in_our_voice(error: Any) -> None:  # noqa: ANN401  typer hides it
    """Let a refusal of typer's be printed as all others are: the fact, then a hint."""
    shown = visible(message := error.format_message())
    error.format_message = lambda: shown
    context = getattr(error, "ctx", None)
    if context is None or message == context.get_help():  # no arguments at all: the page is meant
        return
    message = _with_its_value(_in_plain_words(error, message), error.__cause__)
    line = visible(" ".join(message.split()))  # choices stand on lines of their own
    fact = small(line).rstrip(".").replace(_OF_PYDANTIC, "")
    fact, asks, close = fact.partition(". Did you mean ")
    hint = f"Did you mean {close}" if asks else f"`{context.command_path} --help` says more."
    if fact.startswith(small(_ONE_MORE)) and (option := _takes_several(context)):
        hint = f"Commas separate several values: {option} /a,/b. {hint}"

    def show(file: IO[str] | None = None) -> None:
        typer.echo(f"{typer.style('error:', fg='red', bold=True)} {fact}", file, err=True)
        typer.echo(f"{typer.style('hint:', bold=True)} {hint}", file, err=True)

    error.show = show


def _in_plain_words(error: Any, message: str) -> str:  # noqa: ANN401  typer hides it
    """A refusal without typer's brackets; an argument has the name that the help gives it."""
    if possible := getattr(error, "possibilities", None):  # options of nearly that name
        return f"{error.message}. Did you mean {listed(tuple(possible), 'or')}?"
    one = getattr(error, "param", None)
    if one is not None and one.param_type_name == "argument":
        message = message.replace(one.get_error_hint(), f"'{argument_name(one)}'", 1)
    message = _WITHOUT.sub(r"Option \1 was given without its value", message)
    return _TOO_MANY.sub(rf"{_ONE_MORE}: \1", message)


def _with_its_value(message: str, cause: Any) -> str:  # noqa: ANN401  of typer or of pydantic
    """A refusal that says what was typed in place of a number; pydantic's names no value."""
    for one in cause.errors() if hasattr(cause, "errors") else ():
        if kind := _NO_NUMBER.get(one["type"]):
            message = message.replace(one["msg"], f"{one['input']!r} is {kind}")
    return message


def _takes_several(context: Any) -> str | None:  # noqa: ANN401  typer hides it
    """An option of paths that was given, and takes several with commas; None: there is none."""
    for one in context.command.params:
        several = getattr(one, "metavar", None) == "A,B"
        if several and context.params.get(one.name):
            return str(one.opts[0])
    return None


stay_behind_a_name()
_WORDS_MAX = 300  # of an error's text; all of it stands in the file
app = typer.Typer(
    name="pgdyno", cls=Commands, no_args_is_help=True, **{**STYLE, "add_completion": True}
)


def _version(wanted: bool) -> None:
    if wanted:
        stdout.print(f"pgdyno {VERSION}")
        raise typer.Exit


@app.callback()
def pgdyno(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """A dynamometer for PostgreSQL: staged tuning, measured, with statistics.

    Example: pgdyno demo
    """


def _terminate(_number: int, _frame: FrameType | None) -> None:
    # A polite kill ends a run as Ctrl-C does: servers stopped, finished trials kept.
    raise KeyboardInterrupt


def _require_text(arguments: list[str]) -> None:
    for one in arguments:
        try:
            one.encode()
        except UnicodeEncodeError:
            raise PlanError(
                f"argument {visible(one)} is not text in UTF-8",
                "Run files and reports could not hold it. Give it another name.",
            ) from None


def _hang_up(_number: int, _frame: FrameType | None) -> None:
    # The terminal is closed: as above, but nothing can be said there any more, and the next one of
    # these must not disturb the end. Where output goes to a file, it still does.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for number in _terminals:
        os.dup2(nowhere, number)
    os.close(nowhere)
    raise KeyboardInterrupt


_terminals = [number for number in (1, 2) if os.isatty(number)]  # a closed one tells no more


def main() -> None:
    """Run the command line; errors become `error: …`, `hint: …` and an exit code here only."""
    code = _run()
    # What was printed may still wait in a buffer, and find a full device only now.
    try:
        sys.stdout.flush()
    except OSError as error:
        code = code or _say(SystemFailure(f"standard output: {reason(error)}"))
    _leave(code)


def _run() -> int:
    """The command's exit code."""
    signal.signal(signal.SIGTERM, _terminate)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup has it
        signal.signal(signal.SIGHUP, _hang_up)
    # A script's background jobs inherit an ignored SIGINT; whoever sends one means it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        _require_text(sys.argv[1:])
        app(standalone_mode=True)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        return _say(Interrupted(*_STOPPED))
    except Exception as error:
        return _say(as_pgdyno_error(error) or _defect(error))
    return 0


def _say(error: PgdynoError) -> int:
    with suppress(OSError):  # nobody can be told on a full device; the code still tells
        say_error(error.fact, error.hint, getattr(error, "__notes__", ()))
    return error.exit_code


class Defect(PgdynoError):
    """Something that nobody foresaw: to be mended in pgdyno, not by its user."""

    exit_code = 70


def _defect(error: Exception) -> PgdynoError:
    """The error with its traceback in a file, or on standard error where `PGDYNO_DEBUG` is set.

    Its user is asked to hand that on: what may be a password in it is hidden.
    """
    words = scrubbed(" ".join(str(error).split()))
    shown = words if len(words) <= _WORDS_MAX else f"{words[:_WORDS_MAX]}..."
    fact = f"pgdyno itself failed: {type(error).__name__}: {shown}"
    lines = "".join(traceback.format_exception(error)).splitlines()
    trace = "".join(f"{scrubbed(line)}\n" for line in lines)
    if os.environ.get("PGDYNO_DEBUG"):
        with suppress(OSError):
            sys.stderr.write(trace)
        return Defect(fact, "Report it with what stands above.")
    try:
        handle, path = tempfile.mkstemp(prefix="pgdyno-defect-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
            file.write(f"pgdyno {VERSION}\n{shlex.join(map(scrubbed, sys.argv))}\n{trace}")
    except OSError:
        return Defect(fact, "PGDYNO_DEBUG=1 shows where; report it with that.")
    return Defect(fact, f"Report it with {path}, which says where; finished trials are kept.")


def _leave(code: int) -> None:
    """End; a stream that cannot be written must not have the last word at the interpreter's end."""
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            stream.flush()
        except OSError:
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    sys.exit(code)
