"""The live view of a run: trial, phase, tpm now, and the time left for the whole plan.

On a terminal it is redrawn in place; elsewhere each trial is a line, so that logs stay readable.
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from pgdyno.model.plan import Plan
from pgdyno.model.progress import (
    DriveProgress,
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
from pgdyno.model.units import at_least_text, bytes_text, count_text, seconds_text
from pgdyno.model.wording import plural

_PHASES = {
    "prepare": "making an empty database",
    "load": "loading the fixture",
    "check": "checking consistency",
    "setup": "running the plan's own SQL",
    "keep": "keeping the fixture",
    "restore": "restoring the fixture",
    "start": "starting the server",
    "prewarm": "reading data into memory",
    "checkpoint": "checkpoint",
    "recover": "crash and recovery",
    "drive": "driving",
}


class LiveView:
    """A listener of a run that draws from its begin on; use it as a context."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._plan: Plan | None = None
        self._todo = 0
        self._done: list[TrialRecord] = []
        self._trial: TrialRecord | None = None
        self._phase = "starting"
        self._step: str | None = None  # of an experiment without stages
        self._state: LoadProgress | DriveProgress | None = None
        self._overhead_s: list[float] = []
        self._trial_began = time.monotonic()
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
        match event:
            case PhaseBegun():
                self._phase_begins(event.trial, event.name)
            case TrialEnded():
                self._trial_ends(event.trial)
            case LoadProgress() | DriveProgress():
                self._state = event
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

    def _run_begins(self, event: RunBegun) -> None:
        for note in event.notes:
            self._console.print(note, markup=False)
        self._console.print(f"run file {event.path}")
        self._plan, self._todo = event.plan, event.todo
        if self._todo and not self._quiet:
            self._live.start()

    def _phase_begins(self, trial: TrialRecord | None, name: str) -> None:
        if trial is not self._trial:
            self._trial_began = time.monotonic()
        self._trial, self._phase, self._state = trial, name, None
        if self._quiet and trial is None:
            self._console.print(f"fixture: {_PHASES.get(name, name)}")

    def _trial_ends(self, record: TrialRecord) -> None:
        assert self._plan is not None, "a trial ended before its run began"
        self._done.append(record)
        measuring = self._plan.protocol.warmup_s + self._plan.protocol.window_s
        self._overhead_s.append(max(0.0, time.monotonic() - self._trial_began - measuring))
        self._console.print(_trial_line(record, len(self._plan.trials)))

    def _look_taken(self, event: LookTaken) -> None:
        self._todo = len(self._done) + event.left
        for line in event.sentences:
            self._console.print(f"after round {event.rounds}: {line}", markup=False)

    def _step_begins(self, text: str) -> None:
        self._step = text
        if self._quiet:
            self._console.print(text, markup=False)
        elif not self._live.is_started:
            self._live.start()

    # -- what is drawn ------------------------------------------------------------------------

    def left_s(self) -> float:
        """Seconds left for the whole plan, by what the trials so far took besides measuring."""
        if self._plan is None:
            return 0.0
        protocol = self._plan.protocol
        planned = self._plan.estimate.other_s / max(1, len(self._plan.trials))
        spent = self._overhead_s
        overhead = sum(spent) / len(spent) if spent else planned
        each = protocol.warmup_s + protocol.window_s + overhead
        left = (self._todo - len(self._done)) * each
        begun = time.monotonic() - self._trial_began if self._trial else 0.0
        return max(0.0, left - min(begun, each))

    def _draw(self) -> RenderableType:
        if self._step is not None:
            return Spinner("dots", Text(self._step))
        done, todo = len(self._done), self._todo
        head = Table.grid(padding=(0, 2))
        where = f"trial {done + 1} of {todo}" if self._trial else "fixture"
        stage = Text()
        if self._trial:
            stage = Text.assemble(f"round {self._trial.round}, stage ", (self._trial.stage, "bold"))
        head.add_row(
            Text(where, "bold"), stage, _PHASES.get(self._phase, self._phase),
            f"{seconds_text(self.left_s())} left for the plan",
        )  # fmt: skip
        return Group(head, self._detail(), ProgressBar(total=max(1, todo), completed=done))

    def _detail(self) -> RenderableType:
        state = self._state
        if state is None:
            return Text("")
        if isinstance(state, LoadProgress):
            return Text(_loading_text(state))
        return Text(_driving_text(state))


def _loading_text(state: LoadProgress) -> str:
    return (
        f"{state.phase}: {count_text(state.rows)} of"
        f" {plural(state.rows_total, 'row', thousands=True)},"
        f" {bytes_text(state.bytes_per_s)}/s, {seconds_text(state.seconds_left or 0)} left"
    )


def _driving_text(state: DriveProgress) -> str:
    text = (
        f"{state.phase}: {rates_text(state.last_second)} now, {state.phase_left_s:.0f} s of it left"
    )
    counts = {"failed": state.failed, "retries": state.retries, "reconnects": state.reconnects}
    return ", ".join([text, *(f"{count} {name}" for name, count in counts.items() if count)])


def rates_text(second: dict[str, int]) -> str:
    """What was committed in a second, by kind, as the rates that people ask for."""
    total = sum(second.values())
    if "new_order" not in second:
        return f"{count_text(total)} tps"
    return f"{count_text(60 * total)} tpmTotal and {count_text(60 * second['new_order'])} NOPM"


def _point_line(event: PointMeasured) -> str:
    point = event.point
    return (
        f"{count_text(point.level)}: achieved {count_text(point.achieved_per_s)}/s, p99"
        f" {at_least_text(point.p99_ns, point.exact_below_ns)}, limit"
        f" {'kept' if event.kept else 'broken'}"
    )


def _trial_line(record: TrialRecord, count: int) -> Text:
    head = f"trial {record.number:>2} of {count}  round {record.round}  {record.stage:<16}"
    if record.result is None:
        return Text.assemble(head, (f" {record.state}: {record.reason}", "bold red"))
    result = record.result
    numbers = (
        f" {count_text(result.throughput):>9} {result.headline}"
        f" {count_text(result.tpm_total):>9} tpmTotal"
    )
    if record.state is TrialState.FINISHED:
        return Text(head + numbers)
    return Text.assemble(head, numbers, (f"  {record.state}: {record.reason}", "bold red"))
