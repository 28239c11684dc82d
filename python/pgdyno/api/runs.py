"""Runs: a plan carried out or resumed, and its run file opened, as tables, figures, reports."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Literal, TypeVar

from pgdyno.analysis.facts import Comparison, Facts
from pgdyno.analysis.run import analyse, compare_stages
from pgdyno.analysis.stopping import at_looks, last_rounds, still_needed
from pgdyno.api.kinds import KIND_COLUMNS, kind_row
from pgdyno.api.planning import Plan
from pgdyno.api.table import Table
from pgdyno.drive.driver import workload_spec
from pgdyno.experiment.description import describe_stages, differences
from pgdyno.experiment.plan import carry_out
from pgdyno.experiment.progress import Listener
from pgdyno.loader.copy import describe, require_release
from pgdyno.model.build import Build
from pgdyno.model.calibration import Calibrated, Ceiling
from pgdyno.model.errors import Interrupted, LostError, PlanError
from pgdyno.model.floor import Probed
from pgdyno.model.knee import Curve, Searched
from pgdyno.model.plan import Plan as PlanRecord
from pgdyno.model.plan import Trial
from pgdyno.model.progress import RunBegun
from pgdyno.model.record_json import from_json
from pgdyno.model.run import Experiment, RunInfo, TrialRecord, TrialState
from pgdyno.plan.remaining import rest_of
from pgdyno.plan.same_machine import require_same
from pgdyno.report import ceiling, curve, html, markdown, storage
from pgdyno.report import json as json_report
from pgdyno.report.notebook import Drawing, draw
from pgdyno.stats.ceiling import ceilings
from pgdyno.stats.knee import curve as knee_curve
from pgdyno.stats.knee import next_level
from pgdyno.store.calibration import calibration_of
from pgdyno.store.output_file import require_page, write_page
from pgdyno.store.run_file import RunFile, as_written
from pgdyno.target.home import home
from pgdyno.target.host_facts import manifest, own_version, this_machine
from pgdyno.target.interface import Target, ending
from pgdyno.target.open_target import (
    build_facts,
    builds_there,
    data_folder,
    local_facts,
    open_target,
    require_rehearsed,
    server_facts,
)

T = TypeVar("T")
Format = Literal["html", "md", "json"]
_REPORTS: dict[Format, Callable[[Facts], str]] = {
    "html": html.render_facts, "md": markdown.render_facts, "json": json_report.render_facts
}  # fmt: skip
_STORAGE_REPORTS: dict[Format, Callable[[Probed], str]] = {
    "html": storage.render_html, "md": storage.render_md, "json": storage.render_json
}  # fmt: skip
_KNEE_REPORTS: dict[Format, Callable[[Curve], str]] = {
    "html": curve.render_html, "md": curve.render_md, "json": curve.render_json
}  # fmt: skip
_CALIBRATION_REPORTS: dict[Format, Callable[[Calibrated, str], str]] = {
    "html": ceiling.render_html, "md": ceiling.render_md, "json": ceiling.render_json
}  # fmt: skip
_TRIALS = (
    "trial", "round", "stage", "state", "reason", "attempt", "headline", "throughput", "nopm",
    "tps", "tpm_total", "window_s", "client_cpu_s", "started_unix_ns",
)  # fmt: skip
_VERDICTS = (
    "stage", "base", "ratio", "low", "high", "confidence", "rounds", "verdict", "reason",
    "p_adjusted", "rounds_needed",
)  # fmt: skip


class Run:
    """A run file, opened to be read: tables, comparisons, charts, reports.

    `run` and `resume` return one; `Run(path)` opens what was measured before, perhaps elsewhere.

    Args:
        path: The run file.

    Raises:
        StoreError: It is none, or cannot be read.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        with self._file() as file:
            self.info: RunInfo = file.info()

    def _file(self) -> RunFile:
        return RunFile.read(self.path)

    @cached_property
    def facts(self) -> Facts:
        """All that a report says, as records; the shape of `report("json")`.

        Raises:
            PlanError: No plan was run, e.g. storage was probed.
        """
        _plan_of(self.info)
        with self._file() as file, as_written(self.path):
            return analyse(file)

    @property
    def probed(self) -> Probed:
        """What storage was found to do.

        Raises:
            PlanError: No storage was probed, e.g. a plan was run.
        """
        return self._found("storage", Probed, "probed no storage")

    @property
    def searched(self) -> Searched:
        """The windows of a search for the knee, and what was asked.

        Raises:
            PlanError: No knee was searched.
        """
        return self._found("knee", Searched, "searched no knee")

    @property
    def curve(self) -> Curve:
        """The load-latency curve of a search, and its knee.

        Raises:
            PlanError: No knee was searched.
            PgdynoError: It was broken off before its first window ended.
        """
        return knee_curve(self.searched, self.info.ident, self.info.pgdyno)

    @property
    def calibrated(self) -> Calibrated:
        """The windows against the null server, and what was asked.

        Raises:
            PlanError: Nothing was calibrated.
        """
        return self._found("calibration", Calibrated, "calibrated nothing")

    @property
    def ceilings(self) -> tuple[Ceiling, ...]:
        """What the driver reaches on its machine, for each workload.

        Raises:
            PlanError: Nothing was calibrated.
            PgdynoError: It was broken off in its first round.
        """
        return ceilings(self.calibrated)

    def _found(self, experiment: Experiment, kind: type[T], otherwise: str) -> T:
        with self._file() as file, as_written(self.path):
            found = file.found(experiment, kind)
        if found is None and self.info.experiment == experiment:
            raise PlanError(f"run {self.info.ident} was stopped before anything was measured")
        if found is None:
            raise PlanError(
                f"run {self.info.ident} {otherwise}", f"It was made by `{self.info.command}`."
            )
        return found

    @property
    def is_whole(self) -> bool:
        """Whether all that it takes was measured, with numbers that may be used."""
        match self.info.experiment:
            case "storage":
                return self.probed.is_whole
            case "knee":
                return next_level(self.searched.asked.search, self.searched.points) is None
            case "calibration":
                return self.calibrated.is_whole
        with self._file() as file:
            trials, replaced = file.trials(), file.replaced()
        needed = still_needed(_plan_of(self.info), trials, replaced)
        return all(trial.state is TrialState.FINISHED for trial in needed)

    def trials(self, state: str | None = "finished") -> Table:
        """A row for each trial; `state` None: of every state, also those that were measured again.

        `throughput` is the metric that stages are compared by, `headline` its name.
        """
        with self._file() as file:
            listed = [*file.trials(), *(file.replaced() if state is None else ())]
        wanted = [one for one in listed if state is None or one.state.value == state]
        return Table.of([_trial_row(one) for one in wanted], _TRIALS)

    def kinds(self) -> Table:
        """A row for each kind of transaction of each finished trial: outcomes, response times."""
        with self._file() as file:
            finished = file.finished()
        rows = [row for trial in finished for row in _kind_rows(trial)]
        return Table.of(rows, ("trial", "round", "stage", *KIND_COLUMNS))

    def settings(self) -> Table:
        """Settings of each stage as its servers had them, with where each value comes from."""
        with self._file() as file:
            firsts = {trial.stage: trial for trial in reversed(file.finished())}
        rows = [
            {"stage": name, **asdict(one)}
            for name, trial in sorted(firsts.items(), key=lambda pair: pair[1].number)
            for one in (trial.result.settings if trial.result else ())
        ]
        return Table.of(rows, ("stage", "name", "value", "origin", "detail"))

    def series(self, trial: int, name: str | None = None) -> Table:
        """Samples of a trial, one row each: driver, host and server over time.

        Args:
            trial: Its number.
            name: Of one series, e.g. `wal.bytes`; None: all of them.
        """
        with self._file() as file:
            known = file.series(trial)
        chosen = [one for one in known.values() if name is None or one.name == name]
        rows = [
            {"name": one.name, "unit": one.unit, "kind": one.kind, "unix_ns": at, "value": value}
            for one in chosen
            for at, value in zip(one.unix_ns.tolist(), one.values.tolist(), strict=True)
        ]
        return Table.of(rows, ("name", "unit", "kind", "unix_ns", "value"))

    def verdicts(self) -> Table:
        """What statistics say of each stage against the first one."""
        rows = [
            {"stage": stage.name, **asdict(stage.to_first)}
            for stage in self.facts.stages
            if stage.to_first is not None
        ]
        return Table.of(rows, _VERDICTS)

    def compare(self, stage: str, base: str) -> Comparison:
        """Compare any two stages that ask the server for the same load.

        Raises:
            PgdynoError: There is no such stage, or their loads differ.
        """
        with self._file() as file, as_written(self.path):
            return compare_stages(file, stage, base)

    def figure(self, name: str) -> Drawing:
        """A chart of the report, by name; a notebook shows it.

        Raises:
            PgdynoError: No chart is called so.
        """
        return draw(self.facts, name)

    def report(self, format: Format = "html", out: str | Path | None = None) -> str:
        """The report as text; with `out` also written into a file.

        Raises:
            StoreError: The file cannot be written, or holds something that is no earlier report.
        """
        match self.info.experiment:
            case "storage":
                text = _STORAGE_REPORTS[format](self.probed)
            case "knee":
                text = _KNEE_REPORTS[format](self.curve)
            case "calibration":
                text = _CALIBRATION_REPORTS[format](self.calibrated, self.info.ident)
            case "plan":
                text = _REPORTS[format](self.facts)
        if out is not None:
            write_page(Path(out), text, beside=(self.path,))
        return text

    def __repr__(self) -> str:
        return f"<Run {self.info.ident} in {self.path}>"

    def _repr_html_(self) -> str:
        if self.info.experiment != "plan":
            return f"<p>{escape(repr(self))}</p>"
        answer = self.facts.answer
        sentences = f"<p>{escape(answer.finding)}</p><p>{escape(answer.limits)}</p>"
        return f"{sentences}{self.verdicts()._repr_html_()}"


