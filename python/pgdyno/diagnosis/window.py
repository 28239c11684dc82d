"""Asks every rule about one window, and ranks what they found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pgdyno.analysis.account_facts import (
    IDLE,
    IN_FLIGHT,
    PARTS,
    RUNNING,
    UNDIVIDED,
    UNTOLD,
    WANTS_CPU,
    Account,
    Draws,
    largest,
    quantiles,
)
from pgdyno.analysis.diagnosis_facts import (
    DiagnosedKnob,
    Gain,
    Outcome,
    RuleAnswer,
    StatementShare,
    TimePart,
    WindowDiagnosis,
)
from pgdyno.analysis.window_facts import WindowFacts
from pgdyno.catalog import entries
from pgdyno.diagnosis import sentences
from pgdyno.diagnosis.gate import paced, shut
from pgdyno.diagnosis.rule import (
    LEAST_GAIN,
    Cleared,
    Found,
    Knob,
    NotKnown,
    Rule,
    Seen,
    Threshold,
    gains,
)
from pgdyno.diagnosis.rules import rules

THRESHOLDS = {
    "gain": Threshold(LEAST_GAIN, "of throughput, that a limit must be able to bring"),
    "named": Threshold(0.80, "chance to come first, from which on one limit is named"),
    "tie": Threshold(0.10, "chance to come first, from which on another one may be it"),
    "held": Threshold(0.50, "of a class, that came from locks others wait for"),
    "before": Threshold(0.15, "of throughput, for which what takes another's time comes before it"),
    "untold": Threshold(0.25, "of session time, that no class has: more may be the limit"),
    "little": Threshold(0.01, "of session time, from which on a part is shown"),
}
_STATEMENTS_MAX = 8
_LOCKS = "row_locks"


@dataclass(frozen=True, slots=True)
class _Ranked:
    """A finding, with what it could bring for each draw."""

    name: str
    rule: Rule
    gain: Draws  # as a ratio
    held: float  # part of it that came from waits for locks
    found: Found


def diagnose_window(window: WindowFacts) -> WindowDiagnosis:
    """What limits one window."""
    closed = shut(window)
    calm = None if closed else paced(window)
    answers, ranked = [], []
    for name, rule in rules().items():
        answer, found = _asked(name, rule, window, closed)
        if found is not None and calm is not None:
            answer = _asks_for_less(answer)
        elif found is not None:
            ranked.append(found)
        answers.append(answer)
    outcome, limits, chances = _ranking(ranked)
    reason = closed or _hidden(answers, ranked, window)
    if calm is not None:
        outcome, limits, chances = "paced", (), {}
    elif reason is not None:
        outcome, limits, chances = "unknown", (), {}
    told = tuple(_placed(one, chances, window) for one in answers)
    return WindowDiagnosis(
        trial=window.trial,
        round=window.round,
        outcome=outcome,
        limits=limits,
        sentence=sentences.of_window(outcome, limits, told, calm[0] if calm else None, reason),
        deciding=sentences.deciding(outcome, window),
        sessions=window.account.sessions if isinstance(window.account, Account) else None,
        parts=_parts(window),
        statements=_statements(window),
        answers=told,
    )


def _asked(
    name: str, rule: Rule, window: WindowFacts, closed: str | None
) -> tuple[RuleAnswer, _Ranked | None]:
    """What a rule answers, and the finding to be ranked, if it is one that could bring anything."""
    lacking = closed or next((why for one in rule.needs if (why := one(window))), None)
    account = window.account
    if lacking is None:
        seen = Seen(window, account if isinstance(account, Account) else _NOTHING)
        found = rule.answer(seen, rule)
    else:
        found = NotKnown(lacking)
    blank = RuleAnswer(rule.number, name, rule.title, "unknown", "", confounders=rule.confounders)
    if isinstance(found, NotKnown):
        return replace(blank, fact=found.reason, figures=found.figures), None
    if isinstance(found, Cleared):
        return replace(blank, verdict="clear", fact=found.fact, figures=found.figures), None
    gain, cap = gains(found, rule.number)
    low, bound, high = quantiles(gain)
    if high - 1 < THRESHOLDS["gain"].value:
        fact = f"{found.fact}; without it, at most {sentences.more(high)} throughput"
        return replace(blank, verdict="clear", fact=fact, figures=found.figures), None
    answer = replace(
        blank, verdict="finding", fact=found.fact, figures=found.figures,
        gain=Gain(low, bound, high, cap, rule.may_save),
        knobs=tuple(_knob(one) for one in rule.knobs if one.name not in window.client),
    )  # fmt: skip
    return answer, _Ranked(name, rule, gain, _held(rule, account), found)


def _held(rule: Rule, account: object) -> float:
    """How much of a class's time came from waits for locks that others hold meanwhile."""
    if not isinstance(account, Account) or not rule.parts:
        return 0.0
    whole = float(account.share(*rule.parts)[0]) * account.sessions
    moved = sum(float(account.moved[one][0]) for one in rule.parts if one in account.moved)
    return moved / whole if whole > 0 else 0.0


