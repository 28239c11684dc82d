"""Every command of the table exists; none is imported before it is called."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from pgdyno.cli.app import COMMANDS, Commands, app


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_can_be_called_and_says_what_it_does(name: str) -> None:
    shown = CliRunner().invoke(app, [name, "--help"])

    assert shown.exit_code == 0, shown.output
    assert f"pgdyno {name}" in shown.output


OBVIOUS = {"demo", "plans", "init", "host", "builds"}  # nothing needs to be given
FRAGMENTS = ("Of ", "By ", "Whose ", "At ", "Default")  # what has no subject begins so


def leaves(command: Any) -> Iterator[Any]:
    """A command, or all those of a group."""
    found = getattr(command, "commands", None)
    yield from [command] if found is None else found.values()


def command_of(name: str) -> Any:
    group = typer.main.get_command(app)
    assert isinstance(group, Commands)
    return group.get_command(None, name)


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - OBVIOUS))
def test_the_help_of_a_command_has_an_example(name: str) -> None:
    assert re.search(rf"Example: (\[bold\])?pgdyno {name} \S", command_of(name).help)


@pytest.mark.parametrize("name", COMMANDS)
def test_options_are_explained_in_sentences(name: str) -> None:
    for command in leaves(command_of(name)):
        for one in command.params:
            said = getattr(one, "help", None)
            if one.name == "help":
                continue
            assert said, (command.name, one.name)
            assert said.rstrip("]").endswith("."), (command.name, one.name, said)
            assert not said.startswith(FRAGMENTS), (command.name, one.name, said)


def test_the_help_names_all_commands() -> None:
    shown = CliRunner().invoke(app, ["--help"])

    assert all(name in shown.output for name in COMMANDS)


def test_an_unknown_command_is_refused() -> None:
    assert CliRunner().invoke(app, ["lode"]).exit_code == 2


def test_loading_does_not_wait_for_what_reports_need() -> None:
    program = (
        "import sys, pgdyno.cli.app, pgdyno.cli.load, pgdyno.api; pgdyno.api.load;"
        " print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    modules = done.stdout.split()

    assert "pgdyno.loader.copy" in modules
    assert not [name for name in modules if name.startswith(("scipy", "pgdyno.report"))]
