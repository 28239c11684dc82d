"""Ceilings of the hosts that a load comes from, measured where a host has none.

Run as `python -m pgdyno.api.host_ceilings` on a host: reads a line `{"loads": [[kind, face,
connections], ...], "measure": true}`, prints `{"ceilings": [...]}` or `{"error": {fact, hint}}`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import get_args

from pgdyno.api import kept_ceilings
from pgdyno.api.experiments.calibration import calibrate
from pgdyno.api.kept_ceilings import Load, ceilings_of, kept_here
from pgdyno.drive.worker import end_with
from pgdyno.model.calibration import Ceiling
from pgdyno.model.errors import Interrupted
from pgdyno.model.fleet import Fleet
from pgdyno.model.system_errors import as_pgdyno_error
from pgdyno.model.workload import CONNECTIONS, Workload, WorkloadKind


def measured_here(loads: Sequence[Load]) -> tuple[Ceiling, ...]:
    """The ceilings of this machine for these loads; those that were never measured are, and kept.

    Raises:
        PgdynoError: They cannot be read, or not be measured.
        Interrupted: Ctrl-C.
    """
    cpus = len(os.sched_getaffinity(0))
    known = {(one.workload, one.face) for one in kept_here(loads)}
    for kind, face, connections in loads:
        if (kind, face) in known:
            continue
        with tempfile.TemporaryDirectory(prefix="pgdyno-") as folder:
            try:
                calibrate(
                    kind, faces=[face], connections=max(connections, CONNECTIONS, cpus),
                    seconds=kept_ceilings.WINDOW_S, rounds=kept_ceilings.ROUNDS,
                    out=Path(folder) / "calibration.sqlite",
                )  # fmt: skip
            except Interrupted:
                fact = "stopped while a ceiling was measured; nothing is kept of it"
                raise Interrupted(fact, "The same command measures it anew.") from None
    return kept_here(loads)


def measured_ceilings(
    fleet: Fleet, workloads: Sequence[Workload]
) -> dict[str, tuple[Ceiling, ...]]:
    """The ceilings of each host of a fleet; those that were never measured are, and kept there.

    Raises:
        PgdynoError: A host cannot be reached, or not measure.
    """
    return ceilings_of(fleet, workloads, measured_here, measure=True)


def _end_with_the_head() -> None:
    """What asked is gone when our input ends: stop as Ctrl-C does, and leave nothing."""
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGINT)


def main() -> int:
    """Answer the question of the head.

    Returns:
        The exit code: 0 with an answer, 1 with an error.
    """
    question = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_the_head, name="pgdyno head", daemon=True).start()
    loads = [(kind, face, count) for kind, face, count in question["loads"]
             if kind in get_args(WorkloadKind)]  # fmt: skip
    try:
        with redirect_stdout(sys.stderr):
            found = measured_here(loads) if question["measure"] else kept_here(loads)
    except Exception as error:
        if (told := as_pgdyno_error(error)) is None:
            raise
        print(json.dumps({"error": {"fact": told.fact, "hint": told.hint}}), flush=True)
        return 1
    print(json.dumps({"ceilings": [asdict(one) for one in found]}), flush=True)
    return 0


if __name__ == "__main__":
    end_with(main)
