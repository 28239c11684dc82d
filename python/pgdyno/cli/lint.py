"""`pgdyno lint`: what is gone, without effect or dangerous in configuration files."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group
from rich.text import Text

from pgdyno.cli.console import stdout
from pgdyno.lint import KINDS, Finding, Severity, Source, System, check, read_source
from pgdyno.lint.system import GIB
from pgdyno.model.errors import PlanError
from pgdyno.report.words import plural
from pgdyno.stage.host import host_facts

_STYLES = {
    Severity.DANGEROUS: "bold red",
    Severity.CONTRADICTORY: "red",
    Severity.GONE: "red",
    Severity.INVALID: "red",
    Severity.UNKNOWN: "yellow",
    Severity.INEFFECTIVE: "yellow",
    Severity.NOTE: "dim",
}
FOUND = 1  # exit code, where there is more than notes


def lint(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="postgresql.conf, sysctl.conf, fstab, limits.conf, grub, a script, a plan.",
        ),
    ],
    kind: Annotated[
        str | None, typer.Option(help=f"Of all files: {', '.join(KINDS)}. Default: by their names.")
    ] = None,
    postgres: Annotated[
        int, typer.Option(min=12, max=18, help="Major version that they are meant for.")
    ] = 18,
    kernel: Annotated[
        str | None, typer.Option(help="Version of Linux. Default: this machine's.")
    ] = None,
    memory: Annotated[
        float | None, typer.Option(min=0.1, help="GiB of memory. Default: this machine's.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Name what is gone, renamed, without effect, contradictory or dangerous in these files.

    Several files are judged together: huge pages of sysctl.conf against the cache of
    postgresql.conf. The exit code is 1 if there is more than notes.

    Example: pgdyno lint /etc/sysctl.conf /etc/postgresql/15/main/postgresql.conf --postgres 15
    """
    if kind is not None and kind not in KINDS:
        raise PlanError(f"--kind is {kind!r}, allowed are {', '.join(KINDS)}")
    sources = [read_source(path, kind) for path in files]
    found = check(sources, _system(postgres, kernel, memory))
    if as_json:
        stdout.print_json(json.dumps([asdict(one) for one in found]))
    else:
        stdout.print(_shown(found, sources), soft_wrap=True)
    if any(one.severity is not Severity.NOTE for one in found):
        raise typer.Exit(FOUND)


def _system(postgres: int, kernel: str | None, memory: float | None) -> System:
    text = kernel or os.uname().release
    parts = text.split("-")[0].split(".")[:2]
    if not all(part.isdigit() for part in parts) or not parts:
        raise PlanError(f"--kernel is {text!r}, expected something like 6.1")
    facts = host_facts(Path.cwd())
    return System(
        postgres,
        tuple(int(part) for part in parts),
        facts.memory_bytes if memory is None else int(memory * GIB),
        facts.huge_page_bytes,
    )


def _shown(found: Sequence[Finding], sources: Sequence[Source]) -> Group:
    lines = []
    for one in found:
        head = Text(f"{one.at.place}: ")
        head.append(one.severity.value, _STYLES[one.severity])
        head.append(f": {one.at.shown}: {one.text}")
        if one.hint:
            head.append(f"\n    {one.hint}", "dim")
        lines.append(head)
    settings = sum(len(source.assignments) for source in sources)
    counts = [
        f"{count} {severity.value}"
        for severity in Severity
        if (count := sum(one.severity is severity for one in found))
    ]
    told = ", ".join(counts) or "fine"
    lines.append(Text(f"{plural(settings, 'setting')} in {plural(len(sources), 'file')}: {told}"))
    return Group(*lines)
