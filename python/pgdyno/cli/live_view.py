"""The live view of a run: trial, phase, tpm now, and the time left for the whole plan.

On a terminal it is redrawn in place; elsewhere each trial is a line, so that logs stay readable.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from pgdyno.api import PHASES, RunProgress, driving_text, loading_text
from pgdyno.model.progress import (
    Event,
    LoadProgress,
    LookTaken,
    Noted,
    PhaseBegun,
    PointMeasured,
    RunBegun,
    StepBegun,
    TrialEnded,
)
from pgdyno.model.run import TrialRecord, TrialState
from pgdyno.model.units import at_least_text, count_text


class LiveView:
    """A listener of a run that draws from its begin on; use it as a context."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = RunProgress()
        self._live = Live(
            console=console, get_renderable=self._draw, refresh_per_second=4, transient=True
        )
        self._quiet = not console.is_terminal

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._live.stop()

    # -- what it is told -------------------------------------------------------------------

    def __call__(self, event: Event) -> None:
        """Be told."""
        self._progress.hear(event)
        match event:
            case PhaseBegun():
                self._phase_begins(event.trial, event.name)
            case TrialEnded():
                self._trial_ends(event.trial, lost=event.lost)
            case RunBegun():
                self._run_begins(event)
            case LookTaken():
                self._look_taken(event)
            case StepBegun():
                self._step_begins(event.what)
            case Noted():
                self._console.print(event.text, markup=False)
            case PointMeasured():
                self._console.print(_point_line(event))
            case _:
                pass  # the run's progress has it

    def _run_begins(self, event: RunBegun) -> None:
        for note in event.notes:
            self._console.print(note, markup=False)
        self._console.print(f"run file {event.path}")
        if not event.todo:
            self._console.print("all trials have ended already: nothing is measured")
        if event.todo and not self._quiet:
            self._live.start()

    def _phase_begins(self, trial: TrialRecord | None, name: str) -> None:
        if self._quiet and trial is None:
            self._console.print(f"fixture: {PHASES.get(name, name)}")

    def _trial_ends(self, record: TrialRecord, *, lost: bool) -> None:
        self._console.print(trial_line(record, self._progress.head_of(record), lost=lost))

    def _look_taken(self, event: LookTaken) -> None:
        for line in event.lines:
            self._console.print(line, markup=False)

    def _step_begins(self, text: str) -> None:
        if self._quiet:
            self._console.print(text, markup=False)
        elif not self._live.is_started:
            self._live.start()

    # -- what is drawn ------------------------------------------------------------------------

    def _draw(self) -> RenderableType:
        progress = self._progress
        if progress.step is not None:
            return Spinner("dots", Text(progress.step))
        done, todo, trial = progress.done, progress.todo, progress.trial
        head = Table.grid(padding=(0, 2))
        stage = Text()
        if trial:
            stage = Text.assemble(f"round {trial.round}, stage ", (trial.stage, "bold"))
        head.add_row(
            Text(progress.place_text, "bold"), stage, PHASES.get(progress.phase, progress.phase),
            progress.left_text(),
        )  # fmt: skip
        return Group(head, self._detail(), ProgressBar(total=max(1, todo), completed=done))

    def _detail(self) -> RenderableType:
        state = self._progress.state
        if state is None:
            return Text("")
        if isinstance(state, LoadProgress):
            return Text(loading_text(state))
        return Text(driving_text(state, at_most=self._progress.may_end_early))


def _point_line(event: PointMeasured) -> str:
    point = event.point
    return (
        f"{count_text(point.level)}: achieved {count_text(point.achieved_per_s)}/s, p99"
        f" {at_least_text(point.p99_ns, point.exact_below_ns)}, limit"
        f" {'kept' if event.kept else 'broken'}"
    )


def trial_line(record: TrialRecord, head: str, *, lost: bool = False) -> Text:
    """What a trial came to; where its server was lost, why is told apart, and once."""
    state = record.state.text
    said = state if lost else f"{state}: {record.reason}"
    if record.result is None:
        return Text.assemble(head, (f" {said}", "bold red"))
    result = record.result
    numbers = (
        f" {count_text(result.throughput):>9} {result.headline}"
        f" {count_text(result.tpm_total):>9} tpmTotal"
    )
    if record.state is TrialState.FINISHED:
        return Text(head + numbers)
    return Text.assemble(head, numbers, (f"  {said}", "bold red"))
