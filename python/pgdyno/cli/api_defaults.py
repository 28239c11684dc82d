"""Defaults of options: those of the function or record of the API that a command fills in."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any


def defaults(called: Callable[..., Any]) -> dict[str, Any]:
    """The default of every parameter that has one."""
    parameters = signature(called).parameters.values()
    return {one.name: one.default for one in parameters if one.default is not one.empty}
