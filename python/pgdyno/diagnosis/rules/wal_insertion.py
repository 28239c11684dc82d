"""5: room in the WAL buffers, and writing them."""

from __future__ import annotations

from dataclasses import replace

from pgdyno.analysis.diagnosis_facts import Figure
from pgdyno.diagnosis import needs
from pgdyno.diagnosis.rule import (
    Cleared,
    Found,
    Knob,
    NotKnown,
    Rule,
    Seen,
    Threshold,
    waits_rule_answer,
)


def answer(seen: Seen, rule: Rule) -> Found | Cleared | NotKnown:
    """Waits for insertion, for a page of the buffers, and for writes of WAL."""
    found = waits_rule_answer(seen, rule, "waits to put WAL into its buffers or to write it take")
    full, rate = seen.window.per_s("wal.buffers_full"), seen.window.per_s("wal.bytes")
    told = [
        Figure("times the WAL buffers were full", full, "1/s") if full is not None else None,
        Figure("WAL", rate, "B/s") if rate is not None else None,
    ]
    return replace(found, figures=(*found.figures, *(one for one in told if one)))


RULE = Rule(
    number=5,
    title="WAL insertion and its buffers",
    needs=(needs.sessions, needs.sessions_of_others),
    thresholds={"share": Threshold(0.10, "of session time, that inserts or writes WAL")},
    confounders=(
        "On few CPUs the holder of an insertion lock has usually lost its CPU: see class 2.",
        "Right behind a checkpoint, full page images fill the buffers: see class 6.",
    ),
    knobs=(
        Knob("wal_buffers"),
        Knob("wal_compression"),
        Knob("wal_writer_delay"),
        Knob("wal_writer_flush_after"),
        Knob("min_wal_size"),
    ),
    answer=answer,
    parts=("wal_insert", "wal_write"),
)
