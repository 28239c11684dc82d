"""What limits the stages of a run, from its file alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pgdyno.analysis.diagnosis_facts import StageDiagnosis
from pgdyno.api.runs import Run
from pgdyno.report import diagnosis


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was found of each stage; printed, it is plain English."""

    ident: str  # of the run
    stages: tuple[StageDiagnosis, ...]  # in the order of the plan

    def text(self) -> str:
        """In sentences: what limits each stage, the proof, what was cleared, what is not known."""
        return diagnosis.text(self.stages)

    def json(self) -> str:
        """All of it as JSON, in base units."""
        return diagnosis.json(self.stages, self.ident)

    def __str__(self) -> str:
        return self.text()


def diagnose(run_file: str | Path, stage: str | None = None) -> Diagnosis:
    """Say what limits each stage of a run, with the proof, from its file alone.

    Every class of limits answers of every window: found, cleared, or not known and why. What one of
    them could bring is a bound or an estimate, and not proved: only a run without the resource
    would prove it.

    Args:
        run_file: The file of a run.
        stage: One stage alone; None: all.

    Raises:
        StoreError: It is no run file, or cannot be read.
        PlanError: No plan was run, e.g. storage was probed.
        PgdynoError: There is no such stage.
    """
    run = Run(run_file)
    return Diagnosis(run.info.ident, run.diagnosis(stage))
