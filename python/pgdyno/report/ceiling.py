"""What the driver reaches on a machine, as a document: a line for each face of the workload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from rich.console import Group, RenderableType
from rich.text import Text

from pgdyno.analysis.calibration_facts import CalibrationFacts
from pgdyno.model.calibration import Ceiling, Estimate
from pgdyno.model.text import json_document
from pgdyno.model.units import count_text, moment_text, ns_text
from pgdyno.model.wording import plural
from pgdyno.report.document import Cell, Document, Points, Section, Table, columns
from pgdyno.report.html import render_document as render_page
from pgdyno.report.markdown import render_document as render_markdown
from pgdyno.report.terminal import printed

_NS = 1e9


def render_html(facts: CalibrationFacts) -> str:
    """The page."""
    return render_page(document(facts), {}, facts.pgdyno, facts.ident)


def render_md(facts: CalibrationFacts) -> str:
    """The same as Markdown."""
    return render_markdown(document(facts), facts.pgdyno, facts.ident)


def render_json(facts: CalibrationFacts) -> str:
    """What was measured, and the ceilings, in base units."""
    document = {
        "schema": "pgdyno.experiment.calibration/1",
        "ident": facts.ident,
        "measured": asdict(facts.measured),
        "ceilings": [asdict(one) for one in facts.ceilings],
    }
    return json_document(document)


def summary(facts: CalibrationFacts) -> RenderableType:
    """The table and what it holds for, for a terminal."""
    sentences = (Text(sentence) for sentence in remarks(facts))
    return Group(printed(table(facts.ceilings)), *sentences)


def document(facts: CalibrationFacts) -> Document:
    """Arrange it for reading."""
    found, machine = facts.ceilings, facts.machine
    return Document(
        title="What does the driver reach on this machine?",
        kicker=f"pgdyno calibrate · {moment_text(facts.started_unix_ns)}",
        label="Own measurement",
        about=(machine.cpu_model, f"{machine.cpus} CPUs", f"kernel {machine.kernel}"),
        answer=tuple(
            f"Face {one.face}: {_count(one.transactions_per_s)} transactions/s against a server"
            f" that does nothing; the limit was the {one.limit}."
            for one in found
        ),
        cards=(),
        sections=(Section("ceilings", "Ceilings", (table(found), Points(tuple(remarks(facts))))),),
    )


def table(found: Sequence[Ceiling]) -> Table:
    """A line for each face."""
    heads = columns("face", "transactions/s", "round trips/s", "CPU a transaction",
                    "CPU a round trip", "a second of CPU", "limit")  # fmt: skip
    rows = tuple(
        (
            Cell(one.face),
            Cell(_count(one.transactions_per_s)),
            Cell(_count(one.round_trips_per_s)),
            Cell(_time(one.cpu_s_per_transaction)),
            Cell(_time(one.cpu_s_per_round_trip)),
            Cell(plural(round(one.per_core_s), "transaction", thousands=True)),
            Cell(one.limit),
        )
        for one in found
    )
    return Table("What the driver reached against a server that does nothing.", heads, rows)


def remarks(facts: CalibrationFacts) -> list[str]:
    """What the table holds for, and where it is no ceiling."""
    first = facts.ceilings[0]
    rate = first.transactions_per_s
    interval = (
        f"typical value and {rate.confidence:.0%} interval of" if rate.n > 1 else "no interval,"
    )
    shared = ": they share it, only CPU times hold" * (first.driver_cpus == first.server_cpus)
    return [
        f"{first.workload}, {plural(first.connections, 'connection')} on"
        f" {plural(first.threads, 'driver thread')},"
        f" Unix socket; {interval} n = {plural(rate.n, 'window')} of {first.window_s:g} s after"
        f" {facts.warmup_s:g} s of warm-up",
        f"driver on CPU {_list(first.driver_cpus)}, null server on CPU"
        f" {_list(first.server_cpus)}{shared}",
        *(_note(one) for one in facts.ceilings if one.limit != "driver"),
    ]


def _note(ceiling: Ceiling) -> str:
    server = "" if ceiling.server_wanted is None else f", null server {ceiling.server_wanted:.0%}"
    return (
        f"face {ceiling.face}: the limit was the {ceiling.limit} (busiest driver thread wanted"
        f" {ceiling.driver_wanted:.0%} of the time{server}): the driver's own ceiling is higher"
    )


def _list(cpus: Sequence[int]) -> str:
    return ",".join(map(str, cpus))


def _count(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return count_text(estimate.centre)
    return (
        f"{count_text(estimate.centre)} [{count_text(estimate.low)}, {count_text(estimate.high)}]"
    )


def _time(estimate: Estimate) -> str:
    return ns_text(estimate.centre * _NS)
