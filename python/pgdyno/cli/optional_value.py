"""Options whose value may be left out, which typer does not have: `--live`, `--live 8080`."""

from __future__ import annotations

import re
from collections.abc import Sequence

LEFT_OUT = {"--live": "0"}
"""The value that stands for none: any port that is free."""
_ADDRESS = re.compile(r"\d+|[^/\s]+:\w*")


def with_values(args: Sequence[str]) -> list[str]:
    """Arguments in which no value is left out: what follows and is no address is something else."""
    found: list[str] = []
    rest = list(args)
    while rest:
        one = rest.pop(0)
        if one == "--":
            return [*found, one, *rest]
        if one in LEFT_OUT and not (rest and _ADDRESS.fullmatch(rest[0])):
            one = f"{one}={LEFT_OUT[one]}"
        found.append(one)
    return found
