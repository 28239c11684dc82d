"""What a transaction costs: counters of the window divided by the transactions that ended in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pgdyno.model.run import TrialResult
from pgdyno.model.units import bytes_text

US = 1e6


@dataclass(frozen=True, slots=True)
class Metric:
    """A cost of one transaction. `total` is None where it was not measured."""

    name: str  # the unit is in it
    head: str
    unit: str | None
    total: Callable[[TrialResult], float | None]
    text: Callable[[float], str]


def _delta(name: str, scale: float = 1.0) -> Callable[[TrialResult], float | None]:
    def total(result: TrialResult) -> float | None:
        found = result.deltas.get(name)
        return None if found is None else found * scale

    return total


def _client_cpu_us(result: TrialResult) -> float | None:
    return None if (cpu_s := result.client.cpu_s) is None else cpu_s * US


def _sleeps(result: TrialResult) -> float | None:
    return result.client.voluntary_switches


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _hundredths(value: float) -> str:
    return f"{value:.2f}"


def _fraction(value: float) -> str:
    return f"{value:.3f}"


METRICS = (
    Metric("server_cpu_us", "server CPU", "µs", _delta("server.cpu_s", US), _whole),
    Metric("client_cpu_us", "client CPU", "µs", _client_cpu_us, _whole),
    Metric("client_sleeps", "driver sleeps", None, _sleeps, _hundredths),
    Metric("ipis", "IPIs", None, _delta("host.ipis"), _hundredths),
    Metric("wal_bytes", "WAL", None, _delta("wal.bytes"), bytes_text),
    Metric("wal_fpi", "full page images", None, _delta("wal.fpi"), _fraction),
    Metric("read_bytes", "read", None, _delta("disk.read_bytes"), bytes_text),
    Metric("reads", "read requests", None, _delta("disk.reads"), _fraction),
    Metric("write_bytes", "written", None, _delta("disk.write_bytes"), bytes_text),
    Metric("writes", "write requests", None, _delta("disk.writes"), _fraction),
)


def transactions(result: TrialResult) -> int:
    """Transactions that came to their end in the window, rollbacks included."""
    return sum(kind.window.ended for kind in result.kinds)


def per_transaction(result: TrialResult) -> dict[str, float]:
    """Each measured cost divided by the transactions; empty where none ended."""
    count = transactions(result)
    if count == 0:
        return {}
    totals = ((metric.name, metric.total(result)) for metric in METRICS)
    return {name: total / count for name, total in totals if total is not None}
