"""2: the CPUs, as far as the server and its client use them."""

from __future__ import annotations

import numpy as np

from pgdyno.analysis.account_facts import RUNNING, WANTS_CPU
from pgdyno.analysis.diagnosis_facts import Figure
from pgdyno.diagnosis import needs
from pgdyno.diagnosis.host import host_use
from pgdyno.diagnosis.kernel_time import FLUSH, MEMORY, READ, ROUND_TRIPS, work_of, working
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
from pgdyno.model.units import share_text

_ASKED = {
    READ: "reads", FLUSH: "flushes", MEMORY: "freeing memory",
    ROUND_TRIPS: "round trips beyond one a transaction",
}  # fmt: skip
"""Work that is other classes' own."""


def answer(seen: Seen, rule: Rule) -> Found | Cleared | NotKnown:
    """Running, and waiting to run behind ourselves; what waits of other classes take is not."""
    use = host_use(seen.window)
    running, wants = seen.share(RUNNING), seen.share(WANTS_CPU)
    asked = {what: work_of(seen, what) for what in _ASKED}
    share = np.maximum(0.0, working(seen) - sum(asked.values()))
    limit = rule.limit("share")
    figures = (
        seen.figure("running, or wanting a CPU that we use ourselves", share, limit),
        seen.figure("running", running),
        seen.figure("wanting a CPU", wants),
        *(
            seen.figure(f"running or wanting a CPU for {_ASKED[what]}", one)
            for what, one in asked.items()
            if one[0]
        ),
        *(
            (
                Figure("CPU time of the host used by server and client", use.server + use.driver,
                       "share"),
                Figure("CPU time of the host that was idle", use.idle, "share"),
            )
            if use
            else ()
        ),
    )  # fmt: skip
    taken = share_text(float(share[0]))
    if float(share[0]) < limit:
        return Cleared(f"CPUs take {taken} of session time, limit {share_text(limit)}", figures)
    used = ""
    if use:
        used = f", and {share_text(use.server + use.driver)} of the host's CPU time is ours"
    fact = (
        "sessions run, or want a CPU that server and client use themselves,"
        f" {taken} of session time{used}"
    )
    caps = caps_of(seen.window, server=0.0)
    caps.pop("CPUs", None)  # what the client takes of them is the CPUs' again
    to_spare = use is not None and use.idle >= rule.limit("idle")
    return Found(fact, share, figures, caps, is_cpu_work=True, to_spare=to_spare)


RULE = Rule(
    number=2,
    title="the CPUs",
    needs=(needs.sessions, needs.cpu_by_process),
    thresholds={
        "share": Threshold(0.25, "of session time, that runs or waits for our own"),
        "idle": Threshold(0.50, "of the host's CPU time: with more idle, waits come first"),
    },
    confounders=(
        "Spinning, checksums and compression of full page images are CPU time as well.",
        "Few sessions that run most of their time leave CPUs idle: more of them use what is left.",
    ),
    knobs=(
        Knob("face = pipeline or procedure", "Fewer round trips take less CPU on both sides."),
        Knob("more connections", "Where CPUs are idle, more sessions use them."),
        Knob("a build with PGO and LTO", "`pgdyno build`: the same work takes fewer instructions."),
        Knob("huge_pages"),
        Knob("jit"),
        Knob("shared_buffers"),
    ),
    answer=answer,
    parts=(RUNNING, WANTS_CPU),
)
