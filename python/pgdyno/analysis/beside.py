"""Stages of several run files beside each other: paired where rounds took turns, else by sessions.

Two stages of one run are compared by their rounds, as its report does. Stages of different runs are
not: what a session does to all of its rounds would be taken for the stages. They are compared by
the means of runs, with the noise between sessions that other runs show, and where nobody knows that
noise no interval is given. Nothing is judged where load or measurement differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import exp

import numpy as np

from pgdyno.analysis.beside_facts import SCHEMA, Against, Compared, Differs, How, Row, Side
from pgdyno.analysis.compared_stages import (
    GROUPS,
    UNSET,
    KnownRun,
    levels,
    mean_of,
    same_host,
    same_load,
)
from pgdyno.analysis.cycles import differ, lacking
from pgdyno.analysis.facts import Comparison
from pgdyno.analysis.others import postgres
from pgdyno.imports.beside import beside
from pgdyno.model.errors import PgdynoError, PlanError
from pgdyno.model.imported import Comparable, Imported, Source
from pgdyno.model.units import seconds_text
from pgdyno.model.wording import listed, plural
from pgdyno.plan.settings.checkpoints import changed_in_cycle
from pgdyno.stats.between_runs import (
    RunMean,
    SessionNoise,
    apart,
    session_noise,
    verdict_of,
)
from pgdyno.stats.compare import holm
from pgdyno.stats.verdict import Verdict

METHOD = "Student's t of the means of runs, their spread from runs of other sessions"
_NOT_TOLD = "not told"
_OF_A_LOAD = ("load", "measurement")
_SEEN = ("plans",)  # where telemetry was on: what one side lacks is no difference
_FAR = 2.0  # times the span of the runs that tell the noise
_SETTINGS_AWAY = 3  # named of those that differ

Paired = Callable[[Side, Side], Comparison]
"""The comparison of a stage with another one of the same run, by its rounds."""


def compared(
    rows: Sequence[Sequence[Side]],
    known: Sequence[KnownRun],
    paired: Paired,
    imported: Sequence[Imported] = (),
    ratio: str | None = None,
    *,
    is_report: bool = False,
) -> Compared:
    """What the sides of each row say beside their first.

    Args:
        rows: Sides that belong together.
        known: Stages of runs that tell of the noise between sessions.
        paired: Compares two stages of one run.
        imported: Results of other tools.
        ratio: The metric whose ratio to the first of all somebody asked for.
        is_report: What `paired` gives are the comparisons of one report, judged together already.

    Raises:
        PlanError: The ratio cannot be told.
    """
    comparisons = sum(len(row) - 1 for row in rows)
    by_rounds = [
        {place: paired(one, row[0]) for place, one in enumerate(row)
         if place and one.run == row[0].run}
        for row in rows
    ]  # fmt: skip
    if not is_report:
        by_rounds = _as_a_family(by_rounds, comparisons)
    found = tuple(_row(row, known, mine, comparisons)
                  for row, mine in zip(rows, by_rounds, strict=True))  # fmt: skip
    firsts = [as_imported(row.sides[0]) for row in found[:1]] + list(imported)
    ratios = [beside(firsts[0], one, ratio) for one in firsts[1:]] if ratio else []
    if ratio is not None and not ratios:
        raise PlanError(
            "a ratio was asked for, and there is no result of another tool",
            "Stages of ours are compared without --ratio.",
        )
    return Compared(SCHEMA, found, tuple(imported), tuple(ratios), len({o.run for o in known}))


def _as_a_family(
    found: Sequence[Mapping[int, Comparison]], comparisons: int
) -> list[dict[int, Comparison]]:
    """Comparisons within runs, by row and place, as some of all that are made at once.

    What is compared otherwise takes a place in the family, as if it were the least sure of it.
    """
    p = [one.p_adjusted for mine in found for one in mine.values() if one.p_adjusted is not None]
    adjusted = iter(holm(np.array([*p, *[1.0] * (comparisons - len(p))])).tolist())
    return [
        {
            place: _among(one, None if one.p_adjusted is None else next(adjusted), comparisons)
            for place, one in mine.items()
        }
        for mine in found
    ]


def _row(
    sides: Sequence[Side],
    known: Sequence[KnownRun],
    by_rounds: Mapping[int, Comparison],
    comparisons: int,
) -> Row:
    base, *others = sides
    noise: SessionNoise | None = None
    against = []
    for place, one in enumerate(others, 1):
        differing = differences(base, one)
        if one.run == base.run:
            found, hint = by_rounds[place], None
        else:
            # What is asked about is no noise: a run that is slower for a reason would hide it.
            others_known = [run for run in known if run.run != one.run]
            noise_or_why = _noise(base, one, others_known)
            if isinstance(noise_or_why, SessionNoise):
                noise = noise_or_why
            found, hint = _unpaired(base, one, noise_or_why, others_known, comparisons)
        how: How = "paired" if one.run == base.run else "unpaired"
        guarded = _guarded(found, base, one, differing)
        hint = hint if guarded is found else None
        against.append(Against(place, how, guarded, hint, differing))
    return Row(tuple(sides), tuple(against), noise)


def differences(base: Side, other: Side) -> tuple[Differs, ...]:
    """All that two sides do not share, in the order of `GROUPS`."""
    return tuple(
        Differs(group, name, (mine.get(name) or missing, its.get(name) or missing))
        for group in GROUPS
        for missing in [UNSET if group == "settings" else _NOT_TOLD]
        for mine, its in [(base.aspects[group], other.aspects[group])]
        for name in dict.fromkeys((*mine, *its))
        if group not in _SEEN or (name in mine and name in its)
        if (mine.get(name) or missing) != (its.get(name) or missing)
    )


def _guarded(
    found: Comparison, base: Side, other: Side, differing: Sequence[Differs]
) -> Comparison:
    """The same, not judged where the sides were not asked for, or not measured, alike."""
    if found.ratio is None:
        return found
    unlike = [one for one in differing if one.group in _OF_A_LOAD]
    if base.run == other.run:  # the plan meant it, and its comparison knows of it
        unlike = []
    if unlike:
        named = listed([f"{one.what} ({one.values[0]} and {one.values[1]})" for one in unlike[:3]])
        more = f" and {len(unlike) - 3} more" if len(unlike) > 3 else ""
        return _unjudged(found, f"they were not asked for the same, or not measured alike: {named}"
                         f"{more}")  # fmt: skip
    judged = found.verdict != Verdict.NOT_JUDGED.value
    if judged and base.run != other.run and (why := _without_cycles(base, other)):
        return _unjudged(found, why)
    return found


def _without_cycles(base: Side, other: Side) -> str | None:
    changed = changed_in_cycle(other.aspects["settings"], base.aspects["settings"])
    for side in (base, other) if changed else ():
        if side.cycles is not None and (missing := lacking(side.cycles)):
            named = ", ".join(changed[:_SETTINGS_AWAY])
            return f"{side.label}: {missing}, and {named} {differ(changed)}"
    return None


def _unjudged(one: Comparison, reason: str) -> Comparison:
    return replace(one, verdict=Verdict.NOT_JUDGED.value, reason=reason)


def _among(one: Comparison, p: float | None, comparisons: int) -> Comparison:
    """A comparison by rounds, as one of several that are made at once, with its p value as such."""
    told = one.verdict in (Verdict.BETTER.value, Verdict.WORSE.value)
    if comparisons < 2 or not told:
        return one
    if p is None:  # looks judge, each comparison by itself
        warning = f"judged by itself, and {plural(comparisons, 'comparison')} are made at once"
        return replace(one, warnings=(*one.warnings, warning))
    if p <= 1 - one.confidence:
        return replace(one, p_adjusted=p)
    reason = f"among {plural(comparisons, 'comparison')} that is not yet beyond chance"
    return replace(one, p_adjusted=p, verdict=Verdict.UNDECIDED.value, reason=reason)


def _noise(base: Side, other: Side, known: Sequence[KnownRun]) -> SessionNoise | PgdynoError:
    """The noise between sessions on the hosts of both, by this load; or why it is not known."""
    wanted = {same_load(side.aspects) for side in (base, other)}
    groups = []
    for host in dict.fromkeys(same_host(side.aspects) for side in (base, other)):
        mine = [one for one in known if one.host == host and one.load in wanted]
        try:
            session_noise(_groups(mine))
        except PgdynoError as error:
            return error
        groups += _groups(mine)
    return session_noise(groups)


def _groups(known: Sequence[KnownRun]) -> list[list[RunMean]]:
    """Runs of one thing each, the largest first; no run counts twice.

    Copies of a run's file are one run, and so are its stages: they share a session, and would tell
    of one session's noise as if it were that of several.
    """
    things: dict[tuple[tuple[str, ...], ...], list[KnownRun]] = {}
    for one in known:
        things.setdefault((one.host, one.load, one.thing), []).append(one)
    parts = [part for runs in things.values() for part in levels(runs)]
    seen: set[str] = set()
    groups = []
    for part in sorted(parts, key=len, reverse=True):
        runs_of = {one.run for one in part}
        if seen.isdisjoint(runs_of):
            seen |= runs_of
            groups.append([one.mean for one in part])
    return groups


def _unpaired(
    base: Side,
    other: Side,
    noise: SessionNoise | PgdynoError,
    known: Sequence[KnownRun],
    comparisons: int,
) -> tuple[Comparison, str | None]:
    means = mean_of(other), mean_of(base)
    if means[0] is None or means[1] is None or base.metric != other.metric:
        why = "they have no metric in common" if base.metric != other.metric else (
            "one has no round that can be compared"
        )  # fmt: skip
        return _no_interval(base, None, why), None
    ratio = replace(_no_interval(base, None, ""), rounds=min(other.rounds, base.rounds))
    if isinstance(noise, PgdynoError):
        ratio_only = exp(means[0].log_mean - means[1].log_mean)
        return replace(ratio, ratio=ratio_only, reason=noise.fact), noise.hint
    confidence = base.confidence
    found_apart = apart(means[0], means[1], noise, confidence)
    verdict, reason = verdict_of(
        found_apart, base.margin, comparisons, (other.failed > 0, base.failed > 0)
    )
    if far := _too_far(base, other, known):
        verdict, reason = Verdict.NOT_JUDGED, far
    return replace(
        ratio, ratio=found_apart.ratio, low=found_apart.low, high=found_apart.high,
        verdict=verdict.value, reason=reason, p_adjusted=min(1.0, found_apart.p * comparisons),
        method=METHOD, warnings=(_of_noise(noise),),
    ), None  # fmt: skip


def _of_noise(noise: SessionNoise) -> str:
    return (
        f"runs of one thing differ by a spread of {noise.sd:.2%} from session to session"
        f" ({noise.sd_low:.2%} to {noise.sd_high:.2%}), by {plural(noise.runs, 'run')}"
    )


def _too_far(base: Side, other: Side, known: Sequence[KnownRun]) -> str | None:
    """Whether more time lies between the two than the runs that tell the noise have seen."""
    load = {same_load(side.aspects) for side in (base, other)}
    hosts = {same_host(side.aspects) for side in (base, other)}
    moments = [one.started_ns for one in known if one.load in load and one.host in hosts]
    span_s = (max(moments) - min(moments)) / 1e9
    gap_s = abs(other.started_ns - base.started_ns) / 1e9
    if gap_s <= _FAR * span_s:
        return None
    return (
        f"they lie {seconds_text(gap_s)} apart, and the runs that tell the noise only"
        f" {seconds_text(span_s)}: what changes in between is not in it"
    )


def _no_interval(base: Side, ratio: float | None, reason: str) -> Comparison:
    return Comparison(
        base=base.label, ratio=ratio, low=None, high=None, confidence=base.confidence, rounds=0,
        verdict=Verdict.NOT_JUDGED.value, reason=reason, p_adjusted=None, rounds_needed=None,
        method="none", warnings=(),
    )  # fmt: skip


def as_imported(side: Side) -> Imported:
    """A stage of ours as other tools' results stand: figures of shared meaning, no interval."""
    nopm = side.throughput.median if side.throughput and side.metric == "NOPM" else None
    tps = side.throughput.median if side.throughput and side.metric == "tps" else None
    every = side.tpm_total.median if side.tpm_total else None
    ended = side.orders_ended.median if side.orders_ended else None
    figures = (
        ("nopm_committed", nopm), ("nopm_ended", ended), ("tpm_all_ended", every), ("tps", tps),
    )  # fmt: skip
    version = side.aspects["build"].get("version", _NOT_TOLD)
    return Imported(
        tool="pgdyno", version=side.aspects["pgdyno"]["version"], form=f"stage {side.stage}",
        source=Source(side.label, "", 0, 0, 0), told=(),
        comparable=tuple(
            Comparable(metric, value, f"median of {plural(side.rounds, 'round')}")
            for metric, value in figures
            if value is not None
        ),
        conditions={**side.conditions, "database": postgres(version)},
        failed=side.requests_failed, span=None, latencies=None, counts={}, missing=(),
    )  # fmt: skip
