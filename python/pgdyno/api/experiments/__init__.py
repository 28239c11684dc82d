"""The kinds of experiments: one module each, called as run files call the kind.

A module has the function that begins one, and `EXPERIMENT`, which says what a run of it is. Whoever
opens a run file finds the module by the name in it; nowhere is there a list of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Literal

from pgdyno.model.errors import StoreError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pgdyno.api.runs import Run
    from pgdyno.trial.progress import Listener

Format = Literal["html", "md", "json"]


@dataclass(frozen=True, slots=True)
class Experiment:
    """What a run of a kind is."""

    is_whole: Callable[[Run], bool]  # was all that it takes measured, with numbers that may be used
    reports: Mapping[Format, Callable[[Run], str]]
    summary: Callable[[Run], RenderableType]  # what a terminal says at its end
    resume: Callable[[Run, bool, Listener], Run]  # with `again`, see `resume`


def experiment_of(run: Run) -> Experiment:
    """What a run is, by the kind that its file names.

    Raises:
        StoreError: This pgdyno does not know the kind.
    """
    name, known = run.info.experiment, sorted(one.name for one in iter_modules(__path__))
    if name not in known:
        raise StoreError(
            f"run file {run.path} holds an experiment {name!r}, known are {', '.join(known)}",
            "Open it with the pgdyno that wrote it, or a newer one.",
        )
    found: Experiment = import_module(f"{__name__}.{name}").EXPERIMENT
    return found
