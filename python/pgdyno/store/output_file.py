"""Files that hold results: written whole or not at all, and over nothing that somebody else wrote.

A report is made again and again, so an earlier report may go; it is known by what stands in it, not
by its name. No run file, no plan and no file of the user's is replaced.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
from collections.abc import Iterable
from pathlib import Path

from pgdyno.access import stranger_on
from pgdyno.folders import Folder
from pgdyno.model.errors import StoreError, TargetError
from pgdyno.model.record_json import json_value
from pgdyno.model.system_errors import reason

_PAGE = re.compile(rb'<meta name="generator" content="pgdyno [^"]*">')
_MARKDOWN = re.compile(rb"Made by pgdyno [^\n]+ from run .*\s*\Z")
_HEAD_BYTES, _TAIL_BYTES = 4096, 4096
_JSON_BYTES_MAX = 256 << 20
_OF_CURVE = {"ident", "by", "knee", "points", "pgdyno"}


def require_page(path: Path, *, beside: Iterable[Path] = ()) -> None:
    """Refuse to write a result where something else lies; ask before anything is measured.

    Args:
        path: Where it is to be written.
        beside: Files that the same command reads or writes.

    Raises:
        StoreError: It is one of those, is a file and no report, or lies, for root, where somebody
            else could put a link.
    """
    for other in beside:
        if _same(path, other):
            raise StoreError(
                f"{path} is to be written and is {other}, which must stay",
                "Name another file with --out.",
            )
    require_closed(path)
    if path.is_file() and not _is_report(path.resolve()):
        raise StoreError(
            f"{path} exists and is not a report of pgdyno's",
            "Name another file with --out; `report --out -` writes to standard output.",
        )


def write_page(
    path: Path, text: str, hint: str | None = None, *, beside: Iterable[Path] = ()
) -> None:
    """Write a result in the place of an earlier one; to a device or a pipe, straight.

    Args:
        path: Where to; a link is followed.
        text: All of it.
        hint: For the message, should it fail.
        beside: Files that the same command reads or writes.

    Raises:
        StoreError: As `require_page`; or it cannot be written.
    """
    require_page(path, beside=beside)
    target = path.resolve()
    try:
        if target.exists() and not target.is_file():
            target.write_text(text, encoding="utf-8")
            return
        with Folder.made(target.parent) as folder:
            folder.write(target.name, text)
    except OSError as error:
        raise StoreError(f"report {path} cannot be written: {reason(error)}", hint) from error
    except TargetError as error:
        cause = error.__cause__
        why = reason(cause) if isinstance(cause, OSError) else error.fact
        raise StoreError(f"report {path} cannot be written: {why}", hint) from error


def write_new(path: Path, text: str) -> None:
    """Write a file that is not there yet.

    Raises:
        StoreError: As `require_closed`.
        TargetError: It cannot be written.
        OSError: Something of its name came there meanwhile, for one; nothing is left.
    """
    require_closed(path)
    nascent = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    with Folder.made(path.parent) as folder:
        folder.write(nascent.name, text)
        try:
            publish(nascent, path)
        finally:
            folder.remove(nascent.name)


def publish(nascent: Path, path: Path) -> None:
    """Give a file its name, and never take one that came there meanwhile."""
    try:
        os.link(nascent, path)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP):
            raise
        nascent.rename(path)  # a file system without such links


def require_closed(path: Path) -> None:
    """As root, refuse a file or a folder in whose place somebody else could put a link.

    Raises:
        StoreError: Somebody else could.
    """
    if os.geteuid() != 0:
        return
    way = (path, *path.absolute().parents)
    existing = next((one for one in way if os.path.exists(one)), Path("/"))
    if existing == path and not (path.is_file() or path.is_dir()):
        existing = path.absolute().parent  # a device may be written by all
    if where := stranger_on(existing):
        raise StoreError(
            f"root is to write {path}, and others than root can change {where}",
            "Name a place that only root can change, or run pgdyno as the other user.",
        )


def _same(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):
        return os.path.realpath(one) == os.path.realpath(other)


def _is_report(path: Path) -> bool:
    try:
        with Folder.hold(path.parent) as folder:
            handle = folder.open(path.name, os.geteuid())
    except TargetError:
        return False  # somebody else's
    with os.fdopen(handle, "rb") as file:
        if not (size := os.fstat(handle).st_size):
            return True  # nothing stands in it that could be lost
        head = file.read(_HEAD_BYTES)
        file.seek(max(0, size - _TAIL_BYTES))
        tail = file.read()
        if _PAGE.search(head) or _MARKDOWN.search(tail):
            return True
        file.seek(0)
        return head.startswith(b"{") and _is_json_of_ours(file.read(_JSON_BYTES_MAX))


def _is_json_of_ours(data: bytes) -> bool:
    try:
        document = json_value(data)
    except ValueError:
        return False
    named = str(document.get("schema", "")).startswith("pgdyno.")
    return named or document.keys() >= _OF_CURVE
