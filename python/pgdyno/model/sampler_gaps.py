"""When samplers told nothing for a while and then went on, in words that note and report share."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.model.run import SamplerCost
from pgdyno.model.wording import listed

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


def _who(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"sampler {names[0]}"
    more = [f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    return f"samplers {listed([*names[:_SHOWN], *more])}"
