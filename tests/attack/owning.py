"""A process that does with a running target all that a plan does, and is killed at a statement."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Literal

from psycopg.conninfo import make_conninfo

from pgdyno.model.connection import Connection
from tests.waiting import DEADLINE_S

IDENT = "abc123"
_SCRIPT = Path(__file__).with_name("owning_process.py")

When = Literal["before", "during", "after"]


def work(conninfo: str, step: int = 0, when: When = "after") -> subprocess.CompletedProcess[str]:
    """Fixture, trial, settings, end; killed before, during or after its n-th statement, from 1.

    Without a step nothing is killed, and the statements are printed.
    """
    return subprocess.run(
        [sys.executable, str(_SCRIPT), conninfo, IDENT, str(step), when],
        capture_output=True, text=True, timeout=DEADLINE_S, check=False,
    )  # fmt: skip


def statements(conninfo: str) -> list[str]:
    """What it sends, undisturbed."""
    done = work(conninfo)
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout)
    return found


def killed(conninfo: str, step: int, when: When) -> None:
    """Work that is killed."""
    done = work(conninfo, step, when)
    assert done.returncode == -signal.SIGKILL, (step, when, done.stdout, done.stderr)


def conninfo_of(connection: Connection) -> str:
    """As libpq reads it."""
    return make_conninfo(**connection.arguments())
