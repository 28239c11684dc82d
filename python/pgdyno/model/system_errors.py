"""Errors of the system and of libraries as facts and hints: the one place that words them.

What is foreseen here is told as any failure of ours; what is not is a defect of pgdyno. Libraries
are known by name, so that none is loaded for an error that did not happen.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Callable
from pathlib import Path

from pgdyno.model.errors import PgdynoError
from pgdyno.model.units import bytes_text
from pgdyno.model.wording import small

_HINTS = {
    errno.ENOSPC: "Make room there; what was finished is kept.",
    errno.EDQUOT: "Make room within the quota; what was finished is kept.",
    errno.EACCES: "Give the user who runs pgdyno the right, or name another place.",
    errno.EPERM: "Give the user who runs pgdyno the right, or name another place.",
    errno.EROFS: "Name a place that can be written.",
    errno.EIO: "The device fails: see `dmesg`.",
    errno.EMFILE: "Raise `ulimit -n`.",
    errno.ENFILE: "Raise fs.file-max.",
    errno.ENOMEM: "Make the plan smaller, or free memory.",
}
LITTLE_ROOM_BYTES = 1 << 20
"""What fails with less free than so may have failed for it: programs keep pages back, and tell of
some failed writes only later, or never."""
_MEMORY = "Make the plan smaller, or free memory."
_SERVER = "The server's own log says more."
TOO_MANY = "Ask for fewer connections, or raise max_connections of the server."
_OF_SQLSTATE = {
    "42501": "GRANT the role that right, or connect as another role.",
    "53300": TOO_MANY,
    "55006": "Others use it: wait for them, or end their sessions, which pg_stat_activity lists.",
}

_LABEL = re.compile(r"^(?:DETAIL|HINT):\s+")


class SystemFailure(PgdynoError):
    """The operating system or a library failed where nobody above could go on."""

    exit_code = 7


def as_pgdyno_error(error: BaseException) -> PgdynoError | None:
    """An error as ours, with text and exit code; None for what nobody foresaw, a defect."""
    if isinstance(error, PgdynoError):
        return error
    for kind in type(error).__mro__:
        if words := _WORDS.get(f"{kind.__module__}.{kind.__qualname__}"):
            fact, hint = words(error)
            return SystemFailure(fact, hint)
    return None


def reason(error: OSError) -> str:
    """What the system says of a failure, in lower case and without the path."""
    words = error.strerror or str(error) or type(error).__name__
    return small(words)


def told(error: BaseException) -> str:
    """An error within a sentence of ours that names what was tried, and where."""
    return reason(error) if isinstance(error, OSError) else str(error)


def little_room(folder: Path, free_bytes: int) -> str:
    """What is added to a failure of a program that wrote there; nothing where it had room."""
    if free_bytes >= LITTLE_ROOM_BYTES:
        return ""
    return f"; {folder} has only {bytes_text(free_bytes)} free"


def _system(error: BaseException) -> tuple[str, str | None]:
    assert isinstance(error, OSError)
    fact = reason(error)
    named = [str(one) for one in (error.filename, error.filename2) if one is not None]
    if named:
        fact = f"{' and '.join(named)}: {fact}"
    return fact, _HINTS.get(error.errno or 0)


def refusal(error: BaseException) -> tuple[str, str | None]:
    """What a server that goes on refused to who asked it, and what helps where that is known."""
    hint = _OF_SQLSTATE.get(getattr(error, "sqlstate", None) or "")
    return f"the server refused: {_first_line(error)}", hint


def _first_line(error: BaseException) -> str:
    lines = (_LABEL.sub("", line.strip()) for line in str(error).splitlines())
    return " / ".join(line for line in lines if line)


def _of_server(error: BaseException) -> tuple[str, str | None]:
    """What a server refused to who asked it is no failure of the server."""
    fact, hint = refusal(error)
    if hint:
        return fact, hint
    return f"the server failed: {_first_line(error)}", _SERVER


_WORDS: dict[str, Callable[[BaseException], tuple[str, str | None]]] = {
    "builtins.OSError": _system,
    "builtins.MemoryError": lambda _: ("there is not enough memory", _MEMORY),
    "sqlite3.Error": lambda error: (f"SQLite failed: {error}", "Is there room, and a right?"),
    # Its arguments are kind, fact and hint, as `crates/core` makes them.
    "_core.CoreError": lambda error: (str(error.args[1]), error.args[2]),
    "psycopg.Error": _of_server,
}
