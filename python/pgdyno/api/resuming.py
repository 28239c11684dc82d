"""Going on with what was broken off, whatever kind of experiment it is."""

from __future__ import annotations

from pathlib import Path

from pgdyno.api.calibrating import resume_calibration
from pgdyno.api.knees import resume_knee
from pgdyno.api.probing import resume_storage
from pgdyno.api.runs import Run, resume_plan
from pgdyno.experiment.progress import Listener
from pgdyno.loader.copy import require_release


def resume(path: str | Path, *, again: bool = False, on_event: Listener = lambda _: None) -> Run:
    """Go on with a run that was stopped or in which trials failed, on the machine it was begun on.

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
    match found.info.experiment:
        case "plan":
            return resume_plan(found.path, again, on_event)
        case "knee":
            return resume_knee(found, on_event)
        case "storage":
            return resume_storage(found, on_event)
        case "calibration":
            return resume_calibration(found, on_event)
