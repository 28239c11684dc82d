"""Resuming what was broken off, whatever kind of experiment it is."""

from __future__ import annotations

from pathlib import Path

from pgdyno.api.notebook_line import with_line
from pgdyno.api.runs import Run, experiment_of, reported
from pgdyno.catalog.contract import require_release
from pgdyno.trial.progress import Listener


@with_line
def resume(path: str | Path, *, again: bool = False, on_event: Listener = lambda _: None) -> Run:
    """Resume a run that was stopped or in which trials failed, on the machine it was begun on.

    Rounds of a plan are measured as a whole: one that was interrupted, or in which a trial failed
    or was invalid, is measured again, and what it gave before stays in the file. Other experiments
    go on after their last window, or path.

    Args:
        path: The run file.
        again: Of a plan: also rounds that failed when they were measured again.
        on_event: See `run`.

    Raises:
        PlanError: It was begun on another machine, or a server refuses a stage that is left.
        PgdynoError: See `run`.
    """
    require_release()
    found = Run(path)
    experiment = experiment_of(found)
    if found.info.plan is None and experiment.is_whole(found):
        # No server is opened, and no disk waited for, where nothing is left; a plan tells that.
        return reported(found.path)
    return experiment.resume(found, again, on_event)
