"""Where the command line prints: results to standard output, everything said of them to error.

Names, paths and words of servers are printed as they are meant: nothing in them is markup or an
emoji, and no control character of theirs reaches the terminal. That is seen to here, for whatever
is printed, and nowhere else.

A terminal breaks long lines at its width. Where there is none, as in a pipe or a log, `COLUMNS`
says where; without it only tables have a width, and a sentence is one line, which grep finds.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.padding import Padding
from rich.protocol import is_renderable, rich_cast
from rich.segment import Segment
from rich.status import Status
from rich.table import Table
from rich.text import Text

from pgdyno.model.text import ascii_json, further_in, one_line, visible

if TYPE_CHECKING:
    from pgdyno.api import Run

_COMMAND = " " * 4  # begins a line of an error that is there to be copied
# Where there is no terminal to ask, a table has as many columns as our files.
_PIPE_COLUMNS = 100


class Shown(Console):
    """A console on which everything is seen."""

    keeps_lines = False
    """Whether no line of a text is broken, however long it is."""

    def print(self, *objects: Any, **options: Any) -> None:  # noqa: ANN401  as rich has it
        """As rich does; where no line is to be broken, only what is no text has a width.

        A record is printed as its text, where rich would print its fields. What must not be broken,
        as a command, is longer than the terminal is wide, and never cut at its edge.
        """
        options.setdefault("crop", False)
        objects = tuple(one if is_renderable(one) else str(one) for one in objects)
        if not self.keeps_lines or "soft_wrap" in options or len(objects) != 1:
            super().print(*objects, **options)
            return
        for piece in _pieces(objects[0]):
            super().print(piece, **options, soft_wrap=isinstance(piece, str | Text))

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """As rich does; a plain text is a cell of a table or alike, and has one line.

        A word that is too long for its column goes on below, instead of being cut.
        """
        if isinstance(renderable, str):
            renderable = Text(one_line(renderable))
        renderable = _further_in(renderable, options or self.options)
        if isinstance(renderable, Table):
            for column in renderable.columns:
                if column.overflow == "ellipsis" and not column.no_wrap:
                    column.overflow = "fold"
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(visible(segment.text), segment.style)

    def print_json(self, json: str | None = None, **_options: Any) -> None:  # noqa: ANN401
        """JSON text, indented; what is not seen is escaped within it."""
        assert json is not None
        super().print_json(ascii_json(json), ensure_ascii=False)


def _pieces(printed: Any) -> Iterable[Any]:  # noqa: ANN401  whatever rich can print
    """What is printed one below the other, texts apart from tables."""
    match rich_cast(printed):
        case Group() as group:
            for one in group.renderables:
                yield from _pieces(Text(one_line(one)) if isinstance(one, str) else one)
        case Padding(renderable=Text() as text) as padding:
            yield _moved(text, padding.left)
        case piece:
            yield piece


def _further_in(text: RenderableType, options: ConsoleOptions) -> RenderableType:
    """What is printed; of a text that a terminal breaks, indented lines go on further in.

    Else the rest of one begins where headings do, and is read as one.
    """
    if not isinstance(text, Text) or text.no_wrap or options.no_wrap or text.spans:
        return text
    broken = text.copy()
    broken.plain = further_in(text.plain, options.max_width)
    return broken


def _moved(text: Text, columns: int) -> Text:
    lines = text.split(allow_blank=True)
    for line in lines:
        line.pad_left(columns)
    return Text("\n").join(lines)


def _console(stream: TextIO) -> Shown:
    # Rich takes whatever Unicode calls a digit for a number, and fails at the likes of `²`.
    sizes = {name: os.environ.get(name, "") for name in ("COLUMNS", "LINES")}
    unread = [name for name, asked in sizes.items() if not (asked.isascii() and asked.isdecimal())]
    columns = 0 if "COLUMNS" in unread else int(sizes["COLUMNS"])
    width = columns or (None if stream.isatty() else _PIPE_COLUMNS)
    environment = {name: value for name, value in os.environ.items() if name not in unread}
    console = Shown(
        file=stream, highlight=False, markup=False, emoji=False, width=width,
        _environ=environment,
    )  # fmt: skip
    console.keeps_lines = not stream.isatty() and not columns
    return console


stdout = _console(sys.stdout)
stderr = _console(sys.stderr)


def say_error(fact: str, hint: str | None, notes: Iterable[str] = ()) -> None:
    """Print a failure: the fact, what else went wrong, then the hint.

    A further line never looks like a first one, also where the terminal breaks it.
    """
    _say("error:", "bold red", fact)
    for note in notes:
        _say("note:", "bold", note)
    if hint:
        _say("hint:", "bold", hint)


def _say(what: str, style: str, text: str) -> None:
    # libpq indents what it says of an address by a tab.
    first, *further = visible(text.replace("\t", "  ")).split("\n")
    if stderr.keeps_lines:
        stderr.print(Text("\n  ".join((f"{what} {first}", *further))))
        return
    lines = Table.grid(padding=(0, 1, 0, 0))
    lines.add_row(Text(what, style), Text(first, overflow="fold"))
    stderr.print(lines)
    for one in further:
        if one.startswith(_COMMAND):
            stderr.print(Text(f"  {one}"), soft_wrap=True)
            continue
        entry = Table.grid(padding=(0, 1, 0, 0))
        # Told apart by more than where they begin, which a break hides.
        entry.add_row(Text("  -"), Text(one.strip(), overflow="fold"))
        stderr.print(entry)


def say_where(run: Run) -> None:
    """Tell where a run file and its page are."""
    stdout.print(f"run file: {run.path}, page: {run.path.with_suffix('.html')}", soft_wrap=True)


def say(status: Status, what: str) -> None:
    """Tell what is done now: beside the spinner of a terminal, else as a line."""
    status.update(Text(what))  # a plain one would be read as markup
    if not stderr.is_terminal:
        stderr.print(what)
