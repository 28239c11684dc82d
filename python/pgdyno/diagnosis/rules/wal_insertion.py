"""5: room in the WAL buffers, and writing them."""

from __future__ import annotations

from pgdyno.diagnosis import needs
from pgdyno.diagnosis.rule import (
    Cleared,
    Found,
    Knob,
    NotKnown,
    Rule,
    Seen,
    Threshold,
    figure,
    waits_rule_answer,
)
from pgdyno.diagnosis.wal_waits import VOLUME, volume_parts


def answer(seen: Seen, rule: Rule) -> Found | Cleared | NotKnown:
    """Waits for insertion, for a page of the buffers, and for writes of WAL."""
    return waits_rule_answer(
        seen, rule, "waits to put WAL into its buffers or to write it take",
        figure("times the WAL buffers were full", seen.window.per_s("wal.buffers_full"), "1/s"),
        figure("WAL", seen.window.per_s("wal.bytes"), "B/s"),
        parts=volume_parts(seen.window),
    )  # fmt: skip


RULE = Rule(
    number=5,
    title="WAL insertion and its buffers",
    needs=(needs.sessions, needs.sessions_of_others),
    thresholds={"share": Threshold(0.10, "of session time, that inserts or writes WAL")},
    confounders=(
        "On few CPUs the holder of an insertion lock has usually lost its CPU: look at the CPUs.",
        "Right behind a checkpoint, full page images fill the buffers: look at these.",
    ),
    knobs=(
        Knob("wal_buffers"),
        Knob("wal_compression"),
        Knob("wal_writer_delay"),
        Knob("wal_writer_flush_after"),
        Knob("min_wal_size"),
    ),
    answer=answer,
    parts=VOLUME,
)
