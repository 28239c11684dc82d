"""A trial that lost a host of its load is measured once more, at once: in its place in the round.

A host of the load that dies says nothing of the stage, and a trial without numbers costs its round
a pair. So the trial is repeated by itself, once: its neighbours are the same, and hours have not
passed. What was measured first stays in the run file. A second loss stays as it is, since a host
that goes away twice will go away again; `pgdyno resume` measures the round anew.
"""

from __future__ import annotations

from pgdyno.model.plan import Protocol, Stage
from pgdyno.model.progress import Noted
from pgdyno.model.run import TrialRecord
from pgdyno.trial.measure import TestBed, measure


def measured(stage: Stage, protocol: Protocol, bed: TestBed, planned: TrialRecord) -> TrialRecord:
    """Measure a stage as `trial.measure` does, and once more where a host was lost.

    Args:
        stage: What is measured.
        protocol: How.
        bed: On what.
        planned: The trial as it was planned.

    Returns:
        The trial that stands, as it is stored.

    Raises:
        PgdynoError: See `trial.measure.measure`.
        KeyboardInterrupt: Likewise.
    """
    record = measure(stage, protocol, bed, planned)
    if not record.host_lost:
        return record
    bed.listener(
        Noted(
            f"Trial {record.number} lost a host of its load ({record.reason}). That is nothing of"
            f" {stage.name}: it is measured once more, at once."
        )
    )
    bed.run.begin_again([record.number])
    return measure(stage, protocol, bed, bed.run.trial(record.number))
