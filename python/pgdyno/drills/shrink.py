"""The smallest loss that does the same harm as a cut: what a defect is looked for in.

Losses are spared, half of them, then quarters, and so on (delta debugging, Zeller and Hildebrandt
2002): where the harm stays, they were no part of it. Each try is a disk, and a server on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pgdyno.drills.cut import strike
from pgdyno.drills.load import Load
from pgdyno.model.drill import Cut, Disaster, Shrunk, Spared

TRIES_MAX = 60
_NAMED_MAX = 16


def shrunk(load: Load, disaster: Disaster, cut: Cut, seed: int) -> Shrunk:
    """Make the loss of a cut as small as tries allow.

    Args:
        load: What was recorded: the same as of the cut.
        disaster: Of the cut; one that is made of the record alone.
        cut: What did harm.
        seed: Of the drill.

    Raises:
        TargetError: A disk cannot be made.
    """
    tried = 0

    def found(spared: Spared) -> Cut | None:
        """The same harm without what is spared; None: another, or none."""
        nonlocal tried
        tried += 1
        again = strike(load, disaster, cut.number, seed, spared)
        return again if again.state == cut.state else None

    without_names = found(Spared(names=True, named_max=_NAMED_MAX))
    names = without_names is None
    smallest = without_names or cut
    whole = smallest.made.blocks_lost

    def with_only(kept: Sequence[int]) -> Cut | None:
        return found(Spared(not names, tuple(gaps(kept, whole)), _NAMED_MAX))

    for kept in smaller(list(range(whole)), with_only, lambda: tried < TRIES_MAX):
        smallest = kept
    return Shrunk(cut.stage, cut.disaster, cut.number, tried, names, smallest.made.named, whole,
                  cut.state, smallest.reasons)  # fmt: skip


def smaller(
    kept: list[int],
    harm: Callable[[Sequence[int]], Cut | None],
    may_try: Callable[[], bool],
) -> Iterator[Cut]:
    """Each loss that does the harm, smaller from time to time.

    Args:
        kept: Numbers of all losses.
        harm: What losses alone do; None: not the harm.
        may_try: Whether another try is allowed.
    """
    parts = 2
    while len(kept) > 1 and may_try():
        size = -(-len(kept) // parts)
        chunks = [kept[at : at + size] for at in range(0, len(kept), size)]
        rests = [[one for one in kept if one not in set(chunk)] for chunk in chunks]
        tries = [*chunks, *(rests if len(chunks) > 2 else ())]
        for attempt in tries:
            if may_try() and (found := harm(attempt)) is not None:
                kept = attempt
                parts = 2 if attempt in chunks else max(parts - 1, 2)
                yield found
                break
        else:
            if parts >= len(kept):
                return
            parts = min(2 * parts, len(kept))


def gaps(kept: Sequence[int], whole: int) -> Iterator[tuple[int, int]]:
    """Ranges of the numbers below `whole` that are not kept; from, to (not included)."""
    begin = 0
    for number in sorted(kept):
        if number > begin:
            yield begin, number
        begin = number + 1
    if begin < whole:
        yield begin, whole
