"""What a recorder has kept since it was last asked, for whoever looks on while it records.

It reads what the recorder's thread writes, and never makes that wait: no sampler is asked for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from pgdyno.model.glance import Grown, Met
from pgdyno.sample.kept import BEGIN, KeptSeries, KeptTally
from pgdyno.sample.sampler import Row

SESSIONS = "sessions"
"""The tally of which is told what it met."""
_TOLD = ("role", "state", "wait_class")
_NS = 1e9


class _Names:
    """The names that are told, as something that they are in."""

    def __init__(self, told: Callable[[str], bool]) -> None:
        self._told = told
        self._known: dict[str, bool] = {}

    def __contains__(self, name: object) -> bool:
        assert isinstance(name, str)
        if name not in self._known:
            self._known[name] = self._told(name)
        return self._known[name]


class Increments:
    """Follows what one recorder keeps.

    Args:
        series: Of its samplers.
        sessions: Its tally of them; None: it has none.
        told: Which counters are wanted.
    """

    def __init__(
        self, series: Iterable[KeptSeries], sessions: KeptTally | None, told: Callable[[str], bool]
    ) -> None:
        self._names = _Names(told)
        self._series = [(one, one.last(self._names)) for one in series]
        self._sessions = sessions
        self._met = BEGIN if sessions is None else sessions.since(BEGIN)[0]

    def grown(self) -> tuple[Grown, ...]:
        """By how much counters grew; of samplers that took no sample since there is nothing."""
        found = []
        for place, (kept, before) in enumerate(self._series):
            now = kept.last(self._names)
            self._series[place] = (kept, now)
            if before is None or now is None or now[0] <= before[0]:
                continue
            if columns := _growth(before[1], now[1]):
                found.append(Grown((now[0] - before[0]) / _NS, columns))
        return tuple(found)

    def met(self) -> Met | None:
        """What sessions did; None: no second has ended since."""
        if self._sessions is None:
            return None
        self._met, looks, counts = self._sessions.since(self._met)
        if not looks:
            return None
        places = [self._sessions.dimensions.index(name) for name in _TOLD]
        added: Counter[tuple[str, ...]] = Counter()
        for key, count in counts.items():
            added[tuple(key[place] for place in places)] += count
        return Met(
            looks,
            tuple((role, state, what, count) for (role, state, what), count in added.items()),
        )


def _growth(before: Row, now: Row) -> dict[str, float]:
    """Who fell began anew, and nobody knows what it grew by."""
    grown = {name: value - before[name] for name, value in now.items() if name in before}
    return {name: value for name, value in grown.items() if value >= 0}
