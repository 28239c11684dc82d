"""Help pages: plain text at the width that there is, in which nothing is cut.

Typer's own pages have two or three columns in a frame, and cut at 80 columns what does not fit
into them: names of options, choices, examples. Here what is long has a line of its own, no name is
broken at its hyphen, and a search finds it.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

from typer.core import TyperCommand, TyperGroup

from pgdyno.cli.optional_value import with_values

STYLE: dict[str, Any] = {
    "pretty_exceptions_enable": False,
    "add_completion": False,
    "rich_markup_mode": None,
    "context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 100},
}
"""Of every command, and of every group of them."""

_TAKEN = {
    "<int range>": "N", "<int>": "N", "<float range>": "NUMBER", "<float>": "NUMBER",
    "<file>": "FILE", "<dir>": "FOLDER", "<path>": "PATH", "<text>": "TEXT",
}  # fmt: skip
"""Types of arguments as typer calls them, and what a reader is told."""

_RANGES = (
    (r"([^\s<;]+)<=x<=([^\s;\]]+)", r"\1 to \2"),
    (r"([^\s<;]+)<x<([^\s;\]]+)", r"between \1 and \2"),
    (r"([^\s<;]+)<x<=([^\s;\]]+)", r"above \1, at most \2"),
    (r"([^\s<;]+)<=x<([^\s;\]]+)", r"at least \1, below \2"),
    (r"x>=", "at least "), (r"x>", "above "), (r"x<=", "at most "), (r"x<", "below "),
)  # fmt: skip
"""Bounds as typer writes them, and in words; those with two ends first."""

_HYPHEN = "\u2011"  # at which no line is broken; it is printed as the one that people type


class _Whole:
    help: str | None

    def get_help(self, ctx: Any) -> str:  # noqa: ANN401  typer hides its types
        """The page."""
        formatter = ctx.make_formatter()
        self.format_help(ctx, formatter)  # type: ignore[attr-defined]
        return str(formatter.getvalue()).rstrip("\n").replace(_HYPHEN, "-")

    def format_help_text(self, _ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        """Write what it does, its paragraphs filled."""
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(_kept(inspect.cleandoc(self.help or "")))


class Command(_Whole, TyperCommand):
    """A command whose options stand under the headings that they name."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401  typer hides it
        """As typer does, once every option has its value."""
        return super().parse_args(ctx, with_values(args))

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        """Write arguments, then options, then those of each heading."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for one in self.get_params(ctx):
            kind = "Arguments" if one.param_type_name == "argument" else "Options"
            head = getattr(one, "rich_help_panel", None) or kind
            if record := one.get_help_record(ctx):
                name, text = record
                sections.setdefault(head, []).append((in_plain_words(name), _kept(_bounds(text))))
        for head, records in sections.items():
            if records:
                with formatter.section(head):
                    formatter.write_dl(records)


class Group(_Whole, TyperGroup):
    """Commands under one name; what each does is said in whole."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        """Write the first sentence of each command."""
        records = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                first, _, _ = inspect.cleandoc(command.help or "").partition("\n\n")
                records.append((name, _kept(" ".join(first.split()))))
        with formatter.section("Commands"):
            formatter.write_dl(records)


def in_plain_words(words: str) -> str:
    """An option with what it takes, by a word that is no type's: `--seed N`."""
    for kind, word in _TAKEN.items():
        words = words.replace(kind, word)
    return words


def _bounds(text: str) -> str:
    """What a number may be, in words: `[default: 10; at least 1]`."""
    head, bracket, tail = text.rpartition("[")
    for pattern, words in _RANGES:
        tail = re.sub(pattern, words, tail)
    return f"{head}{bracket}{tail}"


def _kept(text: str) -> str:
    return text.replace("-", _HYPHEN)
