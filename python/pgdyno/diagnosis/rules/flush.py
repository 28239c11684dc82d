"""4: the flush of WAL that a commit waits for."""

from __future__ import annotations

from pgdyno.analysis.diagnosis_facts import Figure
from pgdyno.diagnosis import needs
from pgdyno.diagnosis.kernel_time import FLUSH, asked, work_of
from pgdyno.diagnosis.rule import (
    Cleared,
    Found,
    Knob,
    NotKnown,
    Rule,
    Seen,
    Threshold,
    by_share,
)
from pgdyno.diagnosis.wal_waits import commits_wait
from pgdyno.model.units import share_text


def answer(seen: Seen, rule: Rule) -> Found | Cleared | NotKnown:
    """Who flushes, and who waits for a flush of others."""
    waits, work = seen.share("flush"), work_of(seen, FLUSH)
    share = waits + work
    figures = (
        seen.figure("in flushes of WAL", share, rule.limit("share")),
        *((seen.figure("of it running or wanting a CPU", work),) if work[0] else ()),
        seen.figure("the same before waits are moved to their holders",
                    seen.share("flush", root=False)),
        *_device(seen),
    )  # fmt: skip
    if not commits_wait(seen.window):
        return Cleared(
            "commits do not wait for it (synchronous_commit = off): sessions that wait until WAL is"
            f" flushed, {share_text(float(share[0]))} of session time, need room in its buffers",
            figures,
        )
    return by_share(
        seen, rule, share, figures,
        takes="flushes of WAL take", found="commits wait until their WAL is on storage,",
        server=1 - asked(seen.window).get(FLUSH, 0.0),
    )  # fmt: skip


def _device(seen: Seen) -> tuple[Figure, ...]:
    window = seen.window
    flushes, time_s = window.per_s("disk.flushes"), window.per_s("disk.flush_s")
    if not flushes or time_s is None:
        return ()
    per_flush = Figure("time of a flush of the device below", time_s / flushes, "s")
    if not window.load.per_s:
        return (per_flush,)
    return (per_flush, Figure("transactions for each of these", window.load.per_s / flushes, "1"))


RULE = Rule(
    number=4,
    title="the flush of WAL at commit",
    needs=(needs.sessions, needs.sessions_of_others),
    thresholds={"share": Threshold(0.25, "of session time, that waits for a flush of WAL")},
    confounders=(
        "A checkpoint's own flushes make those of WAL slower while they last: look at what"
        " checkpoints write.",
        "Storage that rested takes longer for its next flush.",
        "One flush serves all that came meanwhile: more connections may hide it.",
    ),
    knobs=(
        Knob("wal_sync_method"),
        Knob("commit_delay"),
        Knob("more connections", "One flush serves all commits that wait for it."),
        Knob("WAL on a device of its own", "A faster or less busy one flushes sooner."),
        Knob("synchronous_commit"),
    ),
    answer=answer,
    parts=("flush",),
    may_save="the CPU time of flushing",
)
