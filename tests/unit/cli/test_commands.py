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
from pgdyno.cli.help import argument_in_plain_words, in_plain_words


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_can_be_called_and_says_what_it_does(name: str) -> None:
    shown = CliRunner().invoke(app, [name, "--help"])

    assert shown.exit_code == 0, shown.output
    assert f"pgdyno {name}" in shown.output


@pytest.mark.parametrize("name", ["show", "plan"])
def test_what_only_looks_at_the_machine_does_not_say_that_it_changes_it(name: str) -> None:
    shown = CliRunner().invoke(app, ["host", name, "--help"])

    option = " ".join(shown.output.partition("--huge-pages-for DATADIR")[2].split())
    assert "A server that vm.nr_hugepages is to suffice for" in option


FRAGMENTS = (
    "Of ",
    "By ",
    "Whose ",
    "At ",
    "For ",
    "That ",
    "Default",
)  # what has no subject begins so


def leaves(command: Any) -> Iterator[Any]:
    """A command, or all those of a group."""
    found = getattr(command, "commands", None)
    yield from [command] if found is None else found.values()


def command_of(name: str) -> Any:
    group = typer.main.get_command(app)
    assert isinstance(group, Commands)
    return group.get_command(None, name)


PATHS: list[tuple[str, ...]] = [(), *((name,) for name in COMMANDS)]
PATHS += [(name, one) for name in COMMANDS for one in getattr(command_of(name), "commands", {})]
"""The words of every command, and of every group."""


def page(*words: str, columns: int) -> list[str]:
    """A help page as it is printed in a terminal of that width."""
    shown = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": str(columns)})
    assert shown.exit_code == 0, shown.output
    return shown.output.splitlines()


@pytest.mark.parametrize("words", PATHS, ids=" ".join)
@pytest.mark.parametrize("columns", [60, 80, 120])
def test_a_help_page_fits_and_nothing_of_it_is_cut(words: tuple[str, ...], columns: int) -> None:
    lines = page(*words, columns=columns)
    command = command_of(words[0]) if words else typer.main.get_command(app)
    for word in words[1:]:
        command = command.commands[word]
    said = " ".join(" ".join(lines).split())

    assert max(map(len, lines)) <= columns or columns < 80, "names of options are never broken"
    assert "…" not in said
    context = command.make_context("pgdyno", [], resilient_parsing=True)
    for one in command.params:
        record = one.get_help_record(context)
        assert record is not None
        names = in_plain_words(record[0])  # with choices and the form of the value
        if one.param_type_name == "argument":
            names = argument_in_plain_words(one, record[0])
        assert any(names in line for line in lines), names
        help_text = " ".join((getattr(one, "help", None) or "").split())
        assert help_text in said


@pytest.mark.parametrize("words", PATHS, ids=" ".join)
def test_the_help_of_a_command_has_an_example_on_one_line(words: tuple[str, ...]) -> None:
    if getattr(command_of(words[0]) if words else None, "commands", None) and len(words) == 1:
        return  # its commands have theirs
    name = " ".join(("pgdyno", *words))
    lines = page(*words, columns=80)
    examples = [line.strip() for line in lines if "Example:" in line]
    assert len(examples) == 1
    after = lines[lines.index(f"  {examples[0]}") + 1 :]
    assert not (after and after[0].strip()), "who copies it wants all of it"
    assert examples[0].startswith(f"Example: {name} ") or examples[0] in (
        f"Example: {name}", "Example: pgdyno demo"
    )  # fmt: skip


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


