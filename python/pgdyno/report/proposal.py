"""What to try next, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.model.proposal import NotTried, Proposed, Try
from pgdyno.model.units import seconds_text
from pgdyno.model.wording import capital, listed

_BELIEFS = (
    "What a move is believed to bring is a share of what its limit could bring at most, set by"
    " hand, and not proved."
)


def lines(found: Proposed) -> Iterator[str]:
    """All that is printed of a proposal."""
    yield f"Stage {found.stage} of run {found.run}: {found.sentence}"
    if found.deciding:
        yield found.deciding
    if not found.tries and not found.not_tried:
        yield (
            "So nothing can be proposed against it."
            if found.deciding
            else "pgdyno knows no move against that."
        )
    elif not found.tries:
        yield f"Nothing is proposed that stands on rung {found.lowest_rung} or above."
    for number, one in enumerate(found.tries, 1):
        yield ""
        yield from _try(number, one)
    if found.tries:
        yield ""
        yield _BELIEFS
    if found.not_tried:
        yield ""
        yield "Against what was found, but not proposed:"
        yield from (_not_tried(one) for one in found.not_tried)
    if found.found_in_some:
        yield ""
        yield (
            f"Not all rounds found {listed(found.found_in_some)}: what is against that alone is not"
            " among the moves. More rounds would tell."
        )


def _try(number: int, one: Try) -> Iterator[str]:
    yield f"{number}. {one.move}: {one.why}"
    yield (
        f"   against {one.against}: believed {one.predicted}, rung {one.rung},"
        f" {seconds_text(one.seconds)} to measure"
    )
    for change in one.changes:
        before = f", now {change.before}" if change.before else ""
        yield f"   {change.name} = {change.after}{before}"


def _not_tried(one: NotTried) -> str:
    return f"  {one.move}: {capital(one.why)}."
