"""Where the command line prints: results to standard output, everything said of them to error."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TextIO

from rich.console import Console

# Where there is no terminal to ask, e.g. in a pipe, a line has as many columns as our files.
_PIPE_COLUMNS = 100


def _console(stream: TextIO) -> Console:
    return Console(file=stream, highlight=False, width=None if stream.isatty() else _PIPE_COLUMNS)


stdout = _console(sys.stdout)
stderr = _console(sys.stderr)


def say_error(fact: str, hint: str | None, notes: Iterable[str] = ()) -> None:
    """Print a failure: the fact, what else went wrong, then the hint."""
    stderr.print(f"[bold red]error:[/] {_plain(fact)}")
    for note in notes:
        stderr.print(f"[bold]note:[/] {_plain(note)}")
    if hint:
        stderr.print(f"[bold]hint:[/] {_plain(hint)}")


def _plain(text: str) -> str:
    return text.replace("[", "\\[")
