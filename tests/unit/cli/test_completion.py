"""What a shell is told when Tab is pressed: it asks `pgdyno` itself, by a variable of typer's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer._completion_shared import get_completion_script

from pgdyno.cli.app import COMMANDS
from tests.waiting import DEADLINE_S

PROGRAM = "import sys; sys.argv[0] = 'pgdyno'; from pgdyno.cli.app import main; main()"


def asked(complete: str, **more: str) -> str:
    """What `pgdyno` answers to a shell."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=os.environ | {"_PGDYNO_COMPLETE": complete} | more,
        capture_output=True, text=True, check=True, timeout=DEADLINE_S,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout


def completed(line: str) -> list[str]:
    """What the last word of a line in bash may become."""
    last = len(line.split(" ")) - 1
    return asked("complete_bash", COMP_WORDS=line, COMP_CWORD=str(last)).split()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("pgdyno kn", {"knee", "knobs"}),
        ("pgdyno run de", {"demo"}),
        ("pgdyno demo --qu", {"--quick"}),
        ("pgdyno bench tpcc --face p", {"pipeline", "procedure"}),
        ("pgdyno builds re", {"remove"}),
        ("pgdyno knobs vm.swappi", {"vm.swappiness"}),
        ("pgdyno knobs sysc", {"sysctl"}),
        ("pgdyno init first.toml --setting wal_compr", {"wal_compression="}),
        ("pgdyno xyzzy", set()),
    ],
)
def test_a_word_is_completed_to_what_it_can_be(line: str, words: set[str]) -> None:
    assert set(completed(line)) == words


def test_all_commands_are_offered() -> None:
    assert completed("pgdyno ") == list(COMMANDS)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_given_a_script_that_asks_back(shell: str) -> None:
    assert "_PGDYNO_COMPLETE=complete_" in asked(f"source_{shell}")


@pytest.mark.parametrize(
    ("answer", "told"), [("work_mem=", "-o nospace"), ("demo", ""), ("a=\nb", "")]
)
def test_no_space_follows_a_name_whose_value_is_still_to_be_typed(
    tmp_path: Path, answer: str, told: str
) -> None:
    program = tmp_path / "pgdyno"
    program.write_text(f"#!/bin/sh\nprintf '{answer}'\n")
    program.chmod(0o700)
    script = f"{asked('source_bash')}\ncompopt() {{ echo $@; }}\n_pgdyno_completion {program}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == told


def test_what_is_installed_for_bash_is_what_it_is_given() -> None:
    installed = get_completion_script(
        prog_name="pgdyno", complete_var="_PGDYNO_COMPLETE", shell="bash"
    )
    assert "nospace" in installed
    assert installed == asked("source_bash").strip()
