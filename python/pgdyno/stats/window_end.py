"""What a window leaves open: requests that were due in it and have no answer.

Those answered in the drain are measured as any other. Those that are not count as lower bounds; a
server that was silent to one all through the drain may have stood still for any time, which no
figure of the window can tell. Those that failed have no time at all, in whatever outage they
waited: that they are left out is said beside the times of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pgdyno.model.run import Counts
from pgdyno.model.units import count_text
from pgdyno.model.wording import plural
from pgdyno.stats.finding import Answer, Clear, Evidence, Finding, Unknown

_ADVICE = "Lengthen protocol.drain_s, or lower the load, until all requests are answered."
_OF_FAILED = "Read the percentiles beside the gaps: who asked in an outage waited for nothing."


@dataclass(frozen=True, slots=True)
class WindowEnd:
    """Requests of a window, of all kinds, that did not end in it, or not well."""

    due: int  # all, those carried in included
    drained: int  # answered in the drain
    unanswered: int  # no answer when it ended
    stuck: int  # of these, sent before the window ended
    skipped: int  # left out by the schedule
    failed: int  # in the window, or after its end: without a time
    untimed: int  # of earlier versions: under way at the end, without a time
    unlogged: int  # by pgbench, about
    given_up_s: float  # from the window's end until the unanswered were given up

    @property
    def is_open(self) -> bool:
        """Whether times of the window are lower bounds."""
        return self.unanswered + self.skipped + self.unlogged > 0


def window_end(counts: Iterable[Counts], given_up_s: float | None, unlogged: int = 0) -> WindowEnd:
    """Add up the kinds of a window.

    Args:
        counts: Of each kind, in the window.
        given_up_s: From its end until requests without an answer were given up; None: none was.
        unlogged: Requests that are not in the log of pgbench.
    """
    kinds = tuple(counts)
    return WindowEnd(
        due=sum(one.due for one in kinds),
        drained=sum(one.drained or 0 for one in kinds),
        unanswered=sum(one.unanswered for one in kinds),
        stuck=sum(one.stuck for one in kinds),
        skipped=sum(one.skipped for one in kinds),
        failed=sum(one.failed + _failed_later(one) for one in kinds),
        untimed=sum(one.unfinished for one in kinds if one.drained is None),
        unlogged=unlogged,
        given_up_s=given_up_s or 0.0,
    )


def _failed_later(counts: Counts) -> int:
    """Requests that were under way at the window's end, and failed."""
    if counts.drained is None:
        return 0
    return counts.unfinished - counts.drained - counts.unanswered


def answer_of(end: WindowEnd) -> Answer:
    """What a reader must know of it."""
    evidence = tuple(
        Evidence(f"requests_{name}", float(getattr(end, name)), "1")
        for name in ("due", "drained", "unanswered", "stuck", "skipped", "unlogged", "failed")
    )
    if end.is_open:
        told = "; ".join([*_open(end), *_failed(end), "≥ marks lower bounds"])
        return Finding(told, _ADVICE, evidence)
    if end.failed:
        return Finding("; ".join(_failed(end)), _OF_FAILED, evidence)
    if end.untimed:
        return Unknown(
            f"{_requests(end.untimed)} under way at the window's end have no time, as earlier"
            " versions of pgdyno left them",
            evidence,
        )
    fact = "every request that was due in the window has an answer"
    return Clear(f"{fact}, {count_text(end.drained)} of them after its end", evidence)


def stuck_reason(end: WindowEnd) -> str | None:
    """Why the window's figures must not be used, if so.

    A stall in the middle of a window is measured, and one across its end, too, as far as the drain
    lasts; a server that is silent for longer is not.
    """
    if not end.stuck:
        return None
    return (
        f"{_requests(end.stuck)} sent in the window had no answer {end.given_up_s:.1f} s after its"
        " end: how long the server stood still is not known"
    )


def exact_below(summaries: Iterable[Mapping[str, int]]) -> int | None:
    """From which latency on merged values are lower bounds, ns; None: all are exact.

    Args:
        summaries: `KindResult.response_ns` and alike of what is merged.
    """
    return min((one["exact_below"] for one in summaries if "exact_below" in one), default=None)


def _open(end: WindowEnd) -> Iterable[str]:
    if end.unanswered:
        yield (
            f"{_requests(end.unanswered)} due in the window (of {count_text(end.due)}) had no"
            f" answer {end.given_up_s:.1f} s after its end: they count as at least that"
        )
    if end.skipped:
        yield f"{_requests(end.skipped)} due in the window were skipped, their queue was full"
    if end.unlogged:
        yield (
            f"about {_requests(end.unlogged)} due in the window by pgbench's rate are not in its"
            " log: it had begun none of them when its time was over"
        )


def _failed(end: WindowEnd) -> Iterable[str]:
    if end.failed:
        yield (
            f"{_requests(end.failed)} due in the window (of {count_text(end.due)}) failed and have"
            " no time: percentiles and maximum are those of the others"
        )


def _requests(number: int) -> str:
    return plural(number, "request", thousands=True)