def _knob(knob: Knob) -> DiagnosedKnob:
    known = entries().get(knob.name)
    if known is None:
        return DiagnosedKnob(knob.name, "D0", knob.why)
    return DiagnosedKnob(knob.name, known.rung, knob.why or " ".join(known.why.split()))


def _asks_for_less(answer: RuleAnswer) -> RuleAnswer:
    """With a load that is paced, what takes time takes no throughput."""
    fact = f"{answer.fact}; the load asks for no more, so this costs response time at most"
    return replace(answer, verdict="clear", fact=fact, gain=None, knobs=())


def _ranking(
    ranked: Sequence[_Ranked],
) -> tuple[Outcome, tuple[str, ...], dict[str, float]]:
    """Who comes first, and how sure that is.

    What only takes time because others wait for the locks that it holds is told beside them, and
    the CPUs beside what takes them and is not the load's own work: free CPUs would bring more than
    any part of that. So is a class beside what is behind its waits, and CPUs that are mostly idle
    beside what sessions wait for: the few that run wait for nobody there.
    """
    queue = next((one for one in ranked if one.name == _LOCKS), None)
    limit = THRESHOLDS["held"].value
    rivals = [one for one in ranked if queue is None or one is queue or one.held < limit]
    large = [one for one in rivals if float(one.gain[0]) >= 1 + THRESHOLDS["before"].value]
    followers = {name for one in large for name in one.found.behind}
    if any(one.rule.before_cpus for one in large):
        followers |= {one.name for one in rivals if one.found.is_cpu_work}
    if any(not one.found.is_cpu_work for one in large):
        followers |= {one.name for one in rivals if one.found.to_spare}
    rivals = [one for one in rivals if one.name not in followers]
    if not rivals:
        return "balanced", (), {}
    gain = np.stack([one.gain for one in rivals])
    first = np.bincount(gain[:, 1:].argmax(axis=0), minlength=len(rivals)) / (gain.shape[1] - 1)
    chances = {one.name: float(chance) for one, chance in zip(rivals, first, strict=True)}
    order = sorted(chances, key=lambda name: -chances[name])
    if chances[order[0]] >= THRESHOLDS["named"].value:
        return "limit", (order[0],), chances
    return "tie", tuple(order[:2]), chances


def _placed(
    answer: RuleAnswer,
    chances: Mapping[str, float],
    window: WindowFacts,
) -> RuleAnswer:
    """The answer with its chance to be first; of a queue, with what its holders do."""
    chance = chances.get(answer.name)
    held_by = None
    if answer.name == _LOCKS and answer.verdict == "finding":
        held_by = _holders(window.account)
    return replace(answer, chance=chance, held_by=held_by)


