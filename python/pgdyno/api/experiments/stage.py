"""One stage measured by a protocol, without a plan around it: what others are made of."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pgdyno.api.experiments import plan as of_plan
from pgdyno.api.notebook_line import with_line
from pgdyno.api.planning import load_plan
from pgdyno.api.runs import Experiment, Run
from pgdyno.trial.progress import Listener

Keys = Mapping[str, object]
_WHY = "Measured on its own."


@with_line
def measure(
    stage: Keys,
    protocol: Keys,
    workload: Keys,
    *,
    target: Keys | None = None,
    host: bool = False,
    out: str | Path | None = None,
    command: str = "pgdyno.measure(...), from Python",
    on_event: Listener = lambda _: None,
) -> Run:
    """Measure one stage, once in every round of a protocol, on a fresh copy of the loaded data.

    For programs that choose the next stage by what the last one gave. Data that are loaded stay, so
    that only the first call loads them. No page is written: `Run.report` makes one.

    Args:
        stage: Keys of a plan's `[[stage]]`, e.g. `{"settings": {"wal_buffers": "64MB"}}`. Without
            `name` it is called `stage`.
        protocol: Keys of a plan's `[protocol]`: rounds, seconds of warm-up and window, ...
        workload: Keys of a plan's `[workload]`: what is loaded and driven.
        target: Keys of a plan's `[target]`; None: the embedded PostgreSQL.
        host: See `run`.
        out: The run file; None: `runs/<time>-<name>.sqlite`.
        command: How to repeat it, as the run file keeps it.
        on_event: Told how it goes, see `model.progress`.

    Returns:
        The run; `Run.trials` has a row for each round, and `resume` measures those left.

    Raises:
        PlanError: A key or value is wrong, or cannot be carried out here.
        PgdynoError: See `run`; what was measured until then is kept.
        Interrupted: Ctrl-C; the same.

    Example:
        >>> import pgdyno
        >>> run = pgdyno.measure(
        ...     {"settings": {"synchronous_commit": "off"}},
        ...     {"rounds": 1, "warmup_s": 0.5, "window_s": 1, "lowest_rung": "D2"},
        ...     {"kind": "tpcb", "scale": 1},
        ... )
        >>> run.is_whole
        True
    """
    name = stage.get("name", "stage")
    plan = load_plan(
        {
            "name": name,
            "question": f"What does {name} reach?",
            "target": target or {},
            "workload": workload,
            "protocol": protocol,
            "stage": [{"name": name, "why": _WHY, **stage}],
        }
    )
    return of_plan.carried_out(
        plan, plan.record, "stage", command, out, on_event, page=False, host=host
    )


def resume(run: Run, again: bool, on_event: Listener) -> Run:
    """Resume the rounds that are left; see `api.resume`."""
    return of_plan.resume(run, again, on_event, page=False)


EXPERIMENT = Experiment(
    of_plan.EXPERIMENT.is_whole, of_plan.EXPERIMENT.reports, of_plan.EXPERIMENT.summary, resume
)