def run(plan: Plan, *, out: str | Path | None = None, on_event: Listener = lambda _: None) -> Run:
    """Measure every stage of a plan; writes a run file, and a page beside it.

    Args:
        plan: See `load_plan`.
        out: The run file; None: `runs/<time>-<plan>.sqlite`.
        on_event: Told how it goes, see `model.progress`.

    Returns:
        The run. Trials that failed are in it, with their reasons; see `Run.is_whole`.

    Raises:
        PgdynoError: It cannot be carried out; what was measured until then is kept.
        Interrupted: Ctrl-C; servers are stopped, finished trials are kept.
    """
    require_release()
    record = plan.record
    ident, started_ns, path = named_now(record.name, out, plan.files)
    target = open_target(record.target, plan.server, plan.host, plan.builds.facts, _folders(record))
    with ending(target.close):
        require_rehearsed(record, target, record.stages)
        info = RunInfo(
            ident, started_ns, own_version(), plan.command, asdict(record), _manifest(record),
            dict(target.build), describe(workload_spec(record.workload, None)),
            differences(record, describe_stages(record)),
            calibration_of(home(), this_machine(), [record.workload.kind]),
        )  # fmt: skip
        planned = [
            TrialRecord(t.number, t.round, t.stage, t.ident, TrialState.PLANNED)
            for t in record.trials
        ]
        with RunFile.create(path, info, planned) as file:
            _measure(record, target, file, record.trials, (), on_event)
    return reported(path)


