"""All findings of some files, worst first."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.linter.combined import from_arithmetic, from_order, from_rules
from pgdyno.linter.finding import Finding, Severity
from pgdyno.linter.merged import merged_settings
from pgdyno.linter.single import from_catalogue
from pgdyno.linter.source import Assignment, Source
from pgdyno.linter.system import System


def check(sources: Sequence[Source], system: System) -> tuple[Finding, ...]:
    """Everything that is the matter with these files, by themselves and together.

    Args:
        sources: Files; what they say of the machine holds for each server that they tell of.
        system: Versions and memory that they are meant for.
    """
    found: dict[Finding, None] = {}  # in order, each once
    for source in sources:
        for line, text in source.unread:
            at = Assignment(source.path, line, source.kind, "", text, "")
            found[Finding(at, Severity.INVALID, "this line cannot be read")] = None
        for at in source.assignments:
            found |= dict.fromkeys(from_catalogue(at, system))
        found |= dict.fromkeys(_repeated(source))
    for merged in merged_settings(sources, system):
        for findings in (from_rules(merged), from_order(merged), from_arithmetic(merged)):
            found |= dict.fromkeys(findings)
    return tuple(sorted(found, key=lambda one: (one.severity.rank, one.at.path, one.at.line)))


def _repeated(source: Source) -> list[Finding]:
    """Settings that a later line of the same file sets otherwise."""
    if source.kind in ("fstab", "limits", "commands"):
        return []
    last: dict[tuple[str, str], Assignment] = {}
    found = []
    for at in source.assignments:
        before = last.get((at.scope, at.name))
        if before is not None and before.value != at.value:
            text = f"is set again in line {at.line}: {at.value} counts"
            found.append(Finding(before, Severity.INEFFECTIVE, text, rule="set-twice"))
        last[at.scope, at.name] = at
    return found
