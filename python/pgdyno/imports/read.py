"""A file into results: recognised, read as a stream, checked for another tool's output."""

from __future__ import annotations

from pathlib import Path

from pgdyno.imports import hammerdb_jobs
from pgdyno.imports.format import Draft, Format, Reader
from pgdyno.imports.formats import formats
from pgdyno.imports.reading import Lines, Progress, is_sqlite
from pgdyno.imports.recognise import recognised, two_tools
from pgdyno.model.errors import PlanError
from pgdyno.model.imported import Imported, Source
from pgdyno.model.text import one_line
from pgdyno.model.wording import plural

RESULTS_MAX = 1000  # of one file


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
    format_, begin = recognised(path, tool)
    lines = Lines(path, progress)
    drafts = _drafts(format_, lines, begin if tool is None else None)
    if not drafts:
        raise PlanError(
            f"file {path} holds no result of {format_.tool}",
            "It may be cut short: the figures stand at its end.",
        )
    if len(drafts) > RESULTS_MAX:
        raise PlanError(
            f"file {path} holds {plural(len(drafts), 'result')}, allowed are {RESULTS_MAX}"
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
    strangers = [one for one in formats() if one.tool != format_.tool]
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
                    raise two_tools(lines.path, {format_.tool: begin, one.tool: number})
    drafts = list(reader.finish())
    for draft in drafts[:1]:
        if strange:
            draft.count("lines of the file that are of no figure", strange)
        if unread:
            draft.count("lines of the file that could not be read", unread)
            draft.missing.append("lines of the file could not be read")
    return drafts