def resume_plan(path: Path, again: bool, on_event: Listener) -> Run:
    """Go on with the run of a plan; see `resume`."""
    with RunFile.append(path) as file:
        with as_written(path):
            info = file.info()
            plan = _plan_of(info)
        require_same(
            {"pgdyno": info.pgdyno, **info.host}, {"pgdyno": own_version(), **_manifest(plan)}
        )
        builds = {one.ident: build_facts(one) for one in _builds_of(plan)}
        require_page(path.with_suffix(".html"), beside=(path,))
        target = open_target(
            plan.target, server_facts(plan.target), local_facts(), builds, _folders(plan)
        )
        with ending(target.close):
            require_same({"PostgreSQL": info.build}, {"PostgreSQL": target.build})
            trials, replaced = file.trials(), file.replaced()
            compared = at_looks(plan, trials, replaced)
            rest = rest_of(
                plan, trials, replaced, again=again, until=last_rounds(compared),
                looked=max((one.look or 0 for one in compared), default=0),
            )  # fmt: skip
            left = {trial.stage for trial in rest.todo}
            require_rehearsed(plan, target, [one for one in plan.stages if one.name in left])
            file.begin_again(rest.repeated)
            _measure(plan, target, file, rest.todo, rest.told, on_event)
    return reported(path)


