"""Carries out a plan: the fixtures of its stages, then trial by trial, round by round.

A trial that fails is recorded and the plan goes on; Ctrl-C keeps what is finished. A plan that
stops when it is decided leaves out what its looks show to be needed no more.
"""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.experiment.description import describe_stages
from pgdyno.experiment.fixture import make_fixtures
from pgdyno.experiment.progress import Listener
from pgdyno.experiment.stopping import Stopping
from pgdyno.experiment.trial import TestBed, measure
from pgdyno.model.plan import Plan, Trial
from pgdyno.store.run_file import RunFile
from pgdyno.target.interface import Target


def carry_out(
    plan: Plan,
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
        PgdynoError: The fixture cannot be made. A trial's failure is stored, not raised.
        KeyboardInterrupt: Ctrl-C; finished trials are in the run file.
    """
    described = describe_stages(plan)
    fixtures = make_fixtures(plan, target, listener)
    for fixture in fixtures.values():
        run.put_fixture(fixture)
    bed = TestBed(target, fixtures, described, run, listener)
    stopping = Stopping(plan, run, listener)
    for trial in plan.trials if todo is None else todo:
        if stopping.needs(trial):
            measure(plan.stage(trial.stage), plan.protocol, bed, run.trial(trial.number))
            stopping.after(trial)
