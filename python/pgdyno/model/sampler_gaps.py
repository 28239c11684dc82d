"""When samplers told nothing for a while, or too late: in words that note and report share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pgdyno.model.run import SamplerCost, SnapshotRows
from pgdyno.model.wording import listed

GAP_S = 5.0  # without a sample, beyond the interval: what is longer is told though nothing failed
APART_S = 1.0 + GAP_S
"""Of two samples of a counter, or of a look at an end of a window from that end: what is further
apart tells of other seconds, too. Counters are sampled each second, ends are told within one."""
_SHOWN = 3  # samplers that are named


def gaps_of(samplers: Sequence[SamplerCost]) -> list[tuple[str, str]]:
    """Who told nothing, and for how many seconds (of several the longest) and why.

    Samplers of one session lose it together, and are told together.
    """
    alike: dict[str, list[SamplerCost]] = {}
    for one in samplers:
        if one.gap_s:
            alike.setdefault(one.gap_reason, []).append(one)
    return [
        (
            _who([one.name for one in found]),
            f"told nothing for {max(one.gap_s for one in found):,.1f} s: {why}",
        )
        for why, found in alike.items()
    ]


def in_time(snapshots: Iterable[SnapshotRows], window_ns: tuple[int, int]) -> list[SnapshotRows]:
    """Those that were read at the ends of a window; others count what was done outside of it."""
    return [one for one in snapshots if abs(_off_s(one, window_ns)) <= APART_S]


def late_looks(
    snapshots: Iterable[SnapshotRows], window_ns: tuple[int, int]
) -> Iterator[tuple[str, str]]:
    """The others: which, and by how many seconds (of several the most), for each end."""
    late: dict[str, dict[str, float]] = {}
    for one in snapshots:
        if abs(off_s := _off_s(one, window_ns)) > APART_S:
            late.setdefault(one.at, {})[one.name] = off_s
    for at, by_name in late.items():
        off_s = max(by_name.values(), key=abs)
        side = "after" if off_s > 0 else "before"
        verb = "was" if len(by_name) == 1 else "were"
        when = f"{abs(off_s):,.1f} s {side} the window's {at}"
        yield _who(list(by_name), "snapshot"), f"{verb} read {when}"


def _off_s(look: SnapshotRows, window_ns: tuple[int, int]) -> float:
    return (look.unix_ns - window_ns[look.at == "end"]) / 1e9


def _who(names: Sequence[str], what: str = "sampler") -> str:
    if len(names) == 1:
        return f"{what} {names[0]}"
    more = [f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    return f"{what}s {listed([*names[:_SHOWN], *more])}"
