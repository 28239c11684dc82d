"""`pgdyno bench`: drives a loaded database without a plan."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.live import Live
from rich.table import Table
from rich.text import Text

from pgdyno.cli.console import stderr, stdout
from pgdyno.cli.endpoint import ConninfoOption, endpoint
from pgdyno.conduct import drive_alone
from pgdyno.drive.driver import Driven
from pgdyno.load.consistency import loaded_workload
from pgdyno.load.loader import require_release
from pgdyno.model.connection import Connection
from pgdyno.model.errors import DriveError, PlanError
from pgdyno.model.plan import Protocol, Workload
from pgdyno.model.settings import Rung
from pgdyno.model.units import count_text, ns_text
from pgdyno.stats.client_limit import client_limit, load_of


class Drivable(StrEnum):
    """Workloads that can be driven."""

    tpcc = "tpcc"


_MIX = "new_order=45,payment=43,order_status=4,delivery=4,stock_level=4"


def bench(
    workload: Annotated[Drivable, typer.Argument(help="What to drive.")],
    conninfo: ConninfoOption = "",
    connections: Annotated[int, typer.Option("--connections", "-c", min=1)] = 8,
    terminals: Annotated[
        int | None, typer.Option("--terminals", "-t", min=1, help="Default: one per connection.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Of the driver. Default: from the cores.")
    ] = None,
    warmup: Annotated[float, typer.Option(min=0, help="Seconds, not counted.")] = 5.0,
    seconds: Annotated[float, typer.Option("--seconds", "-T", min=1, help="The window.")] = 30.0,
    mix: Annotated[str, typer.Option(help="Weights of the kinds.")] = _MIX,
    isolation: Annotated[str, typer.Option()] = "read committed",
    keying: Annotated[float, typer.Option(min=0, help="Times the text's keying times.")] = 0.0,
    think: Annotated[float, typer.Option(min=0, help="Times the text's think times.")] = 0.0,
    seed: Annotated[int | None, typer.Option(help="Of the requests. Default: the data's.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Drive a loaded database for a while and print throughput, latencies and the driver's cost."""
    require_release()
    connection = endpoint(conninfo)
    loaded = loaded_workload(connection)
    driven_workload = Workload(
        kind="tpcc", warehouses=loaded.warehouses, seed=loaded.seed if seed is None else seed,
        schema=loaded.schema, foreign_keys=loaded.foreign_keys, mix=_weights(mix),
        face="statement", isolation=isolation, delivery="deferred", home="fixed",
        keying_multiplier=keying, think_multiplier=think, connections=connections,
        terminals=terminals or connections, threads=threads,
    )  # fmt: skip
    protocol = Protocol(1, warmup, seconds, 10.0, False, 0.03, 0.95, Rung.D0)
    with Live(Text("connecting"), console=stderr, transient=True, refresh_per_second=4) as live:
        driven, idle_share = drive_alone(
            connection, driven_workload, protocol, loaded.c_load,
            lambda state: live.update(Text(_progress(state))),
        )  # fmt: skip
    if as_json:
        shown = asdict(replace(driven, series=()))
        figures = {"nopm": driven.nopm, "tpm_total": driven.tpm_total}
        stdout.print_json(json.dumps({**figures, **shown}))
    else:
        _print(driven)
        stdout.print(_client_text(driven, idle_share, connection))
    if driven.error:
        raise DriveError(driven.error)


def _weights(text: str) -> dict[str, float]:
    try:
        pairs = [part.split("=") for part in text.split(",")]
        return {name.strip(): float(weight) for name, weight in pairs}
    except ValueError as error:
        raise PlanError(f"mix {text!r} is not understood", f"Write it as {_MIX}.") from error


def _progress(state: dict[str, Any]) -> str:
    tpm = 60 * sum((state.get("last_second") or {}).values())
    return f"{state['phase']}: {count_text(tpm)} tpmTotal now, {state['phase_left_s']:.0f} s left"


def _print(driven: Driven) -> None:
    columns = ("kind", "committed", "rolled back", "failed", "retries", "p50", "p95", "p99", "max")
    table = Table(*columns, box=None, pad_edge=False)
    for kind in driven.kinds:
        counts = kind.window
        retries = counts.retries_40001 + counts.retries_40p01
        numbers = (counts.succeeded, counts.rolled_back, counts.failed, retries)
        latencies = (kind.response_ns[name] for name in ("p50", "p95", "p99", "max"))
        table.add_row(kind.kind, *map(count_text, numbers), *map(ns_text, latencies))
    stdout.print(table)
    client = driven.client
    per_transaction = (client.user_s + client.system_s) / max(1, driven.transactions)
    stdout.print(
        f"{count_text(driven.nopm)} NOPM, {count_text(driven.tpm_total)} tpmTotal"
        f" over {driven.window_s:.1f} s (TPC-C-like, not a TPC result)"
    )
    stdout.print(
        f"client {ns_text(per_transaction * 1e9)} of CPU a transaction,"
        f" {client.share_of_host:.1%} of the host"
    )


def _client_text(driven: Driven, idle_share: float | None, connection: Connection) -> str:
    local = connection.host.startswith(("/", "127.")) or connection.host in ("localhost", "::1")
    load = load_of(driven.client, host_idle_share=idle_share, server_on_host=local)
    return client_limit(load).fact
