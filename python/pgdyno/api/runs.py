"""Runs: run files opened, as tables, figures, reports, whatever kind of experiment they are of."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from html import escape
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Literal, TypeVar, cast, get_args

from pgdyno.analysis.diagnosis_facts import StageDiagnosis
from pgdyno.analysis.drill import drill_facts
from pgdyno.analysis.drill_facts import DrillFacts
from pgdyno.analysis.facts import Comparison, Facts
from pgdyno.analysis.judged import plan_in
from pgdyno.analysis.losses import Losses
from pgdyno.analysis.proof import proof_facts
from pgdyno.analysis.proof_facts import ProofFacts
from pgdyno.analysis.run import analyse, compare_stages
from pgdyno.analysis.stored import Stored
from pgdyno.analysis.windows import stage_windows
from pgdyno.api.configuration import Form, configuration
from pgdyno.api.drill_beside import drill_beside
from pgdyno.api.interrupts import interruptible
from pgdyno.api.kinds import KIND_COLUMNS, kind_row
from pgdyno.api.parquet import VERDICTS, WrittenRun, write_parquet
from pgdyno.api.table import Table
from pgdyno.diagnosis.stages import diagnose_stages
from pgdyno.model.calibration import Calibrated, Ceiling
from pgdyno.model.climb import Climbed
from pgdyno.model.drill import Drilled
from pgdyno.model.errors import PlanError, StoreError
from pgdyno.model.floor import Probed
from pgdyno.model.knee import Curve, Searched
from pgdyno.model.proof import Proved
from pgdyno.model.run import RunInfo, TrialRecord
from pgdyno.model.text import path_typed
from pgdyno.report.notebook import Drawing, draw
from pgdyno.stats.ceiling import ceilings
from pgdyno.stats.knee import curve as knee_curve
from pgdyno.store.named_runs import RUNS
from pgdyno.store.output_file import require_page, write_page
from pgdyno.store.run_file import RunFile, as_written, require_new
from pgdyno.store.views import RUN

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pgdyno.trial.progress import Listener

T = TypeVar("T")
Format = Literal["html", "md", "json"]
_KINDS = "pgdyno.api.experiments"
_TRIALS = (
    "trial", "round", "stage", "state", "reason", "attempt", "headline", "throughput", "nopm",
    "tps", "tpm_total", "window_s", "client_cpu_s", "started_unix_ns",
)  # fmt: skip
_VERDICTS = tuple(one.name for one in VERDICTS if one is not RUN)
_ENDING_MAX = 8  # letters; longer ones (`page.yesterday`) are of a name, not of a kind of file


class Run:
    """A run file, opened to be read: tables, comparisons, charts, reports.

    `run` and `resume` return one; `Run(path)` opens what was measured before, perhaps elsewhere.

    Args:
        path: The run file.
        losses: The run file of a drill: what disasters took from its stages stands beside those of
            this run, and beside those of the same rung. None: the newest drill of this machine
            and this version of PostgreSQL that lies in the same folder, where there is one.

    Raises:
        StoreError: It is none, or cannot be read.
        PlanError: Nothing was drilled in `losses`, or no plan was run in this one.
    """

    def __init__(self, path: str | Path, *, losses: str | Path | None = None) -> None:
        self.path = Path(path)
        with self._file() as file:
            self.info: RunInfo = file.info()
        self._losses: Losses | None = None
        if losses is not None:
            plan_in(self.info)
            drill = Run(losses)
            self._losses = Losses(drill.info.ident, drill.drilled)

    def _file(self) -> RunFile:
        return RunFile.read(self.path)

    @cached_property
    def facts(self) -> Facts:
        """All that a report says, as records; the shape of `report("json")`.

        Raises:
            PlanError: No plan was run, e.g. storage was probed.
        """
        plan_in(self.info)
        with self._file() as file, as_written(self.path):
            stored = Stored(file)
            losses = self._losses or drill_beside(self.path, self.info)
            found = analyse(file, stored, losses)
            return replace(found, diagnosis=diagnose_stages(stage_windows(stored)))

    def diagnosis(self, stage: str | None = None) -> tuple[StageDiagnosis, ...]:
        """What limits each stage, with its proof; see `pgdyno.diagnose`.

        Args:
            stage: One stage alone; None: all.

        Raises:
            PlanError: No plan was run.
            PgdynoError: There is no such stage.
        """
        with self._file() as file, as_written(self.path):
            return diagnose_stages(stage_windows(Stored(file), stage))

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
    def proved(self) -> Proved:
        """The blocks of a proof by intervention, and what was asked.

        Raises:
            PlanError: Nothing was proved.
        """
        return self._found("prove", Proved, "proved nothing")

    @cached_property
    def proof(self) -> ProofFacts:
        """What a proof amounts to: what limits the stage, and what each resource costs.

        Raises:
            PlanError: Nothing was proved.
            PgdynoError: It was broken off in its first sitting.
        """
        return proof_facts(self.proved, self.info)

    @property
    def climbed(self) -> Climbed:
        """The steps of a climb, and what they amount to.

        Raises:
            PlanError: Nothing was climbed.
        """
        return self._found("climb", Climbed, "climbed nothing")

    @property
    def drilled(self) -> Drilled:
        """The cuts of a drill, and what was asked.

        Raises:
            PlanError: Nothing was drilled.
        """
        return self._found("drill", Drilled, "drilled nothing")

    @cached_property
    def drill(self) -> DrillFacts:
        """What a drill amounts to: what each disaster did to each stage.

        Raises:
            PlanError: Nothing was drilled.
            PgdynoError: It was broken off before its first cut ended.
        """
        return drill_facts(self.drilled, self.info)

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

    def _found(self, experiment: str, kind: type[T], otherwise: str) -> T:
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
        return experiment_of(self).is_whole(self)

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

    def report(self, format: Format | None = None, out: str | Path | None = None) -> str:
        """The report as text; with `out` also written into a file.

        Args:
            format: None: the one that the name of `out` ends with, else `html`.
            out: Where it is written.

        Raises:
            PlanError: `out` alone names the format, and ends with another kind of file.
            StoreError: The file cannot be written, or holds something that is no earlier report.
        """
        named = format or written_as(out)
        kind = cast(Format, named) if named in get_args(Format) else "html"
        text = experiment_of(self).reports[kind](self)
        if out is not None:
            write_page(Path(out), text, beside=(self.path,))
        return text

    def parquet(self, folder: str | Path) -> WrittenRun:
        """Write it as Parquet files, a table each, with documented columns, for DuckDB and polars.

        Args:
            folder: Where a folder with the run's ident is put, beside those of other runs.

        Raises:
            PgdynoError: pyarrow is not installed.
            StoreError: The run is there already, or cannot be written; nothing is left then.
            Interrupted: Ctrl-C; likewise.
        """
        verdicts = [] if self.info.plan is None else list(self.verdicts().rows())
        with self._file() as file, as_written(self.path):
            return write_parquet(file, self.info.ident, verdicts, Path(folder))

    def configuration(
        self,
        form: Form = "conf",
        *,
        lowest_rung: str = "D1",
        stage: str | None = None,
        database: str | None = None,
        out: str | Path | None = None,
    ) -> str:
        """What it recommends to configure: the best stage, setting by setting, with reasons.

        Args:
            form: `conf` for postgresql.conf, `sql` for ALTER SYSTEM, `sysctl` for the kernel's
                settings of the host that was measured, `diff` for what would change on a server.
            lowest_rung: Of durability, that the stage may stand on.
            stage: Its name; None: the one with the largest ratio among those shown to be better.
            database: `diff`: conninfo of the server; it is only asked.
            out: A file that the text is also written into.

        Raises:
            PlanError: No plan was run, or no stage fits.
            TargetError: The server does not answer.
        """
        with self._file() as file, as_written(self.path):
            text = configuration(file, self.facts, form, lowest_rung, stage, database)
        if out is not None:
            write_page(Path(out), text, beside=(self.path,))
        return text

    def summary(self) -> RenderableType:
        """What `pgdyno` prints at the end of a run; rich shows it."""
        return experiment_of(self).summary(self)

    def __repr__(self) -> str:
        return f"<Run {self.info.ident} in {self.path}>"

    def _repr_html_(self) -> str:
        if self.info.plan is None:
            return f"<p>{escape(repr(self))}</p>"
        answer = self.facts.answer
        said = (" ".join(answer.plain), answer.finding, answer.limits)
        sentences = "".join(f"<p>{escape(one)}</p>" for one in said)
        return f"{sentences}{self.verdicts()._repr_html_()}"


@dataclass(frozen=True, slots=True)
class Experiment:
    """What a run of a kind is; each module of `api.experiments` has one, as `EXPERIMENT`."""

    is_whole: Callable[[Run], bool]  # was all that it takes measured, with numbers that may be used
    reports: Mapping[Format, Callable[[Run], str]]
    summary: Callable[[Run], RenderableType]  # what a terminal says at its end
    resume: Callable[[Run, bool, Listener], Run]  # with `again`, see `resume`


def written_as(out: str | Path | None) -> Format | Form:
    """The format that the name of a file ends with; of a name that ends with no kind of file, html.

    Raises:
        PlanError: It ends with another kind of file: `report.pdf` would hold a page, and open
            nowhere.
    """
    ending = Path(out).suffix.removeprefix(".") if out is not None else ""
    known = (*get_args(Format), *get_args(Form))
    if ending in known:
        return cast(Format | Form, ending)
    if ending.isalpha() and len(ending) <= _ENDING_MAX and ending != "htm":
        raise PlanError(
            f"no report is written as {ending!r}, by the name of {out}: formats are"
            f" {', '.join(known)}",
            "Name the format, or a file that ends with it; a browser prints a page into a PDF.",
        )
    return "html"


def experiment_of(run: Run) -> Experiment:
    """What a run is, by the kind that its file names: a module is found by where it lies.

    Raises:
        StoreError: This pgdyno does not know the kind.
    """
    name = run.info.experiment
    known = sorted(one.name for one in iter_modules(import_module(_KINDS).__path__))
    if name not in known:
        raise StoreError(
            f"run file {run.path} holds an experiment {name!r}, known are {', '.join(known)}",
            "Open it with the pgdyno that wrote it, or a newer one.",
        )
    found: Experiment = import_module(f"{_KINDS}.{name}").EXPERIMENT
    return found


def named_now(
    name: str, out: str | Path | None, beside: Sequence[Path] = ()
) -> tuple[str, int, Path]:
    """Ident, begin (unix ns) and file of a new run, whose page may be written.

    Args:
        name: Ends the ident, which begins with the time.
        out: The run file; None: below `runs`.
        beside: Files that the run reads.

    Raises:
        StoreError: The run file exists, or something else lies where the page would be.
    """
    now = time.time_ns()
    ident = f"{time.strftime('%Y%m%d-%H%M%S', time.localtime(now / 1e9))}-{name}"
    path = Path(out) if out is not None else RUNS / f"{ident}.sqlite"
    require_new(path)
    require_page(path.with_suffix(".html"), beside=(path, *beside))
    return ident, now, path


def reported(path: Path) -> Run:
    """The run, once its page is written."""
    found = Run(path)
    again = f"pgdyno report {path_typed(path)}"
    with interruptible("stopped while the page was made", f"`{again}` makes it."):
        write_page(
            path.with_suffix(".html"), found.report("html"),
            f"The run file is whole: `{again} --out PATH`.", beside=(path,),
        )  # fmt: skip
    return found


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
            "client_cpu_s": result.client.cpu_s,
        }  # fmt: skip
    return row


def _kind_rows(trial: TrialRecord) -> list[dict[str, object]]:
    of: dict[str, object] = {"trial": trial.number, "round": trial.round, "stage": trial.stage}
    return [of | kind_row(one) for one in (trial.result.kinds if trial.result else ())]
