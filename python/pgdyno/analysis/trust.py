"""What lets a reader trust the numbers: inputs within their bands, a consistent database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pgdyno.analysis.facts import AuditFacts, ConditionFacts
from pgdyno.model.run import AuditLine, Condition, Fixture, TrialRecord
from pgdyno.model.wording import plural

_AVERAGED = ("1", "lines", "chi-square")  # shares, means and statistics; other units are counts


def merged_audit(trials: Iterable[TrialRecord], asked: Mapping[str, str]) -> tuple[AuditFacts, ...]:
    """The input audit of all trials together.

    Args:
        trials: Whose inputs are looked at.
        asked: Of each stage, what decides its inputs; only equal ones are added up.
    """
    groups: dict[tuple[str, str, str], list[AuditLine]] = {}
    for trial in trials:
        for line in trial.result.audit if trial.result else ():
            groups.setdefault((asked[trial.stage], line.name, line.unit), []).append(line)
    several = len({key for key, *_ in groups}) > 1
    found = []
    for (key, *_), lines in groups.items():
        merged = _merge(lines)
        stages = ", ".join(stage for stage, what in asked.items() if what == key)
        found.append(replace(merged, name=f"{merged.name} ({stages})") if several else merged)
    return tuple(found)


def _merge(lines: Sequence[AuditLine]) -> AuditFacts:
    """Bands follow the observations of a trial; the widest is that of the shortest trial."""
    widest = max(lines, key=lambda line: line.high - line.low)
    n = sum(line.n for line in lines)
    low, high = widest.low, widest.high
    added = widest.unit not in _AVERAGED
    if not added:
        measured = sum(line.measured * line.n for line in lines) / n if n else widest.measured
    else:
        measured = sum(line.measured for line in lines)
        low, high = sum(line.low for line in lines), sum(line.high for line in lines)
    return AuditFacts(
        name=widest.name,
        source=widest.source,
        measured=measured,
        n=n,
        low=low,
        high=high,
        unit=widest.unit,
        ok=n > 0 and low <= measured <= high,
        added=added,
        trials=len(lines),
        trials_outside=sum(not line.ok for line in lines),
    )


def merged_conditions(
    fixtures: Sequence[Fixture], trials: Iterable[TrialRecord]
) -> tuple[ConditionFacts, ...]:
    """The consistency conditions over every check of the run, also those of invalid trials."""
    checks = [("after loading", one) for fixture in fixtures for one in fixture.conditions]
    for trial in trials:
        where = f"trial {trial.number}"
        checks += (
            [(where, condition) for condition in trial.result.conditions] if trial.result else []
        )
    groups: dict[int, list[tuple[str, Condition]]] = {}
    for where, condition in checks:
        groups.setdefault(condition.number, []).append((where, condition))
    return tuple(
        ConditionFacts(
            number=number,
            title=found[0][1].title,
            checks=len(found),
            violations=tuple(
                _violation(w, condition) for w, condition in found if not condition.ok
            ),
        )
        for number, found in sorted(groups.items())
    )


def _violation(where: str, condition: Condition) -> str:
    text = f"{where}: {plural(condition.violations, 'violation')}"
    return f"{text}, e.g. {condition.sample}" if condition.sample else text
