"""Drills: disasters rehearsed against stages of a plan, and what survived them.

    fixture -> stage: recorded load -> controls -> cut by cut: disk -> server -> look -> keep

What strikes, strikes copies: servers of ours alone, on disks that are thrown away. A cut is kept
when it ends. Instants and disks follow from the seed; a drill that was broken off records the load
of the stage anew, and makes the cuts that are left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

from pgdyno.analysis.judged import plan_in
from pgdyno.api.experiments.plan import rehearsed_again
from pgdyno.api.notebook_line import with_line
from pgdyno.api.planning import Plan
from pgdyno.api.runs import Experiment, Run
from pgdyno.api.stage_machine import machine_of, require_allowed
from pgdyno.api.storing import Begun, begun, going_on, stored
from pgdyno.catalog.contract import require_release
from pgdyno.disk.recorder import possible
from pgdyno.drills.budget import Budget
from pgdyno.drills.controls import planted
from pgdyno.drills.cut import share_and_seed, strike
from pgdyno.drills.disasters import DISASTERS, named
from pgdyno.drills.load import Bench, Load, Strike, recorded_load, require_ledger
from pgdyno.drills.memory import require_memory_cgroup
from pgdyno.drills.shrink import shrunk
from pgdyno.model.drill import Disaster, DrillAsked, DrillDesign, Drilled, Gain, Gains
from pgdyno.model.errors import PlanError
from pgdyno.model.plan import Plan as PlanRecord
from pgdyno.model.plan import Stage
from pgdyno.model.progress import StepBegun
from pgdyno.model.wording import listed, plural
from pgdyno.plan.same_machine import require_same
from pgdyno.report import drill as report
from pgdyno.target.own_target import OwnTarget
from pgdyno.trial.description import describe_stages
from pgdyno.trial.fixture import make_fixture
from pgdyno.trial.progress import Listener

_DESIGN = DrillDesign()
DISASTER_NAMES = tuple(one.name for one in DISASTERS)
"""Those that a person may choose from."""


@with_line
def drill(
    plan: Plan,
    stages: Sequence[str] = (),
    *,
    design: DrillDesign = _DESIGN,
    beside: str | Path | None = None,
    host: bool = False,
    out: str | Path | None = None,
    command: str = "pgdyno.drill(...), from Python",
    on_event: Listener = lambda _: None,
) -> Run:
    """Rehearse disasters against stages of a plan, and tell what survived.

    The load of a stage is driven once, while every call to its disk is recorded; of that record
    disks are made, each as a disaster at some instant may have left it. A server recovers on each,
    and is held against what the driver saw acknowledged, and against itself.

    Args:
        plan: See `load_plan`.
        stages: Names of those to be drilled; empty: all.
        design: What strikes, how often, and into how many seconds of load.
        beside: The run file of a run of the same plan: what its stages brought stands beside what
            they lost.
        host: See `run`: stages that change settings of this machine need it.
        out: The run file, a page goes beside it; None: `runs/<time>-drill-<plan>.sqlite`.
        command: How to repeat it, as the run file keeps it.
        on_event: Told how it goes.

    Returns:
        The run; see `Run.drill`.

    Raises:
        PlanError: The plan's server is not ours to break, or its load keeps no ledger.
        PgdynoError: See `run`. Cuts that were made are kept.
        Interrupted: Ctrl-C; the same.
    """
    require_release()
    design = replace(design, recorder=possible(design.recorder))
    asked = _asked(plan.record, stages, design)
    require_allowed([asked.plan.stage(name) for name in asked.stages], allowed=host)
    if beside is not None:
        asked = replace(asked, gains=_gains(Run(beside), asked))
    new = begun("drill", f"drill-{asked.plan.name}", command, out)
    with _target(asked, on_event) as target:
        return _carried_out(replace(new, info=replace(new.info, build=target.build)),
                            Drilled(asked), target, on_event)  # fmt: skip


def drill_preview(
    plan: Plan,
    stages: Sequence[str] = (),
    design: DrillDesign = _DESIGN,
    *,
    beside: str | Path | None = None,
) -> str:
    """What a drill would do, in lines; nothing is touched.

    Args:
        plan: See `drill`.
        stages: The same.
        design: The same.
        beside: The same.

    Raises:
        PlanError: See `drill`.
    """
    design = replace(design, recorder=possible(design.recorder))
    asked = _asked(plan.record, stages, design)
    if beside is not None:
        _gains(Run(beside), asked)
    of_each = plural(design.cuts, "cut")
    live = sum(one.is_live for one in asked.disasters) * design.cuts * len(asked.stages)
    copied = len(asked.stages) if any(not one.is_live for one in asked.disasters) else 0
    whole = len(asked.stages) * len(asked.disasters) * design.cuts
    ends = (
        f"It ends after {design.minutes:g} min, when each stage has one cut at least, or with the"
        " last cut."
        if design.minutes is not None
        else "How long a cut takes is known after the first: `--minutes` ends it in time."
    )
    return "\n".join([
        f"plan {asked.plan.name}, {plural(len(asked.stages), 'stage')}"
        f" ({listed(asked.stages)}): {plural(whole, 'cut')}",
        *(f"  {one.name:<18} {of_each} of each stage. {one.what}" for one in asked.disasters),
        f"{plural(copied + live, 'load')} of {design.load_s:g} s, each recorded by a"
        f" {'library' if design.recorder == 'library' else 'mounted file system'}; a record takes"
        f" {design.record_max_gib:g} GiB at most, and its disks twice the data beside it.",
        f"{ends} Nothing was touched.",
    ])  # fmt: skip


def resume(run: Run, _again: bool, on_event: Listener) -> Run:
    """Resume a drill after its last cut; see `api.resume`."""
    drilled = run.drilled
    with _target(drilled.asked, on_event) as target:
        require_same({"PostgreSQL": asdict(run.info.build)}, {"PostgreSQL": asdict(target.build)})
        return _carried_out(going_on(run), drilled, target, on_event)


def _asked(plan: PlanRecord, stages: Sequence[str], design: DrillDesign) -> DrillAsked:
    if plan.target.kind == "running":
        raise PlanError(
            f"plan {plan.name} is for a running server, against which nothing is rehearsed",
            'Drill a cluster that pgdyno makes: `kind = "installed"` and that server\'s `bindir`'
            " in [target].",
        )
    if plan.protocol.fleet is not None:
        raise PlanError(
            f"plan {plan.name} has its load from several hosts, of which none could keep the"
            " ledger",
            "Drill it without its table [fleet].",
        )
    if plan.target.replicas:
        raise PlanError(
            f"plan {plan.name} has a replica of its own, and a drill makes, ends and promotes its"
            " standbys by itself",
            "Drill it without target.replicas, and with replica_connections = 0.",
        )
    chosen = [plan.named(name) for name in stages] if stages else list(plan.stages)
    described = describe_stages(plan)
    for stage in chosen:
        require_ledger(stage, described[stage.name])
    names = tuple(dict.fromkeys(stage.name for stage in chosen))
    disasters = named(design.disasters)
    if any(one.starves for one in disasters):
        require_memory_cgroup()
    return DrillAsked(plan, names, disasters, design)


def _gains(earlier: Run, asked: DrillAsked) -> Gains:
    """What the stages brought in an earlier run.

    Raises:
        PlanError: It is no run of a plan, or has other stages of these names.
    """
    there = plan_in(earlier.info)
    for name in asked.stages:
        if name in [one.name for one in there.stages]:
            _require_alike(asked.plan.stage(name), there.stage(name), earlier.info.ident)
    found = [
        Gain(one.name, told.base, told.ratio, told.low, told.high, told.rounds, told.verdict)
        for one in earlier.facts.stages
        if one.name in asked.stages and (told := one.to_first) is not None
        if told.ratio is not None and told.low is not None and told.high is not None
    ]
    if not found:
        raise PlanError(
            f"none of the stages {listed(asked.stages)} has an interval in run"
            f" {earlier.info.ident}",
            "Name a run of the same plan with the stages that are drilled, and with more rounds.",
        )
    facts = earlier.facts
    return Gains(earlier.info.ident, facts.headline, tuple(found), facts.answer.confidence)


def _require_alike(here: Stage, there: Stage, run: str) -> None:
    for key, mine in here.flags.items():
        its = there.flags[key]
        if mine != its:
            raise PlanError(
                f"stage {here.name} has {key} = {str(mine).lower()} here, and {str(its).lower()} in"
                f" run {run}",
                "Name a run of the same plan.",
            )
    ours, theirs = here.values, there.values
    if differing := sorted(
        name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name)
    ):
        name = differing[0]
        raise PlanError(
            f"stage {here.name} has {name} = {ours.get(name)} here, and {theirs.get(name)} in run"
            f" {run}",
            "Name a run of the same plan, made on the same machine.",
        )


@contextmanager
def _target(asked: DrillAsked, listener: Listener) -> Iterator[OwnTarget]:
    stages = [asked.plan.stage(name) for name in asked.stages]
    with rehearsed_again(asked.plan, stages, listener) as target:
        assert isinstance(target, OwnTarget), "a running server was refused before"
        yield target


def _carried_out(new: Begun, so_far: Drilled, target: OwnTarget, on_event: Listener) -> Run:
    with stored(new) as keep:
        make_cuts(so_far, target, keep=keep, listener=on_event)
    return new.reported()


def make_cuts(
    so_far: Drilled,
    target: OwnTarget,
    *,
    keep: Callable[[Drilled], None] = lambda _: None,
    listener: Listener = lambda _: None,
) -> Drilled:
    """Record the loads and make the cuts that are left.

    Args:
        so_far: What is asked, and the cuts that were made before.
        target: Where.
        keep: Gets all of it after each cut.
        listener: Told how it goes.

    Raises:
        PgdynoError: A load or a disk failed.
        KeyboardInterrupt: Ctrl-C; cuts that ended are kept.
    """
    asked = so_far.asked
    described = describe_stages(asked.plan)
    so_far = replace(so_far, out_of_time=False)
    keep(so_far)
    budget = Budget(None if asked.design.minutes is None else asked.design.minutes * 60)
    to_do = {name: left for name in asked.stages if (left := list(_left(so_far, name)))}
    for name, left in list(to_do.items()):
        stage = asked.plan.stage(name)
        share = budget.share(len(left), sum(map(len, to_do.values())))
        fixture = make_fixture(asked.plan, target, listener, stage)
        bench = Bench(target, fixture, described[name], listener)
        with machine_of(stage) as require_machine:
            keep_here = _keeps_after(require_machine, keep)
            so_far = _cuts_of(stage, left, so_far, bench, keep_here, share)
        del to_do[name]
    if not _all_made(so_far):
        so_far = replace(so_far, out_of_time=True)
        keep(so_far)
    return so_far


def _keeps_after(
    require: Callable[[], None], keep: Callable[[Drilled], None]
) -> Callable[[Drilled], None]:
    """Keep what was found, unless the machine has not any more what the stage asks of it."""

    def kept(so_far: Drilled) -> None:
        require()
        keep(so_far)

    return kept


def _cuts_of(
    stage: Stage,
    left: Sequence[tuple[Disaster, int]],
    so_far: Drilled,
    bench: Bench,
    keep: Callable[[Drilled], None],
    budget: Budget,
) -> Drilled:
    """The cuts of a stage that are left, as far as there is time."""
    asked = so_far.asked
    live = [one for one in left if one[0].is_live]
    if copies := [one for one in left if not one[0].is_live]:
        share = budget.share(len(copies), len(left))
        with recorded_load(asked.plan, stage, asked.design, bench) as load:
            so_far = _of_load(so_far, load, share.within(copies), keep)
    for disaster, number in budget.within(live):
        instant, _ = share_and_seed(stage.name, disaster.name, number, asked.design.seed)
        struck = Strike(disaster, instant)
        with recorded_load(asked.plan, stage, asked.design, bench, struck) as load:
            so_far = _of_load(so_far, load, [(disaster, number)], keep)
    return so_far


def _of_load(
    so_far: Drilled,
    load: Load,
    cuts: Iterable[tuple[Disaster, int]],
    keep: Callable[[Drilled], None],
) -> Drilled:
    """The cuts of one load; of the first load of a stage also the controls."""
    asked, name, listener = so_far.asked, load.stage.name, load.bench.listener
    so_far = replace(so_far, loads=(*so_far.loads, load.told))
    # Where a crash empties the tables no cluster is left that is whole, and nothing can be planted.
    if not load.stage.unlogged and all(one.stage != name for one in so_far.controls):
        listener(StepBegun(f"stage {name}: planting faults that must be found"))
        so_far = replace(so_far, controls=(*so_far.controls, *planted(load)))
        keep(so_far)
    whole = asked.design.cuts * len(asked.disasters)
    for disaster, number in cuts:
        made = sum(one.stage == name for one in so_far.cuts) + 1
        listener(StepBegun(f"stage {name}: cut {made} of {whole}, {disaster.name}"))
        found = strike(load, disaster, number, asked.design.seed)
        so_far = replace(so_far, cuts=(*so_far.cuts, found))
        keep(so_far)
        if asked.design.shrinks and _is_first_of_its_kind(so_far, disaster):
            listener(StepBegun(f"stage {name}: making the harm of {disaster.name} smaller"))
            small = shrunk(load, disaster, found, asked.design.seed)
            so_far = replace(so_far, shrunk=(*so_far.shrunk, small))
            keep(so_far)
    return so_far


def _is_first_of_its_kind(so_far: Drilled, disaster: Disaster) -> bool:
    """Whether the last cut broke a server as none before, by what can be made again alone."""
    *before, last = so_far.cuts
    kind = (last.stage, last.disaster, last.state)
    return (
        last.state in ("dead", "damaged")
        and not disaster.is_live
        and not disaster.again
        and all((one.stage, one.disaster, one.state) != kind for one in before)
    )


def _left(so_far: Drilled, stage: str) -> Iterator[tuple[Disaster, int]]:
    """The cuts of a stage that are left, disasters taking turns."""
    made = {(one.disaster, one.number) for one in so_far.cuts if one.stage == stage}
    for number in range(1, so_far.asked.design.cuts + 1):
        for disaster in so_far.asked.disasters:
            if (disaster.name, number) not in made:
                yield disaster, number


def _all_made(drilled: Drilled) -> bool:
    return all(not list(_left(drilled, stage)) for stage in drilled.asked.stages)


EXPERIMENT = Experiment(
    lambda run: _all_made(run.drilled),
    {
        "html": lambda run: report.render_html(run.drill),
        "md": lambda run: report.render_md(run.drill),
        "json": lambda run: report.render_json(run.drill),
    },
    lambda run: report.summary(run.drill),
    resume,
)
