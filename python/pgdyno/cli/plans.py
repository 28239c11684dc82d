"""`pgdyno plans`, `pgdyno demo` and `pgdyno init`: plans that are there, and a first one's own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from pgdyno import api
from pgdyno.cli.api_defaults import defaults
from pgdyno.cli.console import say_error, stdout
from pgdyno.cli.live_options import LiveOption, MetricsOption
from pgdyno.cli.run import QuickOption, run
from pgdyno.cli.run_file_option import RunFileOption
from pgdyno.model.errors import Interrupted, PgdynoError, PlanError
from pgdyno.model.text import path_typed

_PATH = Path(defaults(api.FirstPlan.write)["path"])


def _settings(incomplete: str) -> list[str]:
    """What a shell may complete to; the value is up to who types."""
    return [f"{name}=" for name in api.knobs("server") if name.startswith(incomplete)]


def plans() -> None:
    """List the plans that come with pgdyno; `pgdyno run` takes their names.

    Example: pgdyno plans
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("plan", no_wrap=True)
    table.add_column("stages", justify="right")
    table.add_column("question")
    for row in api.plans().rows():
        table.add_row(str(row["name"]), str(row["stages"]), str(row["question"]))
    stdout.print(table)
    stdout.print("`pgdyno run NAME --dry-run` shows what each would do; nothing is touched.")


def demo(
    quick: QuickOption = False,
    live: LiveOption = None,
    metrics: MetricsOption = None,
    out: RunFileOption = None,
) -> None:
    """Measure two stages on a server of its own; the same as `pgdyno run demo`.

    Example: pgdyno demo --quick
    """
    run("demo", quick=quick, live=live, metrics=metrics, out=out)


def init(
    path: Annotated[Path, typer.Argument(help="The plan that is written.")] = _PATH,
    server: Annotated[
        str | None,
        typer.Option(
            help="The server: embedded, a folder of PostgreSQL's programs, or a connection string;"
            " asked for if not given."
        ),
    ] = None,
    warehouses: Annotated[
        int | None,
        typer.Option(help="How much data, at about 100 MB each; asked for if not given."),
    ] = None,
    setting: Annotated[
        str | None,
        typer.Option(
            help="What is tried, e.g. synchronous_commit=off; asked for if not given.",
            autocompletion=_settings,
        ),
    ] = None,
) -> None:
    """Write a first plan of your own, after three questions.

    Example: pgdyno init first.toml --server embedded --setting wal_buffers=64MB
    """
    usual = api.FirstPlan()
    usual.require_writable(path)
    given = api.FirstPlan(
        usual.server if server is None else server,
        usual.warehouses if warehouses is None else warehouses,
        usual.setting if setting is None else setting,
    )
    given.require_setting()
    if server is not None:
        given.text(path)  # what was given is judged before anything is asked
    else:
        given = _answered(
            "Which server: embedded, a folder of PostgreSQL's programs, or a connection string",
            usual.server, lambda answer: _judged(replace(given, server=answer), path),
        )  # fmt: skip
    if warehouses is None:
        given = _answered(
            "How many warehouses, at about 100 MB each", str(usual.warehouses),
            lambda answer: _judged(given.with_warehouses(answer), path),
        )  # fmt: skip
    if setting is None:
        given = _answered(
            "Which setting do you want to try", usual.setting,
            lambda answer: _judged(replace(given, setting=answer), path),
        )  # fmt: skip
    given.write(path)
    stdout.print(f"{path} is written; next: pgdyno run {path_typed(path)} --dry-run", markup=False)


def _judged(plan: api.FirstPlan, path: Path) -> api.FirstPlan:
    """The plan, once this host and that server could carry it out."""
    plan.text(path)
    return plan


def _answered(question: str, usual: str, judge: Callable[[str], api.FirstPlan]) -> api.FirstPlan:
    """What follows from an answer. A wrong one is refused at once; a person is asked again."""
    while True:
        try:
            answer = typer.prompt(question, usual, err=True)
        except typer.Abort as error:
            if not isinstance(error.__context__, EOFError):
                raise Interrupted("stopped at a question", "Nothing was written.") from None
            typer.echo(err=True)  # the question stands there, and waits for its answer
            raise PlanError(
                "the input ended before all questions were answered",
                "Answer at a terminal, or give --server, --warehouses and --setting.",
            ) from None
        try:
            return judge(answer)
        except PgdynoError as error:
            if not sys.stdin.isatty():
                raise
            say_error(error.fact, error.hint)
