"""A folder of runs as a history: one line a run and stage, changes of level, a limit for CI."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pgdyno.analysis.beside_facts import Gate
from pgdyno.analysis.history import HistoryFacts, RunLines, run_lines
from pgdyno.analysis.history import history as in_order
from pgdyno.analysis.limit import require_limit
from pgdyno.api.comparing import compare
from pgdyno.api.printed import Printed
from pgdyno.api.table import Table
from pgdyno.model.errors import PlanError, StoreError
from pgdyno.report.history import lines
from pgdyno.store.run_file import RunFile, as_written, is_run_file

_COLUMNS = (
    "series", "started_ns", "run", "file", "plan", "stage", "engine", "host", "build", "metric",
    "rounds", "throughput", "low", "high", "p99_ns", "confidence", "doubt",
)  # fmt: skip
_NAMED_MAX = 3  # files of a folder without a run


@dataclass(frozen=True, slots=True)
class RunHistory(Printed):
    """What `history` found."""

    facts: HistoryFacts

    @property
    def falls_below(self) -> bool:
        """Whether any stage was shown to lie below the limit."""
        return any(one.fails for one in self.facts.gates)

    def lines(self) -> Iterator[str]:
        """What a terminal prints."""
        return lines(self.facts)

    def table(self) -> Table:
        """A row for each run and stage."""
        return Table.of([asdict(one) for one in self.facts.lines], _COLUMNS)


def history(
    folder: str | Path, *, fail_below: float | None = None, against: str | Path | None = None
) -> RunHistory:
    """The runs of a folder in the order of time.

    Args:
        folder: Holds run files; others in it are left out, and so is a damaged one, which is named,
            unless a limit is asked for: it may be the newest.
        fail_below: A ratio, e.g. 0.95: the newest run falls below it if the whole 95% interval of
            its ratio does. A stage that truly stands at the limit, or above, is failed in 2.5% of
            cases at most; which drop is found in four of five cases is part of the answer.
        against: The run that the newest one is held against.

    Raises:
        PlanError: There is no such folder or no run in it, one of `fail_below` and `against` is
            named alone, or the noise between sessions is not known.
        StoreError: A run file is damaged, and a limit is asked for.
    """
    if (fail_below is None) != (against is None):
        raise PlanError("--fail-below and --against go together, one was named")
    if fail_below is not None:
        require_limit(fail_below)
    found, left_out, damaged = _read(Path(folder))
    if damaged and fail_below is not None:
        raise damaged[0]
    left_out += [one.fact for one in damaged]
    facts = in_order(found, left_out)
    if not facts.lines:
        why = "".join(f"; {one}" for one in left_out[:_NAMED_MAX])
        raise PlanError(f"folder {folder} holds no run of a plan{why}", "Runs lie in `runs`.")
    if fail_below is not None and against is not None:
        facts = replace(facts, gates=_gates(facts, Path(folder), fail_below, Path(against)))
    return RunHistory(facts)


def _read(folder: Path) -> tuple[list[RunLines], list[str], list[StoreError]]:
    """What run files tell, what other files are, and what cannot be read."""
    if not folder.is_dir():
        raise PlanError(f"{folder} is no folder", "Name one that holds run files.")
    found: dict[str, RunLines] = {}
    left_out: list[str] = []
    damaged: list[StoreError] = []
    for path in sorted(folder.glob("*.sqlite")):
        try:
            if not is_run_file(path):
                left_out.append(f"{path.name} is no run file")
                continue
        except StoreError as error:
            left_out.append(error.fact)
            continue
        try:
            with RunFile.read(path) as run, as_written(path):
                ident = run.info().ident
                both = [one for one in (found.get(ident), run_lines(run)) if one]
                found[ident], *less = sorted(both, key=_rounds, reverse=True)
                left_out += [f"{one.lines[0].file} is a copy of run {ident}" for one in less]
        except PlanError as error:
            left_out.append(error.fact)
        except StoreError as error:
            damaged.append(error)
    return list(found.values()), left_out, damaged


def _rounds(run: RunLines) -> int:
    """Measured ones of all stages: a copy of a run that was resumed afterwards has fewer."""
    return sum(one.rounds for one in run.lines)


def _gates(facts: HistoryFacts, folder: Path, limit: float, against: Path) -> tuple[Gate, ...]:
    with RunFile.read(against) as run:
        base = run.info().ident
        plan = run.info().plan
    name = None if plan is None else plan.name
    others = [one for one in facts.lines if one.run != base and one.plan == name]
    if not others:
        raise PlanError(f"folder {folder} holds no other run of the plan of {against}")
    newest = folder / others[-1].file
    return compare(against, newest, runs=folder, fail_below=limit).facts.gates
