"""A/A: a stage against itself. How small a difference can be seen on this machine, in how long?"""

from __future__ import annotations

from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from pgdyno.api.experiments import plan as of_plan
from pgdyno.api.notebook_line import with_line
from pgdyno.api.planning import Plan
from pgdyno.api.runs import Experiment, Run
from pgdyno.plan.against_itself import ROUNDS, against_itself
from pgdyno.report.noise import lines
from pgdyno.trial.progress import Listener

AA_ROUNDS = ROUNDS
"""What tells the noise of most machines, in minutes."""


@with_line
def aa(
    plan: Plan,
    *,
    stage: str | None = None,
    rounds: int = AA_ROUNDS,
    host: bool = False,
    out: str | Path | None = None,
    command: str = "pgdyno.api.aa(plan), from Python",
    on_event: Listener = lambda _: None,
) -> Run:
    """Measure one stage of a plan twice in every round: what differs is noise.

    Args:
        plan: See `load_plan`; how many rounds it has, and what could end them, does not count.
        stage: Its name; None: the first one.
        rounds: All of them are measured, as many as are asked for, at least 3.
        host: See `run`.
        out: The run file, a page goes beside it; None: `runs/<time>-aa-<plan>.sqlite`.
        command: How to repeat it, as the run file keeps it.
        on_event: Told how it goes.

    Returns:
        The run; `Run.facts.noise_floor` has the spread, and the rounds that differences take.

    Raises:
        PlanError: There is no such stage, or there are too few rounds.
        PgdynoError: See `run`.
    """
    plan = plan.replace({"protocol.stop": "rounds", "protocol.rounds": rounds})
    alone = against_itself(plan.record, stage)
    return of_plan.carried_out(plan, alone, "aa", command, out, on_event, host=host)


def _summary(run: Run) -> RenderableType:
    return Group(*(Text(line) for line in lines(run.facts)))


EXPERIMENT = Experiment(
    of_plan.EXPERIMENT.is_whole, of_plan.EXPERIMENT.reports, _summary, of_plan.EXPERIMENT.resume
)
