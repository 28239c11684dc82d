"""Arguments and options of `pgdyno bench`: types and help."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from pgdyno.model.errors import PlanError
from pgdyno.model.workload import Delivery as DeliveryMode
from pgdyno.model.workload import Engine, Face, WorkloadKind
from pgdyno.model.workload import Home as HomeMode
from pgdyno.model.workload import Isolation as IsolationLevel
from pgdyno.model.workload import Rules as TransactionRules

_TPCC, _OWN, _WHEN = "Only for tpcc", "Only for script and mix", "When requests come"

WorkloadArgument = Annotated[
    WorkloadKind,
    typer.Argument(
        help="tpcc: data of `pgdyno load tpcc` or of BenchmarkSQL; tpcb, select-only,"
        " simple-update: data of `pgdyno load tpcb` or of `pgbench -i`; mix: SQL transactions in"
        " a TOML file; script: pgbench's script files."
    ),
]
FileArgument = Annotated[Path | None, typer.Argument(help="mix, script: the file.")]
Connections = Annotated[int, typer.Option("--connections", "-c", help="Connections to the server.")]
Terminals = Annotated[
    int | None,
    typer.Option(
        "--terminals",
        "-t",
        help="Simulated users. Default: one for each connection.",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        help="Threads of the driver. Default: one for 4 connections, at most one a core.",
    ),
]
Warmup = Annotated[float, typer.Option(help="Seconds before the window, which do not count.")]
Seconds = Annotated[float, typer.Option("--seconds", "-T", help="Length of the window in seconds.")]
EngineOption = Annotated[Engine, typer.Option(help="Who drives: pgdyno, or the real pgbench.")]
BindirOption = Annotated[
    Path | None,
    typer.Option(
        help="With --engine pgbench: the folder of its program. Default: the embedded one.",
        exists=True, file_okay=False,
    ),
]  # fmt: skip
FaceOption = Annotated[
    Face,
    typer.Option(
        help="Statements travel in a round trip each, in as few as the data allow, or in one call."
    ),
]
Isolation = Annotated[
    IsolationLevel,
    typer.Option(help="Isolation level of the transactions."),
]
Seed = Annotated[
    int | None,
    typer.Option(help="The requests follow from this number. Default: another one each time."),
]
Databases = Annotated[
    int,
    typer.Option(help="Databases that are driven at once: NAME, NAME_2, NAME_3, loaded alike."),
]
Rate = Annotated[
    float | None,
    typer.Option(
        help="Requests a second, answered or not. Default: each terminal waits for its answer.",
        rich_help_panel=_WHEN,
    ),
]
Poisson = Annotated[
    bool,
    typer.Option(
        "--poisson", help="With --rate: requests come at random intervals.", rich_help_panel=_WHEN
    ),
]
Requests = Annotated[
    int | None,
    typer.Option(
        help="Requests of each terminal, which then asks no more.",
        rich_help_panel=_WHEN,
    ),
]
MixOption = Annotated[
    str | None,
    typer.Option(
        help="Weights of the transactions, e.g. new_order=45,payment=55.", rich_help_panel=_TPCC
    ),
]
Rules = Annotated[
    TransactionRules | None,
    typer.Option(
        help="Transactions follow the text of TPC-C, or BenchmarkSQL 5.", rich_help_panel=_TPCC
    ),
]
Delivery = Annotated[
    DeliveryMode | None,
    typer.Option(
        help="Deliveries run in the background, or while the terminal waits.", rich_help_panel=_TPCC
    ),
]
Home = Annotated[
    HomeMode | None,
    typer.Option(
        help="Each terminal has a warehouse of its own, or takes any.", rich_help_panel=_TPCC
    ),
]
Keying = Annotated[
    float | None,
    typer.Option(help="Factor of TPC-C's keying times.", rich_help_panel=_TPCC),
]
Think = Annotated[
    float | None,
    typer.Option(help="Factor of TPC-C's think times.", rich_help_panel=_TPCC),
]
Files = Annotated[
    list[str] | None,
    typer.Option(
        "--file", "-f", metavar="FILE[@WEIGHT]",
        help="script: a file; may be repeated, chosen by weight.",
        rich_help_panel=_OWN,
    ),
]  # fmt: skip
Variables = Annotated[
    list[str] | None,
    typer.Option(
        "--define", "-D", metavar="NAME=VALUE", help="script: a variable.", rich_help_panel=_OWN
    ),
]
Scale = Annotated[
    int | None,
    typer.Option(
        help="The variable :scale. Default: pgbench's branches, or 1.", rich_help_panel=_OWN
    ),
]
Statements = Annotated[
    bool, typer.Option("--statements", help="Print the latency of every statement.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]

_NAMES = {"file": "a file", "files": "--file", "variables": "--define"}


def spelled(name: str) -> str:
    """How an option is written whose wish has this name."""
    return _NAMES.get(name, f"--{name}")


def weights(text: str | None) -> dict[str, float] | None:
    """The weights of `--mix`.

    Raises:
        PlanError: It is not understood.
    """
    if text is None:
        return None
    try:
        pairs = [part.split("=") for part in text.split(",")]
        return {name.strip(): float(weight) for name, weight in pairs}
    except ValueError as error:
        raise PlanError(
            f"mix {text!r} is not understood", "Write it as new_order=45,payment=43."
        ) from error


def variables(texts: Iterable[str]) -> dict[str, int | float | str | bool]:
    """The variables of `--define`.

    Raises:
        PlanError: One is not understood.
    """
    found: dict[str, int | float | str | bool] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise PlanError(f"--define {text} is not understood", "Write it as NAME=VALUE.")
        try:
            found[name] = int(value) if value.lstrip("+-").isdecimal() else float(value)
        except ValueError:
            found[name] = value
    return found
