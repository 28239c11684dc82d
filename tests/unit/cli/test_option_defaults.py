"""Options have the defaults of the API: none is written twice."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from inspect import signature, unwrap
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from pgdyno import api
from pgdyno.cli.api_defaults import defaults
from pgdyno.cli.app import COMMANDS, app
from pgdyno.model.guard import LimitsAsked

FILLS: dict[str, tuple[Callable[..., Any], ...]] = {
    "run": (api.load_plan, api.run),
    "aa": (api.aa,),
    "resume": (api.resume,),
    "report": (api.Run.report, api.Run.configuration),
    "diagnose": (api.diagnose,),
    "prove": (api.Design, api.prove),
    "drill": (api.DrillDesign, api.drill),
    "compare": (api.compare,),
    "history": (api.history,),
    "next": (api.propose,),
    "climb": (api.ClimbLimits, api.climb),
    "init": (api.FirstPlan.write,),
    "bench": (api.Asked, api.bench),
    "knee": (api.Asked, api.Search.of, api.knee),
    "calibrate": (api.calibrate,),
    "load": (api.Data, api.load),
    "export": (api.export,),
    "import": (api.import_results,),
    "fleet check": (api.fleet,),
    "storage": (api.Wish.of, api.storage),
    "wal": (api.wal,),
    "lint": (api.lint,),
    "build": (api.builds.Recipe, api.builds.build),
    "host show": (api.machine.show,),
    "host plan": (api.machine.plan,),
    "host apply": (api.machine.plan,),
    "host restore": (api.machine.restore,),
    "host layout": (api.machine.layout,),
    "guard check": (LimitsAsked,),
    "guard arm": (LimitsAsked,),
    "guard repair": (api.Guard.repair,),
    "guard rejoin": (api.Guard.rejoin,),
    "guard undo": (api.Guard.undo,),
    "guard unit": (api.Guard.unit,),
}
"""What each command fills in. Its parameters of the same names have the same defaults."""
_LIMITS = {
    "lag_s": "lag_seconds", "silence_s": "silence", "hold_s": "hold",
    "checkpoint_timeout_s": "checkpoint_timeout",
}  # fmt: skip
CALLED: dict[str, dict[str, str]] = {
    "report": {"format": "format_", "lowest_rung": "rung", "database": "conninfo"},
    "prove": {"block_s": "block"},
    "drill": {"load_s": "load", "shrinks": "shrink", "record_max_gib": "record"},
    "next": {"lowest_rung": "rung", "pinned": "pin"},
    "climb": {"lowest": "rung", "pinned": "pin"},
    "load": {"check": "check_after"},
    "lint": {"memory_gib": "memory"},
    "host layout": {"block_bytes": "block"},
    "guard check": _LIMITS,
    "guard arm": _LIMITS,
    "guard repair": {"patience_s": "patience"},
}
"""By command, parameters of the API whose options have other names."""
KNOWN_OTHERWISE = {
    ("knee", "connections"), ("load", "connections"), ("load", "workload"),
    ("bench", "mix"), ("bench", "files"), ("bench", "variables"),  # as a text, or lists
    ("export", "loaded_at"),  # typer knows no zones
}  # fmt: skip
OF_ITS_OWN = {
    ("knee", "p99_ms"): "a limit that Python always names",
    **dict.fromkeys(
        (
            ("diagnose", "format_"), ("compare", "format_"), ("history", "format_"),
            ("next", "format_"), ("import", "format_"),
        ),
        "how it is printed",
    ),
}  # fmt: skip
"""Numbers and words that a command has as a default and the library has not."""


def commands() -> Iterator[tuple[str, Any]]:
    """Every command by its words, those of groups too."""
    for name in COMMANDS:
        found = get_command(app).get_command(None, name)  # type: ignore[attr-defined]
        below = getattr(found, "commands", None)
        if below is None:
            yield name, found
        else:
            yield from ((f"{name} {word}", one) for word, one in below.items())


ALL = dict(commands())


def options_of(command: str) -> dict[str, Any]:
    return {str(one.name): one for one in ALL[command].params}


def shared() -> Iterator[tuple[str, str, object]]:
    for command, called in FILLS.items():
        options, names = options_of(command), CALLED.get(command, {})
        for function in called:
            for parameter, value in defaults(function).items():
                name = names.get(parameter, parameter)
                if name in options and (command, name) not in KNOWN_OTHERWISE:
                    yield command, name, value


@pytest.mark.parametrize(("command", "name", "value"), list(shared()))
def test_an_option_has_the_default_of_the_api(command: str, name: str, value: object) -> None:
    default = options_of(command)[name].default
    if isinstance(default, Path):
        default = str(default)

    nothing = (None, (), "", [])
    assert default == value or (value in nothing and default in nothing)


def test_so_many_are_compared_that_none_is_lost_silently() -> None:
    names = {(command, name) for command, name, _ in shared()}

    assert len(names) > 100
    assert {
        ("bench", "seconds"), ("bench", "connections"), ("knee", "width"), ("calibrate", "rounds"),
        ("load", "scale"), ("load", "check_after"), ("export", "seed"), ("lint", "postgres"),
        ("report", "rung"), ("report", "format_"), ("next", "rung"), ("climb", "rung"),
        ("climb", "minutes"), ("drill", "record"), ("prove", "block"), ("init", "path"),
        ("wal", "folder"), ("build", "optimise"), ("build", "wal_block_kb"),
        ("host layout", "file_system"), ("host layout", "block"), ("guard arm", "hold"),
        ("guard repair", "patience"), ("guard rejoin", "sessions"), ("guard unit", "server"),
    } <= names  # fmt: skip


def test_options_of_other_names_are_there() -> None:
    for command, names in CALLED.items():
        known = {name for function in FILLS[command] for name in defaults(function)}
        assert set(names) <= known, command
        assert set(names.values()) <= set(options_of(command)), command


def constants(command: Any) -> Iterator[tuple[str, object]]:
    """Parameters of a command that have a number or a word as their default, as it is written."""
    function = unwrap(command.callback)
    [written] = [
        node
        for node in ast.parse(Path(function.__code__.co_filename).read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name == function.__name__
    ]
    parameters = written.args.args[len(written.args.args) - len(written.args.defaults) :]
    for parameter, value in zip(parameters, written.args.defaults, strict=True):
        if isinstance(value, ast.Constant) and value.value not in (None, False, ""):
            yield parameter.arg, value.value


@pytest.mark.parametrize("command", ALL)
def test_no_number_or_word_is_written_as_a_default(command: str) -> None:
    again = [name for name, _ in constants(ALL[command]) if (command, name) not in OF_ITS_OWN]

    assert again == []


def test_what_a_command_has_of_its_own_is_there() -> None:
    for command, name in OF_ITS_OWN:
        assert name in dict(constants(ALL[command])), (command, name)
    assert len(dict(constants(ALL["knee"]))) == 1


def test_a_stripe_is_that_of_the_api_in_kilobytes() -> None:
    assert (
        options_of("host layout")["stripe"].default << 10
        == (defaults(api.machine.layout)["stripe_bytes"])
    )


def test_the_windows_of_a_knee_are_those_of_the_api() -> None:
    windows = signature(api.knee).parameters["windows"].default
    options = options_of("knee")

    assert (options["warmup"].default, options["seconds"].default) == (
        windows.warmup_s, windows.window_s,
    )  # fmt: skip
    assert options["connections"].default == defaults(api.Asked)["connections"]


def test_a_server_has_the_same_short_option_in_every_command() -> None:
    found = {
        name: option.opts
        for name, command in ALL.items()
        for option in command.params
        if "--conninfo" in option.opts
    }
    assert {"run", "bench", "report", "fleet check"} <= set(found)
    assert [name for name, opts in found.items() if "-d" not in opts] == []
