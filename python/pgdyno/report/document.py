"""The report as a document: sections of paragraphs, tables and figures, without a format.

HTML and Markdown print the same document, so neither can say what the other does not. Numbers are
texts here; their values stand in `facts`. Text between backticks is code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from pgdyno.analysis.profile_facts import Tree

Align = Literal["left", "right"]
Tone = Literal["", "good", "bad", "warn", "quiet"]


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table. A tone never stands alone: the text says the same."""

    text: str
    tone: Tone = ""
    rung: str | None = None  # "D0" to "D6": printed as a badge before the text
    note: str | None = None  # a second, smaller line
    code: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table; the unit stands in its head, not in its cells."""

    head: str
    unit: str | None = None
    align: Align = "right"


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a caption that says what it holds; the first cell of a row is its name."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    folded: bool = False  # long and rarely read: shown on request, always printed

    def __post_init__(self) -> None:
        for row in self.rows:
            assert len(row) == len(self.columns), (
                f"{self.caption}: a row of {len(row)}, not {len(self.columns)}"
            )


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph."""

    text: str
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class Points:
    """A list."""

    items: tuple[str, ...]
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class Command:
    """Something to type in a shell."""

    text: str


@dataclass(frozen=True, slots=True)
class Links:
    """Other sections of the same report: their anchors and titles."""

    about: str
    sections: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """A place for a chart of `report.charts`; a format without charts leaves it out."""

    chart: str


@dataclass(frozen=True, slots=True)
class Flames:
    """A flame graph of all stages; a format without a screen leaves it out."""

    name: str
    title: str
    caption: str
    tree: Tree


Block: TypeAlias = Table | Text | Points | Command | Links | Figure | Flames


@dataclass(frozen=True, slots=True)
class Section:
    """A chapter of the report. `ident` is its anchor."""

    ident: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Light:
    """How far an answer can be relied on; the words say what the colour says."""

    tone: Tone  # good, warn or bad
    text: str
    meaning: str
    against: tuple[str, ...]  # what speaks against it
    unknown: tuple[str, ...]  # what is not known, or too little
    besides: str  # stands between the two, for of the second not all is unknown; empty: one is


@dataclass(frozen=True, slots=True)
class Card:
    """A stage at a glance. What it says stands in the tables too."""

    name: str
    why: str  # as the plan says it, with a full stop; empty: it does not
    rung: str
    risk: str
    value: str
    unit: str
    second: str
    against: str | None  # its ratio, or what it is to others; None: no round to compare
    interval: str | None
    verdict: str | None
    builds_on: str | None  # the stage before, where that is not what it is compared with
    tone: Tone
    tail: Cell | None  # what it does to the slowest requests
    doubts: tuple[str, ...]  # what limits the verdict


@dataclass(frozen=True, slots=True)
class Document:
    """The whole report."""

    title: str  # the question
    kicker: str  # what this is: plan, time
    label: str  # what it is not
    about: tuple[str, ...]  # server, host, fixture: a line of facts
    answer: tuple[str, ...]  # sentences for everybody
    cards: tuple[Card, ...]
    sections: tuple[Section, ...]
    light: Light | None = None
    precisely: tuple[str, ...] = ()  # the same in the terms of the field, and what limits it
    warnings: tuple[str, ...] = ()  # what must be known before the answer is read


def columns(first: str, *heads: str | tuple[str, str]) -> tuple[Column, ...]:
    """A first column of names, and columns of numbers with their units."""
    rest = [Column(head) if isinstance(head, str) else Column(head[0], head[1]) for head in heads]
    return (Column(first, align="left"), *rest)
