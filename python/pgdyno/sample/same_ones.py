"""Devices and interfaces by their names: another one that comes under the name of one is not it.

It counts from 0, and of it some counters may be more at the next look than those of the one before:
no single counter tells that, and what it "grew" by would be made up. So one that was away, or whose
counters fell, is another, and what is told under its name ends.
"""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.sample.sampler import Row


class SameOnes:
    """Remembers what each had counted.

    Args:
        counters: By which it is known: those that do not run over.
    """

    def __init__(self, counters: Sequence[str]) -> None:
        self._counters = counters
        self._last: dict[str, Row] = {}
        self._replaced: set[str] = set()

    def of(self, found: dict[str, Row]) -> dict[str, Row]:
        """Without those that others have come in the place of.

        Args:
            found: What each has counted by now, by its name.
        """
        self._replaced |= self._last.keys() - found.keys()
        for name, row in found.items():
            before = self._last.get(name, row)
            if any(row[one] < before[one] for one in self._counters):
                self._replaced.add(name)
        self._last |= found
        return {name: row for name, row in found.items() if name not in self._replaced}
