"""`pgdyno lint`: what is gone, without effect or dangerous in configuration files."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Group
from rich.text import Text

from pgdyno import api
from pgdyno.cli.api_defaults import defaults
from pgdyno.cli.console import stdout

_STYLES = {
    "dangerous": "bold red",
    "contradictory": "red",
    "gone": "red",
    "invalid": "red",
    "unknown": "yellow",
    "ineffective": "yellow",
    "note": "dim",
}
_DEFAULTS = defaults(api.lint)
_FIRST, _LAST = api.LINTED_MAJORS
FOUND = 1  # exit code, where there is more than notes


def lint(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="postgresql.conf, sysctl.conf, fstab, limits.conf, grub, a script, a plan;"
            " -: standard input, with --kind.",
        ),
    ],
    kind: Annotated[
        str | None,
        typer.Option(
            help=f"What all files are: {', '.join(api.LINTED_KINDS)}. Default: by their names."
        ),
    ] = None,
    postgres: Annotated[
        int,
        typer.Option(help=f"Major version that they are meant for, {_FIRST} to {_LAST}."),
    ] = _DEFAULTS["postgres"],
    kernel: Annotated[
        str | None,
        typer.Option(help="Version of Linux that they are meant for. Default: this machine's."),
    ] = None,
    memory: Annotated[
        float | None,
        typer.Option(
            help="Memory of the machine that they are meant for, GiB. Default: this machine's.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Name what is gone, renamed, without effect, contradictory or dangerous in these files.

    Several files are judged together: huge pages of sysctl.conf against the cache of
    postgresql.conf. The exit code is 1 if there is more than notes.

    Example: pgdyno lint /etc/sysctl.conf postgresql.conf --postgres 15
    """
    linted = api.lint(files, kind=kind, postgres=postgres, kernel=kernel, memory_gib=memory)
    if as_json:
        stdout.print_json(json.dumps([asdict(one) for one in linted.findings]))
    else:
        stdout.print(_shown(linted), soft_wrap=True)
    if not linted.is_fine:
        raise typer.Exit(FOUND)


def _shown(linted: api.Linted) -> Group:
    lines = []
    for one in linted.findings:
        head = Text(f"{one.at.where}: ")
        head.append(one.severity.value, _STYLES[one.severity.value])
        head.append(f": {one.at.shown}: {one.text}")
        if one.hint:
            head.append(f"\n    {one.hint}", "dim")
        lines.append(head)
    return Group(*lines, Text(linted.sentence))
