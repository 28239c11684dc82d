"""Stages, run files and results of other tools beside each other, years and hosts apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from pgdyno.analysis.beside import compared
from pgdyno.analysis.beside_facts import Compared, Side
from pgdyno.analysis.compared_stages import KnownRun, known_runs, side_of
from pgdyno.analysis.facts import Comparison, Facts
from pgdyno.analysis.judged import plan_in
from pgdyno.analysis.limit import gates, require_limit
from pgdyno.analysis.run import analyse, compare_stages
from pgdyno.analysis.stored import Stored
from pgdyno.api.imports import import_results
from pgdyno.api.printed import Printed
from pgdyno.api.table import Table
from pgdyno.imports.traps import checked
from pgdyno.model.errors import PlanError
from pgdyno.model.imported import Imported
from pgdyno.model.wording import listed, plural
from pgdyno.report.beside import SIDES_MAX, lines
from pgdyno.store.run_file import RunFile, as_written, is_run_file

_COLUMNS = (
    "row", "side", "label", "run", "stage", "started_unix_ns", "metric", "throughput", "base",
    "how", "ratio", "low", "high", "confidence", "verdict", "reason",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Beside(Printed):
    """What `compare` found: sides, differences, and verdicts as far as they can be given."""

    facts: Compared

    @property
    def falls_below(self) -> bool:
        """Whether any stage was shown to lie below the limit."""
        return any(one.fails for one in self.facts.gates)

    def lines(self) -> Iterator[str]:
        """What a terminal prints."""
        return lines(self.facts)

    def table(self) -> Table:
        """A row for each side: its throughput, and how it compares with the first of its row."""
        return Table.of(list(self._rows()), _COLUMNS)

    def _rows(self) -> Iterator[dict[str, object]]:
        for number, row in enumerate(self.facts.rows, 1):
            against = {one.place: one for one in row.against}
            for place, side in enumerate(row.sides):
                told: dict[str, object] = {
                    "row": number, "side": place, "label": side.label, "run": side.run,
                    "stage": side.stage, "started_unix_ns": side.started_ns,
                    "metric": side.metric,
                    "throughput": side.throughput.median if side.throughput else None,
                }  # fmt: skip
                if one := against.get(place):
                    comparison = asdict(one.comparison)
                    told |= {"how": one.how}
                    told |= {name: comparison[name] for name in _COLUMNS if name in comparison}
                yield told


@dataclass(frozen=True, slots=True)
class _Asked:
    """A run file that was named, whole or by one of its stages."""

    path: Path
    stage: str | None
    text: str


@dataclass(slots=True)
class _Opened:
    """Run files that are read, each once."""

    stack: ExitStack
    files: dict[Path, RunFile] = field(default_factory=dict)
    analysed: dict[Path, tuple[Stored, Facts]] = field(default_factory=dict)

    def file(self, path: Path) -> RunFile:
        if path not in self.files:
            self.files[path] = self.stack.enter_context(RunFile.read(path))
        return self.files[path]

    def stages(self, path: Path) -> list[str]:
        return [one.name for one in plan_in(self.file(path).info()).stages]

    def told(self, path: Path, stage: str) -> Comparison | None:
        """What the run's report says of a stage whose side was asked for, against the first."""
        return next(one.to_first for one in self.analysed[path][1].stages if one.name == stage)

    def side(self, path: Path, stage: str) -> Side:
        if path not in self.analysed:
            stored = Stored(self.file(path))
            with as_written(path):
                self.analysed[path] = stored, analyse(stored.run, stored)
        return side_of(*self.analysed[path], stage, f"{path}:{stage}")


def compare(
    *subjects: str | Path,
    runs: str | Path | None = None,
    ratio: str | None = None,
    fail_below: float | None = None,
) -> Beside:
    """Set stages, run files and results of other tools beside each other.

    Stages of one run are compared by their rounds, which took turns. Those of different runs are
    compared by runs: that takes the noise between sessions, measured from three or more runs of one
    stage among those named and those in `runs`. Where it is not known there is no interval.

    Args:
        subjects: Run files, `RUN.sqlite:stage`, or files of other tools (`FILE:2`: its second
            result). The first is the base. Whole run files are compared stage by stage.
        runs: A folder of further run files, which tell of the noise between sessions.
        ratio: A metric of `pgdyno.import_results`, by which results of other tools are set beside
            the first; None: no ratio to them.
        fail_below: A ratio, e.g. 0.95: a stage falls below it if the whole 95% interval of its
            ratio does. One that truly stands at the limit, or above, is failed in 2.5% of cases
            at most. None: nothing is held against a limit.

    Raises:
        PlanError: Nothing can be compared, a subject does not exist or has no such stage, or a
            limit is named and an interval is not known.
        StoreError: A run file cannot be read.
    """
    if fail_below is not None:
        require_limit(fail_below)
    asked, others = _parsed(subjects)
    with ExitStack() as stack:
        opened = _Opened(stack)
        rows = [[opened.side(path, stage) for path, stage in row] for row in _rows(asked, opened)]
        _require_comparable(rows, others)
        known = [one for path in opened.files for one in known_runs(Stored(opened.file(path)))]
        known += _in_folder(Path(runs)) if runs is not None else []
        by_run = {opened.file(path).info().ident: path for path in opened.files}

        is_report = len(asked) == 1 and asked[0].stage is None and not others

        def paired(one: Side, base: Side) -> Comparison:
            path = by_run[one.run]
            told = opened.told(path, one.stage) if is_report else None
            if told is not None and told.base == base.stage:
                return told
            return compare_stages(opened.file(path), one.stage, base.stage)

        found = compared(rows, known, paired, others, ratio, is_report=is_report)
        if fail_below is not None:
            found = replace(found, gates=gates(found, fail_below))
        return Beside(found)


