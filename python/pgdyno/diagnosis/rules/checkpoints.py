"""7: what checkpoints write: throughput while one lasts, against that of the rest.

Checkpoints may follow each other within seconds, so a second counts by the part that they have of
it: a line through throughput over that part tells both ends.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from pgdyno.analysis.account_facts import drawn_anew, quantiles
from pgdyno.analysis.diagnosis_facts import Figure
from pgdyno.analysis.window_facts import WindowFacts
from pgdyno.diagnosis.rule import (
    Cleared,
    Found,
    Knob,
    NotKnown,
    Rule,
    Seen,
    Threshold,
)
from pgdyno.diagnosis.wal_waits import volume_parts
from pgdyno.model.units import digits_text, share_text
from pgdyno.model.wording import plural

_SEED = 20_261_126


def answer(seen: Seen, rule: Rule) -> Found | Cleared | NotKnown:
    """Throughput within checkpoints against that outside, seconds drawn anew for the interval."""
    window = seen.window
    spans = window.checkpoints
    assert spans is not None, "a need"
    if not spans:
        return Cleared(
            "no checkpoint ran in the window, so none limited it; what one costs is not in it"
        )
    inside = _inside(window)
    few, lasted_s = int(rule.limit("seconds")), float(inside.sum())
    if min(lasted_s, inside.size - lasted_s) < few:
        return NotKnown(
            f"checkpoints lasted {digits_text(lasted_s, 2)} of {plural(inside.size, 'second')}:"
            f" {few} within and {few} outside are needed"
        )
    ratio, part = _ratio(window.ended, inside), float(inside.mean())
    low, value, high = quantiles(ratio)
    figures = (
        Figure("throughput during checkpoints, of that outside", value, "share", low, high,
               rule.limit("ratio")),
        Figure("time of the window in which one ran", part, "share"),
        Figure("checkpoints in the window", float(len(spans)), "1",
               limit=rule.limit("checkpoints")),
    )  # fmt: skip
    told = f"while a checkpoint lasts, throughput is {share_text(value)} of that outside"
    if high >= 1 or value >= rule.limit("ratio"):
        return Cleared(f"{told} ({share_text(low)} to {share_text(high)})", figures)
    if len(spans) < rule.limit("checkpoints"):
        return NotKnown(f"{told}, but one checkpoint alone may be chance", figures)
    share = part * (1 - ratio)
    fact = f"{told}, {share_text(part)} of the time"
    return Found(fact, share, figures, behind=tuple(_longer(seen, float(share[0]), rule)))


def _longer(seen: Seen, share: float, rule: Rule) -> Iterator[str]:
    """Classes whose waits are most of what checkpoints take: they are longer while one lasts."""
    waits = {"flush": ("flush",), "wal_insertion": volume_parts(seen.window)}
    for name, parts in waits.items():
        if seen.account.sessions and share >= rule.limit("behind") * seen.share(*parts)[0]:
            yield name


def _inside(window: WindowFacts) -> npt.NDArray[np.float64]:
    """Part of each second in which one ran."""
    begins, ends = window.second - 0.5, window.second + 0.5
    spans = [
        (one.start_s, np.inf if one.end_s is None else one.end_s)
        for one in window.checkpoints or ()
    ]
    parts = [
        np.clip(np.minimum(ends, end) - np.maximum(begins, start), 0.0, 1.0) for start, end in spans
    ]
    return np.asarray(np.minimum(np.sum(parts, axis=0), 1.0), dtype=np.float64)


def _ratio(
    ended: npt.NDArray[np.float64], inside: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Of throughput within and outside: as it is, then of seconds drawn anew; 1: none differs."""
    at = drawn_anew(np.random.default_rng(_SEED), ended.size)
    values, within = ended[at], inside[at]
    value, part = values.mean(axis=1), within.mean(axis=1)
    spread = within.var(axis=1)
    moved = (values * within).mean(axis=1) - value * part
    slope = np.divide(moved, spread, out=np.zeros_like(moved), where=spread > 0)
    rest = value - slope * part
    return np.asarray(np.clip((rest + slope) / np.maximum(rest, 1e-9), 0.0, 1.5))


def _checkpoints(window: WindowFacts) -> str | None:
    if window.checkpoints is None:
        return "neither the server's log nor its counters tell of checkpoints"
    return None if window.second.size else "throughput by seconds was not kept"


RULE = Rule(
    number=7,
    title="what checkpoints write",
    needs=(_checkpoints,),
    thresholds={
        "ratio": Threshold(0.90, "of the throughput outside, that is left during checkpoints"),
        "seconds": Threshold(3, "within and outside, added up, at least"),
        "checkpoints": Threshold(2, "in the window, at least"),
        "behind": Threshold(0.50, "of the time of waits for WAL: these come from checkpoints then"),
    },
    confounders=(
        "Full page images begin with a checkpoint, and are not its writes.",
        "Autovacuum or a backup at the same time slow it down alike.",
    ),
    knobs=(
        Knob("checkpoint_completion_target"),
        Knob("checkpoint_flush_after"),
        Knob("max_wal_size"),
        Knob("checkpoint_timeout"),
        Knob("bgwriter_lru_maxpages"),
    ),
    answer=answer,
    before_cpus=True,
    may_save="the time in which its last writes are still on their way",
)
