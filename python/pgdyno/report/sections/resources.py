"""Utilisation, saturation and errors of every resource, stages side by side."""

from __future__ import annotations

from pgdyno.analysis.facts import Facts
from pgdyno.analysis.resource_facts import ResourceRow
from pgdyno.analysis.words import NOTHING
from pgdyno.model.units import bytes_text, digits_text, ns_text, share_text
from pgdyno.report.document import Cell, Column, Section, Table, Text


def section(facts: Facts) -> Section | None:
    """The table; None: nothing was sampled."""
    if not facts.resources:
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
    return Section("resources", "Resources", (about, table))


def _cell(row: ResourceRow, value: float | None) -> Cell:
    if value is None:
        return Cell(NOTHING, "quiet")
    match row.unit:
        case "share":
            return Cell(share_text(value))
        case "s":
            return Cell(ns_text(value * 1e9))
        case "bytes_per_s":
            return Cell(f"{bytes_text(value)}/s")
        case _:
            return Cell("0" if value == 0 else digits_text(value))
