"""Which tool wrote a file: by its content, or by the name that a person gives."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

from pgdyno.imports.format import Format
from pgdyno.imports.formats import formats
from pgdyno.imports.reading import Lines, Progress
from pgdyno.model.errors import PlanError
from pgdyno.model.wording import listed

_FIRST_LINES = 20_000
"""Lines in which every sign is looked for; after the first sign nothing more is read."""
_SPLIT = "Split it: each output is a file of its own."
HINT = (
    "`pgdyno import --tool` names the tool, and its help lists them. A plan is run first: what is"
    " compared are run files."
)


def tools() -> tuple[str, ...]:
    """Names of tools whose output is read."""
    return tuple(sorted({one.tool for one in formats()}, key=str.lower))


def named(tool: str) -> tuple[Format, ...]:
    """The formats of a tool.

    Raises:
        PlanError: There is none of that name.
    """
    found = tuple(one for one in formats() if one.tool.lower() == tool.lower())
    if not found:
        close = get_close_matches(tool.lower(), [one.lower() for one in tools()], n=1)
        hint = f"Did you mean {close[0]}?" if close else None
        raise PlanError(f"the tool is {tool!r}, allowed are {', '.join(tools())}", hint)
    return found


def recognised(
    path: Path, tool: str | None, progress: Progress | None = None
) -> tuple[Format, int]:
    """The format of a file, and the line of its first sign.

    Args:
        path: The file.
        tool: Whose output it is; None: by its content.
        progress: Is told bytes read and bytes in all.

    Raises:
        PlanError: It is of no tool, of several, or not of the one that was named.
    """
    allowed = formats() if tool is None else named(tool)
    seen = _seen(path, progress)
    ours = [one for one in seen if one in allowed]
    if tool is not None and not ours:
        said = f"; it looks like {listed(_tools(seen))}" if seen else ""
        raise PlanError(f"file {path} holds no output of {allowed[0].tool}{said}", HINT)
    if not seen:
        raise PlanError(f"file {path} holds no output of a tool that is known", HINT)
    if tool is None and len(seen) > 1:
        raise several(path, seen)
    return ours[0], seen[ours[0]]


def several(path: Path, lines: Mapping[Format, int]) -> PlanError:
    """The refusal of a file that holds outputs of several tools, or several ones of a tool.

    Args:
        path: The file.
        lines: The line of the first sign of each output.
    """
    if len(_tools(lines)) == 1:
        said = listed([f"{one.form} (line {line})" for one, line in lines.items()])
        return PlanError(f"file {path} holds several outputs of {_tools(lines)[0]}: {said}", _SPLIT)
    said = listed([f"{one.tool} (line {line})" for one, line in lines.items()])
    return PlanError(
        f"file {path} holds output of {said}",
        "Split it, or name one with --tool: the rest is left.",
    )


def _tools(seen: Mapping[Format, int]) -> list[str]:
    return list(dict.fromkeys(one.tool for one in seen))


def _seen(path: Path, progress: Progress | None) -> dict[Format, int]:
    """Formats with a sign in the file, and the line of the first one."""
    seen: dict[Format, int] = {}
    shapes = [one for one in formats() if one.first_line is not None]
    is_first = True
    for number, text in Lines(path, progress):
        if number > _FIRST_LINES and seen:
            break
        if not text.strip():
            continue
        for one in formats():
            if one not in seen and one.signs.search(text):
                seen[one] = number
        if is_first and not seen:
            of_shape = [one for one in shapes if one.first_line and one.first_line.match(text)]
            seen |= {one: number for one in of_shape[:1]}
        is_first = False
    return seen
