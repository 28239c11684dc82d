"""What was found in plain words, for who reads nothing else: no unit, no term of the field."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.analysis import words
from pgdyno.analysis.answer_facts import TAIL_REQUESTS_MIN, TailFacts
from pgdyno.analysis.credit import NO_SETTING, credit_against
from pgdyno.analysis.facts import Comparison, StageFacts
from pgdyno.analysis.one_device import is_against_itself
from pgdyno.model.units import ratio_text
from pgdyno.model.wording import listed, plural

NO_TAIL = (
    f"that takes a round in which both stages have at least {TAIL_REQUESTS_MIN:,} requests of one"
    " kind, all answered"
)
"""Why the slowest requests of a stage are compared with nothing."""
SLOWEST = {"p99": "1 in 100", "p99.9": "1 in 1,000"}
_TIMES_FROM = 2.0  # said as a multiple from here on
_UNKNOWN = "Whether {names} {is_} faster than {base} is not known yet."
_OUTCOMES = {
    "worse": "{names} {is_} slower than {base}.",
    "equivalent": "{names} {is_} as fast as {base}.",
    "undecided": _UNKNOWN,
    "not judged": _UNKNOWN,
    "itself": "{names} {is_} not judged: one file system holds {its} data and those of {base}.",
    "not measured": "{names} {was} not measured beside {base}.",
}
_NUMBERS = (
    {"is_": "is", "was": "was", "its": "its"}, {"is_": "are", "was": "were", "its": "their"},
)  # fmt: skip


def plain(stages: Sequence[StageFacts]) -> tuple[str, ...]:
    """The answer in sentences: the best stage that loses nothing, and the best of all.

    Args:
        stages: In plan order; the first of a load is the base of its comparisons.
    """
    others = [one for one in stages if one.to_first is not None and one.twin_of is None]
    if not any(one.throughput for one in stages):
        return ("No trial finished, so there is no answer.",)
    loads = [one for one in stages if one.twin_of is None]
    if not others and len(loads) > 1:
        return (
            f"{listed([f'`{one.name}`' for one in loads])} ask for loads of their own, so that no"
            " ratio is told: their numbers stand beside each other.",
        )
    if not others:
        return (f"Only `{stages[0].name}` was measured: there is nothing to compare it with.",)
    better = [one for one in others if one.to_first and one.to_first.verdict == "better"]
    if not better:
        bases = list(dict.fromkeys(f"`{one.to_first.base}`" for one in others if one.to_first))
        nothing = f"Nothing that was tried is shown to be faster than {listed(bases, 'or')}."
        rest = _not_better(others)
        # One sentence for each base says it already, and says not known where this sounds like no.
        told = rest if len(rest) == len(bases) else (nothing, *rest)
        slowest = [sentence for one in others if _is_told(one) for sentence in _slowest(one)]
        return (*told, *slowest)
    safe = [one for one in better if one.rung in words.SAFE]
    found = list(dict.fromkeys(max(some, key=_ratio).name for some in (safe, better) if some))
    best = [one for one in better if one.name in found]
    praised = tuple(sentence for one in best for sentence in _sentences(one))
    further = [one for one in better if one not in best]
    return (*praised, *_not_known(best), *_also(further), *_not_better(others))


def _is_told(stage: StageFacts) -> bool:
    tail = deepest(stage)
    return tail is not None and tail.verdict in ("better", "worse")


def _also(stages: Sequence[StageFacts]) -> tuple[str, ...]:
    """Further stages that are faster, in plan order: where among them most of a gain begins."""
    by_base: dict[str, list[str]] = {}
    for one in stages:
        if one.to_first is not None:
            text = f"`{one.name}` ({_gain(_ratio(one))}, {one.rung})"
            by_base.setdefault(one.to_first.base, []).append(text)
    return tuple(f"Faster than `{base}` too: {listed(said)}." for base, said in by_base.items())


def outcome(name: str, base: str, verdict: str, ratio: float | None) -> str:
    """A sentence on two stages of which neither need be the first."""
    if verdict == "better" and ratio is not None:
        return f"`{name}` is {_faster(ratio)} `{base}`."
    return _OUTCOMES[verdict].format(names=f"`{name}`", base=f"`{base}`", **_NUMBERS[False])


def tail_sentence(stage: StageFacts) -> str:
    """What a finding says of a stage's slowest requests; empty where that is not known."""
    tail = deepest(stage)
    if tail is None or tail.ratio is None:
        return ""
    ratio = ratio_text(tail.ratio).replace("x", "×")
    interval = "no interval"
    if tail.low is not None and tail.high is not None:
        interval = f"{tail.low:.3f} to {tail.high:.3f}"
    return (
        f"{tail.percentile} of {words.kind(tail.kind)} of `{stage.name}` is {ratio} that of"
        f" `{tail.base}`{in_rounds(tail, stage.to_first)} ({interval}): {tail.verdict}"
    )


def in_rounds(tail: TailFacts, beside: Comparison | None) -> str:
    """The rounds that tell of the slowest, after a space, where throughput is compared by more."""
    if beside is None or tail.rounds >= beside.rounds:
        return ""
    return f" in {tail.rounds} of {plural(beside.rounds, 'round')}"


