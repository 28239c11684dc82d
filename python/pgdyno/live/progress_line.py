"""How far any call is, in one line: a run, a load, a window, files that are written, a build."""

from __future__ import annotations

from pgdyno.live.run_progress import PHASES, RunProgress, driving_text, loading_text
from pgdyno.model.progress import (
    DriveProgress,
    Event,
    ExportProgress,
    LoadProgress,
    PointMeasured,
    StepBegun,
)
from pgdyno.model.units import bytes_text, count_text
from pgdyno.model.wording import plural


class ProgressLine:
    """Follows what listeners are told, whatever the call."""

    def __init__(self) -> None:
        self._run = RunProgress()

    def hear(self, event: object) -> str | None:
        """The line now; None: what was told changes nothing of it."""
        if isinstance(event, str):  # a step of a build
            return event
        if isinstance(event, ExportProgress):
            of = f"{count_text(event.rows)} of {plural(event.rows_total, 'row', thousands=True)}"
            return f"{of}, {bytes_text(event.bytes)} written"
        if isinstance(event, Event):
            self._run.hear(event)
            return self._of_run(event)
        return None

    def _of_run(self, event: Event) -> str | None:
        match event:
            case StepBegun():
                return event.what
            case PointMeasured():
                kept = "kept" if event.kept else "broken"
                return f"{count_text(event.point.level)}: limit {kept}"
            case LoadProgress():
                return self._headed(loading_text(event))
            case DriveProgress():
                return self._headed(driving_text(event, at_most=self._run.may_end_early))
        if self._run.plan is None:
            return None
        return self._headed(PHASES.get(self._run.phase, self._run.phase))

    def _headed(self, text: str) -> str:
        """With the trial and the time that is left, where there is a plan."""
        now = self._run
        if now.plan is None:
            return text
        stage = f", stage {now.trial.stage}" if now.trial else ""
        return f"{now.place_text}{stage}, {now.left_text()}: {text}"
