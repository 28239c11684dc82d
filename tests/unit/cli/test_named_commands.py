"""Commands of ours that texts name can be typed as they stand there."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import pgdyno
from pgdyno.cli.app import COMMANDS, app

SOURCES = Path(pgdyno.__file__).parent
NAMED = re.compile(r"`pgdyno ([a-z][^`]*)`")


def test_each_command_in_a_text_has_its_options_and_gives_each_once() -> None:
    told = {line for path in SOURCES.rglob("*.py") for text in texts(path)
            for line in NAMED.findall(text)}  # fmt: skip
    wrong = [line for line in sorted(told) if complaint(line)]

    assert len(told) > 20, "they are found at all"
    assert not wrong, [(line, complaint(line)) for line in wrong]


@pytest.mark.parametrize(
    "line",
    ["init --setting a=1 --setting b=2", "init --nosuch", "nosuch", "host nosuch"],
)
def test_what_cannot_be_typed_is_found(line: str) -> None:
    assert complaint(line)


def texts(path: Path) -> Iterator[str]:
    """Constant texts of a module; what an f-string inserts is a word."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                str(one.value) if isinstance(one, ast.Constant) else "WORD" for one in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def complaint(line: str) -> str:
    """Why it cannot be typed; empty: it can."""
    first, *words = shlex.split(line)
    if first not in COMMANDS:
        return "" if first == "WORD" else f"no command {first}"
    command = command_of(first)
    while inner := getattr(command, "commands", None):
        if not words or words[0] == "WORD":
            return ""  # a command that has others, or one of these that is inserted
        if words[0] not in inner:
            return f"no command {words[0]}"
        command = inner[words.pop(0)]
    context = command.context_class(command, info_name=first)
    try:
        _, _, given = command.make_parser(context).parse_args(words)
    except Exception as error:  # click's own, as typer brings it along
        named_alone = "requires an argument" in str(error)  # a text names the option, no value
        return "" if named_alone else str(error)
    names = [one.name for one in given if one.param_type_name == "option" and not one.multiple]
    return "" if len(names) == len(set(names)) else "an option of one value is given twice"


def command_of(name: str) -> Any:
    """The command as it is parsed."""
    root: Any = typer.main.get_command(app)
    return root.get_command(root.context_class(root), name)