def _parsed(subjects: Sequence[str | Path]) -> tuple[list[_Asked], list[Imported]]:
    asked: list[_Asked] = []
    others: list[Imported] = []
    for subject in subjects:
        path, part = _split(str(subject))
        if is_run_file(path):
            asked.append(_Asked(path, part, str(subject)))
            continue
        found = import_results([path]).results
        if part is not None:
            if not part.isdecimal() or not 1 <= int(part) <= len(found):
                raise PlanError(
                    f"{path} has no result {part!r}, it has {plural(len(found), 'result')}"
                )
            found = found[int(part) - 1 : int(part)]
        others += found
    return asked, list(checked(others))


def _split(subject: str) -> tuple[Path, str | None]:
    """A file, and what follows the last colon where the whole is no file."""
    if Path(subject).exists() or ":" not in subject:
        return Path(subject), None
    path, _, part = subject.rpartition(":")
    return Path(path), part


def _rows(asked: Sequence[_Asked], opened: _Opened) -> list[list[tuple[Path, str]]]:
    """Which stages stand beside each other."""
    if not asked:
        return []
    for one in asked:
        if one.stage is not None:
            _require_stage(one, one.stage, opened)
    named = [one.stage for one in asked if one.stage is not None]
    if not named and len(asked) == 1:
        return [[(asked[0].path, stage) for stage in opened.stages(asked[0].path)]]
    if named:
        return [[(one.path, one.stage or _like(one, named[0], opened)) for one in asked]]
    first, *others = ([*opened.stages(one.path)] for one in asked)
    shared = [name for name in first if all(name in stages for stages in others)]
    if shared:
        return [[(one.path, name) for one in asked] for name in shared]
    if all(len(stages) == 1 for stages in (first, *others)):
        return [[(one.path, opened.stages(one.path)[0]) for one in asked]]
    told = "; ".join(f"{one.text} has {listed(opened.stages(one.path))}" for one in asked)
    raise PlanError(f"the run files share no stage: {told}", "Name stages: RUN.sqlite:stage.")


def _like(one: _Asked, name: str, opened: _Opened) -> str:
    """The stage of a whole run file that stands beside a stage that was named."""
    stages = opened.stages(one.path)
    if name in stages:
        return name
    if len(stages) == 1:
        return stages[0]
    raise PlanError(
        f"{one.text} has no stage {name!r}, it has {listed(stages)}",
        "Name one: RUN.sqlite:stage.",
    )


def _require_stage(one: _Asked, name: str, opened: _Opened) -> None:
    """Before others are looked for beside it: else they would be said to lack it."""
    stages = opened.stages(one.path)
    if name not in stages:
        raise PlanError(
            f"no stage of {one.path} is called {name!r}, there are {listed(stages)}",
            "Name one of them: RUN.sqlite:stage.",
        )


def _require_comparable(rows: Sequence[Sequence[Side]], others: Sequence[Imported]) -> None:
    count = max((len(row) for row in rows), default=0)
    if count + len(others) < 2:
        raise PlanError("nothing to compare: one thing was named, two are needed")
    if count > SIDES_MAX:
        raise PlanError(
            f"{plural(count, 'stage')} were named, at most {SIDES_MAX} stand beside each other"
        )
    for row in rows:
        seen: dict[tuple[str, str], str] = {}
        for side in row:
            if (other := seen.get((side.run, side.stage))) is not None:
                raise PlanError(
                    f"{other} and {side.label} are the same stage of one run: {side.run}",
                    "A copy of a run file is no further run.",
                )
            seen[side.run, side.stage] = side.label


def _in_folder(folder: Path) -> list[KnownRun]:
    """What the run files of a folder tell; those of other experiments tell nothing."""
    if not folder.is_dir():
        raise PlanError(f"{folder} is no folder", "--runs names one that holds run files.")
    found: list[KnownRun] = []
    for path in sorted(folder.glob("*.sqlite")):
        if not is_run_file(path):
            continue
        with RunFile.read(path) as run, as_written(path):
            try:
                found += known_runs(Stored(run))
            except PlanError:
                continue  # storage was probed, or a knee searched
    return found
