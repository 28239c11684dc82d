"""Settings of the machine that are in force for a while, and put back in any case.

What they change is in the journal of this machine before it is made: after a kill, `pgdyno host
restore` puts it back, and nothing takes what was left for the machine as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pgdyno.host import change
from pgdyno.host.journal import Journal, standing_changes
from pgdyno.host.knob_location import ROOT, knob_location
from pgdyno.host.undo import put_back, told_as_standing
from pgdyno.model.errors import TargetError
from pgdyno.model.wording import listed

Wishes = Sequence[tuple[str, str]]


@contextmanager
def in_force(wishes: Wishes, journals: Sequence[Journal], root: Path = ROOT) -> Iterator[None]:
    """Meanwhile the machine has these settings.

    Args:
        wishes: Keys and values, as of `change.plan`.
        journals: Of this machine, the latest first; that one is written.
        root: Of the file tree.

    Raises:
        PlanError: See `change.plan`.
        TargetError: One of them stands changed by pgdyno already, or the kernel refuses a value.
        MachineError: Not all could be put back, whatever else went wrong.
    """
    # In this order: what somebody changes between the two is refused when it is applied.
    changes = change.plan(wishes, root)
    require_none_standing([key for key, _ in wishes], journals)
    if not changes:
        yield
        return
    journal = journals[0]
    made = change.apply(changes, journal, root=root)
    try:
        yield
    finally:
        with told_as_standing(made), journal.locked():
            put_back(made, journal, root=root)


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
