"""What is known of settings: the catalogue, and what is wrong with configuration files."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from pgdyno.api.table import Table
from pgdyno.catalog import Entry, entries, layers
from pgdyno.linter import (
    KINDS,
    STANDARD_INPUT,
    Finding,
    Severity,
    Source,
    System,
    check,
    read_source,
)
from pgdyno.linter.system import GIB
from pgdyno.model.bounds import require_within
from pgdyno.model.errors import PlanError
from pgdyno.model.wording import plural
from pgdyno.plan.resolve.plan import MAJORS
from pgdyno.target.host_facts import host_facts

_NEAR = 5  # names that are offered for a wrong one
_MEMORY_MIN_GIB = 0.1  # of a machine that a server runs on

LINTED_KINDS = KINDS
"""Kinds of files that `lint` reads."""
LINTED_MAJORS = (MAJORS[0], MAJORS[-1])
"""The first and the last version of PostgreSQL that `lint` knows the settings of."""


@dataclass(frozen=True, slots=True)
class Linted:
    """What configuration files are found to have."""

    findings: tuple[Finding, ...]  # worst first
    sources: tuple[Source, ...]

    @property
    def is_fine(self) -> bool:
        """Whether there is no more than notes."""
        return all(one.severity is Severity.NOTE for one in self.findings)

    @property
    def sentence(self) -> str:
        """How many settings were read, and how many findings there are of each severity."""
        settings = sum(len(source.assignments) for source in self.sources)
        counts = Counter(one.severity for one in self.findings)
        nouns = {Severity.NOTE: "notes"}  # the others are adjectives
        said = [
            plural(counts[one], one.value, nouns.get(one, one.value))
            for one in Severity
            if counts[one]
        ]
        return (
            f"{plural(settings, 'setting')} in {plural(len(self.sources), 'file')}:"
            f" {', '.join(said) or 'fine'}"
        )

    def table(self) -> Table:
        """A row for each finding."""
        names = ("place", "severity", "setting", "text", "hint")
        return Table.of(
            [
                {"place": one.at.where, "severity": one.severity.value, "setting": one.at.shown,
                 "text": one.text, "hint": one.hint}
                for one in self.findings
            ],
            names,
        )  # fmt: skip

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def lint(
    files: Sequence[str | Path],
    *,
    kind: str | None = None,
    postgres: int = LINTED_MAJORS[1],
    kernel: str | None = None,
    memory_gib: float | None = None,
) -> Linted:
    """Name what is gone, renamed, without effect, contradictory or dangerous in these files.

    Args:
        files: Judged together: huge pages of sysctl.conf against the cache of postgresql.conf.
            `-` is standard input, whose kind has to be told.
        kind: Of all files; None: by their names.
        postgres: Major version that they are meant for, see `LINTED_MAJORS`.
        kernel: Version of Linux; None: this machine's.
        memory_gib: Of the machine; None: this one's.

    Raises:
        PlanError: A file cannot be read or has no known kind, a kind or version is unknown, no
            machine has that memory.
    """
    require_within("postgres", postgres, *LINTED_MAJORS, "No settings of other versions are known.")
    if memory_gib is not None:
        require_within("memory_gib", memory_gib, _MEMORY_MIN_GIB, None, "It is told in GiB.")
    if kind is not None and kind not in KINDS:
        raise PlanError(f"the kind is {kind!r}, allowed are {', '.join(KINDS)}")
    if (named := [str(path) for path in files].count(STANDARD_INPUT)) > 1:
        raise PlanError(
            f"standard input is named {plural(named, 'time')}, allowed is once",
            "It can be read only once: name other files by their paths.",
        )
    sources = tuple(read_source(str(path), kind) for path in files)
    found = tuple(check(sources, _system(postgres, kernel, memory_gib)))
    return Linted(found, sources)


def knobs(layer: str | None = None) -> dict[str, Entry]:
    """All that is known of settings, from the kernel's command line to the client, by name.

    Args:
        layer: Only those of it, e.g. `sysctl`.

    Raises:
        PlanError: No layer is called so.
    """
    if layer is not None and layer not in layers():
        raise PlanError(f"no layer is called {layer!r}", f"Layers are {', '.join(layers())}.")
    return {name: one for name, one in entries().items() if layer in (None, one.layer)}


def knob(name: str) -> Entry:
    """What is known of one setting.

    Raises:
        PlanError: None is called so; the nearest names are told.

    Example:
        >>> import pgdyno
        >>> pgdyno.api.knob("synchronous_commit").rung
        'D2'
    """
    known = entries()
    if name in known:
        return known[name]
    spelt = {one.lower(): one for one in [*known, *layers()]}  # case is no matter to the server
    low = name.lower()
    found = [low] if low in spelt else get_close_matches(low, spelt, _NEAR)
    near = [spelt[one] for one in found or [one for one in spelt if low in one][:_NEAR]]
    hint = f"Did you mean {', '.join(near)}?" if near else "`pgdyno knobs` lists the layers."
    raise PlanError(f"no knob or layer is called {name!r}", hint)


def _system(postgres: int, kernel: str | None, memory_gib: float | None) -> System:
    text = kernel or os.uname().release
    parts = text.split("-")[0].split(".")[:2]
    if not all(part.isdigit() for part in parts) or not parts:
        raise PlanError(f"the kernel is {text!r}, expected something like 6.1")
    facts = host_facts(Path.cwd())
    return System(
        postgres,
        tuple(int(part) for part in parts),
        facts.memory_bytes if memory_gib is None else int(memory_gib * GIB),
        facts.huge_page_bytes,
    )
