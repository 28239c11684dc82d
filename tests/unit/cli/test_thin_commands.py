"""A command parses what was typed, calls the library, and prints: nothing is decided in it.

What can be told of that from the code: what a command imports, that it computes nothing, and that
what it refuses is how something was typed. Each exception stands here with its reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import pgdyno
from pgdyno.cli import app

FOLDER = Path(app.__file__).parent
MODULES = sorted(FOLDER.glob("*.py"))
TREES = {path.stem: ast.parse(path.read_text()) for path in MODULES}

# -- imports ---------------------------------------------------------------------------------

OURS = ("pgdyno.api", "pgdyno.model", "pgdyno.catalog", "pgdyno.cli")
PRINTING = {"typer", "rich"}
STANDARD = {
    "__future__", "collections", "contextlib", "dataclasses", "datetime", "enum", "inspect", "json",
    "pathlib", "re", "sys", "types", "typing",
}  # fmt: skip
EXCEPTIONS = {
    ("app", "difflib"): "a word that is nearly a command",
    ("app", "importlib"): "commands are imported when they are called",
    ("app", "os"): "the process's ends: streams, its environment",
    ("app", "shlex"): "what was typed, in the file of a defect",
    ("app", "signal"): "a polite kill ends a run as Ctrl-C does",
    ("app", "tempfile"): "the file of a defect",
    ("app", "traceback"): "the file of a defect",
    ("console", "os"): "the width of what is no terminal",
    ("storage", "pydantic"): "sizes with units are parsed as everywhere",
}  # fmt: skip


def imported(tree: ast.Module) -> Iterator[str]:
    """Modules that are imported, wherever in a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            assert node.module
            if node.module == "pgdyno":  # `from pgdyno import api`: that module, or the package
                yield from (
                    "pgdyno" if one.name.startswith("__") else f"pgdyno.{one.name}"
                    for one in node.names
                )
            else:
                yield node.module


def is_allowed(name: str) -> bool:
    """Whether any command may import it."""
    if name.partition(".")[0] == "pgdyno":
        return any(name == one or name.startswith(f"{one}.") for one in OURS)
    return name.partition(".")[0] in PRINTING | STANDARD


@pytest.mark.parametrize("module", TREES)
def test_a_command_imports_the_library_and_what_parses_and_prints(module: str) -> None:
    strangers = {name for name in imported(TREES[module]) if not is_allowed(name)}
    assert strangers == {name for where, name in EXCEPTIONS if where == module}


def test_a_command_asks_the_library_at_its_front_door() -> None:
    below = {name for tree in TREES.values() for name in imported(tree) if "pgdyno.api." in name}
    assert below <= {f"pgdyno.api.{part}" for part in ("builds", "machine")}


# -- what is computed --------------------------------------------------------------------------

COMPUTING = (ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.LShift, ast.RShift)
CALLS = {"sum", "min", "max", "round", "abs", "sorted", "divmod", "pow"}
COMPUTED = {
    ("bench", "[NOT_MEASURED] * 4"): "as many dashes as columns",
    ("console", "' ' * 4"): "an indent",
    ("host", "stripe * 1024"): "an option in kilobytes, as mdadm has it",
    ("live_view", "max(1, todo)"): "a bar of no trials has a length, too",
}  # fmt: skip


def computed(tree: ast.Module) -> Iterator[str]:
    """Expressions that compute a number or an order."""
    for node in ast.walk(tree):
        if (isinstance(node, ast.BinOp) and isinstance(node.op, COMPUTING)) or (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS
        ):
            yield ast.unparse(node)


@pytest.mark.parametrize("module", TREES)
def test_a_command_computes_nothing(module: str) -> None:
    found = {one for one in computed(TREES[module]) if (module, one) not in COMPUTED}
    assert not found


# -- what is refused ---------------------------------------------------------------------------


def raised(tree: ast.Module) -> Iterator[ast.Call]:
    """Errors of ours that are raised."""
    for node in ast.walk(tree):
        call = node.exc if isinstance(node, ast.Raise) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            yield call


REFUSED = {
    ("host", "TargetError"): "values that could not be put back are the exit code",
    ("bench_options", "mix {text!r} is not understood"): "what --mix holds",
    ("app", "argument"): "what was typed is no text",
    ("app", "*_STOPPED"): "Ctrl-C",
    ("plans", "the input ended"): "what was not typed",
    ("plans", "stopped at a question"): "Ctrl-C",
}


@pytest.mark.parametrize("module", TREES)
def test_a_command_refuses_only_how_something_was_typed(module: str) -> None:
    """What cannot be meant, whoever asks for it, is refused by the library."""
    for call in raised(TREES[module]):
        assert isinstance(call.func, ast.Name)
        fact = ast.unparse(call.args[0]) if call.args else ""
        known = [said for where, said in REFUSED if where == module]
        about_options = "--" in fact or "option" in fact or "names" in fact
        assert about_options or call.func.id in known or any(one in fact for one in known), fact


BRANCHES = (ast.If, ast.For, ast.While, ast.Try, ast.Match, ast.IfExp, ast.BoolOp)
BRANCHES_MAX = 8  # of one function: what was typed, what is printed, the exit code


@pytest.mark.parametrize("module", TREES)
def test_a_command_hardly_branches(module: str) -> None:
    for one in ast.walk(TREES[module]):
        if isinstance(one, ast.FunctionDef):
            count = sum(isinstance(node, BRANCHES) for node in ast.walk(one))
            assert count <= BRANCHES_MAX, f"{one.name} branches {count} times"


BOUNDS = {"min", "max", "clamp"}


def bounded(tree: ast.Module) -> Iterator[str]:
    """Bounds that an option or an argument has of its own."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in (
            "typer.Option", "typer.Argument",
        ):  # fmt: skip
            yield from (ast.unparse(one) for one in node.keywords if one.arg in BOUNDS)


@pytest.mark.parametrize("module", TREES)
def test_no_option_has_bounds(module: str) -> None:
    """What a number may be is the library's to say, which Python calls as well."""
    assert list(bounded(TREES[module])) == []


# -- that these tests can fail -------------------------------------------------------------------

LOGIC = """
from pgdyno.stats.ceiling import fitting
def command(ms: Annotated[float, typer.Option("--ms", min=0.5, help="How long.")]) -> None:
    limit_ns = round(ms * 1e6)
    if limit_ns > 5:
        raise PlanError("the start is above the highest")
"""


def test_logic_is_seen() -> None:
    tree = ast.parse(LOGIC)
    assert [name for name in imported(tree) if not is_allowed(name)] == ["pgdyno.stats.ceiling"]
    assert set(computed(tree)) == {"round(ms * 1000000.0)", "ms * 1000000.0"}
    assert [ast.unparse(call.args[0]) for call in raised(tree)]
    assert list(bounded(tree)) == ["min=0.5"]
    assert pgdyno.__version__
