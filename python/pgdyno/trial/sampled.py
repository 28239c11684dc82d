"""What driver and samplers recorded while a window was driven."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TypeVar

from pgdyno.drive.result import Driven
from pgdyno.model.run import (
    Missing,
    SamplerCost,
    Series,
    SnapshotRows,
    TallySeries,
    TelemetryReport,
)
from pgdyno.model.server_result import of_server
from pgdyno.model.wording import listed, plural
from pgdyno.sample.recorder import delta, fell_within

_SHOWN = 3  # counters that a note names
_Named = TypeVar("_Named", Series, TallySeries, SnapshotRows, SamplerCost, Missing)


@dataclass(frozen=True, slots=True)
class Sampled:
    """What was recorded; what is of one of several servers has its name before its own."""

    series: Sequence[Series] = ()  # the driver's first
    tallies: Sequence[TallySeries] = ()
    snapshots: Sequence[SnapshotRows] = ()
    telemetry: TelemetryReport | None = None  # None: nothing was driven
    servers: Mapping[str, Sequence[Series]] = field(default_factory=dict)  # each by its own names

    @property
    def stored(self) -> tuple[Series, ...]:
        """All series, by names that differ."""
        of_servers = (named_by(server, series) for server, series in self.servers.items())
        return (*self.series, *chain.from_iterable(of_servers))


def named_by(server: str, own: Sequence[_Named]) -> list[_Named]:
    """What was recorded of one of several servers, with its name before their own."""
    return [replace(one, name=of_server(server, one.name)) for one in own]


def growth(series: Sequence[Series], driven: Driven) -> dict[str, float]:
    """Growth of the counters over the window, of those whose samples cover it."""
    return {
        s.name: value
        for s in series
        if s.kind == "counter" and (value := delta(s, driven.window_ns)) is not None
    }


def growth_of_all(sampled: Sampled, driven: Driven) -> dict[str, float]:
    """The same of a trial: of several servers, what they have together, where all have it."""
    each = [growth(series, driven) for series in sampled.servers.values()]
    names = [name for name in each[0] if all(name in one for one in each)] if each else []
    together = {name: sum(one[name] for one in each) for name in names}
    return growth(sampled.series, driven) | together


def notes_of(sampled: Sampled, driven: Driven) -> tuple[str, ...]:
    """What of the sampling went wrong: samplers that stopped, counters that began anew."""
    costs = sampled.telemetry.samplers if sampled.telemetry else ()
    stopped = [f"sampler {one.name} stopped: {one.failure}" for one in costs if one.failure]
    fallen = [
        one.name
        for one in sampled.stored
        if one.kind == "counter" and fell_within(one, driven.window_ns)
    ]
    if not fallen:
        return tuple(stopped)
    more = [f"{len(fallen) - _SHOWN} more"] if len(fallen) > _SHOWN else []
    return (
        *stopped,
        f"{plural(len(fallen), 'counter')} began anew in the window, as after a reset of"
        f" statistics, with unknown growth: {listed([*fallen[:_SHOWN], *more])}",
    )
