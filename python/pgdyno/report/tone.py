"""How verdicts are set off in a report: good, bad, or to be looked at."""

from __future__ import annotations

from pgdyno.analysis.answer_facts import TailFacts
from pgdyno.analysis.facts import Comparison, Facts, StageFacts
from pgdyno.report.document import Tone

_TONES: dict[str, Tone] = {
    "better": "good",
    "worse": "bad",
    "equivalent": "",
    "undecided": "warn",
    "not judged": "warn",
}


def tone(comparison: Comparison | TailFacts | None) -> Tone:
    """How a verdict is set off."""
    return _TONES.get(comparison.verdict, "") if comparison else ""


def verdict_tone(stage: StageFacts, facts: Facts) -> Tone:
    """The same of a stage against the first: no gain is green while a check speaks against it."""
    found = tone(stage.to_first)
    return "warn" if found == "good" and facts.answer.against(stage.name) else found


LIGHTS: dict[str, Tone] = {"high": "good", "limited": "warn", "low": "bad"}
"""How the confidence of an answer is set off."""

CONFIDENCES: dict[str, tuple[str, str]] = {
    "high": ("Confidence: high", "No check limits what these numbers show."),
    "limited": (
        "Confidence: limited",
        "Nothing speaks against these numbers, but some things are not known.",
    ),
    "low": ("Confidence: low", "A check found something that speaks against these numbers."),
}
"""How it is said: in short, and what that means."""

WORST: dict[str, Tone] = {"whole": "good", "down": "warn", "lost": "warn", "broken": "bad"}
"""How the worst that disasters took is set off."""
