"""The words of facts: rungs, kinds, ratios, intervals, verdicts; one spelling for all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pgdyno.analysis.answer_facts import TailFacts
from pgdyno.analysis.facts import Comparison, Spread, StageFacts
from pgdyno.model.durability import HARMLESS, LADDER, NOT_KNOWN
from pgdyno.model.units import bytes_text, count_text, digits_text, ends_text, ratio_text
from pgdyno.model.wording import listed, plural
from pgdyno.model.workload import TEXT_MIX

NOTHING = "–"
ESTIMATED = "a ratio is estimated from the ratios of single rounds"
RATIO = f"{ESTIMATED}, not by dividing the two medians"
NO_LOOK = "no look yet"
AMONG_SEVERAL = "among several comparisons that is not yet beyond chance"

RUNGS = {NOT_KNOWN: "what may be lost is not known", **LADDER}
SAFE: tuple[str, ...] = HARMLESS  # as pages spell rungs


def is_beside_one(one: Comparison) -> bool:
    """Whether it is undecided, though its interval does not hold 1."""
    if one.verdict != "undecided" or one.low is None or one.high is None:
        return False
    return not one.low <= 1 <= one.high


def rung(name: str) -> str:
    """A rung with what it risks, e.g. `D2: a crash may lose the last commits`."""
    return f"{name}: {RUNGS[name]}"


def risks(stage: StageFacts) -> str:
    """All that a stage may lose, lowest rung first, in one clause."""
    lost = [stage.rung, *(loss.rung for loss in stage.losses if loss.rung not in SAFE)]
    known = [RUNGS[one] for one in dict.fromkeys(lost)]
    if any(loss.layer == "tables" for loss in stage.losses):  # sooner than the rung says
        known = ["a crash of the server alone empties its tables", *known]
    if stage.not_known:
        known = [one for one in known if one != RUNGS[NOT_KNOWN]]
        what = "what else may be lost" if known else "what may be lost"
        known.append(f"{what} is not known ({'; '.join(stage.not_known)})")
    return listed(known)


def stands(stage: StageFacts) -> str:
    """On which rung a stage stands, what that means, and what puts it there."""
    reasons = [stage.rung_reason]
    if stage.not_known:  # `risks` tells it already
        lost = [loss for loss in stage.losses if loss.rung not in SAFE]
        reasons = list(dict.fromkeys(loss.what for loss in lost or stage.losses))
    why = f" ({', '.join(reasons)})" if reasons else ""
    return f"Rung {stage.rung}: {risks(stage)}{why}."


def planned_otherwise(stage: StageFacts) -> str:
    """That a stage does not stand where it was planned to, or that nobody can tell."""
    lost = [loss.what for loss in stage.losses if loss.rung == stage.rung]
    reasons = dict.fromkeys(lost)  # of several servers perhaps several times
    why = f" ({'; '.join(reasons or stage.not_known)})" if reasons or stage.not_known else ""
    if stage.rung == NOT_KNOWN:  # what the role or the host does not show, no plan foretold
        return f"it is not known what `{stage.name}` may lose{why}"
    return (
        f"`{stage.name}` was planned on rung {stage.rung_planned} and was found on"
        f" {stage.rung}{why}"
    )


def left_out(left: int, one: str, many: str | None = None, *, where: str = "the JSON") -> str:
    """A sentence on the rows that a table leaves out, after a space; empty where it has all."""
    more = plural(left, f"{one} more is", f"{many or one + 's'} more are")
    return f" {more} in {where}." if left > 0 else ""


def kind(name: str) -> str:
    """A kind of transaction as the TPC-C text writes it, e.g. `New-Order`; others as they are."""
    if name not in TEXT_MIX:
        return name
    return "-".join(part.capitalize() for part in name.split("_"))


def ratio(comparison: Comparison | TailFacts | None) -> str:
    """The ratio, e.g. `×1.240`."""
    if comparison is None or comparison.ratio is None:
        return NOTHING
    return ratio_text(comparison.ratio).replace("x", "×")


def interval(comparison: Comparison | None) -> str:
    """Both ends of the interval, e.g. `1.180 to 1.300`."""
    if comparison is None:
        return NOTHING
    if comparison.low is None and not comparison.rounds:
        return NOTHING
    return ends(comparison.low, comparison.high)


def ends(low: float | None, high: float | None) -> str:
    """Both ends of an interval of ratios, e.g. `1.180 to 1.300`."""
    if low is None or high is None:
        return "no interval"
    return ends_text(low, high)


def verdict(comparison: Comparison | None) -> str:
    """The verdict; an undecided one with the rounds that would decide it.

    Without a paired round there is none.
    """
    if comparison is None:
        return NOTHING
    if comparison.rounds == 0:
        return "not measured"
    if comparison.verdict == "undecided" and comparison.failures is not None:
        return "undecided, trials failed"
    if comparison.verdict == "undecided" and comparison.rounds_needed is not None:
        return f"undecided, needs about {plural(comparison.rounds_needed, 'round')}"
    if comparison.verdict == "undecided" and comparison.look is comparison.p_adjusted is None:
        return NO_LOOK
    return comparison.verdict


def verdict_of(stage: StageFacts) -> str:
    """The verdict of a stage against the first of its load, e.g. `better`."""
    compared = stage.to_first
    if compared is not None and compared.rounds == 0 and stage.rounds:
        return "not compared"  # it was measured, but the first was not beside it
    return verdict(compared)


def count(spread: Spread | None) -> str:
    """A median with thousands separators."""
    return count_text(spread.median) if spread else NOTHING


def confidence(share: float) -> str:
    """A confidence as a percentage, e.g. `95%`."""
    return f"{digits_text(share * 100)}%"


def intervals_confidence(compared: Iterable[Comparison | None], asked: float) -> str:
    """What a heading calls the intervals below it: the least of theirs.

    Ranks of many rounds reach some rates alone, e.g. 95.8% where 95% is asked for.
    """
    rates = [one.confidence for one in compared if one is not None and one.low is not None]
    return confidence(min(rates, default=asked))


def confidence_to_first(stages: Iterable[StageFacts], asked: float) -> str:
    """The same of intervals to the first stage."""
    return intervals_confidence((one.to_first for one in stages), asked)


def flat(record: Mapping[str, object], prefix: str = "") -> dict[str, str]:
    """A manifest as lines of name and text: nested names joined by dots, bytes scaled."""
    lines: dict[str, str] = {}
    for key, value in record.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            lines |= flat(value, f"{name}.")
        elif value is None or (isinstance(value, str | list | tuple) and not value):
            continue
        elif name.endswith("_bytes") and isinstance(value, int | float):
            lines[name.removesuffix("_bytes")] = bytes_text(value)
        elif isinstance(value, bool):
            lines[name] = "yes" if value else "no"
        elif isinstance(value, float):
            lines[name] = digits_text(value, 4)
        elif isinstance(value, list | tuple):
            lines[name] = ", ".join(str(item) for item in value)
        else:
            lines[name] = str(value)
    return lines
