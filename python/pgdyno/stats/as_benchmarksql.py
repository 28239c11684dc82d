"""The two figures as BenchmarkSQL 5 would print them of the same run; the only place of its rules.

Its tpmC counts every New-Order that came to an end, rolled back and failed ones too; its tpmTOTAL
every transaction of any kind, and one more, since its counter begins at 1. Both are integer
quotients over the whole session in milliseconds, in hundredths (`jTPCC.endReport`). It has no
ramp-up: its session begins with the first transaction. Here it begins with the window. It ends when
the last terminal has its last answer, so that a stall across its end counts as a longer session;
without that answer BenchmarkSQL would wait for ever, and print nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_HUNDREDTHS_PER_MINUTE = 6_000_000  # in milliseconds


@dataclass(frozen=True, slots=True)
class Ended:
    """Transactions of a kind that came to an end."""

    succeeded: int
    rolled_back: int  # on purpose
    failed: int
    late: int = 0  # after the window, however they ended; the three before: within it

    @property
    def all(self) -> int:
        """However they ended."""
        return self.succeeded + self.rolled_back + self.failed + self.late


@dataclass(frozen=True, slots=True)
class AsBenchmarkSql:
    """What `Measured tpmC (NewOrders)` and `Measured tpmTOTAL` would say, per minute."""

    tpmc: float
    tpm_total: float


def as_benchmarksql(kinds: Mapping[str, Ended], session_s: float) -> AsBenchmarkSql:
    """Count as BenchmarkSQL 5 counts.

    Args:
        kinds: Of each transaction kind; `new_order` is one of them.
        session_s: Length of the window and of what followed until the last transaction's end,
            seconds; more than a millisecond.
    """
    milliseconds = int(session_s * 1000)
    total = 1 + sum(kind.all for kind in kinds.values())
    return AsBenchmarkSql(
        tpmc=_per_minute(kinds["new_order"].all, milliseconds),
        tpm_total=_per_minute(total, milliseconds),
    )


def _per_minute(count: int, milliseconds: int) -> float:
    return _HUNDREDTHS_PER_MINUTE * count // milliseconds / 100.0
