"""Proof by intervention: what limits a stage of an earlier run, by what happens without it.

    fixture -> sitting by sitting: fresh copy -> server, with a library -> drive || toggle -> keep

What is toggled may lose data, so that it happens on copies that are thrown away, on servers of ours
alone. A sitting is kept when it ends; the order of its blocks follows from the seed, so that a
proof goes on where it was broken off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median

from pgdyno.analysis.efficiency import transactions
from pgdyno.analysis.judged import plan_in
from pgdyno.api.experiments.plan import rehearsed_again
from pgdyno.api.notebook_line import with_line
from pgdyno.api.runs import Experiment, Run
from pgdyno.api.stage_machine import machine_of, require_allowed
from pgdyno.api.storing import Begun, begun, going_on, stored
from pgdyno.catalog.contract import require_release
from pgdyno.intervention.probes import PROBES, idle, is_of_driver, needs_library
from pgdyno.intervention.shim import preloadable
from pgdyno.intervention.thieves import refusal
from pgdyno.model.errors import PgdynoError, PlanError, TargetError
from pgdyno.model.plan import Plan, Stage
from pgdyno.model.progress import Noted
from pgdyno.model.proof import DEARER, Design, LeftOut, Probe, ProofAsked, Proved
from pgdyno.model.run import TrialResult
from pgdyno.model.units import seconds_text
from pgdyno.model.wording import listed, plural
from pgdyno.plan.same_machine import require_same
from pgdyno.plan.settings.values import is_off
from pgdyno.report import proof
from pgdyno.shell import postgres_user
from pgdyno.stats.switchback import turns
from pgdyno.store.run_file import RunFile
from pgdyno.target.interface import Target
from pgdyno.trial.fixture import make_fixture
from pgdyno.trial.preparing import shim_of
from pgdyno.trial.progress import Listener
from pgdyno.trial.switchback import SittingBed, sit

_NS = 1_000_000_000
_DESIGN = Design()
PROBE_NAMES = tuple(one.name for one in PROBES)
"""Those that a person may choose from."""


@with_line
def prove(
    run_file: str | Path,
    stage: str | None = None,
    *,
    probes: Sequence[str] = (),
    design: Design = _DESIGN,
    host: bool = False,
    out: str | Path | None = None,
    command: str = "pgdyno.prove(...), from Python",
    on_event: Listener = lambda _: None,
) -> Run:
    """Prove what limits a stage: make resources dearer, or free, and measure what that does.

    Each probe is switched on and off while the stage's load runs, in pairs of short blocks. What is
    free so may lose data: it happens on copies of the loaded data, which are thrown away.

    Args:
        run_file: The file of a plan's run.
        stage: One of its stages; None: the last one.
        probes: Names of those to be made; empty: all that can be made.
        design: Seconds of blocks, and how many.
        host: See `run`: a stage that changes settings of this machine needs it.
        out: The run file, a page goes beside it; None: `runs/<time>-prove-<stage>.sqlite`.
        command: How to repeat it, as the run file keeps it.
        on_event: Told how it goes.

    Returns:
        The run; see `Run.proof`.

    Raises:
        PlanError: The server of the run is not ours to break, a probe is not known or cannot be
            made here, or the run is no plan's.
        PgdynoError: See `run`. Sittings that ended are kept.
        Interrupted: Ctrl-C; the same.
    """
    require_release()
    earlier = Run(run_file)
    asked = _asked(earlier, plan_in(earlier.info), stage, probes, design)
    require_allowed([asked.plan.stage(asked.stage)], allowed=host)
    new = begun("prove", f"prove-{asked.stage}", command, out)
    for one in asked.left_out:
        on_event(Noted(f"Probe {one.probe} is left out: {one.why}"))
    on_event(Noted(_cost(asked)))
    with rehearsed_again(asked.plan, [asked.plan.stage(asked.stage)], on_event) as target:
        return _carried_out(replace(new, info=replace(new.info, build=target.build)),
                            Proved(asked), target, on_event)  # fmt: skip


def resume(run: Run, _again: bool, on_event: Listener) -> Run:
    """Resume a proof after its last sitting; see `api.resume`."""
    proved = run.proved
    plan = proved.asked.plan
    with rehearsed_again(plan, [plan.stage(proved.asked.stage)], on_event) as target:
        require_same({"PostgreSQL": asdict(run.info.build)}, {"PostgreSQL": asdict(target.build)})
        return _carried_out(going_on(run), proved, target, on_event)


def _asked(
    earlier: Run, plan: Plan, stage: str | None, probes: Sequence[str], design: Design
) -> ProofAsked:
    chosen = plan.stages[-1] if stage is None else plan.named(stage)
    if plan.target.kind == "running":
        raise PlanError(
            f"run {earlier.info.ident} measured a running server, on which nothing is broken",
            'Prove it on a copy: run the same plan with `kind = "installed"` and that server\'s'
            " `bindir` in [target], then name the run file of that. `pgdyno diagnose` reads this"
            " one as it is.",
        )
    exchange_ns = _exchange_cpu_ns(earlier, chosen.name)
    wanted, left_out = _chosen_probes(chosen, probes, exchange_ns)
    return ProofAsked(
        plan, chosen.name, earlier.info.ident, _believed(earlier, chosen.name),
        tuple(wanted), exchange_ns, tuple(left_out), design,
    )  # fmt: skip


def _chosen_probes(
    stage: Stage, asked: Sequence[str], exchange_ns: float | None
) -> tuple[list[Probe], list[LeftOut]]:
    """Those that can be made here, and why others cannot.

    Raises:
        PlanError: One is not known; or none can be made.
    """
    known = list(PROBE_NAMES)
    if strangers := [name for name in asked if name not in known]:
        raise PlanError(f"no probe is called {strangers[0]!r}, known are {listed(known)}")
    wanted, left_out = [], []
    refused = _refusals(asked or known)
    settings = {one.name: "off" if is_off(one.value) else one.value for one in stage.settings}
    for probe in PROBES:
        if asked and probe.name not in asked:
            continue
        why = refused.get(probe.name) or idle(probe.name, settings)
        if why := why or _driver_refusal(probe.name, stage, exchange_ns):
            left_out.append(LeftOut(probe.name, why))
        else:
            wanted.append(probe)
    if all(one.means == "nothing" for one in wanted):
        first = left_out[0] if left_out else LeftOut("nothing", "It changes nothing.")
        raise PlanError(
            f"no probe can be made on stage {stage.name}, e.g. {first.probe}: {first.why}"
        )
    return wanted, left_out


def _driver_refusal(probe: str, stage: Stage, exchange_ns: float | None) -> str | None:
    """Why the driver cannot make a probe; None: it can, or need not."""
    if not is_of_driver(probe):
        return None
    if stage.workload.engine == "pgbench":
        return "The real pgbench drives this stage, and is as fast as it is."
    if probe == "client" and exchange_ns is None:
        return "What the client costs is not known: no trial of the stage there has numbers."
    return None


def _exchange_cpu_ns(earlier: Run, stage: str) -> float | None:
    """CPU time of the driver for an exchange, in the stage's trials there."""
    with RunFile.read(earlier.path) as file:
        results = [one.result for one in file.finished() if one.stage == stage]
    known = [_of_exchange(one) for one in results if one is not None]
    told = [one for one in known if one is not None]
    return median(told) if told else None


