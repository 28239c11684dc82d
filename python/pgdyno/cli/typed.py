"""Which options somebody typed, so that those that say nothing here can be refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import typer


def typed(ctx: typer.Context, options: Iterable[str]) -> Iterator[str]:
    """Those of the options, by their parameters' names, that stand on the command line."""
    for option in options:
        source = ctx.get_parameter_source(option)
        if source is not None and source.name == "COMMANDLINE":
            yield option
