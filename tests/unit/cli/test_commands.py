"""Every command of the table exists; none is imported before it is called."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from pgdyno.cli.app import COMMANDS, app


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_can_be_called_and_says_what_it_does(name: str) -> None:
    shown = CliRunner().invoke(app, [name, "--help"])

    assert shown.exit_code == 0, shown.output
    assert f"pgdyno {name}" in shown.output


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
