"""What the windows against the null server amount to, as the facts of their report."""

from __future__ import annotations

from pgdyno.analysis.calibration_facts import CalibrationFacts
from pgdyno.model.calibration import WARMUP_S, Calibrated
from pgdyno.stats.ceiling import ceilings


def calibration_facts(calibrated: Calibrated, ident: str) -> CalibrationFacts:
    """All that a report says of it.

    Args:
        calibrated: A calibration as far as it came.
        ident: Of its run.

    Raises:
        PgdynoError: It was broken off in its first round.
    """
    return CalibrationFacts(
        ident=ident,
        started_unix_ns=calibrated.started_unix_ns,
        pgdyno=calibrated.pgdyno,
        machine=calibrated.machine,
        ceilings=ceilings(calibrated),
        warmup_s=min(WARMUP_S, calibrated.window_s),
        measured=calibrated,
    )