def to_one_between(stage: StageFacts) -> Comparison | None:
    """The comparison with the stage before, where it builds on that, and that is not the first."""
    before, first = stage.to_previous, stage.to_first
    if stage.afresh or (before and first and before.base == first.base):
        return None
    return before


def deepest(stage: StageFacts) -> TailFacts | None:
    """The deepest percentile that was compared: of those with a verdict, if any has one.

    Without one it is the deepest of those that most rounds tell: a slow round has fewer requests,
    and is the first that has too few for a deep percentile.
    """
    known = [one for one in stage.tails if one.verdict in ("better", "worse", "equivalent")]
    most = max((one.rounds for one in stage.tails), default=0)
    tails = known or [one for one in stage.tails if one.rounds == most]
    return tails[-1] if tails else None


def _ratio(stage: StageFacts) -> float:
    return stage.to_first.ratio or 0.0 if stage.to_first else 0.0


def _sentences(stage: StageFacts) -> tuple[str, ...]:
    assert stage.to_first is not None
    gain = f"`{stage.name}` is {_faster(_ratio(stage))} `{stage.to_first.base}`{_beyond(stage)}"
    risk = _risk(stage)
    return (f"{gain}, {risk}.", *_whose(stage), *_slowest(stage))


def _beyond(stage: StageFacts) -> str:
    """What it gains over the stage before, where that is shown and not the first."""
    before = to_one_between(stage)
    if before is None or before.ratio is None or before.verdict != "better":
        return ""
    return f" and {_faster(before.ratio)} `{before.base}`"


def _risk(stage: StageFacts) -> str:
    """What it may lose; what disasters did take from it, where they were rehearsed."""
    harm = [one for one in stage.measured if one.took.worst != "whole"]
    if harm:
        took = listed([f"{one.disaster} took {one.took.words}" for one in harm])
        return f"but when disasters were rehearsed, {took}"
    joint = "and" if stage.rung in words.SAFE else "but"
    cuts = sum(one.harmed.n for one in stage.measured)
    tried = f"; {plural(cuts, 'rehearsed disaster')} took nothing" if cuts else ""
    return f"{joint} {words.risks(stage)}{tried}"


def _whose(stage: StageFacts) -> tuple[str, ...]:
    """That a gain is the client's, or not all the server's; how much is told by the finding."""
    assert stage.to_first is not None
    found = credit_against(stage, stage.to_first.base)
    if not found:
        return ()
    if NO_SETTING in found[0]:
        return (f"All of that comes from how the client works: {NO_SETTING}.",)
    return ("The client works in another way there, too: not all of that is the server's.",)


def _faster(ratio: float) -> str:
    if ratio >= _TIMES_FROM:
        return f"{ratio:.1f} times as fast as"
    return f"{_gain(ratio)} faster than"


def _gain(ratio: float) -> str:
    share = (ratio - 1) * 100
    return f"{share:.0f}%" if share >= 1 else f"{share:.1f}%"


def _not_better(stages: Sequence[StageFacts]) -> tuple[str, ...]:
    """What came of the others: slower, as fast, or not known, which is neither."""
    found: dict[tuple[str, str], list[str]] = {}
    for one in stages:
        if one.to_first is None or one.to_first.verdict == "better":
            continue
        verdict = one.to_first.verdict if one.to_first.rounds else "not measured"
        verdict = "itself" if is_against_itself(one.to_first) else verdict
        found.setdefault((_OUTCOMES[verdict], one.to_first.base), []).append(f"`{one.name}`")
    return tuple(
        text.format(names=listed(names), base=f"`{base}`", **_NUMBERS[len(names) > 1])
        for (text, base), names in found.items()
    )


def _slowest(stage: StageFacts) -> tuple[str, ...]:
    tail = deepest(stage)
    if tail is None or tail.ratio is None:
        return ()
    slowest = f"the slowest {SLOWEST[tail.percentile]} {words.kind(tail.kind)} transactions"
    whom = f"With `{stage.name}`, {slowest}"
    change = abs(tail.ratio - 1) * 100
    match tail.verdict:
        case "worse" if tail.ratio >= _TIMES_FROM:
            return (f"{whom} take {tail.ratio:.1f} times as long.",)
        case "worse":
            return (f"{whom} take {change:.0f}% longer.",)
        case "better":
            return (f"{whom} take {change:.0f}% less time.",)
        case "equivalent":
            return (f"{whom} take as long as with `{tail.base}`.",)
    return ()


def _not_known(stages: Sequence[StageFacts]) -> tuple[str, ...]:
    """Of which stages it is not known what they do to the slowest requests; said once."""
    tails = {f"`{one.name}`": deepest(one) for one in stages}
    few = [name for name, tail in tails.items() if tail is None]
    open_ = [name for name, tail in tails.items()
             if tail is not None and tail.verdict in ("undecided", "not judged")]  # fmt: skip
    return tuple(
        f"What {listed(names)} {'does' if len(names) == 1 else 'do'} to the slowest requests is"
        f" not known{why}."
        for names, why in ((open_, " yet"), (few, f": {NO_TAIL}"))
        if names
    )
