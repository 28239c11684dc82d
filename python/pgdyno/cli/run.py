"""`pgdyno run` and `pgdyno resume`."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from pgdyno.cli.console import stderr, stdout
from pgdyno.cli.live import LiveView
from pgdyno.conduct import conduct, describe_stages, differences
from pgdyno.drive.driver import workload_spec
from pgdyno.drive.spec import load_spec
from pgdyno.load.loader import describe, require_release
from pgdyno.model.build import Build
from pgdyno.model.errors import DriveError, Interrupted, LostError, PgdynoError, PlanError
from pgdyno.model.plan import Plan, Trial, Workload
from pgdyno.model.plan import Target as TargetPlan
from pgdyno.model.run import RunInfo, TrialRecord, TrialState
from pgdyno.model.serial import from_json
from pgdyno.model.settings import HostFacts, ServerFacts
from pgdyno.model.text import shell_line
from pgdyno.plan import (
    Builds,
    fixture_ident,
    fixture_shape,
    read_plan,
    render_dry_run,
    require_same,
    resolve,
    resolve_target,
    resolve_workload,
    rest_of,
    stage_builds,
)
from pgdyno.plan.needs import fixture_size
from pgdyno.plan.read import PlanDraft
from pgdyno.report import html, summary
from pgdyno.report.analysis import analyse
from pgdyno.stage.home import home
from pgdyno.stage.host import manifest, own_version, this_machine
from pgdyno.stage.rig import (
    build_facts,
    builds_there,
    data_folder,
    fixture_bytes,
    local_facts,
    open_target,
    require_folders,
    require_rehearsed,
    server_facts,
)
from pgdyno.stage.target import Target, ending
from pgdyno.store.calibration import calibration_of
from pgdyno.store.page import require_page, write_page
from pgdyno.store.runfile import RunFile, as_written

PlanPath = Annotated[
    Path, typer.Argument(help="The plan (TOML), e.g. plans/demo.toml.", exists=True, dir_okay=False)
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="A.B=C", help="Change a value of the plan; may be repeated."),
]
QuickOption = Annotated[bool, typer.Option(help="The plan's own short version.")]
AaOption = Annotated[
    bool, typer.Option("--aa", help="Measure the first stage twice, for the noise floor.")
]
BindirOption = Annotated[
    Path | None,
    typer.Option(
        help="Folder of an installed PostgreSQL's programs, instead of the plan's target."
    ),
]
ConninfoOption = Annotated[
    str | None,
    typer.Option(help="A running server, as libpq names it, instead of the plan's target."),
]
EngineOption = Annotated[
    Literal["pgdyno", "pgbench"] | None,
    typer.Option(help="Who drives, instead of the plan's engine, where no stage says otherwise."),
]
OutOption = Annotated[
    Path | None, typer.Option(help="The run file; without it runs/<time>-<plan>.sqlite.")
]


def run(
    plan: PlanPath,
    dry_run: Annotated[
        bool, typer.Option(help="List trials, settings and times; touch nothing.")
    ] = False,
    overrides: SetOption = None,
    quick: QuickOption = False,
    aa: AaOption = False,
    bindir: BindirOption = None,
    conninfo: ConninfoOption = None,
    engine: EngineOption = None,
    out: OutOption = None,
) -> None:
    """Measure every stage of a plan, and write a run file and a report."""
    overrides = [*(overrides or []), *_target_overrides(bindir, conninfo)]
    if engine is not None:
        overrides.append(f"workload.engine={engine}")
    found = _resolved(plan, overrides, quick, aa)
    resolved = found.plan
    described = describe_stages(resolved)
    require_folders(resolved, found.data_bytes)
    if dry_run:
        stdout.print(
            render_dry_run(resolved, found.server, found.host, found.fixtures, found.builds)
        )
        return
    require_release()
    now = time.time_ns()
    ident = f"{time.strftime('%Y%m%d-%H%M%S', time.localtime(now / 1e9))}-{resolved.name}"
    path = out or Path("runs") / f"{ident}.sqlite"
    require_page(path.with_suffix(".html"), beside=(path, plan))
    target = open_target(
        resolved.target, found.server, found.host, found.builds.facts, _folders(resolved)
    )
    with ending(target.close):
        require_rehearsed(resolved, target)
        info = RunInfo(
            ident, now, own_version(), _command(plan, overrides, quick, aa), asdict(resolved),
            _manifest(resolved), dict(target.build),
            describe(workload_spec(resolved.workload, None)), differences(resolved, described),
            calibration_of(home(), this_machine(), [resolved.workload.kind]),
        )  # fmt: skip
        planned = [
            TrialRecord(t.number, t.round, t.stage, t.ident, TrialState.PLANNED)
            for t in resolved.trials
        ]
        with RunFile.create(path, info, planned) as run_file:
            is_whole = _carry_out(resolved, target, run_file, resolved.trials)
    if not is_whole:
        raise typer.Exit(1)


def resume(
    run_file: Annotated[Path, typer.Argument(help="The run file of a stopped run.")],
    again: Annotated[
        bool, typer.Option("--again", help="Also rounds that failed when measured again.")
    ] = False,
) -> None:
    """Go on with a run that was stopped or in which trials failed, on the machine it was begun on.

    Rounds are measured as a whole: one that was interrupted, or in which a trial failed or was
    invalid, is measured again, and what it gave before stays in the file. What fails a second time
    is not repeated unless asked for.
    """
    require_release()
    with RunFile.append(run_file) as kept:
        with as_written(run_file):
            info = kept.info()
            plan = from_plan_json(info)
        require_same(
            {"pgdyno": info.pgdyno, **info.host}, {"pgdyno": own_version(), **_manifest(plan)}
        )
        builds = {one.ident: build_facts(one) for one in _builds_of(plan)}
        require_page(run_file.with_suffix(".html"), beside=(run_file,))
        target = open_target(
            plan.target, server_facts(plan.target), local_facts(), builds, _folders(plan)
        )
        with ending(target.close):
            require_same({"PostgreSQL": info.build}, {"PostgreSQL": target.build})
            rest = rest_of(plan, kept.trials(), kept.replaced(), again=again)
            for line in rest.told:
                stderr.print(line, markup=False)
            kept.begin_again(rest.repeated)
            is_whole = _carry_out(plan, target, kept, rest.todo)
    if not is_whole:
        raise typer.Exit(1)


def _folders(plan: Plan) -> list[str]:
    """Those that stages name for their clusters."""
    return [stage.folder for stage in plan.stages if stage.folder is not None]


def from_plan_json(info: RunInfo) -> Plan:
    """The resolved plan that a run file holds.

    Raises:
        PlanError: It holds none.
    """
    if not info.plan:
        raise PlanError(f"run {info.ident} has no plan", f"It was made by `{info.command}`.")
    return from_json(Plan, json.dumps(info.plan))


def _builds_of(plan: Plan) -> list[Build]:
    """The builds that a run was begun with; named by content, so that they are still the same."""
    named = {stage.build.ident: stage.build for stage in plan.stages if stage.build}
    there = {build.ident for build in builds_there()}
    if gone := [build.label for ident, build in named.items() if ident not in there]:
        raise PlanError(
            f"the run was begun on builds that are gone: {', '.join(gone)}",
            hint="Build them again by the same recipes, or start a new run.",
        )
    return list(named.values())


def _manifest(plan: Plan) -> dict[str, object]:
    return manifest(data_folder(), [stage.folder for stage in plan.stages if stage.folder])


def _carry_out(plan: Plan, target: Target, run_file: RunFile, todo: Sequence[Trial]) -> bool:
    """Measure what is left and write the report; tells whether all trials are finished."""
    stderr.print(f"run file {run_file.path}")
    try:
        if todo:
            with LiveView(plan, len(todo), stderr) as view:
                conduct(plan, target, run_file, view, todo)
    except (KeyboardInterrupt, Interrupted):
        raise Interrupted(
            f"stopped after {len(run_file.finished())} of {len(plan.trials)} trials",
            f"Go on with `pgdyno resume {run_file.path}`.",
        ) from None
    except LostError as error:
        done = f"{len(run_file.finished())} of {len(plan.trials)} trials are finished"
        raise LostError(
            f"{error.fact}; {done}", f"{error.hint} Go on with `pgdyno resume {run_file.path}`."
        ) from error
    report = run_file.path.with_suffix(".html")
    facts = analyse(run_file)
    write_page(
        report, html.render_facts(facts),
        f"The run file is whole: `pgdyno report {run_file.path} --out PATH`.",
        beside=(run_file.path,),
    )  # fmt: skip
    stdout.print(summary.render_facts(facts))
    stdout.print(f"report   {report}", markup=False, soft_wrap=True)
    finished = {trial.number for trial in run_file.finished()}
    return all(trial.number in finished for trial in plan.trials)


@dataclass(frozen=True, slots=True)
class _Resolved:
    """A plan with what it was resolved for: servers, host, and the fixtures' sizes."""

    plan: Plan
    server: ServerFacts
    host: HostFacts
    fixtures: tuple[int | None, ...]  # those of the stages; None: not there yet
    builds: Builds

    @property
    def data_bytes(self) -> int:
        """Of the largest fixture, as it is or as it is estimated."""
        guessed = fixture_size(self.plan.workload)
        return max(guessed if size is None else size for size in self.fixtures)


