"""7: what checkpoints write: throughput while one lasts, against that of the rest."""

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
from pgdyno.model.units import share_text
from pgdyno.model.wording import plural

_SEED = 20_261_126


def answer(seen: Seen, rule: Rule) -> Found | Cleared | NotKnown:
    """Seconds within checkpoints against those outside, drawn anew for the interval."""
    window = seen.window
    spans = window.checkpoints
    assert spans is not None, "a need"
    if not spans:
        return Cleared(
            "no checkpoint ran in the window, so none limited it; what one costs is not in it"
        )
    inside = _inside(window)
    few = int(rule.limit("seconds"))
    if inside.sum() < few or (~inside).sum() < few:
        return NotKnown(
            f"checkpoints lasted {inside.sum()} of {plural(inside.size, 'second')}:"
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


def _inside(window: WindowFacts) -> npt.NDArray[np.bool_]:
    spans = window.checkpoints or ()
    ends = [(one.start_s, np.inf if one.end_s is None else one.end_s) for one in spans]
    within = [(window.second >= start) & (window.second <= end) for start, end in ends]
    return np.asarray(np.any(within, axis=0), dtype=np.bool_)


def _ratio(
    ended: npt.NDArray[np.float64], inside: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]:
    """Of means within and outside: as it is, then of seconds drawn anew."""
    at = drawn_anew(np.random.default_rng(_SEED), ended.size)
    values, within = ended[at], inside[at]
    counts = np.maximum(1, within.sum(axis=1)), np.maximum(1, (~within).sum(axis=1))
    during = (values * within).sum(axis=1) / counts[0]
    rest = (values * ~within).sum(axis=1) / counts[1]
    return np.asarray(np.clip(during / np.maximum(rest, 1e-9), 0.0, 1.5), dtype=np.float64)


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
        "seconds": Threshold(5, "of both kinds, at least"),
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
