"""A file into results: recognised, read as a stream, checked for another tool's output."""

from __future__ import annotations

from pathlib import Path

from pgdyno.imports import hammerdb_jobs
from pgdyno.imports.format import RESULTS_MAX, Draft, Format, Reader, TooManyError
from pgdyno.imports.formats import formats
from pgdyno.imports.reading import Lines, Progress, is_sqlite
from pgdyno.imports.recognise import recognised, several
from pgdyno.model.errors import PlanError
from pgdyno.model.imported import Imported, Source
from pgdyno.model.text import one_line
from pgdyno.model.wording import plural


def read(
    path: Path, *, tool: str | None = None, progress: Progress | None = None
) -> tuple[Imported, ...]:
    """The results that a file holds.

    Args:
        path: The file.
        tool: Whose output it is; None: by its content.
        progress: Is told bytes read and bytes in all.

    Raises:
        PlanError: The file cannot be read, is of no tool, of several, or holds no result.
    """
    if is_sqlite(path):
        return hammerdb_jobs.read(path, tool)
    format_, begin = recognised(path, tool, progress)
    lines = Lines(path, progress)
    try:
        drafts = _drafts(format_, lines, begin if tool is None else None)
    except TooManyError:
        raise PlanError(
            f"file {path} holds more than {plural(RESULTS_MAX, 'result')}, one more begins in line"
            f" {lines.last}",
            "Split it.",
        ) from None
    if not drafts:
        raise PlanError(
            f"file {path} holds no result of {format_.tool}",
            "It may be cut short: the figures stand at its end.",
        )
    return tuple(_imported(draft, format_, lines) for draft in drafts)


def _imported(draft: Draft, format_: Format, lines: Lines) -> Imported:
    source = Source(
        file=one_line(lines.path.name), sha256=lines.sha256, size_bytes=lines.size_bytes,
        first_line=draft.line, last_line=max(draft.last_line, draft.line),
    )  # fmt: skip
    return draft.finished(format_, source)


def _drafts(format_: Format, lines: Lines, begin: int | None) -> list[Draft]:
    reader: Reader = format_.reader()
    strangers = [one for one in formats() if one is not format_]
    strange = unread = 0
    first = 1
    for number, text in lines:
        try:
            understood = reader.line(number, text)
        except (ValueError, OverflowError):
            unread += 1
            continue
        if understood or not text.strip():
            continue
        strange += 1
        first = first if strange > 1 else number
        if begin is not None:  # nobody named the tool
            for one in strangers:
                if one.signs.search(text):
                    raise several(lines.path, {format_: begin, one: number})
    drafts = list(reader.finish())
    for draft in drafts[:1]:
        if strange:
            draft.count("lines of the file that are of no figure", strange)
        if unread:
            draft.count("lines of the file that could not be read", unread)
            draft.missing.append("what lines that could not be read hold")
    return drafts