def _resolved(path: Path, overrides: list[str], quick: bool, aa: bool) -> _Resolved:
    draft = read_plan(path, overrides, quick=quick, aa=aa)
    target, workload = resolve_target(draft), resolve_workload(draft)
    named = stage_builds(draft, builds_there(), this_machine().cpu_model)
    distinct = {one.ident: one for one in named if one}
    builds = Builds(named, {ident: build_facts(one) for ident, one in distinct.items()})
    server, host = _asked(draft, target), local_facts()
    version = _rows_version(path, workload)
    shapes = [fixture_shape(target, workload, builds.server(one, server), version) for one in named]
    fixtures = {fixture_ident(shape): fixture_bytes(target, shape) for shape in shapes}
    there = tuple(fixtures.values())
    plan = resolve(draft, server, host, there, builds=builds)
    return _Resolved(plan, server, host, there, builds)


def _asked(draft: PlanDraft, target: TargetPlan) -> ServerFacts:
    """What the server is; where it is not there, the key or option that named it is told."""
    try:
        return server_facts(target)
    except PgdynoError as error:
        key = {"installed": "target.bindir", "running": "target.conninfo"}.get(target.kind)
        if key is None:
            raise
        by_option = draft.origins[key].startswith("--set")
        where = f"--{key.partition('.')[2]}" if by_option else f"{draft.source}: {key}"
        raise type(error)(f"{where}: {error.fact}", error.hint) from error


def _rows_version(path: Path, workload: Workload) -> int | None:
    """Version of the rows that would be loaded; None: none are."""
    spec = load_spec(workload)
    try:
        return int(describe(spec)["version"]) if spec else None
    except DriveError as error:
        raise PlanError(f"{path}: {error.fact}", error.hint) from error


def _target_overrides(bindir: Path | None, conninfo: str | None) -> list[str]:
    if bindir is not None and conninfo is not None:
        raise PlanError(
            "--bindir and --conninfo are both given", "A plan has one target: leave one away."
        )
    if bindir is not None:
        named = json.dumps(str(bindir.absolute()))
        return ['target.kind="installed"', f"target.bindir={named}"]
    if conninfo is not None:
        return ['target.kind="running"', f"target.conninfo={json.dumps(conninfo)}"]
    return []


def _command(path: Path, overrides: list[str], quick: bool, aa: bool) -> str:
    words = ["pgdyno", "run", str(path)]
    for override in overrides:
        words += ["--set", override]
    words += ["--quick"] * quick + ["--aa"] * aa
    return shell_line(words)
