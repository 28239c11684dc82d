"""A process that changes the machine, puts it back and is killed at one of its steps."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_SCRIPT = """
import os, signal
from pathlib import Path
from pgdyno.host.change import apply, plan, restore
from pgdyno.host.journal import Journal
steps = []
def told(step):
    steps.append(step)
    if len(steps) == {step}:
        os.kill(os.getpid(), signal.SIGKILL)
root = Path({root!r})
journal = Journal(Path({journal!r}), {boot!r})
apply(plan({wishes!r}, root), journal, told, root)
restore(journal, told, root)
"""


def run_killed(
    step: int,
    wishes: Sequence[tuple[str, str]],
    journal: Path,
    *,
    boot: str | None = None,
    root: Path = Path("/"),
) -> None:
    """Apply and restore in a process of its own that kills itself at its n-th step, from 1."""
    script = _SCRIPT.format(
        step=step, wishes=list(wishes), journal=str(journal), boot=boot, root=str(root)
    )
    done = subprocess.run([sys.executable, "-c", script], timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL, f"step {step} was not reached"
