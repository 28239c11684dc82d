"""What limits a stage: what most of its windows say. Windows that disagree are not averaged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pgdyno.analysis.diagnosis_facts import StageDiagnosis, WindowDiagnosis
from pgdyno.analysis.window_facts import StageWindows
from pgdyno.diagnosis.rules import rules
from pgdyno.diagnosis.window import diagnose_window
from pgdyno.model.wording import plural

MAJORITY = 0.5  # of the windows: more must say the same


def diagnose_stages(stages: Sequence[StageWindows]) -> tuple[StageDiagnosis, ...]:
    """What limits each stage, in the order given."""
    return tuple(_of_stage(one.stage, [diagnose_window(each) for each in one.windows])
                 for one in stages)  # fmt: skip


def _of_stage(stage: str, windows: list[WindowDiagnosis]) -> StageDiagnosis:
    if not windows:
        sentence = "What limits it is not known: none of its windows has numbers that may be used."
        return StageDiagnosis(stage, "unknown", (), sentence, 0, (), None)
    said = Counter((one.outcome, tuple(sorted(one.limits))) for one in windows)
    (most, count), *others = said.most_common()
    alike = [one for one in windows if (one.outcome, tuple(sorted(one.limits))) == most]
    shown = windows.index(alike[len(alike) // 2])
    if count <= MAJORITY * len(windows):
        told = "; ".join(f"{plural(n, 'round')}: {_short(key)}" for key, n in said.most_common())
        sentence = f"What limits it is not known: its rounds disagree ({told})."
        return StageDiagnosis(stage, "unknown", (), sentence, count, tuple(windows), shown)
    one = windows[shown]
    sentence = one.sentence
    if others:
        sentence += f" So say {count} of {plural(len(windows), 'round')}."
    return StageDiagnosis(stage, one.outcome, one.limits, sentence, count, tuple(windows), shown)


def _short(key: tuple[str, tuple[str, ...]]) -> str:
    """What rounds found, by the titles of rules, as the sentence of one names them."""
    outcome, limits = key
    if not limits:
        return "not known" if outcome == "unknown" else outcome
    return " or ".join(rules()[name].title for name in limits)