def _holders(account: object) -> str | None:
    """What heads of queues did most; None: too few were seen."""
    if not isinstance(account, Account) or not account.moved:
        return None
    ((name, level), *_) = largest(account.moved)
    whole = sum(float(one[0]) for one in account.moved.values())
    return f"{part_title(name)} {level / whole:.0%}" if whole else None


def _hidden(
    answers: Sequence[RuleAnswer], ranked: Sequence[_Ranked], window: WindowFacts
) -> str | None:
    """Why the ranking may miss what takes most time; None: it does not."""
    account = window.account
    if not isinstance(account, Account):
        return _first_reason(answers) or account.reason
    most = max((float(one.gain[0]) for one in ranked), default=1 + THRESHOLDS["gain"].value)
    for answer in answers:
        share = _possible(answer, account)
        if share > 0 and 1 / (1 - min(share, 0.999)) > most:
            return (
                f"{answer.title} may take up to {share:.0%} of session time, more than anything"
                f" that was found: {answer.fact}"
            )
    covered = {part for rule in rules().values() for part in rule.parts} | {IDLE, UNDIVIDED}
    rest = {name: one for name, one in account.roots.items() if name not in covered}
    if not rest:
        return None
    name, level = largest(rest)[0]
    share = level / account.sessions
    if share < THRESHOLDS["untold"].value or 1 / (1 - min(share, 0.999)) < most:
        return None
    return f"sessions are {part_title(name)} {share:.0%} of their time, which is no class here"


def _first_reason(answers: Sequence[RuleAnswer]) -> str | None:
    return next((one.fact for one in answers if one.verdict == "unknown"), None)


def _possible(answer: RuleAnswer, account: Account) -> float:
    """Of session time, what a class that is not known may have at most."""
    parts = rules()[answer.name].parts
    if answer.verdict != "unknown" or not parts:
        return 0.0
    if UNDIVIDED in account.roots and IN_FLIGHT in parts:
        parts = (*parts, UNDIVIDED)
    if not account.cpu_known and WANTS_CPU in parts:
        parts = (*parts, RUNNING)  # who wants a CPU counts as one that runs
    return float(account.share(*dict.fromkeys(parts))[0])


_SAMPLED = {
    RUNNING: "running or wanting a CPU, sampled",
    WANTS_CPU: "wanting a CPU, as far as the driver tells",
}
"""Parts where the kernel's count of the server's processes is not known."""


def _parts(window: WindowFacts) -> tuple[TimePart, ...]:
    account = window.account
    if not isinstance(account, Account):
        return ()
    found = []
    for name in {**account.parts, **account.roots}:
        low, share, high = quantiles(account.share(name, root=False))
        root = float(account.share(name)[0])
        if max(share, root) >= THRESHOLDS["little"].value:
            title = part_title(name) if account.cpu_known else _SAMPLED.get(name, part_title(name))
            found.append(TimePart(name, title, share, low, high, root))
    rest = 1 - sum(one.share for one in found)
    if rest > 1e-9:
        root = max(0.0, 1 - sum(one.root for one in found))
        found.append(TimePart.all_else(rest, root))
    return tuple(sorted(found, key=lambda one: (one.name == "rest", -one.share)))


def _statements(window: WindowFacts) -> tuple[StatementShare, ...]:
    account = window.account
    if not isinstance(account, Account):
        return ()
    return tuple(
        StatementShare(
            one.kind, one.statement, one.in_flight, one.active,
            max(one.server, key=lambda name: one.server[name], default="").replace("_", " "),
        )
        for one in account.by_statement[:_STATEMENTS_MAX]
    )  # fmt: skip


def part_title(name: str) -> str:
    """What a part of the account is called."""
    return PARTS.get(name) or f"waiting for {name.replace('_', ' ')}"


_NOTHING = Account(0.0, 0, 0, {UNTOLD: np.zeros(1)}, {}, {}, 0, None, False, 0.0, ())
"""For rules that need no account."""
