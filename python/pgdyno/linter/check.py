"""All findings of some files, worst first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgdyno.linter.combined import from_arithmetic, from_order, from_rules
from pgdyno.linter.finding import Finding, Severity
from pgdyno.linter.merged import is_by_alter_system, merged_settings, server_of
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
        for line, text in source.includes:
            at = Assignment(source.path, line, source.kind, "", text, "")
            found[Finding(at, Severity.NOTE, "is not followed: name its files, too")] = None
        for at in source.assignments:
            found |= dict.fromkeys(from_catalogue(at, system))
        found |= dict.fromkeys(_repeated(source))
    found |= dict.fromkeys(_overridden(sources))
    for merged in merged_settings(sources, system):
        for findings in (from_rules(merged), from_order(merged), from_arithmetic(merged)):
            found |= dict.fromkeys(findings)
    return tuple(sorted(found, key=lambda one: (one.severity.rank, one.at.path, one.at.line)))


def _overridden(sources: Sequence[Source]) -> Iterator[Finding]:
    """Settings that ALTER SYSTEM has set otherwise: its file is read after all others."""
    for source in sources:
        own = {at.name: at for at in source.assignments} if is_by_alter_system(source) else {}
        for other in sources:
            if not own or is_by_alter_system(other) or server_of(source, sources) != other.path:
                continue
            for at in other.assignments:
                if at.name in own and own[at.name].value != at.value:
                    last = own[at.name]
                    text = f"is set again in {last.path}:{last.line}: {last.value} counts"
                    yield Finding(at, Severity.INEFFECTIVE, text, rule="set-twice")


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
