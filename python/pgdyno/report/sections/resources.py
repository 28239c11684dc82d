"""Utilisation, saturation and errors of every resource, and what processes took of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pgdyno.analysis.facts import Facts
from pgdyno.analysis.resource_facts import ProcessUse, ResourceRow
from pgdyno.analysis.words import NOTHING
from pgdyno.model.units import bytes_text, digits_text, ns_text, share_text
from pgdyno.report.document import Block, Cell, Column, Section, Table, Text


def section(facts: Facts) -> Section | None:
    """The table; None: nothing was sampled."""
    if not facts.resources and not facts.processes:
        return None
    columns = (Column("resource", align="left"), *(Column(stage.name) for stage in facts.stages))
    rows = tuple(
        (
            Cell(f"{one.resource}: {one.aspect}", note=one.what),
            *(_cell(one, value) for value in one.stages),
        )
        for one in facts.resources
    )
    about = Text(
        "Utilisation is how much of a resource is used, saturation what waits for it, errors what"
        " went wrong: means of the windows. What was not sampled is not shown."
    )
    table = Table("Resources of the host, the server and the driver.", columns, rows)
    blocks: tuple[Block, ...] = (about, table) if facts.resources else ()
    return Section("resources", "Resources", (*blocks, *_processes(facts)))


def _processes(facts: Facts) -> Iterator[Table]:
    """CPU beside reads and writes, of each role that did either."""
    columns = (Column("role", align="left"), *(Column(stage.name) for stage in facts.stages))
    for caption, of, cell in (
        ("CPUs that the server's processes used on average, by role; below, how many of them"
         " waited for one.", _of_cpu, _cpus),
        ("What the server's processes wrote to devices, by role; below, what they read from them."
         " A write counts when a page of the kernel's cache became dirty, not when the kernel wrote"
         " it.", _of_bytes, _bytes),
    ):  # fmt: skip
        rows = tuple(
            (Cell(_ROLES.get(one.role, one.role)), *map(cell, one.stages))
            for one in facts.processes
            if any(use is not None and any(of(use)) for use in one.stages)
        )
        if rows:
            yield Table(caption, columns, rows)


def _of_cpu(use: ProcessUse) -> tuple[float | None, float | None]:
    return use.cpus, use.waiting


def _of_bytes(use: ProcessUse) -> tuple[float | None, float | None]:
    return use.written_bytes_per_s, use.read_bytes_per_s


_ROLES = {
    "backend": "backends", "background_writer": "background writer", "wal_writer": "WAL writer",
    "io_worker": "I/O workers", "walsender": "WAL senders", "startup": "recovery",
    "telemetry": "pgdyno's own sessions", "other": "postmaster and others",
    "unseen": "ended before they were looked at again",
}  # fmt: skip


def _cpus(use: ProcessUse | None) -> Cell:
    if use is None or use.cpus is None:
        return Cell(NOTHING, "quiet")
    return Cell(_level(use.cpus), note=_noted("{} waited", use.waiting, _level))


def _bytes(use: ProcessUse | None) -> Cell:
    if use is None or use.written_bytes_per_s is None:
        return Cell(NOTHING, "quiet")
    return Cell(
        _per_s(use.written_bytes_per_s), note=_noted("read {}", use.read_bytes_per_s, _per_s)
    )


def _noted(words: str, value: float | None, text: Callable[[float], str]) -> str | None:
    return None if value is None else words.format(text(value))


def _per_s(value: float) -> str:
    return f"{bytes_text(value)}/s"


def _level(value: float) -> str:
    return "0" if value == 0 else digits_text(value)


def _cell(row: ResourceRow, value: float | None) -> Cell:
    if value is None:
        return Cell(NOTHING, "quiet")
    match row.unit:
        case "share":
            return Cell(share_text(value))
        case "s":
            return Cell(ns_text(value * 1e9))
        case "bytes_per_s":
            return Cell(_per_s(value))
        case _:
            return Cell(_level(value))
