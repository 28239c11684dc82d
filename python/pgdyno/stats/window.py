"""What the measured window holds of the checkpoint cycle.

Checkpoints cost writes and full-page images; a window without one, or with half a cycle, measures a
server that has not paid for its changes yet. Times are seconds on one clock, whichever.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite

from pgdyno.model.errors import PgdynoError
from pgdyno.model.wording import plural
from pgdyno.stats.finding import Answer, Clear, Evidence, Finding, Unknown

# Phases of start and end that differ by less leave less than a tenth of a cycle over.
PHASE_TOLERANCE = 0.10
FOLLOW = (
    'Let windows follow checkpoints: protocol.checkpoints = "cycles", or "anchors" where cycles are'
    " long. A shorter checkpoint_timeout is no way: it makes a transaction write more full page"
    " images."
)
"""What is advised where a window does not hold whole cycles."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One checkpoint, from its begin to its end; `None`: not ended when last looked at."""

    start_s: float
    end_s: float | None


@dataclass(frozen=True, slots=True)
class CheckpointFacts:
    """Checkpoints and a window. A cycle runs from one checkpoint's start to the next one's."""

    completed: int  # ended inside the window
    started: int
    share: float  # of the window during which a checkpoint ran
    running_at_start: bool
    running_at_end: bool
    phase_start: float | None  # 0 to 1 through the cycle; None: an end of the cycle is not known
    phase_end: float | None
    cycles: float | None  # that the window holds, parts included; None where a phase is unknown
    whole: bool | None  # as many whole cycles as make no difference; None: cannot be told
    answer: Answer  # for the report


def checkpoint_facts(
    checkpoints: Sequence[Checkpoint] | None, start_s: float, end_s: float
) -> CheckpointFacts:
    """Describe the checkpoints of a window.

    Args:
        checkpoints: All that are known, also before and after the window: they tell the phase. Any
            order. `None`: not recorded.
        start_s: Begin of the window, same clock.
        end_s: End of the window.

    Raises:
        PgdynoError: The window, or a checkpoint, ends before it begins.
    """
    if not (isfinite(start_s) and isfinite(end_s) and start_s < end_s):
        raise PgdynoError(f"window from {start_s} to {end_s} s, begin before end expected")
    if checkpoints is None:
        unknown = Unknown(
            "checkpoints were not recorded: no log of the server tells when they began and ended"
        )
        return CheckpointFacts(0, 0, 0.0, False, False, None, None, None, None, unknown)
    spans = _spans(checkpoints)
    inside = sum(max(0.0, min(end, end_s) - max(begin, start_s)) for begin, end in spans)
    begins = [begin for begin, _ in spans]
    place_start, place_end = _position(begins, start_s), _position(begins, end_s)
    cycles = None
    if place_start is not None and place_end is not None:
        cycles = place_end - place_start
    completed = sum(one.end_s is not None and start_s < one.end_s <= end_s for one in checkpoints)
    started = sum(start_s <= begin < end_s for begin in begins)
    share = inside / (end_s - start_s)
    whole = _whole(cycles, started, completed, share)
    return CheckpointFacts(
        completed=completed,
        started=started,
        share=share,
        running_at_start=any(begin <= start_s < end for begin, end in spans),
        running_at_end=any(begin < end_s < end for begin, end in spans),
        phase_start=None if place_start is None else place_start % 1,
        phase_end=None if place_end is None else place_end % 1,
        cycles=cycles,
        whole=whole,
        answer=_answer(completed, started, share, cycles, whole),
    )


def cycles_by_begins(
    begins: Sequence[float], start_s: float, end_s: float
) -> tuple[int | None, Answer]:
    """Checkpoints completed in a window, and whether it holds whole cycles, by begins alone.

    A server runs one at a time: what began has ended when the next one begins.

    Args:
        begins: When checkpoints were noticed to begin while the load ran, ascending.
        start_s: Begin of the window, same clock.
        end_s: End of the window.

    Returns:
        Their number, where the window is of whole cycles; else None: ends are not known.
    """
    place_start, place_end = _position([*begins], start_s), _position([*begins], end_s)
    if place_start is None or place_end is None:
        began = plural(sum(start_s <= one < end_s for one in begins), "checkpoint")
        return None, Unknown(
            f"{began} began in the window, as the server's counters tell: how much of a cycle that"
            " is, only its log would"
        )
    cycles = place_end - place_start
    evidence = (Evidence("checkpoint_cycles", cycles, "1"),)
    fact = f"{cycles:.1f} checkpoint cycles, by begins that the server's counters tell"
    if _whole(cycles, 1, 1, 1.0):
        return round(cycles), Clear(f"{fact}, as good as whole ones", evidence)
    return None, Finding(f"{fact}: the cost of checkpoints is not in proportion", FOLLOW, evidence)


def _spans(checkpoints: Sequence[Checkpoint]) -> list[tuple[float, float]]:
    """Start and end of each, ascending. A server runs one at a time, so none outlasts the next.

    Recorded times may say otherwise by the accuracy of the recording, or lack an end.
    """
    ordered = sorted(checkpoints, key=lambda one: one.start_s)
    spans = []
    for number, one in enumerate(ordered, start=1):
        following = ordered[number].start_s if number < len(ordered) else inf
        if one.end_s is not None and one.end_s < one.start_s:
            raise PgdynoError(
                f"checkpoint from {one.start_s} to {one.end_s} s, begin before end expected"
            )
        spans.append((one.start_s, min(inf if one.end_s is None else one.end_s, following)))
    return spans


def _position(begins: list[float], time_s: float) -> float | None:
    """Cycles since the first known begin; `None` outside of the known cycles."""
    after = bisect_right(begins, time_s)
    if after == 0:
        return None
    begin = begins[after - 1]
    if after == len(begins):
        # The start of the last known checkpoint is a place, and so is what lies within a tenth of
        # the cycle before it behind; what comes later is not.
        before = begin - begins[after - 2] if after > 1 else 0.0
        if time_s == begin:
            return float(after - 1)
        beyond = (time_s - begin) / before if before > 0 else inf
        return after - 1 + beyond if beyond <= PHASE_TOLERANCE else None
    return after - 1 + (time_s - begin) / (begins[after] - begin)


def _whole(cycles: float | None, started: int, completed: int, share: float) -> bool | None:
    if completed == 0 and started == 0 and share == 0:
        return False
    if cycles is None:
        return None
    return round(cycles) >= 1 and abs(cycles - round(cycles)) <= PHASE_TOLERANCE


def _answer(
    completed: int, started: int, share: float, cycles: float | None, whole: bool | None
) -> Answer:
    evidence: tuple[Evidence, ...] = (
        Evidence("checkpoints_completed", completed, "1"),
        Evidence("checkpoints_started", started, "1"),
        Evidence("checkpoint_share", share, "1"),
    )
    if cycles is not None:
        evidence += (Evidence("checkpoint_cycles", cycles, "1"),)
    ran = (
        f"{plural(completed, 'checkpoint')} completed in the window, one ran for {share:.0%} of it"
    )
    if share == 0 and completed == 0:
        fact = "no checkpoint in the window: the cost of checkpoints is not in this number"
        return Finding(fact, FOLLOW, evidence)
    if whole is None:
        return Unknown(
            f"{ran}; how much of a cycle that is shows only when the next one begins", evidence
        )
    if whole:
        return Clear(f"{ran}: {cycles:.1f} checkpoint cycles, as good as whole ones", evidence)
    fact = f"{ran}: {cycles:.1f} checkpoint cycles, the cost of checkpoints is not in proportion"
    return Finding(fact, FOLLOW, evidence)
