"""The answer, made from the facts: in plain words, as it was found, and what limits the claim."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgdyno.analysis import words
from pgdyno.analysis.answer_facts import Answer, Doubt, confidence_of
from pgdyno.analysis.cpu_speed import uneven
from pgdyno.analysis.credit import credit_against
from pgdyno.analysis.cycle_facts import CycleFacts
from pgdyno.analysis.facts import (
    AuditFacts,
    Difference,
    Judgement,
    MistakeFacts,
    StageFacts,
    TrialFacts,
)
from pgdyno.analysis.host_facts import FleetFacts
from pgdyno.analysis.left import Left, left_of
from pgdyno.analysis.one_device import is_against_itself
from pgdyno.analysis.plain import plain, tail_sentence, to_one_between
from pgdyno.model.durability import NOT_KNOWN
from pgdyno.model.looks import LOOKS
from pgdyno.model.units import seconds_text
from pgdyno.model.wording import listed, often, plural

_WORTH_ROUNDS = max(LOOKS)  # nobody waits for more
_NAMED_MAX = 3  # stages in a sentence; more are counted
FEW_ROUNDS = 3  # where nothing is compared
FEW_PAIRS = 5  # fewer are named as a limit; the interval is honest, but wide and easily disturbed


def answer(
    stages: Sequence[StageFacts],
    trials: Sequence[TrialFacts],
    audit: Sequence[AuditFacts],
    differences: Sequence[Difference],
    *,
    metric: str,
    quick: bool,
    looks: Sequence[int] = (),
    further: Sequence[Doubt] = (),
) -> Answer:
    """Put the result into words.

    Args:
        stages: In plan order; the first of a load is the base of its comparisons.
        trials: All of them, finished or not.
        audit: The merged input audit.
        differences: What differs between trials besides the stage.
        metric: By which stages are compared, e.g. `NOPM`.
        quick: Whether the plan was shortened by `--quick`.
        looks: Rounds after which is looked; none: all rounds are measured.
        further: What `further_doubts` found.
    """
    doubts = [*_doubts(stages, trials, audit, differences, quick=quick), *further]
    texts = "; ".join(one.whole for one in doubts)
    left = left_of(trials, looks)
    further_steps = _shortened(stages) if quick else _next_steps(stages, trials, looks, left)
    rest = f", and is limited by: {texts}" if doubts else "; no check limits it further"
    return Answer(
        plain=(*plain(stages), *_resumed(stages, left), *further_steps),
        finding=_findings(stages, metric),
        limits=f"This holds for this host, fixture and load{rest}.",
        confidence=confidence_of(tuple(doubts)),
        doubts=tuple(doubts),
    )


def _shortened(stages: Sequence[StageFacts]) -> Iterator[str]:
    """What a plan that `--quick` shortened cannot be expected to tell, beside its verdicts."""
    if not any(one.throughput for one in stages):
        return  # nothing was measured: that is not for want of length
    verdicts = {one.to_first.verdict for one in stages if one.to_first is not None}
    if verdicts & {"better", "worse", "equivalent"}:
        yield "This is a first look, shortened by --quick: the whole plan may find otherwise."
    if "undecided" in verdicts:
        yield (
            "A plan shortened by --quick seldom decides; the whole plan measures longer, and may"
            " decide."
        )
    left = [
        f"`{one.name}`"
        for one in stages
        if one.to_first is not None
        and one.to_first.verdict == "not judged"
        and not is_against_itself(one.to_first)
    ]
    if left:
        compared = sum(one.to_first is not None for one in stages)
        many = "any of these stages" if len(left) == compared else f"{len(left)} of the stages"
        what = listed(left) if len(left) <= _NAMED_MAX else many
        yield (
            f"A plan shortened by --quick cannot judge {what}, however many rounds it has: its"
            " windows are too short. Without --quick, windows follow checkpoints, and are long"
            " enough."
        )


def _needed(stages: Sequence[StageFacts]) -> dict[str, int]:
    """Rounds that may decide what is undecided; 0: not known, or decided."""
    return {
        one.name: one.to_first.rounds_needed or 0
        for one in stages
        if one.to_first and one.twin_of is None  # of a twin there is nothing to decide
    }


def _resumed(stages: Sequence[StageFacts], left: Left) -> Iterator[str]:
    """Of a run that was broken off, shortened or not."""
    if not left.trials:
        return
    soon = [f"`{name}`" for name, needed in _needed(stages).items() if 0 < needed <= left.rounds]
    may = f", and may decide what {listed(soon)} {'do' if soon[1:] else 'does'}" if soon else ""
    yield f"`pgdyno resume`, given the run file, measures {listed(left.trials)}{may}."


def _next_steps(
    stages: Sequence[StageFacts], trials: Sequence[TrialFacts], looks: Sequence[int], left: Left
) -> Iterator[str]:
    """How to measure what was not decided, or what is missing in the windows."""
    planned, rounds = left.rounds, _needed(stages)
    if not left.trials:
        yield from _beyond_failures(stages)
    # What the rest of a run may decide is no reason to repeat the run.
    rounds = {name: needed for name, needed in rounds.items() if needed > planned}
    far = {name: needed for name, needed in rounds.items() if needed > _WORTH_ROUNDS}
    needed = max((one for name, one in rounds.items() if name not in far), default=0)
    if looks and needed:  # such a plan has as many rounds as one of the schedules of looks
        needed = min((most for most in LOOKS if most >= needed), default=0)
    once = planned < 2 and any(
        one.to_first.verdict == "undecided" and one.to_first.rounds == 1
        for one in stages if one.to_first
    )  # fmt: skip
    if once:
        yield (
            "An interval takes two rounds, and a decision more: repeat the run with"
            f" `--set protocol.rounds={min(LOOKS)}`."
        )
    if needed:
        near = [f"`{name}`" for name, one in rounds.items() if one and name not in far]
        what = f"what {listed(near)} {'do' if near[1:] else 'does'}" if far or planned else "it"
        takes = _takes(needed, trials)
        yield (
            f"A run with `--set protocol.rounds={needed}`{takes}{',' * bool(takes)} is likely to"
            f" decide {what}."
        )
    paired = {one.name: one.to_first.rounds for one in stages if one.to_first}
    for name, many in far.items():  # by few rounds: neither the size nor the number is certain
        yield (
            f"What `{name}` does looks small beside the noise: if more rounds are like the"
            f" {paired[name]} measured, about {many} would decide it{_takes(many, trials)}."
        )
    cycles = [one.checkpoint_cycle for one in stages if one.checkpoint_cycle is not None]
    if any(one.verdict == "finding" for one in cycles):
        how = "give that run also" if needed or once else "repeat the run with"
        yield (
            f"To see all of the server's work, {how} `--set protocol.checkpoints=cycles`,"
            " which takes longer: `--dry-run` says how long."
        )


def _beyond_failures(stages: Sequence[StageFacts]) -> Iterator[str]:
    """What decides where failures count: that is not resuming, which adds evidence to them."""
    names = [
        f"`{one.name}`"
        for one in stages
        if one.to_first and one.to_first.verdict == "undecided" and one.to_first.failures
        and one.twin_of is None
    ]  # fmt: skip
    if names:
        yield (
            "Trials that failed or were invalid count to the end of this run, also where their"
            f" rounds were measured again: what {listed(names)} {'do' if names[1:] else 'does'}, a"
            " new run without such trials can decide."
        )


def _takes(rounds: int, trials: Sequence[TrialFacts]) -> str:
    """How long so many rounds take, by those that were measured; empty where none was."""
    spent = [(one.ended_ns - one.started_ns) / 1e9 for one in trials
             if one.started_ns is not None and one.ended_ns is not None]  # fmt: skip
    measured = len({one.round for one in trials if one.ended_ns is not None})
    if not measured:
        return ""
    return f", which takes about {seconds_text(rounds * sum(spent) / measured)}"


def further_doubts(
    again: Sequence[int],
    mistakes: Sequence[MistakeFacts],
    placement: Judgement,
    cycles: Sequence[CycleFacts] = (),
    fleet: FleetFacts | None = None,
    stages: Sequence[StageFacts] = (),
) -> list[Doubt]:
    """What else the report finds, so that it never speaks against numbers that it calls good.

    Args:
        again: Rounds that were measured more than once.
        mistakes: What was found of the mistakes that reports make.
        placement: Whether trials differ with where the scheduler placed sessions.
        cycles: Of each stage, with what its windows hold of autovacuum's work.
        fleet: The hosts of the load; None: it came from one process.
        stages: All of them; `--aa` makes twins of one.
    """
    doubts = []
    if fleet is not None and fleet.degraded:
        of = "driven without hosts that were lost, and compared with nothing"
        text = plural(len(fleet.degraded), f"trial was {of}", f"trials were {of}")
        doubts.append(Doubt(text, grave=False))
    if again:
        rounds = listed([str(number) for number in again])
        doubts.append(Doubt(f"round{'s' * (len(again) > 1)} {rounds} measured again", grave=False))
    doubts += [
        Doubt(
            f"{one.fact} ({one.ident} of the mistakes that reports make)",
            grave=True, simply=one.simply,
        )
        for one in mistakes if one.verdict == "finding" and one.simply
    ]  # fmt: skip
    if unlike := tuple(one.stage for one in cycles if one.vacuum and one.vacuum.unlike):
        doubts.append(Doubt(
            "windows hold another share of autovacuum's work than the whole load does",
            grave=True, stages=unlike, all_stages=len(unlike) == len(cycles) > 1,
            simply="the server cleared up (autovacuum) more, or less, than it does in the long run",
        ))  # fmt: skip
    doubts += [
        Doubt(
            f"identical stages differ: `{one.name}` is {one.to_first.verdict} than its twin"
            f" ({words.ratio(one.to_first)})",
            grave=True,
            simply="a stage that was measured twice differs from itself: so may others by chance",
        )
        for one in stages
        if one.twin_of and one.to_first and one.to_first.verdict in ("better", "worse")
    ]
    if slower := uneven(stages):
        doubts.append(slower)
    if placement.verdict == "finding":
        doubts.append(Doubt(
            placement.fact, grave=False,
            simply="one stage was now faster, now slower, with how the system spread the work over"
            " the processors",
        ))  # fmt: skip
    return doubts


def _findings(stages: Sequence[StageFacts], metric: str) -> str:
    """What was found of each load."""
    loads: dict[str, list[StageFacts]] = {}
    for stage in stages:
        loads.setdefault(stage.to_first.base if stage.to_first else stage.name, []).append(stage)
    compared = [load for load in loads.values() if len(load) > 1] or list(loads.values())
    return " ".join(_finding(load, metric, alone=len(compared) == 1) for load in compared)


def _finding(stages: Sequence[StageFacts], metric: str, *, alone: bool) -> str:
    others = [stage for stage in stages[1:] if stage.twin_of is None]
    if not any(stage.throughput for stage in stages):
        return "No trial finished, so there is no answer."
    if not others:
        first = stages[0]
        rest = "with one stage there is nothing to compare" if alone else "no other has its load"
        return (
            f"`{first.name}` reaches {words.count(first.throughput)} {metric} and"
            f" {words.count(first.tpm_total)} tpmTotal (medians of"
            f" {plural(len(first.rounds), 'round')}); {rest}."
        )
    better = [stage for stage in others if stage.to_first and stage.to_first.verdict == "better"]
    if not better:
        undone = "; ".join(_undone(stage) for stage in others)
        return f"No stage is shown to be better than `{stages[0].name}`: {undone}."
    best = max(better, key=_ratio)
    safe = [stage for stage in better if stage.rung in words.SAFE]
    if not safe:
        only = "Only on a lower rung is a stage better"
        if any(stage.rung == NOT_KNOWN for stage in better):
            only = "Of no stage that is better is it known that nothing is lost"
        return f"{only}: {_praise(best, stages[0], metric)}.{_besides([best], stages[0])}"
    safest = max(safe, key=_ratio)
    whose = _besides([safest, best], stages[0])
    if safest is best:
        return f"{_praise(best, stages[0], metric)}.{whose}"
    return f"{_praise(safest, stages[0], metric)}; {_more(best)}.{whose}"


def _besides(found: Sequence[StageFacts], first: StageFacts) -> str:
    """The sentences after the gain: over the stage before, whose it is, the slowest requests."""
    said = [sentence for stage in found if (sentence := _to_previous(stage))]
    said += [one for stage in found for one in credit_against(stage, first.name)]
    said += [sentence for stage in found if (sentence := tail_sentence(stage))]
    return "".join(f" {sentence}." for sentence in dict.fromkeys(said))


def _to_previous(stage: StageFacts) -> str:
    """What it gives beside the stage before; empty where that is the first, or not compared."""
    before = to_one_between(stage)
    if before is None or before.ratio is None or before.low is None:
        return ""
    share = words.confidence(before.confidence)
    return (
        f"`{stage.name}` gives {words.ratio(before)} that of `{before.base}`, the stage before"
        f" ({share} interval {words.interval(before)}): {words.verdict(before)}"
    )


def _praise(stage: StageFacts, first: StageFacts, metric: str) -> str:
    assert stage.to_first is not None
    return (
        f"`{stage.name}` gives {words.ratio(stage.to_first)} the {metric} of `{first.name}`"
        f" ({_interval(stage)}, {plural(stage.to_first.rounds, 'paired round')}):"
        f" {words.count(stage.throughput)} instead of {words.count(first.throughput)} in the"
        f" median, on rung {stage.rung}, where {words.risks(stage)}"
    )


def _more(stage: StageFacts) -> str:
    return (
        f"`{stage.name}` gives {words.ratio(stage.to_first)} ({_interval(stage)}), but on rung"
        f" {stage.rung}, where {words.risks(stage)}"
    )


def _undone(stage: StageFacts) -> str:
    if stage.to_first is None or stage.to_first.ratio is None:
        return f"`{stage.name}` has no round to compare"
    ratio = f"{words.ratio(stage.to_first)} ({_interval(stage)})"
    if is_against_itself(stage.to_first):
        return f"`{stage.name}` is not judged, and shows {ratio} on the same file system"
    if stage.to_first.verdict == "not judged":
        return f"`{stage.name}` is not judged, its windows alone show {ratio}"
    said = words.verdict(stage.to_first)
    if said == words.NO_LOOK:
        return f"`{stage.name}` shows {ratio} so far, and {stage.to_first.reason}"
    verdict, _, more = said.partition(", ")
    return f"`{stage.name}` is {verdict} at {ratio}{', ' * bool(more)}{more}"


def _interval(stage: StageFacts) -> str:
    assert stage.to_first is not None
    if stage.to_first.low is None:
        return "no interval"
    share = words.confidence(stage.to_first.confidence)
    failed = f"; {stage.to_first.failures}" if stage.to_first.failures else ""
    return f"{share} interval {words.interval(stage.to_first)}{failed}"


def _ratio(stage: StageFacts) -> float:
    return stage.to_first.ratio or 0.0 if stage.to_first else 0.0


def _doubts(
    stages: Sequence[StageFacts],
    trials: Sequence[TrialFacts],
    audit: Sequence[AuditFacts],
    differences: Sequence[Difference],
    *,
    quick: bool,
) -> list[Doubt]:
    found = [Doubt("the plan was shortened by --quick", grave=False)] if quick else []
    found += _few(stages)
    found += _missing(stages, trials)
    found += [
        Doubt(words.planned_otherwise(one), grave=one.rung != NOT_KNOWN)
        for one in stages if one.rung != one.rung_planned
    ]  # fmt: skip
    for check, verdict, wording, simply in _CHECKS:
        if check == "checkpoint_cycle" and verdict == "finding":
            found += _not_judged(stages)
        found += _judged(stages, check, verdict, (wording, simply))
    out = [line.name for line in audit if not line.ok]
    if out:
        asked = f"what was asked of the server is not what was to be asked ({listed(out)})"
        found.append(Doubt(f"inputs out of their band ({listed(out)})", grave=True, simply=asked))
    unexplained = sum(difference.explanation is None for difference in differences)
    if unexplained:
        number = plural(unexplained, "unexplained difference")
        found.append(Doubt(f"{number} between trials", grave=True))
    return found


_CHECKS = (
    ("client_limit", "finding", "the client held the server back",
     "the program that asks held the server back, by being slow or by taking its CPUs"),
    ("client_limit", "unknown", "it is not known whether the client held the server back",
     "it is not known whether the program that asks held the server back"),
    ("checkpoint_cycle", "finding", "no whole checkpoint cycles",
     "measured too briefly: not all the work that the server puts off (checkpoints) was seen"),
    ("checkpoint_cycle", "unknown", "it is not known whether checkpoint cycles are whole",
     "it is not known whether all the work that the server puts off (checkpoints) was seen"),
    ("window_end", "finding", "requests of the windows had no answer, or failed",
     "some requests had no answer, or failed"),
    ("window_end", "unknown", "requests under way at the windows' ends have no time",
     "requests that were under way at the end have no time"),
    ("steadiness", "drifting", "throughput drifted",
     "the server became faster or slower while it was measured"),
    ("steadiness", "unknown", "it is not known whether throughput was steady",
     "it is not known whether the speed was steady"),
)  # fmt: skip
"""Checks of a stage, a verdict that limits the claim, and how: in terms, and for everybody."""
_NOT_JUDGED = "no verdict: windows were shorter than the work that the settings shift to later"


def _few(stages: Sequence[StageFacts]) -> list[Doubt]:
    pairs = [stage.to_first.rounds for stage in stages if stage.to_first]
    if not pairs and 0 < (rounds := min(len(stage.rounds) for stage in stages)) < FEW_ROUNDS:
        return [Doubt(f"only {plural(rounds, 'round')}", grave=False,
                      simply=f"it was measured only {often(rounds)}")]  # fmt: skip
    if not pairs or min(pairs) >= FEW_PAIRS:
        return []
    few, simply = (
        f"only {plural(min(pairs), 'paired round')}",
        f"each stage was measured beside the first only {often(min(pairs))}",
    )
    if min(pairs) < max(pairs):
        few = f"a stage with only {plural(min(pairs), 'paired round')}"
        simply = f"not every stage was measured beside the first more than {often(min(pairs))}"
    if not min(pairs):
        few = "a stage without any paired round"
        simply = "not every stage was measured beside the first"
    return [Doubt(few, grave=False, simply=simply)]


def _not_judged(stages: Sequence[StageFacts]) -> list[Doubt]:
    """Stages without a verdict for want of whole cycles, by their reasons."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for stage in stages:
        if stage.to_first is not None and stage.to_first.verdict == "not judged":
            simply = "" if is_against_itself(stage.to_first) else _NOT_JUDGED
            reasons.setdefault((stage.to_first.reason, simply), []).append(stage.name)
    return [
        Doubt(f"not judged: {why}", grave=True, stages=tuple(names), simply=simply)
        for (why, simply), names in reasons.items()
    ]


def _missing(stages: Sequence[StageFacts], trials: Sequence[TrialFacts]) -> list[Doubt]:
    found = []
    for state, wording, grave in (
        ("invalid", "invalid, which counts against", True),
        ("failed", "failed, which counts against", True),
        ("planned", "not run, of", False),
        ("running", "begun and not ended, of", False),
    ):
        mine = [trial.stage for trial in trials if trial.state == state]
        if mine:
            names = listed([f"`{one.name}`" for one in stages if one.name in mine])
            of = f"{len(mine)} of {plural(len(trials), 'trial', thousands=True)} {wording} {names}"
            found.append(Doubt(of, grave))
    return found


def _judged(
    stages: Sequence[StageFacts], check: str, verdict: str, said: tuple[str, str]
) -> list[Doubt]:
    """The stages of which a check says this, in one clause."""
    names = []
    for stage in stages:
        judgement: Judgement | None = getattr(stage, check)
        if judgement is not None and judgement.verdict == verdict:
            names.append(stage.name)
    if not names:
        return []
    text, simply = said
    every = len(names) == len(stages) > 1
    return [Doubt(text, verdict != "unknown", tuple(names), every, simply)]
