"""The report as Markdown: the document of the HTML page, without its charts."""

from __future__ import annotations

import re
from collections.abc import Set

from pgdyno.analysis.facts import Facts
from pgdyno.model.text import one_line, visible
from pgdyno.report.compose import compose
from pgdyno.report.document import (
    Block,
    Cell,
    Column,
    Command,
    Document,
    Figure,
    Flames,
    Links,
    Points,
    Table,
    Text,
)  # fmt: skip

_CODE = re.compile(r"(`[^`]+`)")
# Not the underscores of a name.
_SPECIAL = re.compile(r"([\\*<\[|~`]|&(?=#?\w+;)|(?<!\w)_|_(?!\w))")
_BEGINS = re.compile(r"^(?:(\d+)([.)])(?=\s)|([#>+=-]))")  # of a heading, a list, a quotation
_PIPE = re.compile(r"(?<!\\)\|")
_TICKS = re.compile(r"`+")


def render(facts: Facts) -> str:
    """The report of a run, finished or not, as Markdown with pipe tables."""
    return render_document(compose(facts), facts.pgdyno, facts.ident)


def render_document(document: Document, pgdyno: str, ident: str) -> str:
    """A document; `pgdyno` (a version) and `ident` say what made it."""
    parts = [
        f"# {_text(document.title)}",
        f"{_text(document.kicker)}  \n**{document.label}.** {_text(' · '.join(document.about))}",
        *(f"**Warning:** {_text(one)}" for one in document.warnings),
        f"> {_paragraph(' '.join(document.answer))}",
        *_light(document),
        *map(_paragraph, document.precisely),
    ]
    sections = [one for one in document.sections if any(map(_has_text, one.blocks))]
    written = {section.title for section in sections}
    for section in sections:
        blocks = [_block(block, written) for block in section.blocks]
        parts += [f"## {_text(section.title)}", *(block for block in blocks if block)]
    parts.append(f"{document.label}. Made by pgdyno {pgdyno} from run {_text(ident)}.")
    return "\n\n".join(parts) + "\n"


def _light(document: Document) -> list[str]:
    if document.light is None:
        return []
    parts = [f"**{_text(document.light.text)}.** {_text(document.light.meaning)}"]
    against, unknown = (
        "\n".join(f"- {_paragraph(reason)}" for reason in reasons)
        for reasons in (document.light.against, document.light.unknown)
    )
    return [*parts, *(part for part in (against, document.light.besides, unknown) if part)]


def _has_text(block: Block) -> bool:
    """Whether Markdown has anything of it; charts are left out."""
    return not isinstance(block, Figure | Flames)


def _block(block: Block, written: Set[str]) -> str:
    match block:
        case Text():
            return _paragraph(block.text)
        case Points():
            return "\n".join(f"- {_paragraph(item)}" for item in block.items)
        case Command():
            fence = _fence(block.text, 3)
            return f"{fence}sh\n{visible(block.text)}\n{fence}"
        case Links():
            there = [title for _, title in block.sections if title in written]
            titles = [f"[{_text(title)}](#{_anchor(title)})" for title in there]
            return f"{_text(block.about)}: {', '.join(titles)}." if titles else ""
        case Figure() | Flames():
            return ""
        case Table():
            return _table(block)


def _anchor(title: str) -> str:
    """Of a heading, as most that show Markdown make it."""
    return "-".join(re.sub(r"[^\w\s-]", "", title.lower()).split())


def _table(table: Table) -> str:
    head = [_text(_head(column)) for column in table.columns]
    rule = ["---:" if column.align == "right" else ":---" for column in table.columns]
    lines = [head, rule, *([_cell(cell) for cell in row] for row in table.rows)]
    body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"**{_text(table.caption)}**\n\n{body}"


def _head(column: Column) -> str:
    return f"{column.head} ({column.unit})" if column.unit else column.head


def _cell(cell: Cell) -> str:
    text = _code(cell.text) if cell.code else _text(cell.text)
    if cell.rung is not None:
        text = f"{cell.rung} {text}"
    text = f"{text} ({_text(cell.note)})" if cell.note else text
    return _PIPE.sub(r"\|", text)  # a table has its pipes first, also within code


def _code(text: str) -> str:
    """Code, whatever ticks there are in it."""
    if not text:
        return ""
    ticks, shown = _fence(text, 1), one_line(text)
    return f"{ticks} {shown} {ticks}" if len(ticks) > 1 else f"`{shown}`"


def _fence(text: str, least: int) -> str:
    longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=0)
    return "`" * max(least, longest + 1)


def _text(text: str) -> str:
    """Text whose special characters mean themselves; code between backticks stays code."""
    parts = _CODE.split(visible(" ".join(text.split())))
    return "".join(
        part if index % 2 else _SPECIAL.sub(r"\\\1", part) for index, part in enumerate(parts)
    )


def _paragraph(text: str) -> str:
    """The same at the start of a line, where further characters have a meaning."""
    return _BEGINS.sub(r"\1\\\2\3", _text(text))