def _measure(
    plan: PlanRecord,
    target: Target,
    file: RunFile,
    todo: Sequence[Trial],
    notes: Sequence[str],
    listener: Listener,
) -> None:
    listener(RunBegun(file.path, plan, len(todo), tuple(notes)))
    if not todo:
        return
    try:
        carry_out(plan, target, file, listener, todo)
    except (KeyboardInterrupt, Interrupted):
        raise Interrupted(
            f"stopped after {len(file.finished())} of {len(plan.trials)} trials",
            f"Continue with `pgdyno resume {file.path}`.",
        ) from None
    except LostError as error:
        done = f"{len(file.finished())} of {len(plan.trials)} trials are finished"
        raise LostError(
            f"{error.fact}; {done}", f"{error.hint} Continue with `pgdyno resume {file.path}`."
        ) from error


def named_now(
    name: str, out: str | Path | None, beside: Sequence[Path] = ()
) -> tuple[str, int, Path]:
    """Ident, begin (unix ns) and file of a new run, whose page may be written.

    Args:
        name: Ends the ident, which begins with the time.
        out: The run file; None: below `runs`.
        beside: Files that the run reads.

    Raises:
        StoreError: Something else lies where the page would be.
    """
    now = time.time_ns()
    ident = f"{time.strftime('%Y%m%d-%H%M%S', time.localtime(now / 1e9))}-{name}"
    path = Path(out) if out is not None else Path("runs") / f"{ident}.sqlite"
    require_page(path.with_suffix(".html"), beside=(path, *beside))
    return ident, now, path


def reported(path: Path) -> Run:
    """The run, once its page is written."""
    found = Run(path)
    write_page(
        path.with_suffix(".html"), found.report("html"),
        f"The run file is whole: `pgdyno report {path} --out PATH`.", beside=(path,),
    )  # fmt: skip
    return found


def _plan_of(info: RunInfo) -> PlanRecord:
    """The resolved plan that a run file holds.

    Raises:
        PlanError: It holds none.
    """
    if not info.plan:
        raise PlanError(f"run {info.ident} has no plan", f"It was made by `{info.command}`.")
    return from_json(PlanRecord, json.dumps(info.plan))


def _folders(plan: PlanRecord) -> list[str]:
    """Those that stages name for their clusters."""
    return [stage.folder for stage in plan.stages if stage.folder is not None]


def _manifest(plan: PlanRecord) -> dict[str, object]:
    return manifest(data_folder(), _folders(plan))


def _builds_of(plan: PlanRecord) -> list[Build]:
    """The builds that a run was begun with; named by content, so that they are still the same."""
    named = {stage.build.ident: stage.build for stage in plan.stages if stage.build}
    there = {build.ident for build in builds_there()}
    if gone := [build.label for ident, build in named.items() if ident not in there]:
        raise PlanError(
            f"the run was begun on builds that are gone: {', '.join(gone)}",
            hint="Build them again by the same recipes, or start a new run.",
        )
    return list(named.values())


def _trial_row(trial: TrialRecord) -> dict[str, object]:
    row: dict[str, object] = {
        "trial": trial.number, "round": trial.round, "stage": trial.stage,
        "state": trial.state.value, "reason": trial.reason, "attempt": trial.attempt,
        "started_unix_ns": trial.started_ns,
    }  # fmt: skip
    if (result := trial.result) is not None:
        row |= {
            "headline": result.headline, "throughput": result.throughput, "nopm": result.nopm,
            "tps": result.tps, "tpm_total": result.tpm_total, "window_s": result.window_s,
            "client_cpu_s": result.client.user_s + result.client.system_s,
        }  # fmt: skip
    return row


def _kind_rows(trial: TrialRecord) -> list[dict[str, object]]:
    of: dict[str, object] = {"trial": trial.number, "round": trial.round, "stage": trial.stage}
    return [of | kind_row(one) for one in (trial.result.kinds if trial.result else ())]
