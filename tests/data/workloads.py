"""Workloads as tests load them."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

from pgdyno.loader.copy import How, load
from pgdyno.model.connection import Connection
from pgdyno.model.record_json import from_json, to_json
from pgdyno.model.workload import Pgbench, Tpcc, Workload


def tpcc(warehouses: int = 1, seed: int = 7, **keys: Any) -> Workload:
    return Workload("tpcc", seed, tpcc=Tpcc(warehouses, **keys))


def tpcb(scale: int = 1, **keys: Any) -> Workload:
    return Workload("tpcb", 42, pgbench=Pgbench(scale, **keys))


def changed(workload: Workload, **keys: Any) -> Workload:
    """The same with other parameters of TPC-C or pgbench."""
    if workload.tpcc is not None:
        return replace(workload, tpcc=replace(workload.tpcc, **keys))
    assert workload.pgbench is not None
    return replace(workload, pgbench=replace(workload.pgbench, **keys))


def loading(connection: Connection, workload: Workload, **how: Any) -> list[str]:
    """The command of a process that loads."""
    at = [connection.host, str(connection.port), connection.user, connection.database]
    return [sys.executable, "-m", "tests.data.workloads", *at, to_json(workload), repr(how)]


if __name__ == "__main__":
    import ast

    host, port, user, database, record, said = sys.argv[1:]
    options = ast.literal_eval(said)
    at = options.pop("loaded_at_unix_s")
    there = Connection(host, int(port), user, database)
    load(there, from_json(Workload, record), How(**options), loaded_at_unix_s=at)
