"""`pgdyno build`: compile PostgreSQL from source; `pgdyno builds`: those that are kept."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from pgdyno.api import builds
from pgdyno.cli.console import say, stderr, stdout
from pgdyno.cli.help import STYLE, Command, Group
from pgdyno.model.units import seconds_text

app = typer.Typer(
    name="builds",
    help="Builds of PostgreSQL that `pgdyno build` made: list them, remove one.",
    cls=Group,
    no_args_is_help=True,
    **STYLE,
)
_RECIPE = builds.Recipe()
_FIRST, _LAST = builds.MAJORS[0], builds.MAJORS[-1]


def _one_of(values: tuple[object, ...]) -> str:
    return ", ".join(map(str, values))


def build_command(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE", help=f"PostgreSQL {_FIRST} to {_LAST}: its source, or a tarball."
        ),
    ],
    name: Annotated[
        str | None, typer.Option(help="The name by which plans call it. Default: its ident.")
    ] = None,
    compiler: Annotated[
        str, typer.Option("--cc", help="The compiler: a gcc or clang, e.g. gcc-14, or its path.")
    ] = _RECIPE.compiler,
    optimise: Annotated[
        str, typer.Option("-O", "--optimise", help=f"The level: {_one_of(builds.OPTIMISE)}.")
    ] = _RECIPE.optimise,
    native: Annotated[
        bool, typer.Option("--native", help="Compile for this model of CPU only (-march=native).")
    ] = False,
    lto: Annotated[
        bool, typer.Option("--lto", help="Optimise over all files at once (-flto).")
    ] = False,
    pgo: Annotated[
        bool,
        typer.Option("--pgo", help="Compile twice: the second time by a profile of TPC-C."),
    ] = False,
    flags: Annotated[
        str, typer.Option(help='Further flags of the compiler, e.g. "-g -pipe".')
    ] = "",
    block_kb: Annotated[
        int, typer.Option(help=f"Pages of tables and indexes, kB: {_one_of(builds.BLOCKS_KB)}.")
    ] = _RECIPE.block_kb,
    wal_block_kb: Annotated[
        int, typer.Option(help=f"Pages of WAL, kB: {_one_of(builds.WAL_BLOCKS_KB)}.")
    ] = _RECIPE.wal_block_kb,
    features: Annotated[
        list[str] | None,
        typer.Option(
            "--with", help=f"A library, several times if need be: {_one_of(builds.FEATURES)}."
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(help="Files that are compiled at once. Default: one for each CPU."),
    ] = None,
) -> None:
    """Compile PostgreSQL into a build that stages of plans can name.

    It lies below PGDYNO_HOME, in a folder named by its content: source, compiler and flags. One
    that is there already is not compiled again. Each step leaves a log beside it.

    Example: pgdyno build postgresql-18.1.tar.bz2 -O 3 --native --lto --name fast
    """
    recipe = builds.Recipe(
        compiler=compiler, optimise=optimise, native=native, lto=lto, pgo=pgo,
        flags=flags, block_kb=block_kb, wal_block_kb=wal_block_kb, features=tuple(features or ()),
    )  # fmt: skip
    with stderr.status("looking at the source") as status:
        built = builds.build(
            source, recipe, name=name, jobs=jobs, on_event=lambda what: say(status, what)
        )
    done = built.build
    took = f"took {seconds_text(done.took_s)}"
    stdout.print(
        f"{done.label}: {done.version}, {done.recipe_text};"
        f" {'was there already' if built.is_known else took}",
        soft_wrap=True,
    )
    stdout.print(str(built.bindir), soft_wrap=True)


@app.command(cls=Command, name="list")
def list_command(
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """List the builds: name, ident, version, compiler and flags, how long they took.

    Example: pgdyno builds list
    """
    found = builds.builds()
    if as_json:
        stdout.print_json(json.dumps([asdict(one) for one in found]))
        return
    if not found:
        stdout.print("There are none. `pgdyno build SOURCE` makes one.")
        return
    table = Table("name", "ident", "version", "compiled by", "took", box=None, pad_edge=False)
    for one in found:
        how = f"{one.recipe_text}\n{one.compiler_version}"
        took = seconds_text(one.took_s)
        table.add_row(one.name or "", one.ident, one.version, Text(how), took)
    stdout.print(table)


def _kept(incomplete: str) -> list[str]:
    """What a shell may complete to."""
    return [one.label for one in builds.builds() if one.label.startswith(incomplete)]


@app.command(cls=Command)
def remove(
    word: Annotated[
        str,
        typer.Argument(
            metavar="BUILD",
            help="The build: its name, or the first characters of its ident.",
            autocompletion=_kept,
        ),
    ],
) -> None:
    """Remove a build with its logs. Runs that were made with it can still be reported.

    Example: pgdyno builds remove fast
    """
    one = builds.remove_build(word)
    stdout.print(f"{one.label} is removed.")
