"""Settings of the machine that are in force for a while, and put back in any case.

What they change is in the journal of this machine before it is made: after a kill, `pgdyno host
restore` puts it back, and nothing takes what was left for the machine as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pgdyno.host import change
from pgdyno.host.journal import Journal, Standing, standing_keys
from pgdyno.host.knob_location import ROOT
from pgdyno.host.undo import undo
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
        TargetError: One of them stands changed by pgdyno already, the kernel refuses a value, or
            not all could be put back.
    """
    require_none_standing([key for key, _ in wishes], journals)
    changes = change.plan(wishes, root)
    if not changes:
        yield
        return
    journal = journals[0]
    made = change.apply(changes, journal, root=root)
    try:
        yield
    finally:
        _put_back(made, journal, root)


def require_none_standing(keys: Sequence[str], journals: Sequence[Journal]) -> None:
    """Refuse settings that pgdyno has changed on this machine and not put back.

    Raises:
        TargetError: Naming them.
    """
    if found := sorted(standing_keys(journals) & set(keys)):
        raise TargetError(
            f"pgdyno has changed {listed(found)} on this machine, and not put it back",
            "`pgdyno host restore` does; another run may be using it at this moment.",
        )


def _put_back(made: Sequence[Standing], journal: Journal, root: Path) -> None:
    with journal.locked():
        left = [one for one in undo(made[::-1], journal, root=root) if not one.ok]
    if left:
        fates = "; ".join(f"{one.change.key} {one.fate}" for one in left)
        raise TargetError(
            f"not all settings of this machine could be put back: {fates}",
            "`pgdyno host restore` tries it again.",
        )
