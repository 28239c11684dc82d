"""Options have the defaults of the API: none is written twice."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from pgdyno import api
from pgdyno.cli.api_defaults import defaults
from pgdyno.cli.app import app

FILLS: dict[str, tuple[Callable[..., Any], ...]] = {
    "bench": (api.Asked, api.bench),
    "knee": (api.Asked, api.Search, api.knee),
    "calibrate": (api.calibrate,),
    "load": (api.Data, api.load),
    "export": (api.export,),
}
"""What each command fills in. Its parameters of the same names have the same defaults."""
KNOWN_OTHERWISE = {
    ("knee", "connections"), ("load", "connections"), ("load", "check"), ("load", "workload"),
    ("bench", "mix"), ("bench", "files"), ("bench", "variables"),  # as a text, or lists
    ("export", "loaded_at"),  # typer knows no zones
}  # fmt: skip


def options_of(command: str) -> dict[str, Any]:
    found = get_command(app).get_command(None, command)  # type: ignore[attr-defined]
    return {str(one.name): one for one in found.params}


def shared() -> Iterator[tuple[str, str, object]]:
    for command, called in FILLS.items():
        options = options_of(command)
        for function in called:
            for name, value in defaults(function).items():
                if name in options and (command, name) not in KNOWN_OTHERWISE:
                    yield command, name, value


@pytest.mark.parametrize(("command", "name", "value"), list(shared()))
def test_an_option_has_the_default_of_the_api(command: str, name: str, value: object) -> None:
    assert options_of(command)[name].default in {value, None if value in ((), None) else value}


def test_so_many_are_compared_that_none_is_lost_silently() -> None:
    names = {(command, name) for command, name, _ in shared()}

    assert len(names) > 30
    assert {("bench", "seconds"), ("bench", "connections"), ("knee", "width"),
            ("calibrate", "rounds"), ("load", "scale"), ("export", "seed")} <= names  # fmt: skip


@pytest.mark.parametrize("command", FILLS)
def test_no_number_or_word_of_the_api_is_written_again_as_a_default(command: str) -> None:
    path = Path(str(import_module(f"pgdyno.cli.{command}").__file__))
    [function] = [
        node
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name in (command, f"{command}_command")
    ]
    parameters = function.args.args[len(function.args.args) - len(function.args.defaults) :]
    known = {name: value for one in FILLS[command] for name, value in defaults(one).items()}
    again = [
        parameter.arg
        for parameter, value in zip(parameters, function.args.defaults, strict=True)
        if isinstance(value, ast.Constant)
        and value.value not in (None, False)
        and parameter.arg in known
        and (command, parameter.arg) not in KNOWN_OTHERWISE
    ]

    assert again == []


def test_the_windows_of_a_knee_are_those_of_the_api() -> None:
    windows = signature(api.knee).parameters["windows"].default
    options = options_of("knee")

    assert (options["warmup"].default, options["seconds"].default) == (
        windows.warmup_s, windows.window_s,
    )  # fmt: skip
    assert options["connections"].default == defaults(api.Asked)["connections"]
