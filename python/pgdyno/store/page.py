"""Writes a report whole or not at all: a full disk leaves what was there, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

from pgdyno.model.errors import StoreError
from pgdyno.model.foreign import reason


def write_page(path: Path, text: str, hint: str | None = None) -> None:
    """Write a text file in the place of an earlier one; to a device or a pipe, straight.

    Args:
        path: Where to; a link is followed.
        text: All of it.
        hint: For the message, should it fail.

    Raises:
        StoreError: It cannot be written.
    """
    place = path.resolve()
    fresh = place.with_name(f".{os.getpid()}.new")
    try:
        if place.exists() and not place.is_file():
            place.write_text(text, encoding="utf-8")
            return
        with fresh.open("x", encoding="utf-8") as handle:
            handle.write(text)
            handle.flush()
            os.fsync(handle.fileno())
        fresh.replace(place)
    except OSError as error:
        raise StoreError(f"report {path} cannot be written: {reason(error)}", hint) from error
    finally:
        fresh.unlink(missing_ok=True)
