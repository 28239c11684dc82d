"""6: full page images, where WAL is what sessions wait for."""

from __future__ import annotations

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
    caps_of,
)
from pgdyno.diagnosis.wal_waits import volume_parts
from pgdyno.model.floor import BLOCK_BYTES
from pgdyno.model.units import share_text


def answer(seen: Seen, rule: Rule) -> Found | Cleared | NotKnown:
    """Their part of WAL bounds what they add to waits for its volume; CPU time is not told."""
    images, wal = seen.window.grown["wal.fpi"], seen.window.grown["wal.bytes"]
    part = min(1.0, images * BLOCK_BYTES / wal) if wal > 0 else 0.0
    volume, flush = seen.share(*volume_parts(seen.window)), seen.share("flush")
    figures = (
        Figure("full page images, at most this part of WAL", part, "share",
               limit=rule.limit("part")),
        seen.figure("waits for the volume of WAL", volume, rule.limit("share")),
        seen.figure("waits for its flush", flush, rule.limit("flush")),
    )  # fmt: skip
    of_wal = f"full page images are at most {share_text(part)} of WAL"
    if part < rule.limit("part"):
        return Cleared(f"{of_wal}, limit {share_text(rule.limit('part'))}", figures)
    if float(volume[0]) >= rule.limit("share"):
        fact = (
            f"{of_wal}, and sessions wait for its volume {share_text(float(volume[0]))} of the time"
        )
        return Found(fact, volume * part, figures, caps_of(seen.window), behind=("wal_insertion",))
    if float(flush[0]) >= rule.limit("flush"):
        return NotKnown(
            f"{of_wal}, and sessions wait for flushes: whether these take longer for them is not"
            " known; full_page_writes off in a stage of its own would tell",
            figures,
        )
    for_each = [share_text(float(one[0])) for one in (volume, flush)]
    waited = f"its volume {for_each[0]} of the time, and for its flush {for_each[1]}"
    return Cleared(f"{of_wal}, but sessions wait for {waited} only", figures)


RULE = Rule(
    number=6,
    title="full page images in WAL",
    needs=(needs.sessions, needs.counters("wal.fpi", "wal.bytes")),
    thresholds={
        "part": Threshold(0.50, "of WAL, at most that of full page images"),
        "share": Threshold(0.05, "of session time, that inserts or writes WAL"),
        "flush": Threshold(0.25, "of session time, that waits for flushes"),
    },
    confounders=(
        "Right behind a checkpoint there are more of them than over a whole cycle.",
        "wal_compression hides their bytes, and takes CPU time instead.",
    ),
    knobs=(
        Knob("max_wal_size"),
        Knob("checkpoint_timeout"),
        Knob("wal_compression"),
        Knob("full_page_writes"),
    ),
    answer=answer,
)
