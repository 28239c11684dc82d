"""Settings of the machine that are in force for a while, and put back in any case.

What they change is in the journal of this machine before it is made: after a kill, `pgdyno host
restore` puts it back, and nothing takes what was left for the machine as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pgdyno.host import change
from pgdyno.host.journal import Journal, Standing, standing_changes
from pgdyno.host.knob_location import ROOT, knob_location
from pgdyno.host.undo import put_back, told_as_standing
from pgdyno.model.errors import TargetError
from pgdyno.model.wording import listed

Wishes = Sequence[tuple[str, str]]


@contextmanager
def in_force(
    wishes: Wishes, journals: Sequence[Journal], root: Path = ROOT
) -> Iterator[Callable[[], None]]:
    """Meanwhile the machine has these settings; what is yielded refuses to go on once it has not.

    Args:
        wishes: Keys and values, as of `change.plan`.
        journals: Of this machine, the latest first; that one is written.
        root: Of the file tree.

    Raises:
        PlanError: See `change.plan`.
        TargetError: One of them stands changed by pgdyno already, or the kernel refuses a value; or
            all are put back, but were not in force to the end.
        MachineError: Not all could be put back, whatever else went wrong.
    """
    # In this order: what somebody changes between the two is refused when it is applied.
    changes = change.plan(wishes, root)
    require_none_standing([key for key, _ in wishes], journals)
    made = change.apply(changes, journals[0], root=root) if changes else ()
    taken: dict[str, str] = {}
    try:
        if short := _not_so(wishes, root):
            raise TargetError(
                f"not in force together: {'; '.join(short.values())}",
                "The kernel moves it with what was changed. Nothing of ours stands.",
            )
        yield lambda: _require_kept(_undone(made, journals[0]), _not_so(wishes, root))
        taken = _not_so(wishes, root)
    finally:
        by_others = _put_back(made, journals[0], root) if made else ()
    _require_kept(by_others, taken)


def _require_kept(by_others: Sequence[str], not_so: dict[str, str]) -> None:
    if taken := {key: f"another pgdyno took back {key}" for key in by_others} | not_so:
        raise TargetError(
            f"not in force all the time: {'; '.join(taken.values())}",
            "Somebody else changed it meanwhile, as `pgdyno host restore` does. Nothing of ours"
            " stands.",
        )


def _not_so(wishes: Wishes, root: Path) -> dict[str, str]:
    """Wishes that are not true, by their keys, in words."""
    return {
        one.key: f"{one.key} is {one.before!r}, and was to be {one.after!r}"
        for one in change.unmet(wishes, root)
    }


def _undone(made: Sequence[Standing], journal: Journal) -> tuple[str, ...]:
    """Keys of what somebody else has put back, though it may have been made anew since."""
    if not made:
        return ()
    with journal.locked():
        return tuple(one.change.key for one in journal.undone_of(made))


def _put_back(made: Sequence[Standing], journal: Journal, root: Path) -> tuple[str, ...]:
    """Put back what stands; keys of what somebody else has put back, which is no more ours.

    Raises:
        MachineError: Not all could be put back.
    """
    with told_as_standing(made), journal.locked():
        gone = journal.undone_of(made)
        put_back([one for one in made if one not in gone], journal, root=root)
    return tuple(one.change.key for one in gone)


def require_none_standing(keys: Sequence[str], journals: Sequence[Journal]) -> None:
    """Refuse settings that pgdyno has changed on this machine and not put back.

    Of two settings that the kernel moves together, either stands in the way of the other: what is
    put back of one would be taken from the other.

    Raises:
        TargetError: Naming them.
    """
    moved = {key: {key, *knob_location(key).moves} for key in keys}
    standing = {
        one.key: with_it
        for one in standing_changes(journals)
        if (with_it := [key for key in keys if moved[key].intersection(one.keys)])
    }
    if standing:
        coupled = [
            f"; the kernel moves {listed(with_it)} with {key}"
            for key, with_it in sorted(standing.items())
            if key not in with_it
        ]
        raise TargetError(
            f"pgdyno has changed {listed(sorted(standing))} on this machine, and not put it back"
            + "".join(coupled),
            "`pgdyno host restore` does; another run may be using it at this moment.",
        )
