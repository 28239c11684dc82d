"""Modules that are found by where they lie: whoever adds one registers it nowhere."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType


def modules_of(package: str, besides: Collection[str] = ()) -> Iterator[ModuleType]:
    """The modules of a package in the order of their names, imported; without some."""
    for found in iter_modules(import_module(package).__path__):
        if found.name not in besides:
            yield import_module(f"{package}.{found.name}")
