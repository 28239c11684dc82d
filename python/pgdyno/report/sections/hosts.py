"""The hosts that the load came from: what each did, and how they kept time together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgdyno.analysis import words
from pgdyno.analysis.facts import Facts
from pgdyno.analysis.host_facts import DegradedRow, FleetFacts, HostRow
from pgdyno.model.units import count_text, ns_text, share_text
from pgdyno.report.document import Block, Cell, Column, Points, Section, Table, Text, columns


def section(facts: Facts) -> Section | None:
    """By stage and host; None: the load came from one process."""
    if facts.fleet is None:
        return None
    return Section("hosts", "Hosts that made the load", tuple(_blocks(facts.fleet)))


def _blocks(fleet: FleetFacts) -> Iterator[Block]:
    yield Text(
        "Each host drove its part of the terminals. All began at one instant, by the offsets of"
        " their steady clocks; counts and histograms of all are added up, so that percentiles are"
        " those of all requests."
    )
    if fleet.degraded:
        yield from _degraded(fleet.degraded)
    if not fleet.hosts:
        return
    remarks = [f"`{row.host}` in {row.stage}: {one}" for row in fleet.hosts for one in row.remarks]
    if remarks:
        yield Points(tuple(remarks), "warn")
    else:
        yield Text("No host was the limit, and none was unlike the others.")
    if any(row.ceiling_share is None for row in fleet.hosts):
        yield Text("Ceilings are not known of all hosts: `pgdyno fleet check --calibrate` measures"
                   " them.")  # fmt: skip
    yield Table(
        "What each host did: medians of rounds; of times the worst round.",
        (Column("stage", align="left"), Column("host", align="left"), Column("terminals"),
         Column("connections"), Column("transactions", "1/s"), Column("of all"),
         Column("of its ceiling"), Column("CPU", "µs"), Column("of its CPUs"),
         Column("busiest thread"), Column("service"), Column("late p99.9")),
        tuple(_row(row) for row in fleet.hosts),
    )  # fmt: skip
    if any(row.beside is not None for row in fleet.hosts):
        yield Table(
            "What else the hosts did in the window: the worst round.",
            (Column("stage", align="left"), Column("host", align="left"),
             Column("CPUs used by others"), Column("busiest network card", align="left"),
             Column("CPUs that carried lines to the head", align="left")),
            tuple(_around(row) for row in fleet.hosts if row.beside is not None),
            folded=True,
        )  # fmt: skip
    yield Table(
        "How they kept time: each host's clock against the head's.",
        (Column("stage", align="left"), Column("host", align="left"), Column("known to"),
         Column("drift", "ppm"), Column("began late")),
        tuple(_clock(row) for row in fleet.hosts),
        folded=True,
    )  # fmt: skip
    yield Table(
        "How much of the window all hosts drove, at least; and how far apart they began, at most.",
        columns("stage", "hosts", "together", "began apart"),
        tuple(
            (Cell(one.stage), Cell(str(one.hosts)), Cell(f"{one.overlap:.3%}"),
             Cell(ns_text(one.skew_ns)))
            for one in fleet.stages
        ),
    )  # fmt: skip
    yield Table(
        "What the hosts are.",
        (Column("host", align="left"), Column("machine", align="left")),
        tuple((Cell(name), Cell(text)) for name, text in fleet.machines),
        folded=True,
    )


def _degraded(trials: Sequence[DegradedRow]) -> Iterator[Block]:
    said = (f"Trial {one.trial} ({one.stage}, round {one.round}): {'; '.join(one.lost)}."
            for one in trials)  # fmt: skip
    yield Points(tuple(said), "warn")
    yield Table(
        "Degraded trials: numbers of the hosts that were left, for another load than the plan's."
        " They are in no comparison, no mean and no verdict.",
        (Column("trial", align="left"), Column("round"), Column("hosts left"),
         Column("terminals lost"), Column("connections lost"), Column("throughput"),
         Column("tpmTotal")),
        tuple(
            (Cell(f"{one.trial} {one.stage}"), Cell(str(one.round)), Cell(str(one.hosts)),
             Cell(str(one.terminals_lost)), Cell(str(one.connections_lost)),
             _count(one.throughput), _count(one.tpm_total))
            for one in trials
        ),
    )  # fmt: skip


def _count(value: float | None) -> Cell:
    return Cell(words.NOTHING if value is None else count_text(value))


def _row(row: HostRow) -> tuple[Cell, ...]:
    unlike = "–" if row.unlike is None else f"{row.unlike:+.0%}"
    return (
        Cell(row.stage),
        Cell(row.host),
        Cell(str(row.terminals)),
        Cell(str(row.connections)),
        Cell(f"{row.per_s:,.0f}"),
        Cell(share_text(row.share)),
        Cell(words.NOTHING if row.ceiling_share is None else share_text(row.ceiling_share)),
        Cell(f"{row.cpu_us:,.0f}"),
        Cell(share_text(row.cpu_share)),
        Cell(share_text(row.wanted)),
        Cell(unlike),
        Cell(ns_text(row.late_p999_ns)),
    )


def _around(row: HostRow) -> tuple[Cell, ...]:
    carriers = [f"{name} {cpus:.2f}" for name, cpus in row.carriers.items()]
    return (
        Cell(row.stage),
        Cell(row.host),
        Cell(words.NOTHING if row.beside is None else share_text(row.beside)),
        Cell(row.card or words.NOTHING),
        Cell(", ".join(carriers) or words.NOTHING),
    )


def _clock(row: HostRow) -> tuple[Cell, ...]:
    return (
        Cell(row.stage),
        Cell(row.host),
        Cell(f"±{ns_text(row.bound_ns)}"),
        Cell(f"{row.drift_ppm:+.1f}", note=f"±{row.drift_bound_ppm:.1f}"),
        Cell(ns_text(row.begun_late_ns)),
    )
