"""What a diagnosis says first, in plain English: one sentence, its numbers, what would decide."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.analysis.diagnosis_facts import Outcome, RuleAnswer
from pgdyno.analysis.window_facts import WindowFacts
from pgdyno.diagnosis.gate import THRESHOLDS
from pgdyno.diagnosis.needs import OTHERS, PROCESSES
from pgdyno.diagnosis.rule import LEAST_GAIN


def of_window(
    outcome: Outcome,
    limits: Sequence[str],
    answers: Sequence[RuleAnswer],
    calm: str | None,
    reason: str | None,
) -> str:
    """The sentence that everything else is the proof of."""
    of = {one.name: one for one in answers}
    match outcome:
        case "limit":
            one = of[limits[0]]
            return f"The limit is {one.title}{_held(one)}: {one.fact}. {_bound(one)}"
        case "tie":
            first, second = (of[name] for name in limits)
            return (
                f"The limit is {first.title}{_held(first)} or {second.title}{_held(second)}:"
                f" {first.fact}; {second.fact}. {_bound(first)} {_bound(second)}"
            )
        case "paced":
            return f"Nothing is the limit, the load is paced: {calm}."
        case "balanced":
            least = f"{LEAST_GAIN:.0%} more throughput"
            return f"No single limit: nothing that was looked at could bring {least}."
        case _:
            return f"What limits it is not known: {reason}."


def deciding(outcome: Outcome, window: WindowFacts) -> str | None:
    """What would decide where it is not."""
    if outcome == "tie":
        return "One of them made free or dearer, in a stage of its own, would decide."
    if outcome != "unknown":
        return None
    return _would_tell(window)


def _would_tell(window: WindowFacts) -> str:
    if window.telemetry == "none":
        return 'A run with `protocol.telemetry = "default"` would tell.'
    if window.window_s <= THRESHOLDS["seconds"].value + 1:
        how = "without `--quick`" if window.shortened else "with `--set protocol.window_s=30`"
        return f"A longer window would tell: repeat the run {how}."
    if window.driver.engine != "pgdyno":
        return "A run driven by pgdyno's own driver would tell more."
    remedies = [one for name in (OTHERS, PROCESSES) if (one := window.remedies.get(name))]
    if remedies:
        mended = f"`{remedies[0]}`" if remedies[0].endswith(";") else remedies[0]
        return f"Another run would tell more, after this: {mended}"
    return "A longer window, with nothing else on its machine, may tell more."


def more(ratio: float) -> str:
    """How much more a ratio is, e.g. `34% more`."""
    return f"{ratio - 1:.0%} more" if ratio < 10 else "10 times the"


def _held(answer: RuleAnswer) -> str:
    return f", whose holders are {answer.held_by} of the time" if answer.held_by else ""


def _bound(answer: RuleAnswer) -> str:
    assert answer.gain is not None, "only findings are limits"
    gain = answer.gain
    free = f"If {answer.title} cost no time, throughput would be"
    if gain.may_save:
        return (
            f"{free} about {gain.text}, and more if that saves {gain.may_save}, too: an estimate,"
            " not proved."
        )
    cap = f"; then {_full(gain.capped_by)}" if gain.capped_by else ""
    return f"{free} at most {gain.text}{cap}: a bound, not proved."


def _full(name: str) -> str:
    return "the CPUs would be full" if name == "CPUs" else f"the {name} would be full"
