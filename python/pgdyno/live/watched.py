"""A run as the worker knows it: what it was told, what the run file holds, and what both show."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from pydantic import JsonValue

from pgdyno.live import metrics
from pgdyno.live.latest_parts import LatestParts
from pgdyno.live.line import Line
from pgdyno.live.message import End, Message
from pgdyno.live.run_progress import (
    DRIVEN,
    STARTING,
    Moment,
    loading_text,
    phase_left_text,
    rates,
)
from pgdyno.live.running import Running
from pgdyno.live.so_far import SoFar, look, parts
from pgdyno.model.errors import PgdynoError
from pgdyno.model.glance import Glance
from pgdyno.model.openmetrics import Sample, exposition
from pgdyno.model.progress import DriveProgress
from pgdyno.model.record_json import JsonObject
from pgdyno.model.system_errors import as_pgdyno_error
from pgdyno.model.units import count_text, ns_text
from pgdyno.store.histogram import merged_quantiles, recorded

_NOTES_MAX = 100  # the last ones
_NS = 1e9
_CPU_STEP_S = 0.1  # finer changes of our own cost are not sent


class Watched:
    """Takes in messages, and keeps the latest parts and the metrics.

    Args:
        latest: What viewers are shown.
        unix_s: What time it is.
    """

    def __init__(self, latest: LatestParts, unix_s: Callable[[], float] = time.time) -> None:
        self._latest, self._unix_s = latest, unix_s
        self._lock = threading.Lock()
        self._moment = Moment(STARTING, 0, 0, 0.0)
        self._line = Line()
        self._running = Running()
        self._counted = metrics.Counted()
        self._responses = metrics.Responses(merged_quantiles, recorded)
        self._notes: list[JsonValue] = []
        self._found: SoFar | None = None
        self._histograms: list[Sample] = []
        self._path: Path | None = None
        self._look, self._reading = threading.Event(), threading.Lock()
        self._looking = threading.Thread(target=self._looks, name="pgdyno analysis", daemon=True)
        self._looking.start()

    # -- what it is told ---------------------------------------------------------------------

    def hear(self, message: Message) -> None:
        """Take in a message."""
        if message.began is not None:
            self._path = Path(message.began.path)
            self._look.set()
        if message.note is not None:
            self._note(message.note)
        if message.moment is not None:
            self._takes(message.moment)
        if message.glance is not None:
            self._glances(message.glance)
        if message.stored:
            self._look.set()

    def ends(self, end: End) -> None:
        """The run is over; what is left on the screens is whole."""
        if self._path is not None and self._look.is_set():
            self._look.clear()
            self._read(self._path)
        with self._reading:  # whoever reads comes to its end
            pass
        self._latest.put("end", {"outcome": end.outcome, "text": end.text, "report": end.report})

    def _takes(self, moment: Moment) -> None:
        with self._lock:
            self._moment = moment
            self._counted.hear(moment)
            self._line.hear(moment)
            shown, before = _progress(moment, self._line), self._running.is_shown
            self._running.hear(moment)
            is_over = before and not self._running.is_shown
        shown["cpu_s"] = round(time.process_time() / _CPU_STEP_S) * _CPU_STEP_S
        self._latest.put("progress", shown)
        if is_over:
            self._latest.put("running", None)

    def _glances(self, seen: Glance) -> None:
        with self._lock:
            self._running.glance(seen)
        self._latest.put_later("running", self._running_part)

    def _running_part(self) -> JsonObject | None:
        with self._lock:
            return self._running.part() if self._running.is_shown else None

    def _note(self, text: str) -> None:
        note: JsonObject = {"unix_s": round(self._unix_s()), "text": text}
        self._notes = [*self._notes, note][-_NOTES_MAX:]
        self._latest.put("notes", self._notes)

    # -- what it looks up --------------------------------------------------------------------

    def _looks(self) -> None:
        """In a thread of its own: read the run file whenever a trial was stored."""
        while True:
            self._look.wait()
            self._look.clear()
            if self._path is not None:
                self._read(self._path)

    def _read(self, path: Path) -> None:
        with self._reading:
            self._show(path)

    def _show(self, path: Path) -> None:
        try:
            found = look(path)
            shown = parts(found)
            histograms = list(self._responses.samples(found.ever))
        except Exception as error:
            # Whatever it is: the page goes on with what it has, and says what is wrong.
            known = as_pgdyno_error(error) or PgdynoError(f"{type(error).__name__}: {error}")
            self._latest.put("trouble", known.line)
            return
        with self._lock:
            self._found, self._histograms = found, histograms
        self._latest.put("trouble", None)
        for name, value in shown.items():
            self._latest.put(name, value)

    # -- what is scraped ---------------------------------------------------------------------

    def exposition(self) -> str:
        """All metrics now, in OpenMetrics' text format."""
        with self._lock:
            return exposition(self._samples())

    def _samples(self) -> Iterator[Sample]:
        yield from metrics.of_moment(self._moment)
        yield from metrics.of_counted(self._counted)
        yield from metrics.of_running(self._running)
        if self._found is not None:
            yield from metrics.of_run(self._found, self._moment.stage)
            yield from self._histograms
        yield Sample(metrics.CPU, (), time.process_time())
        yield Sample(metrics.VIEWERS, (), self._latest.viewers)


def _progress(moment: Moment, line: Line) -> JsonObject:
    """What the page shows of a moment; texts as they are read."""
    drive = moment.drive
    figures = rates(drive.last_second) if drive and drive.last_second else {}
    return {
        "phase": moment.phase_text, "number": moment.number, "trials": moment.trials,
        "round": moment.round, "stage": moment.stage, "step": moment.step,
        "done": moment.done, "todo": moment.todo,
        "share": round(moment.share, 3), "left_s": round(moment.left_s),
        "left": moment.left_text, "is_late": moment.is_late,
        "detail": _detail(moment),
        "figures": [[count_text(value), unit] for unit, value in figures.items()],
        "latency": _latency(moment),
        "line": {"step_s": line.step_s, "window_from_s": line.window_from_s,
                 "values": [*line.values], "ends": [*line.ends],
                 "unit": line.unit} if line.values else None,
    }  # fmt: skip


def _latency(moment: Moment) -> str | None:
    """What a transaction took on average in the last second, where the driver tells it."""
    return None if moment.latency_s is None else f"{ns_text(moment.latency_s * _NS)} each"


def _detail(moment: Moment) -> str:
    if moment.load is not None:
        return loading_text(moment.load)
    if moment.drive is not None:
        return _driving(moment.drive, at_most=moment.may_end_early)
    return ""


def _driving(drive: DriveProgress, *, at_most: bool) -> str:
    name = DRIVEN.get(drive.phase, drive.phase)
    text = f"{name}, {phase_left_text(drive, at_most=at_most)}"
    counts = {"failed": drive.failed, "retries": drive.retries, "reconnects": drive.reconnects}
    told = [f"{count_text(count)} {name}" for name, count in counts.items() if count]
    return ", ".join([text, *told])
