"""What viewers see: named parts, each the last of its kind, and who waits for a newer one.

A viewer is sent what is newest, never what was in between, so that a slow one costs no memory.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

from pgdyno.model.text import visible_within

Parts = list[tuple[str, bytes]]


class LatestParts:
    """Parts of a page, as JSON. Many threads may read and write it."""

    def __init__(self) -> None:
        self._changes = threading.Condition()
        # With the version that brought it; one that nobody has looked at yet by what makes it.
        self._parts: dict[str, tuple[int, bytes | Callable[[], Any]]] = {}
        self._version = 0
        self._closed = False
        self._viewers = 0
        self.viewers_max = 0

    def put(self, name: str, value: Any) -> None:  # noqa: ANN401  whatever JSON holds
        """Show a part in place of the one before; what is equal is not sent again."""
        text = _text(value)
        with self._changes:
            if self._parts.get(name, (0, b""))[1] != text:
                self._version += 1
                self._parts[name] = (self._version, text)
                self._changes.notify_all()

    def put_later(self, name: str, make: Callable[[], Any]) -> None:
        """The same of a part that is made when somebody looks, at most once."""
        with self._changes:
            self._version += 1
            self._parts[name] = (self._version, make)
            self._changes.notify_all()

    def close(self, patience_s: float) -> None:
        """Have all viewers sent what they lack, then leave."""
        with self._changes:
            self._closed = True
            self._changes.notify_all()
            self._changes.wait_for(lambda: self._viewers == 0, patience_s)

    def newer(self, than: int, patience_s: float) -> tuple[int, Parts, bool]:
        """Wait for parts that are newer than a version.

        Returns:
            The version of the newest, the parts (none: nothing came in time), and whether these
            are the last.
        """
        with self._changes:
            self._changes.wait_for(lambda: self._version > than or self._closed, patience_s)
            newer = [name for name, (at, _) in self._parts.items() if at > than]
            parts = [(name, self._made(name)) for name in newer]
            return self._version, parts, self._closed

    def _made(self, name: str) -> bytes:
        version, part = self._parts[name]
        if not isinstance(part, bytes):
            part = _text(part())
            self._parts[name] = (version, part)
        return part

    def __enter__(self) -> LatestParts:
        """A viewer comes."""
        with self._changes:
            self._viewers += 1
            self.viewers_max = max(self.viewers_max, self._viewers)
        return self

    def __exit__(self, *_: object) -> None:
        with self._changes:
            self._viewers -= 1
            self._changes.notify_all()

    @property
    def viewers(self) -> int:
        """Who looks now."""
        return self._viewers


def _text(value: Any) -> bytes:  # noqa: ANN401  whatever JSON holds
    shown = visible_within(value)
    return json.dumps(shown, separators=(",", ":"), allow_nan=False).encode()
