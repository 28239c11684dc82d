"""Where the command line prints: results to standard output, everything said of them to error.

Names, paths and words of servers are printed as they are meant: nothing in them is markup or an
emoji, and no control character of theirs reaches the terminal. That is seen to here, for whatever
is printed, and nowhere else.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.status import Status
from rich.text import Text

from pgdyno.model.text import ascii_json, one_line, visible

if TYPE_CHECKING:
    from pgdyno.api import Run

# Where there is no terminal to ask, e.g. in a pipe, a line has as many columns as our files.
_PIPE_COLUMNS = 100


class Shown(Console):
    """A console on which everything is seen."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """As rich does; a plain text is a cell of a table or alike, and has one line."""
        if isinstance(renderable, str):
            renderable = Text(one_line(renderable))
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(visible(segment.text), segment.style)

    def print_json(self, json: str | None = None, **_options: Any) -> None:  # noqa: ANN401
        """JSON text, indented; what is not seen is escaped within it."""
        assert json is not None
        super().print_json(ascii_json(json), ensure_ascii=False)


def _console(stream: TextIO) -> Shown:
    width = None if stream.isatty() else _PIPE_COLUMNS
    return Shown(file=stream, highlight=False, markup=False, emoji=False, width=width)


stdout = _console(sys.stdout)
stderr = _console(sys.stderr)


def say_error(fact: str, hint: str | None, notes: Iterable[str] = ()) -> None:
    """Print a failure: the fact, what else went wrong, then the hint.

    A further line never looks like a first one. Only a terminal breaks long lines: who searches a
    log for a message finds it whole, however long the paths in it are.
    """
    whole = not stderr.is_terminal
    stderr.print(Text.assemble(("error:", "bold red"), " ", _indented(fact)), soft_wrap=whole)
    for note in notes:
        stderr.print(Text.assemble(("note:", "bold"), " ", _indented(note)), soft_wrap=whole)
    if hint:
        stderr.print(Text.assemble(("hint:", "bold"), " ", _indented(hint)), soft_wrap=whole)


def say_where(run: Run) -> None:
    """Tell where a run file and its page are."""
    page = run.path.with_suffix(".html").name
    stdout.print(f"run file: {run.path}, page: {page}", soft_wrap=True)


def say(status: Status, what: str) -> None:
    """Tell what is done now: beside the spinner of a terminal, else as a line."""
    status.update(Text(what))  # a plain one would be read as markup
    if not stderr.is_terminal:
        stderr.print(what, soft_wrap=True)


def _indented(text: str) -> str:
    return visible(text).replace("\n", "\n  ")
