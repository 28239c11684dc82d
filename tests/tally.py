"""What the campaigns of a session tried, and how it ended: its last lines, and docs/numbers.md.

Workers of pytest-xdist write into one file of the session's folder.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from tests.leftovers import SESSION

_FILE = "tally"


def count(what: str, ended: str, times: int = 1) -> None:
    """Count inputs or faults of a kind that ended so."""
    assert not {"\t", "\n"} & set(what + ended)
    with (Path(os.environ[SESSION]) / _FILE).open("a") as file:
        file.write(f"{what}\t{ended}\t{times}\n")


def survived(fault: str) -> None:
    """Count a fault after which all was as it must be."""
    count(fault, "survived")


def take_tallies(folder: Path) -> list[str]:
    """A line for each kind, e.g. `mutated plans: 300 tried, 120 accepted, 180 refused`."""
    path = folder / _FILE
    kinds: dict[str, Counter[str]] = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        what, ended, times = line.split("\t")
        kinds.setdefault(what, Counter())[ended] += int(times)
    path.unlink(missing_ok=True)
    return [
        f"{what}: {ends.total()} tried, "
        + ", ".join(f"{times} {ended}" for ended, times in sorted(ends.items()))
        for what, ends in sorted(kinds.items())
    ]
