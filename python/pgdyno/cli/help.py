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
    "int": "N", "float": "NUMBER", "file": "FILE", "dir": "FOLDER", "path": "PATH",
    "datetime": "TIME",
}  # fmt: skip
"""Types of values as typer calls them, and what a reader is told. All others are texts."""

_TYPE = re.compile(r"<(?:list\[)?([a-z]+)\]?>", re.IGNORECASE)
"""What typer calls a type. A choice, which stands in the same brackets, has a bar."""

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


def _commas(option: Any) -> str:  # noqa: ANN401  typer hides its types
    """How several are given at once, of an option whose value is a list, e.g. `A,B`."""
    several = "," in (option.metavar or "")
    return f", in which commas stand between several: {option.metavar}" if several else ""


class Command(_Whole, TyperCommand):
    """A command whose options stand under the headings that they name."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401  typer hides it
        """As typer does, once every option has its value, and none has two."""
        given = with_values(args)
        try:
            if not ctx.resilient_parsing:  # then a shell asks what could follow
                self._require_values(ctx, given)
                self._require_once(ctx, given)
            return super().parse_args(ctx, given)
        except Exception as error:
            # Typer does not say of which command it was that an option came without its value.
            if getattr(error, "ctx", ctx) is None:
                error.ctx = ctx  # type: ignore[attr-defined]
            raise

    def _require_values(self, ctx: Any, args: list[str]) -> None:  # noqa: ANN401
        """Refuse an option in the place of another one's value: `--out --quick` names no file."""
        options = [one for one in self.get_params(ctx) if one.param_type_name == "option"]
        every = {name for one in options for name in (*one.opts, *one.secondary_opts)}
        valued = {
            name for one in options if not getattr(one, "is_flag", False) for name in one.opts
        }
        rest = iter(args)
        for one in rest:
            if one == "--":
                return
            value = next(rest, "") if one in valued else ""
            if (name := value.partition("=")[0]) in every:
                ctx.fail(f"Option {one} was given without its value: {name} is an option")

    def _require_once(self, ctx: Any, args: list[str]) -> None:  # noqa: ANN401
        """Refuse an option that takes one value and was given twice: one would be dropped."""
        _, _, order = self.make_parser(ctx).parse_args(list(args))
        seen = set()
        for one in order:
            if one.param_type_name != "option" or one.multiple or getattr(one, "is_flag", False):
                continue
            if one.name in seen:
                ctx.fail(f"option {one.opts[0]} was given twice, it takes one value{_commas(one)}")
            seen.add(one.name)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ANN401
        """Options, then each argument by its name, in brackets where it may be left out."""
        arguments = [one for one in self.get_params(ctx) if one.param_type_name == "argument"]
        names = [(argument_name(one), one.required) for one in arguments]
        return ["[OPTIONS]", *(name if required else f"[{name}]" for name, required in names)]

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        """Write arguments, then options, then those of each heading."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for one in self.get_params(ctx):
            kind = "Arguments" if one.param_type_name == "argument" else "Options"
            head = getattr(one, "rich_help_panel", None) or kind
            if record := one.get_help_record(ctx):
                name, text = record
                words = in_plain_words(name)
                if kind == "Arguments":
                    words = argument_in_plain_words(one, name)
                sections.setdefault(head, []).append((words, _kept(text)))
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
    return _TYPE.sub(lambda found: _TAKEN.get(found[1].lower(), "TEXT"), words)


def argument_name(one: Any) -> str:  # noqa: ANN401  typer hides its types
    """An argument by the word that stands for it where it is called: `RUN_FILE`."""
    word = str(one.metavar or one.name.upper()).strip("[]")
    return word if one.nargs == 1 or word.endswith("...") else f"{word}..."


def argument_in_plain_words(one: Any, words: str) -> str:  # noqa: ANN401
    """An argument by its name, with its choices if it has some; typer would add its type."""
    choices = re.search(r" (<[^<>]*\|[^<>]*>)$", words)
    return f"{argument_name(one)} {choices[1]}" if choices else argument_name(one)


def _kept(text: str) -> str:
    return text.replace("-", _HYPHEN)
