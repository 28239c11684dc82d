"""Importers, one a file, found by where they lie: each has a `FORMAT`."""

from __future__ import annotations

from functools import cache

from pgdyno.imports.format import Format
from pgdyno.model.by_location import modules_of


@cache
def formats() -> tuple[Format, ...]:
    """All importers, by the names of their modules."""
    return tuple(module.FORMAT for module in modules_of(__name__))
