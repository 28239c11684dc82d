"""What is never done to servers that are not ours, and never read of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from pgdyno.model.connection import Connection
from pgdyno.model.errors import TargetError
from pgdyno.model.pooler import Pooler
from pgdyno.model.settings import Setting
from pgdyno.target.interface import Pooled
from pgdyno.target.server_log import LogTail


class NotOurs:
    """The part of `Target` that is the same for one such server and for several."""

    _why: ClassVar[str] = "the server runs already, and is"

    def follow(self, settings: Sequence[Setting], build: str | None = None) -> Connection:
        """Not ours to follow; `plan.resolve` refuses a plan that asks for it."""
        raise TargetError(f"{self._why} given no standby")

    def pool(self, pooler: Pooler, clients: int, load: Connection) -> Pooled:
        """Not ours to stand in front of; `plan.resolve` refuses a plan that asks for it."""
        raise TargetError(f"{self._why} given no pooler")

    def crash(self) -> None:
        """Not ours to kill; `plan.resolve` refuses a plan that asks for it."""
        raise TargetError(f"{self._why} not killed")

    def log_lines(self) -> Iterator[str] | None:
        """Not ours to read."""
        return None

    def log_tail(self) -> LogTail | None:
        """Not ours to read."""
        return None

    def log_text(self) -> str | None:
        """Not ours to read."""
        return None

    def last_words(self) -> str | None:
        """Not ours to read."""
        return None
