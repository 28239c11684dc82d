"""Run files by their names: where they lie, and which one was meant. None is opened here."""

from __future__ import annotations

import os
from pathlib import Path

from pgdyno.model.text import visible
from pgdyno.plan.schema.files import did_you_mean

RUNS = Path("runs")
"""Where a run file lies, unless another place is named."""


def meant(path: Path) -> str | None:
    """The hint of the run file that was probably meant; None: there is none.

    It has nearly this name, or this name with another ending, or is the last run of the plan that
    was named.
    """
    for ending in (f"{path}.sqlite", f"{path.parent / path.stem}.sqlite"):
        if path.name and ending != str(path) and os.path.isfile(ending):
            return f"Did you mean {ending}?"
    return did_you_mean(path, ".sqlite") or _last_run(path)


def _last_run(path: Path) -> str | None:
    """The hint of a plan's last run, here or in `runs`: a time stands before the plan's name."""
    for folder in (path.parent, RUNS) if path.stem else ():
        # These two of `os` never fail, whatever the name is.
        found = folder.glob("*.sqlite") if os.path.isdir(folder) else ()
        for one in sorted(found, reverse=True):
            if f"-{one.stem}".endswith(f"-{path.stem}") and one != path and os.path.isfile(one):
                return f"Did you mean {visible(str(one))}?"
    return None
