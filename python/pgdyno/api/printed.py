"""Results that are printed line by line: in a terminal, as one text, as JSON, in a notebook."""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from pgdyno.model.text import json_document

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class Printed(ABC):
    """What a call found, as facts that have lines."""

    __slots__ = ()
    facts: DataclassInstance

    @abstractmethod
    def lines(self) -> Iterator[str]:
        """What a terminal prints."""

    def text(self) -> str:
        """The same as one text."""
        return "".join(f"{line}\n" for line in self.lines())

    def json(self) -> str:
        """All of it in base units; null is what is not known."""
        return json_document(asdict(self.facts))

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text())}</pre>"
