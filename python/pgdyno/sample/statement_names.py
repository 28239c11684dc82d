"""Our statements by their text: names, kinds of transactions that send them, types they take."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pgdyno.model.description import Description

_CONSTANT = re.compile(r"\$\d+|'(?:[^']|'')*'|\b\d+(?:\.\d+)?\b")


@dataclass(frozen=True, slots=True)
class Known:
    """A statement of the workload."""

    name: str  # as the core's description has it
    kind: str  # of the transaction that sends it; empty: several do
    parameters: tuple[str, ...] = ()  # types that it is prepared with; unknown: inferred


def known_statements(described: Description) -> Mapping[str, Known]:
    """All statements of a workload by their text.

    A text that has several names keeps the first, and belongs to a kind only where all do.
    """
    known: dict[str, Known] = {}
    for statement in described.statements:
        kind = kind_of(statement.name, described.kinds)
        one = Known(statement.name, kind, statement.parameters)
        before = known.setdefault(statement.sql, one)
        if before.kind != one.kind:
            known[statement.sql] = replace(before, kind="")
    return known


def kind_of(name: str, kinds: tuple[str, ...]) -> str:
    """The kind of transaction that a statement belongs to, by the statement's name.

    Names are those of kinds (face `procedure`), begin with one and a dot (mixes, scripts), or
    with its initials or first letters and an underscore (TPC-C: `no_`, `pay_`, `os_`, `del_`,
    `sl_`). A workload of one kind has no others.
    """
    if len(kinds) == 1:
        return kinds[0]
    if name in kinds:
        return name
    if (before := name.rpartition(".")[0]) in kinds:
        return before
    prefix, mark, _ = name.partition("_")
    found = [kind for kind in kinds if mark and prefix in (_initials(kind), kind[: len(prefix)])]
    return found[0] if len(found) == 1 else ""


def without_constants(sql: str) -> str:
    """A text in which parameters and constants are alike, as pg_stat_statements has them alike."""
    return _CONSTANT.sub("?", " ".join(sql.split()))


def _initials(kind: str) -> str:
    return "".join(word[:1] for word in kind.split("_"))
