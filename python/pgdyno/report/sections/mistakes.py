"""The mistakes that published reports make, looked for in this one."""

from __future__ import annotations

from pgdyno.analysis.facts import Facts
from pgdyno.model.wording import listed, plural
from pgdyno.report.document import Cell, Column, Section, Table, Text, Tone

_TONES: dict[str, Tone] = {"clear": "good", "noted": "warn", "finding": "bad", "unknown": "warn"}


def section(facts: Facts) -> Section:
    """One line for each class of mistake."""
    found = [one for one in facts.mistakes if one.verdict == "finding"]
    of_all = plural(len(facts.mistakes), "class", "classes")
    unknown = listed([one.ident for one in facts.mistakes if one.verdict == "unknown"])
    more = f" Of {unknown} it is not known." if unknown else ""
    if found:
        names = listed([one.ident for one in found])
        head = Text(f"Of {of_all} of mistake, found here: {names}.{more}", "bad")
    else:
        head = Text(f"None of {of_all} of mistake was found.{more}", "warn" if more else "good")
    table = Table(
        "What field reports got wrong, and what the check against it finds in this run.",
        (
            Column("class", align="left"),
            Column("what is checked", align="left"),
            Column("verdict", align="left"),
        ),
        tuple(
            (Cell(one.ident), Cell(one.rule), Cell(one.verdict, _TONES[one.verdict], note=one.fact))
            for one in facts.mistakes
        ),
        folded=not found,
    )
    return Section("mistakes", "Mistakes looked for", (head, table))
