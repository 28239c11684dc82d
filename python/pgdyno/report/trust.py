"""What lets a reader trust the numbers: inputs within their bands, a consistent database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pgdyno.model.run import AuditLine, Condition, Fixture, TrialRecord
from pgdyno.report.facts import AuditFacts, ConditionFacts

_AVERAGED = ("1", "lines", "chi-square")  # shares, means and statistics; other units are counts


def merged_audit(trials: Iterable[TrialRecord]) -> tuple[AuditFacts, ...]:
    """The input audit of all trials together."""
    groups: dict[tuple[str, str], list[AuditLine]] = {}
    for trial in trials:
        for line in trial.result.audit if trial.result else ():
            groups.setdefault((line.name, line.unit), []).append(line)
    return tuple(_merge(lines) for lines in groups.values())


def _merge(lines: Sequence[AuditLine]) -> AuditFacts:
    """Bands follow the observations of a trial; the widest is that of the shortest trial."""
    widest = max(lines, key=lambda line: line.high - line.low)
    n = sum(line.n for line in lines)
    low, high = widest.low, widest.high
    if widest.unit in _AVERAGED:
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
        trials=len(lines),
        trials_outside=sum(not line.ok for line in lines),
    )


def merged_conditions(
    fixture: Fixture | None, trials: Iterable[TrialRecord]
) -> tuple[ConditionFacts, ...]:
    """The consistency conditions over every check of the run, also those of invalid trials."""
    checks = [("after loading", condition) for condition in fixture.conditions] if fixture else []
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
    text = f"{where}: {condition.violations} violations"
    return f"{text}, e.g. {condition.sample}" if condition.sample else text
