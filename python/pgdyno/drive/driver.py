"""The driver process: started with a spec, watched, stopped, and its result read into records.

The driver runs apart (`python -m pgdyno.drive.worker`), so that neither samplers nor the garbage
collector share its address space, and its crash is a failed trial, not a lost plan.
"""

from __future__ import annotations

import json
import queue
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from pgdyno.model.connection import Connection
from pgdyno.model.errors import DriveError
from pgdyno.model.plan import Protocol, Workload
from pgdyno.model.run import AuditLine, Client, KindResult, Series
from pgdyno.shell import Process, start

_SILENCE_S = 120.0  # the worker speaks twice a second; longer silence means that it hangs
_MINUTE_S = 60.0


@dataclass(frozen=True, slots=True)
class Driven:
    """What the driver measured."""

    outcome: str  # complete | stopped | gave_up
    error: str | None
    window_ns: tuple[int, int]
    window_s: float
    kinds: tuple[KindResult, ...]
    client: Client
    audit: tuple[AuditLine, ...]
    errors: tuple[dict[str, Any], ...]
    reconnects: int
    statements_per_transaction: float
    round_trips_per_transaction: float
    series: tuple[Series, ...]

    @property
    def transactions(self) -> int:
        """Transactions that came to their end in the window, rollbacks included."""
        return sum(kind.window.succeeded + kind.window.rolled_back for kind in self.kinds)

    @property
    def nopm(self) -> float:
        """Committed New-Orders a minute."""
        orders = sum(kind.window.succeeded for kind in self.kinds if kind.kind == "new_order")
        return orders / self.window_s * _MINUTE_S

    @property
    def tpm_total(self) -> float:
        """All transactions that came to their end a minute, rollbacks included."""
        return self.transactions / self.window_s * _MINUTE_S


def workload_spec(workload: Workload, c_load: dict[str, int] | None) -> dict[str, Any]:
    """The workload as the core wants it (`TpccSpec`)."""
    return {
        "kind": workload.kind,
        "schema": workload.schema,
        "warehouses": workload.warehouses,
        "seed": workload.seed,
        "face": workload.face,
        "mix": workload.mix,
        "isolation": workload.isolation,
        "delivery": workload.delivery,
        "home": workload.home,
        "keying_multiplier": workload.keying_multiplier,
        "think_multiplier": workload.think_multiplier,
        "foreign_keys": workload.foreign_keys,
        "c_load": c_load,
    }


def drive(
    connection: Connection,
    workload: Workload,
    protocol: Protocol,
    c_load: dict[str, int] | None,
    progress: Callable[[dict[str, Any]], None] = lambda _: None,
) -> Driven:
    """Drive one window.

    Args:
        connection: The loaded database.
        workload: What is driven, with how many terminals over how many connections.
        protocol: Seconds of warm-up, window and drain.
        c_load: The constants that the data were loaded with.
        progress: Told twice a second.

    Raises:
        DriveError: The driver failed, crashed, or fell silent.
        KeyboardInterrupt: Ctrl-C; the driver is stopped first.
    """
    spec = {
        "version": 1,
        "workload": workload_spec(workload, c_load),
        "connection": connection.spec(),
        "connections": workload.connections,
        "terminals": workload.terminals,
        "threads": workload.threads,
        "warmup_s": protocol.warmup_s,
        "window_s": protocol.window_s,
        "drain_s": protocol.drain_s,
    }
    process = start([sys.executable, "-m", "pgdyno.drive.worker"], pipes=True,
                    dies_with_us=signal.SIGTERM)  # fmt: skip
    try:
        # On its standard input, so that a password stands on no command line.
        process.stdin.write(json.dumps(spec) + "\n")
        process.stdin.close()
        last = _watch(process, progress)
    except BrokenPipeError as error:
        raise DriveError(f"the driver ended with code {process.wait(5)}") from error
    finally:
        if process.code() is None:
            process.signal(signal.SIGTERM)
            if process.wait(protocol.drain_s + 5) is None:
                process.kill()
        process.close_pipes()
    return parse_result(last)


def _watch(process: Process, progress: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    lines: queue.Queue[str | None] = queue.Queue()

    def pump() -> None:
        with suppress(ValueError):  # we have given up and closed it
            for line in process.stdout:
                lines.put(line)
        lines.put(None)

    threading.Thread(target=pump, name="pgdyno driver output", daemon=True).start()
    return _last(process, lines, progress)


def _last(
    process: Process,
    lines: queue.Queue[str | None],
    progress: Callable[[dict[str, Any]], None],
) -> dict[str, Any]:
    while True:
        try:
            line = lines.get(timeout=_SILENCE_S)
        except queue.Empty:
            raise DriveError(f"the driver said nothing for {_SILENCE_S:.0f} s") from None
        if line is None:
            raise DriveError(f"the driver ended with code {process.wait(5)} and without a result")
        message = json.loads(line)
        if "error" in message:
            error = message["error"]
            raise DriveError(error["fact"], error.get("hint"))
        if "result" in message:
            result: dict[str, Any] = message["result"]
            return result
        progress(message)


def parse_result(raw: dict[str, Any]) -> Driven:
    """The worker's result as records; the shape stands in `crates/drive/src/result.rs`."""
    kinds = [
        {("kind" if key == "name" else key): value for key, value in kind.items()}
        for kind in raw["kinds"]
    ]
    start_ns, end_ns = raw["window_unix_ns"]
    return Driven(
        outcome=raw["outcome"],
        error=raw["error"],
        window_ns=(start_ns, end_ns),
        window_s=raw["window_s"],
        kinds=TypeAdapter(tuple[KindResult, ...]).validate_python(kinds),
        client=TypeAdapter(Client).validate_python(raw["client"]),
        audit=TypeAdapter(tuple[AuditLine, ...]).validate_python(raw["audit"]),
        errors=tuple(raw["errors"]),
        reconnects=raw["reconnects"],
        statements_per_transaction=raw["statements_per_transaction"],
        round_trips_per_transaction=raw["round_trips_per_transaction"],
        series=tuple(_series(raw["seconds"])),
    )


def _series(seconds: dict[str, Any]) -> list[Series]:
    columns = {f"driver.committed.{kind}": n for kind, n in seconds["committed"].items()}
    columns |= {f"driver.{name}": seconds[name] for name in ("rolled_back", "failed", "retries")}
    result = []
    for name, counts in columns.items():
        # A count belongs to the second that begins at its time.
        at = seconds["start_unix_ns"] + np.arange(len(counts), dtype=np.int64) * 1_000_000_000
        result.append(Series(name, "1/s", "rate", at, np.array(counts, dtype=np.float64)))
    return result
