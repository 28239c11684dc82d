"""Utilisation, saturation and errors of every resource that was sampled, for each stage.

What is measured of each stands in `resource_measures`, what that is made of in `resource_parts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from pgdyno.analysis.resource_facts import Aspect, ResourceRow
from pgdyno.analysis.resource_measures import (
    DEVICE,
    HOST,
    INTERFACE,
    NETWORK,
    POOLER,
    SERVER,
    device_measures,
    interface_measures,
    not_counted,
)
from pgdyno.analysis.resource_parts import cpu_parts, group_measures, memory_parts
from pgdyno.analysis.seen import (
    Measure,
    Seen,
    SeriesByTrial,
    TalliesByTrial,
    mean_of,
    seen_by_stage,
)
from pgdyno.model.run import SnapshotRows, TrialRecord
from pgdyno.model.wording import plural

SHOWN_MAX = 12  # devices, and interfaces: those that did most
_DONE_BY = {DEVICE: ("busy_s",), INTERFACE: ("rx_packets", "tx_packets")}
_USE: tuple[Aspect, ...] = ("utilisation", "saturation", "errors")
_ORDER: tuple[Aspect, ...] = (*_USE, "limit", "part")


def _of_further_devices(names: Sequence[str]) -> Iterator[Measure]:
    """What is said of those that are not shown; lines over time have none of them either."""

    def busiest(seen: Seen) -> float | None:
        shares = (seen.per_s(f"{DEVICE}{name}.busy_s") for name in names)
        return max((one for one in shares if one is not None), default=None)

    if names:
        what = "share of time with a request under way, of the busiest of them"
        yield Measure(plural(len(names), "further device"), "utilisation", what, busiest)


def _of_further_interfaces(names: Sequence[str]) -> Iterator[Measure]:
    def packets(seen: Seen) -> float | None:
        ways = [f"{INTERFACE}{name}.{way}" for name in names for way in _DONE_BY[INTERFACE]]
        return seen.per_s(*ways)

    if names:
        what = "packets in and out of all of them, a second"
        yield Measure(
            plural(len(names), "further interface"), "utilisation", what, packets, "per_s"
        )


def members(names: Iterable[str], prefix: str) -> list[str]:
    """Devices or interfaces that columns are named of, e.g. `vda` of `device.vda.reads`.

    Their names may have dots, as those of VLANs have: `bond0.100`.
    """
    found = (name.removeprefix(prefix).rpartition(".") for name in names if name.startswith(prefix))
    return sorted({member for member, _, _ in found if member})


def shown(trials: Iterable[TrialRecord], names: Sequence[str], prefix: str = DEVICE) -> list[str]:
    """Of devices or interfaces those that did most in any window, by their names.

    A host may have hundreds, which nobody would read: a path for each way to each disk.
    """
    deltas = [one.result.deltas for one in trials if one.result is not None]

    def most(name: str) -> float:
        columns = [f"{prefix}{name}.{column}" for column in _DONE_BY[prefix]]
        return max(sum(one.get(column, 0.0) for column in columns) for one in deltas)

    return sorted(sorted(names, key=most, reverse=True)[:SHOWN_MAX])


def _used(seen: Sequence[Seen], prefix: str, *columns: str) -> list[str]:
    """Those that did anything in any window."""
    return [
        name
        for name in members((name for one in seen for name in one.result.deltas), prefix)
        if any(one.result.deltas.get(f"{prefix}{name}.{column}", 0) > 0
               for one in seen for column in columns)
    ]  # fmt: skip


def resource_rows(
    stages: Sequence[str],
    trials: Sequence[TrialRecord],
    series: SeriesByTrial,
    tallies: TalliesByTrial | None = None,
    snapshots: Mapping[int, Sequence[SnapshotRows]] | None = None,
) -> tuple[ResourceRow, ...]:
    """Every measure that is known of any stage, resource by resource.

    Args:
        stages: Their names, in the order of the plan.
        trials: Those whose numbers may be used.
        series: Of each trial, by its number and their names.
        tallies: Likewise; None: nobody looked at moments.
        snapshots: Likewise.
    """
    seen = seen_by_stage(stages, trials, series, tallies or {}, snapshots or {})
    everything = [one for each in seen.values() for one in each]
    rows = [_row(measure, seen) for measure in _measures(trials, everything)]
    told = [row for row in rows if any(value is not None for value in row.stages)]
    measured = {(row.resource, row.aspect) for row in rows}
    told = [*told, *_absent(told, measured, len(stages))]
    places = {resource: place for place, resource in enumerate(dict.fromkeys(
        row.resource for row in rows))}  # fmt: skip
    told.sort(key=lambda row: (places[row.resource], _ORDER.index(row.aspect)))
    return tuple(told)


def _absent(
    told: Sequence[ResourceRow], measured: Set[tuple[str, Aspect]], stages: int
) -> Iterator[ResourceRow]:
    """What is not known of a resource of which something is: said, and not left out.

    Args:
        told: What is known.
        measured: Of which resource which aspects would be, where everything is sampled.
        stages: How many.
    """
    by_resource: dict[str, list[ResourceRow]] = {}
    for row in told:
        by_resource.setdefault(row.resource, []).append(row)
    for resource, rows in by_resource.items():
        known, is_further = {row.aspect for row in rows}, all(row.further for row in rows)
        if resource[0].isdigit() or not known & set(_USE):  # a number of further devices
            continue
        for aspect in (one for one in _USE if one not in known):
            why = (
                "not known here: not sampled, or there is none" if (resource, aspect) in measured
                else f"not counted: {not_counted(resource, aspect)}"
            )  # fmt: skip
            yield ResourceRow(resource, aspect, why, "uncounted", (None,) * stages, is_further)


def _measures(trials: Sequence[TrialRecord], seen: Sequence[Seen]) -> Iterator[Measure]:
    yield from HOST
    devices = _used(seen, DEVICE, "reads", "writes", "flushes")
    most = shown(trials, devices)
    for device in most:
        yield from device_measures(device)
    yield from _of_further_devices([one for one in devices if one not in most])
    interfaces = _used(seen, INTERFACE, "rx_packets", "tx_packets")
    most = shown(trials, interfaces, INTERFACE)
    for interface in most:
        yield from interface_measures(interface)
    yield from _of_further_interfaces([one for one in interfaces if one not in most])
    yield from NETWORK
    yield from group_measures(seen)
    yield from POOLER
    yield from SERVER
    yield from cpu_parts(seen)
    yield from memory_parts()


def _row(measure: Measure, seen: Mapping[str, Sequence[Seen]]) -> ResourceRow:
    values = tuple(mean_of(map(measure.measured, windows)) for windows in seen.values())
    return ResourceRow(
        measure.resource, measure.aspect, measure.what, measure.unit, values, measure.further
    )
