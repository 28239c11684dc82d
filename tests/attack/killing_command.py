"""Run by `test_killed_commands`: a command of pgdyno that is killed at a step.

A step is what leaves something behind: a file opened to be written, a name made, changed or
removed, a program started, a statement of SQLite that changes something; of many of a kind in one
transaction only the first, since none of them is kept without its COMMIT. Steps are counted from
when so many trials were measured; a command with fewer comes to its end.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from typing import Any

_EVENTS = {
    "os.mkdir", "os.chmod", "os.chown", "os.rename", "os.remove", "os.rmdir", "os.link",
    "os.symlink", "os.truncate", "subprocess.Popen",
}  # fmt: skip
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_connected = sqlite3.connect
_heard = _finished = 0
_step, _trials = int(sys.argv[1]), int(sys.argv[2])


def _count() -> None:
    global _heard  # noqa: PLW0603 - a hook has no other place
    _heard += _finished >= _trials
    if _heard == _step:
        os.kill(os.getpid(), signal.SIGKILL)


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _EVENTS or (
        event == "open" and arguments[2] & _WRITES and arguments[0] != os.devnull
    ):
        _count()


def _connect(*arguments: Any, **named: Any) -> sqlite3.Connection:
    made = _connected(*arguments, **named)
    of_transaction: set[str] = set()

    def hear(statement: str) -> None:
        global _finished  # noqa: PLW0603 - as above
        kind = " ".join(statement.split()[:3])
        _finished += statement.startswith("INSERT OR REPLACE INTO trial") and (
            "'finished'" in statement
        )
        if not kind or kind.startswith(("SELECT", "PRAGMA")):
            return
        if kind.startswith(("BEGIN", "COMMIT")):
            of_transaction.clear()
        if kind not in of_transaction:
            of_transaction.add(kind)
            _count()

    made.set_trace_callback(hear)
    return made


sys.addaudithook(_hear)
sqlite3.connect = _connect  # type: ignore[assignment]
sys.argv = ["pgdyno", *sys.argv[3:]]

from pgdyno.cli.app import main  # noqa: E402 - what it imports is no step

main()