def test_no_module_imports_scipy_stats() -> None:
    """It takes a second of CPU time, and each command that reads a run file would wait for it."""
    program = (
        "import importlib, pkgutil, sys, pgdyno\n"
        "for one in pkgutil.walk_packages(pgdyno.__path__, 'pgdyno.'):\n"
        "    if not one.name.endswith('__main__'): importlib.import_module(one.name)\n"
        "print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    modules = done.stdout.split()

    assert {"scipy.special", "pgdyno.stats.profile", "pgdyno.cli.report"} <= set(modules)
    assert "scipy.stats" not in modules


def test_a_word_that_is_nearly_a_command_is_told_which() -> None:
    shown = CliRunner().invoke(app, ["rnu", "demo"])
    assert shown.exit_code == 2
    assert "Did you mean run?" in shown.output
    far = CliRunner().invoke(app, ["xyzzy"])
    assert far.exit_code == 2
    assert "Did you mean" not in far.output


@pytest.mark.parametrize(
    ("words", "fact", "hint"),
    [
        (["rnu", "demo"], "no such command 'rnu'", "Did you mean run?"),
        (["run"], "missing argument 'PLAN'", "`pgdyno run --help` says more."),
        (
            ["run", "p", "--folder", "/a", "/b"],
            "no further argument is expected: /b",
            "Commas separate several values: --folder /a,/b.",
        ),
        (["bench", "tpcc", "--seed", "x"], "'--seed': 'x' is no whole number", "`pgdyno bench"),
        (["bench", "tpcc", "--rate", "1k"], "'--rate': '1k' is no number", "`pgdyno bench --help`"),
        (["report", "x", "--format", "con"], "'--format' / '-f': 'con' is not one of", "`pgdyno"),
        (
            ["init", "a", "b", "c d"],
            "no further argument is expected: b c d",
            "`pgdyno init --help`",
        ),
        (["report"], "missing argument 'RUN_FILE'", "`pgdyno report --help` says more."),
        (
            ["run", "demo", "--out"],
            "option --out was given without its value",
            "`pgdyno run --help` says more.",
        ),
        (
            ["run", "no-such", "--out", "--quick"],
            "option --out was given without its value: --quick is an option",
            "`pgdyno run --help` says more.",
        ),
        (
            ["report", "x", "--rung", "--out=-"],
            "option --rung was given without its value: --out is an option",
            "`pgdyno report --help` says more.",
        ),
        (
            ["report", "x", "--stage", "-d", "dbname=postgres"],
            "option --stage was given without its value: -d is an option",
            "`pgdyno report --help` says more.",
        ),
        (
            ["guard", "check", "--standby"],
            "option --standby was given without its value",
            "`pgdyno guard check --help` says more.",
        ),
        (
            ["init", "--warehouse", "1"],
            "no such option: --warehouse",
            "Did you mean --warehouses?",
        ),
        (["run", "demo", "--no-such"], "no such option: --no-such", "`pgdyno run --help`"),
    ],
)
def test_what_typer_refuses_is_told_as_all_errors_are(
    words: list[str], fact: str, hint: str
) -> None:
    shown = CliRunner().invoke(app, words)
    assert shown.exit_code == 2
    first, second = shown.output.splitlines()
    assert first.startswith("error: ")
    assert fact in first
    assert "(" not in first
    assert second.startswith(f"hint: {hint}")


@pytest.mark.parametrize("words", PATHS, ids=" ".join)
def test_help_has_no_words_of_a_library(words: tuple[str, ...]) -> None:
    """No types, no braces, no bounds in signs; what stands in brackets of that kind is a choice."""
    said = "\n".join(page(*words, columns=100))
    words_of_it = ("x>", "x<", "<=x", "{", "[[", "]]", "[default: no-")
    assert not [word for word in words_of_it if word in said]
    assert all("|" in found for found in re.findall(r"<[^<>]*>", said))


def test_help_says_what_a_rung_may_lose() -> None:
    said = " ".join(" ".join(page("report", columns=100)).split())
    assert "D2: a crash may lose the last commits" in said


def test_a_value_that_looks_like_an_option_is_taken_where_it_can_mean_nothing_else() -> None:
    """After `=`, after `--`, or a dash alone: only a word that may be a forgotten value is not."""
    for words in (["--out=--quick"], ["--out", "-"], ["--out", "--", "--quick"]):
        shown = CliRunner().invoke(app, ["report", "no.sqlite", *words, "--format", "cnf"])
        assert "without its value" not in shown.output


def test_an_option_of_one_value_is_not_given_twice() -> None:
    """The first would be dropped, and who gave it believe that it was measured."""
    twice = ["init", "own.toml", "--setting", "wal_buffers=64MB", "--setting", "work_mem=8MB"]
    done = CliRunner().invoke(app, twice)
    assert done.exit_code == 2
    assert "option --setting was given twice, it takes one value\n" in done.output


def test_who_gives_a_list_twice_is_told_how_it_is_written() -> None:
    done = CliRunner().invoke(app, ["run", "demo", "--folder", "a", "--folder", "b"])
    assert done.exit_code == 2
    said = " ".join(done.output.split())
    assert "--folder was given twice, it takes one value, in which commas stand" in said
    assert "between several: A,B" in said
