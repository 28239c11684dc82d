"""Tables of the live page that the report does not have: devices and events of one trial."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pgdyno.analysis import words
from pgdyno.live.telemetry import Device, Seen
from pgdyno.model.units import bytes_text, count_text, ns_text
from pgdyno.report.document import Cell, Column, Table, columns

_NS = 1e9
_HEADS = (
    ("busy", "% of the time"),
    ("reads", "a second"), ("read", "a second"), ("a read", "on average"),
    ("writes", "a second"), ("written", "a second"), ("a write", "on average"),
    ("flushes", "a second"), ("a flush", "on average"),
)  # fmt: skip


def devices_table(caption: str, devices: Sequence[Device]) -> Table:
    """Block devices, one a row."""
    return Table(
        caption,
        columns("device", *_HEADS),
        tuple(
            (
                Cell(one.name),
                _cell(one.busy_share, lambda share: f"{100 * share:.1f}"),
                _cell(one.reads_per_s, count_text),
                _cell(one.read_bytes_per_s, bytes_text),
                _cell(one.read_s, _seconds),
                _cell(one.writes_per_s, count_text),
                _cell(one.write_bytes_per_s, bytes_text),
                _cell(one.write_s, _seconds),
                _cell(one.flushes_per_s, count_text),
                _cell(one.flush_s, _seconds),
            )
            for one in devices
        ),
    )


def _cell(value: float | None, words_of: Callable[[float], str]) -> Cell:
    return Cell(words.NOTHING if value is None else words_of(value))


def _seconds(seconds: float) -> str:
    return ns_text(seconds * _NS)


def events_table(caption: str, at: str, events: Sequence[Seen]) -> Table:
    """What happened, in the order that it is given.

    Args:
        caption: Of the table.
        at: What its times count from, with their unit.
        events: What is listed.
    """
    return Table(
        caption,
        (Column("what", align="left"), Column("at", at), Column("known of it", align="left")),
        tuple((Cell(one.kind), Cell(f"{one.start_s:.1f}"), Cell(one.text)) for one in events),
    )
