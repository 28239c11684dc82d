"""The experiment that compares stages: a plan carried out, and resumed.

    rehearse -> the fixtures of its stages -> trial by trial, round by round -> look -> report

A trial that fails is recorded and the plan goes on; Ctrl-C keeps what is finished. A plan that
stops when it is decided leaves out what its looks show to be needed no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path

from pgdyno.analysis.changes import found_configuration, further_configurations
from pgdyno.analysis.judged import plan_in
from pgdyno.analysis.stopping import at_looks, last_rounds, still_needed
from pgdyno.api.kept_ceilings import ceilings_of
from pgdyno.api.notebook_line import with_line
from pgdyno.api.plan_disks import plan_disks_taken
from pgdyno.api.planning import Plan
from pgdyno.api.runs import Experiment, Run, named_now, reported
from pgdyno.api.stage_machine import machine_of, require_allowed
from pgdyno.catalog.contract import require_release
from pgdyno.drive.fleet import look
from pgdyno.model.build import Build
from pgdyno.model.calibration import Ceiling
from pgdyno.model.errors import Interrupted, LostError, MachineError, PlanError, TargetError
from pgdyno.model.manifest import HostManifest
from pgdyno.model.plan import Plan as PlanRecord
from pgdyno.model.plan import Stage, Trial
from pgdyno.model.progress import Noted, RunBegun, StepBegun
from pgdyno.model.run import RunInfo, TrialRecord, TrialState
from pgdyno.model.units import seconds_text
from pgdyno.model.wording import capital, plural
from pgdyno.plan.remaining import rest_of
from pgdyno.plan.same_machine import require_same
from pgdyno.plan.settings.rights import require_rights
from pgdyno.report import html, markdown, summary
from pgdyno.report import json as json_report
from pgdyno.store.calibration import calibration_of
from pgdyno.store.output_file import require_page
from pgdyno.store.run_file import RunFile, resume_command
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
from pgdyno.trial.description import describe_stages, differences
from pgdyno.trial.fixture import make_fixtures
from pgdyno.trial.measure import TestBed
from pgdyno.trial.once_more import measured
from pgdyno.trial.progress import Listener
from pgdyno.trial.stopping import Stopping
from pgdyno.workload.describe import describe


@with_line
def run(
    plan: Plan,
    *,
    host: bool = False,
    out: str | Path | None = None,
    on_event: Listener = lambda _: None,
) -> Run:
    """Measure every stage of a plan; writes a run file, and a page beside it.

    Args:
        plan: See `load_plan`.
        host: Stages may change settings of this machine, where they ask for it: journalled, and put
            back when the server of the trial has stopped.
        out: The run file; None: `runs/<time>-<plan>.sqlite`.
        on_event: Told how it goes, see `model.progress`.

    Returns:
        The run. Trials that failed are in it, with their reasons; see `Run.is_whole`.

    Raises:
        PgdynoError: It cannot be carried out; what was measured until then is kept.
        Interrupted: Ctrl-C; servers are stopped, finished trials are kept.
    """
    command = f"{plan.command}{' --host' * host}"
    return carried_out(plan, plan.record, "plan", command, out, on_event, host=host)


def carried_out(
    plan: Plan,
    record: PlanRecord,
    experiment: str,
    command: str,
    out: str | Path | None,
    on_event: Listener,
    page: bool = True,
    *,
    host: bool = False,
) -> Run:
    """Carry out trials of a plan.

    Args:
        plan: What it was resolved for.
        record: Its stages and trials, or some of them.
        experiment: The kind, as the run file keeps it.
        command: How to repeat it.
        out: The run file; None: below `runs`.
        on_event: Told how it goes.
        page: Write one beside the run file.
        host: See `run`.

    Raises:
        PgdynoError: See `run`.
    """
    require_release()
    require_allowed(record.stages, allowed=host)
    ident, started_ns, path = named_now(record.name, out, plan.files)
    require_rights(record, plan.server)

    def begin() -> None:
        with plan_disks_taken(record):
            target = open_target(
                record.target, plan.server, plan.host, plan.builds.facts, _folders(record.stages),
                prewarm=record.protocol.prewarm,
            )  # fmt: skip
            with _waiting(record, target, on_event), ending(target.close):
                _require_ready(record, target, record.stages, on_event)
                described = describe(record.workload)
                info = RunInfo(
                    ident, started_ns, own_version(), command, record, _manifest(record),
                    target.build, described,
                    differences(record, described, describe_stages(record)),
                    calibration_of(home(), this_machine(), [record.workload.kind]),
                    target.facts_of(None).about, experiment, host_ceilings=_host_ceilings(record),
                )  # fmt: skip
                planned = [
                    TrialRecord(t.number, t.round, t.stage, t.ident, TrialState.PLANNED)
                    for t in record.trials
                ]
                notes = [f"{one.rstrip('.')}." for one in record.notes]
                with RunFile.create(path, info, planned) as file:
                    _measure(record, target, file, record.trials, notes, on_event)

    return _to_the_end(path, begin, on_event, page)


def resume(run: Run, again: bool, on_event: Listener, page: bool = True) -> Run:
    """Resume the run of a plan; see `api.resume`."""
    return _to_the_end(run.path, lambda: _go_on(run, again, on_event), on_event, page)


def _go_on(run: Run, again: bool, on_event: Listener) -> None:
    path, info, plan = run.path, run.info, plan_in(run.info)
    require_allowed(plan.stages, allowed=True)  # it was, when the run was begun
    with RunFile.append(path) as file, ExitStack() as held:
        require_same(
            {"pgdyno": info.pgdyno, **asdict(info.host)},
            {"pgdyno": own_version(), **asdict(_manifest(plan))},
        )
        require_page(path.with_suffix(".html"), beside=(path,))
        trials, replaced = file.trials(), file.replaced()
        compared = at_looks(plan, info.host, trials, replaced)
        rest = rest_of(
            plan, trials, replaced, again=again, until=last_rounds(compared),
            looked=max((one.look or 0 for one in compared), default=0),
        )  # fmt: skip
        if not rest.todo:  # somebody else's server is not touched for that, and need not run
            on_event(RunBegun(path, plan, 0, rest.notes))
            return
        held.enter_context(plan_disks_taken(plan))
        target = opened_again(plan, plan.stages)
        with _waiting(plan, target, on_event), ending(target.close):
            require_same({"PostgreSQL": asdict(info.build)}, {"PostgreSQL": asdict(target.build)})
            _require_same_configuration(plan, file.finished(), target)
            left = {trial.stage for trial in rest.todo}
            stages = [one for one in plan.stages if one.name in left]
            _require_ready(plan, target, stages, on_event)
            file.begin_again(rest.repeated)
            _measure(plan, target, file, rest.todo, rest.notes, on_event)


def _require_same_configuration(
    plan: PlanRecord, finished: Sequence[TrialRecord], target: Target
) -> None:
    """Refuse to resume on a server that is not ours after somebody configured it otherwise.

    Of several servers, each; and each of its version.

    Raises:
        PlanError: Naming each setting, with both values.
    """
    if plan.target.kind != "running" or not finished:
        return
    result = finished[0].result
    assert result is not None, f"trial {finished[0].number} is finished without a result"
    servers = {one.name: one.server for one in result.servers}
    there = (str(one.build.compiler) for one in target.each)  # of a running server: version()
    require_same({"server": servers}, {"server": dict(zip(servers, there, strict=False))})
    own = {one.name for one in plan.stage(finished[0].stage).settings}
    begun = {one.name: one.value for one in found_configuration(finished[:1])
             if one.name.rpartition(": ")[2] not in own}  # fmt: skip
    now = {name: value for name, value in target.configuration().items()
           if name.rpartition(": ")[2] not in own}  # fmt: skip
    begun |= further_configurations(finished[:1])
    # Either side has what somebody set and the role may see, see `target.readback`.
    require_same(
        {"setting": begun}, {"setting": now if begun else {}},
        absent="at its default, or hidden from the role",
    )  # fmt: skip


def _host_ceilings(plan: PlanRecord) -> dict[str, tuple[Ceiling, ...]]:
    """What the hosts of the load are known to reach; nothing is measured for it."""
    if plan.protocol.fleet is None:
        return {}
    return ceilings_of(plan.protocol.fleet, [stage.workload for stage in plan.stages])


class _CameBack(Exception):
    """The server went away, and answers again."""

    def __init__(self, lost: LostError) -> None:
        super().__init__(lost.fact)
        self.lost = lost


@contextmanager
def _waiting(plan: PlanRecord, target: Target, listener: Listener) -> Iterator[None]:
    """Wait for a server that goes away.

    Raises:
        _CameBack: It answers again.
        LostError: It does not, in the time that the plan gives it; or it never went away, and who
            ended our session there meant it.
        Interrupted: Ctrl-C while it was waited for.
    """
    try:
        yield
    except LostError as lost:
        patience_s = plan.protocol.reconnect_s
        if not patience_s:
            raise
        patience = seconds_text(patience_s)
        listener(Noted(f"{capital(lost.fact)}. The server is waited for, {patience} at most."))
        try:
            came_back = target.came_back(patience_s)
        except KeyboardInterrupt:
            raise Interrupted("stopped while the server was waited for", lost.hint) from None
        if not came_back:
            raise LostError(f"the server did not come back in {patience}", lost.hint) from None
        raise _CameBack(lost) from None


def _to_the_end(path: Path, attempt: Callable[[], None], listener: Listener, page: bool) -> Run:
    """Carry out a run; where its server went away and came back, go on as `resume` does.

    Raises:
        LostError: It went away again before another trial was finished: the load may be why.
        MachineError: What a stage asked of the machine could not be put back.
    """
    finished = -1
    while True:
        try:
            attempt()
        except KeyboardInterrupt:  # before trials, or between two attempts; see `_measure`
            known = f"Continue with `{resume_command(path)}`."
            left = known if path.exists() else "Nothing was measured, and nothing is left of it."
            raise Interrupted("stopped before a trial began", left) from None
        except (LostError, MachineError) as lost:
            raise _to_be_continued(path, lost) from lost
        except _CameBack as back:
            if not path.exists():  # before anything was measured: there is nothing to resume
                raise back.lost from None
            with RunFile.read(path) as file:
                before, finished = finished, len(file.finished())
            if finished <= before:
                again = LostError(
                    f"{back.lost.fact}, a second time before another trial was finished",
                    "Its log says why: the load may be what ends it. A round that was broken off is"
                    " measured again as a whole; what is left on the server goes when the next run"
                    " begins there.",
                )
                raise _to_be_continued(path, again) from None
            listener(Noted("The server answers again: the run goes on, in whole rounds."))
            attempt = partial(_go_on, Run(path), False, listener)
        else:
            return reported(path) if page else Run(path)


def _to_be_continued(path: Path, lost: LostError | MachineError) -> TargetError:
    """The same with what is kept, once anything is."""
    if not path.exists():
        return lost
    with RunFile.read(path) as file:
        done = f"{len(file.finished())} of {plural(len(file.trials()), 'trial')} finished"
    hint = f"Continue with `{resume_command(path)}`."
    return type(lost)(f"{lost.fact}; {done}", f"{lost.hint} {hint}" if lost.hint else hint)


def _measure(
    plan: PlanRecord,
    target: Target,
    file: RunFile,
    todo: Sequence[Trial],
    notes: Sequence[str],
    listener: Listener,
) -> None:
    listener(RunBegun(file.path, plan, len(todo), tuple(notes)))
    try:
        carry_out(plan, target, file, listener, todo)
    except (KeyboardInterrupt, Interrupted):
        raise Interrupted(
            f"stopped after {len(file.finished())} of {plural(len(plan.trials), 'trial')}",
            f"Continue with `{resume_command(file.path)}`.",
        ) from None


def opened_again(plan: PlanRecord, stages: Sequence[Stage]) -> Target:
    """The target of an earlier run, for some of its stages. Close it in any case.

    Raises:
        PlanError: A build is gone, or the role lacks a right.
        TargetError: It is not there, or another pgdyno uses it.
    """
    builds = {one.ident: build_facts(one) for one in _builds_of(stages)}
    server = server_facts(plan.target)
    require_rights(plan, server)
    return open_target(
        plan.target, server, local_facts(), builds, _folders(stages),
        prewarm=plan.protocol.prewarm,
    )  # fmt: skip


@contextmanager
def rehearsed_again(
    plan: PlanRecord, stages: Sequence[Stage], listener: Listener
) -> Iterator[Target]:
    """The same, closed at the end, once it was tried whether its servers take those stages.

    Raises:
        PlanError: See `opened_again`, or a server refuses a stage's settings.
        TargetError: See `opened_again`.
    """
    with plan_disks_taken(plan):
        target = opened_again(plan, stages)
        with ending(target.close):
            _require_ready(plan, target, stages, listener)
            yield target


def _require_ready(
    plan: PlanRecord, target: Target, stages: Sequence[Stage], listener: Listener
) -> None:
    """Rehearse what would end a run before it begins: servers, and hosts that make the load.

    Raises:
        PlanError: Servers of stages do not start.
        DriveError: Hosts cannot be reached, or are not alike.
    """
    listener(StepBegun("trying the settings of each stage on its server"))
    require_rehearsed(plan, target, [stage for stage in stages if not stage.host])
    for stage in stages:
        if stage.host:
            with machine_of(stage):
                require_rehearsed(plan, target, [stage])
    if plan.protocol.fleet is not None:
        look(plan.protocol.fleet, [stage.workload for stage in stages])


def _folders(stages: Sequence[Stage]) -> list[str]:
    """Those that stages name for their clusters."""
    return [stage.folder for stage in stages if stage.folder is not None]


def _manifest(plan: PlanRecord) -> HostManifest:
    return manifest(data_folder(), _folders(plan.stages))


def _builds_of(stages: Sequence[Stage]) -> list[Build]:
    """The builds that stages of an earlier run had; named by content, so still the same.

    Raises:
        PlanError: One is gone.
    """
    named = {stage.build.ident: stage.build for stage in stages if stage.build}
    there = {build.ident for build in builds_there()}
    if gone := [build.label for ident, build in named.items() if ident not in there]:
        raise PlanError(
            f"the run was begun on builds that are gone: {', '.join(gone)}",
            hint="Build them again by the same recipes, or start a new run.",
        )
    return list(named.values())


def is_whole(run: Run) -> bool:
    """Whether every trial that is needed has numbers, those without lost hosts if asked for."""
    with RunFile.read(run.path) as file:
        trials, replaced = file.trials(), file.replaced()
    needed = still_needed(plan_in(run.info), run.info.host, trials, replaced)
    return all(trial.state in (TrialState.FINISHED, TrialState.DEGRADED) for trial in needed)


def carry_out(
    plan: PlanRecord,
    target: Target,
    run: RunFile,
    listener: Listener,
    todo: Sequence[Trial] | None = None,
) -> None:
    """Carry out the trials of a plan, or those of `todo`, and store what was measured.

    Args:
        plan: The resolved plan.
        target: The server under test.
        run: The run file; it knows the plan and its trials already.
        listener: Told how it goes.
        todo: Trials to be carried out; None for all.

    Raises:
        LostError: The target is not this run's any more; trials that ended are stored.
        MachineError: What a stage asked of the machine stands after its trial; likewise.
        PgdynoError: The fixture cannot be made. A trial's failure is stored, not raised.
        KeyboardInterrupt: Ctrl-C; finished trials are in the run file.
    """
    described = describe_stages(plan)
    fixtures = make_fixtures(plan, target, listener)
    for fixture in fixtures.values():
        run.put_fixture(fixture)
    machine = partial(machine_of, among=plan.stages)
    bed = TestBed(target, fixtures, described, run, listener, machine)
    stopping = Stopping(plan, run, listener)
    for trial in plan.trials if todo is None else todo:
        if stopping.needs(trial):
            measured(plan.stage(trial.stage), plan.protocol, bed, run.trial(trial.number))
            stopping.after(trial)


EXPERIMENT = Experiment(
    is_whole,
    {
        "html": lambda run: html.render(run.facts),
        "md": lambda run: markdown.render(run.facts),
        "json": lambda run: json_report.render(run.facts),
    },
    lambda run: summary.render(run.facts),
    resume,
)