def _of_exchange(result: TrialResult) -> float | None:
    exchanges = result.round_trips_per_transaction
    ended = transactions(result)
    if not exchanges or not ended or (cpu_s := result.client.cpu_s) is None:
        return None
    return cpu_s * _NS / (ended * exchanges)


def spin_ns(asked: ProofAsked) -> int:
    """What is added to each exchange where the client's CPU time is made dearer."""
    return max(round((asked.exchange_cpu_ns or 0.0) * DEARER), 1)


def _refusals(probes: Sequence[str]) -> dict[str, str]:
    """Why this machine cannot make some of them."""
    found: dict[str, str] = {}
    if "cpu" in probes and (why := refusal()):
        found["cpu"] = why
    library = [name for name in probes if needs_library(name)]
    if library:
        try:
            with preloadable(postgres_user()):
                pass
        except TargetError as error:
            found |= dict.fromkeys(library, f"The library cannot be made: {error.line}")
    return found


def _believed(earlier: Run, stage: str) -> str | None:
    """What diagnosis says of the stage, from the earlier run file alone."""
    try:
        return earlier.diagnosis(stage)[0].sentence
    except PgdynoError:
        return None


def _cost(asked: ProofAsked) -> str:
    design = asked.design
    blocks = len(turns([one.name for one in asked.probes], design, 1, asked.combined))
    seconds = design.sittings * (blocks * design.block_s + asked.plan.protocol.warmup_s)
    return (
        f"{plural(len(asked.probes), 'probe')}, {plural(design.sittings, 'sitting')} of"
        f" {plural(blocks, 'block')} of {design.block_s} s: about {seconds_text(seconds)} of load."
    )


def _carried_out(new: Begun, so_far: Proved, target: Target, on_event: Listener) -> Run:
    with stored(new) as keep:
        hold_sittings(so_far, target, keep=keep, listener=on_event)
    return new.reported()


def hold_sittings(
    so_far: Proved,
    target: Target,
    *,
    keep: Callable[[Proved], None] = lambda _: None,
    listener: Listener = lambda _: None,
) -> Proved:
    """Hold the sittings that are left.

    Args:
        so_far: What is asked, and the sittings that were held before.
        target: The server of the plan.
        keep: Gets all of it after each sitting.
        listener: Told how it goes.

    Raises:
        PgdynoError: A sitting failed.
        KeyboardInterrupt: Ctrl-C; sittings that ended are kept.
    """
    asked = so_far.asked
    stage, design = asked.plan.stage(asked.stage), asked.design
    fixture = make_fixture(asked.plan, target, listener, stage)
    names = [one.name for one in asked.probes]
    keep(so_far)
    with ExitStack() as held:
        library = any(needs_library(name) for name in names)
        shim = held.enter_context(shim_of(stage, needed=library))
        bed = SittingBed(target, fixture, shim, spin_ns(asked), listener)
        for number in range(len(so_far.sittings) + 1, design.sittings + 1):
            order = turns(names, design, number, asked.combined)
            with machine_of(stage):  # it is kept once that was so to its end
                sitting = sit(stage, asked.plan.protocol, design, order, number, bed)
            so_far = replace(so_far, sittings=(*so_far.sittings, sitting))
            keep(so_far)
    return so_far


EXPERIMENT = Experiment(
    lambda run: len(run.proved.sittings) == run.proved.asked.design.sittings,
    {
        "html": lambda run: proof.render_html(run.proof),
        "md": lambda run: proof.render_md(run.proof),
        "json": lambda run: proof.render_json(run.proof),
    },
    lambda run: proof.summary(run.proof),
    resume,
)
