"""What driver and samplers recorded while a window was driven."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TypeVar

from pgdyno.drive.result import Driven
from pgdyno.model import counters
from pgdyno.model.counters import begun_anew, ends_in_gap, fell_within
from pgdyno.model.resets import began_anew, resets_ns, view_of
from pgdyno.model.run import (
    Missing,
    SamplerCost,
    Series,
    SnapshotRows,
    TallySeries,
    TelemetryReport,
)
from pgdyno.model.sampler_gaps import APART_S, gaps_of, late_looks
from pgdyno.model.server_result import of_server
from pgdyno.model.statement_counts import statement_growth
from pgdyno.model.units import bytes_text
from pgdyno.model.wording import listed, plural
from pgdyno.sample.logged import left_out_bytes

_SHOWN = 3  # counters that a note names
_CLOCK_SET_S = 0.5  # what is less is not seen on an axis of seconds
Named = TypeVar("Named", Series, TallySeries, SnapshotRows, SamplerCost, Missing)


@dataclass(frozen=True, slots=True)
class Sampled:
    """What was recorded; what is of one of several servers has its name before its own."""

    series: Sequence[Series] = ()  # the driver's first
    tallies: Sequence[TallySeries] = ()
    snapshots: Sequence[SnapshotRows] = ()
    telemetry: TelemetryReport | None = None  # None: nothing was driven
    servers: Mapping[str, Sequence[Series]] = field(default_factory=dict)  # each by its own names
    clock_set_s: float = 0.0  # so much this host's clock of the day was set ahead meanwhile

    @property
    def stored(self) -> tuple[Series, ...]:
        """All series, by names that differ."""
        of_servers = (named_by(server, series) for server, series in self.servers.items())
        return (*self.series, *chain.from_iterable(of_servers))

    def snapshots_of(self, server: str | None = None) -> list[SnapshotRows]:
        """Those of one of several servers by their own names; None: those that have no server."""
        if server is None:
            return list(self.snapshots)
        begin = of_server(server, "")
        return [
            replace(one, name=one.name.removeprefix(begin))
            for one in self.snapshots
            if one.name.startswith(begin)
        ]

    def anew(self, server: str | None = None) -> frozenset[str]:
        """Views of a server that were reset in the window, as far as it tells."""
        return began_anew(self.snapshots_of(server))


def named_by(server: str, own: Sequence[Named]) -> list[Named]:
    """What was recorded of one of several servers, with its name before their own."""
    return [replace(one, name=of_server(server, one.name)) for one in own]


def growth(
    series: Sequence[Series], driven: Driven, anew: Collection[str] = ()
) -> dict[str, float]:
    """Growth of the counters over the window, of those of which it is known.

    Args:
        series: Of one server, or of this host.
        driven: Has the window.
        anew: Views of the server that were reset in it.
    """
    return {
        s.name: value
        for s in series
        if s.kind == "counter" and (value := counters.growth(s, driven.window_ns, anew)) is not None
    }


def growth_of_all(sampled: Sampled, driven: Driven) -> dict[str, float]:
    """The same of a trial: of several servers, what they have together, where all have it."""
    each = [
        growth(series, driven, sampled.anew(server)) for server, series in sampled.servers.items()
    ]
    names = [name for name in each[0] if all(name in one for one in each)] if each else []
    together = {name: sum(one[name] for one in each) for name in names}
    return growth(sampled.series, driven, sampled.anew()) | together


def notes_of(sampled: Sampled, driven: Driven) -> tuple[str, ...]:
    """What of the sampling went wrong: samplers that stopped, counters that began anew."""
    costs = sampled.telemetry.samplers if sampled.telemetry else ()
    stopped = [f"sampler {one.name} stopped: {one.failure}" for one in costs if one.failure]
    gaps = [f"{who} {told}" for who, told in gaps_of(costs)]
    late = [
        f"{who} {when}: what was counted in the window is not known"
        for who, when in late_looks(sampled.snapshots, driven.window_ns)
    ]
    return (*stopped, *gaps, *late, *_apart(sampled, driven), *_fallen(sampled, driven),
            *_outgrown(sampled, driven), *_statements(sampled), *_clock(sampled),
            *_log(sampled))  # fmt: skip


def _log(sampled: Sampled) -> Iterator[str]:
    """Of a server that is not ours, whose log was read by SQL."""
    if left_out := left_out_bytes(sampled.snapshots):
        yield (
            f"the last {bytes_text(left_out)} of the server's log were too much to be read: what"
            " they tell is not on the axis of time"
        )


def _clock(sampled: Sampled) -> Iterator[str]:
    """Samples keep to a clock that goes evenly; a log has the one of the day."""
    if (by_s := abs(sampled.clock_set_s)) >= _CLOCK_SET_S:
        way = "ahead" if sampled.clock_set_s > 0 else "back"
        yield (
            f"this host's clock was set {way} by {by_s:,.1f} s while the load ran, or the machine"
            " stood still: what the server's log tells may stand at seconds that far off, and ages"
            " of transactions may be wrong by as much"
        )


def _apart(sampled: Sampled, driven: Driven) -> Iterator[str]:
    yield from _unknown(
        [one.name for one in sampled.stored
         if one.kind == "counter" and ends_in_gap(one, driven.window_ns)],
        f"went without a look for more than {APART_S:g} s around an end of the window,",
    )  # fmt: skip


def _fallen(sampled: Sampled, driven: Driven) -> Iterator[str]:
    yield from _unknown(
        [one.name for one in sampled.stored
         if one.kind == "counter" and fell_within(one, driven.window_ns)],
        "began anew in the window, as after a reset of statistics,",
    )  # fmt: skip


def _unknown(names: Sequence[str], why: str) -> Iterator[str]:
    """Counters of which is not known what they grew by."""
    if names:
        more = [f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
        shown = listed([*names[:_SHOWN], *more])
        yield f"{plural(len(names), 'counter')} {why} with unknown growth: {shown}"


def _outgrown(sampled: Sampled, driven: Driven) -> Iterator[str]:
    for server in (None, *sampled.servers):
        series = sampled.series if server is None else sampled.servers[server]
        looks = sampled.snapshots_of(server)
        if anew := sorted(sampled.anew(server)):
            told = [f"{view} {_times(view, series, looks, driven)}" for view in anew]
            yield (
                f"statistics were reset in the window, so that what they grew by is not known:"
                f" {_on(server, listed(told))}"
            )


def _times(
    view: str, series: Sequence[Series], looks: Sequence[SnapshotRows], driven: Driven
) -> str:
    """How often a view was reset: the server keeps the last time, and others are seen by a fall."""
    seen = [
        begun_anew(one, driven.window_ns, resets_ns(one.name, looks))
        for one in series if one.kind == "counter" and view_of(one.name) == view
    ]  # fmt: skip
    least = max([1, *seen])
    return "at least once" if least == 1 else f"at least {least:,} times"


def _statements(sampled: Sampled) -> Iterator[str]:
    for server in (None, *sampled.servers):
        found = statement_growth(sampled.snapshots_of(server))
        if found is None:
            continue
        if found.unknown:
            entries = plural(found.unknown, "entry", "entries", thousands=True)
            yield _on(
                server,
                f"{entries} of pg_stat_statements began anew in the window, or had not been read"
                " before it, with unknown growth",
            )
        if found.evictions:
            yield _on(
                server,
                f"pg_stat_statements threw out seldom called statements"
                f" {plural(found.evictions, 'time', thousands=True)} in the window: what those"
                " counted is lost; raise pg_stat_statements.max to keep them",
            )


def _on(server: str | None, text: str) -> str:
    return text if server is None else of_server(server, text)
