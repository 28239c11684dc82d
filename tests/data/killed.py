"""A process that changes the machine, puts it back and is killed at one of its steps."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Sequence
from pathlib import Path

from pgdyno.host.change import apply, plan
from pgdyno.host.journal import Journal
from pgdyno.host.undo import restore
from tests.tally import survived


def run_killed(
    step: int,
    wishes: Sequence[tuple[str, str]],
    journal: Path,
    *,
    boot: str | None = None,
    root: Path = Path("/"),
) -> bool:
    """Apply and restore in a process of its own that kills itself at its n-th step, from 1.

    Returns:
        Whether there was such a step; else all was applied and restored.
    """
    child = os.fork()
    if child == 0:
        try:
            _apply_and_restore(step, wishes, Journal(journal, boot), root)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    assert killed or status == 0, f"step {step} ended with {status}"
    if killed:
        survived("kills of a change of the host at a step")
    return killed


def _apply_and_restore(
    step: int, wishes: Sequence[tuple[str, str]], journal: Journal, root: Path
) -> None:
    steps = []

    def told(one: str) -> None:
        steps.append(one)
        if len(steps) == step:
            os.kill(os.getpid(), signal.SIGKILL)

    apply(plan(wishes, root), journal, told, root)
    restore([journal], told, root)
