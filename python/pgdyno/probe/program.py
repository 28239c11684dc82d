"""Runs a probing program to its end; nothing of it outlives us, however we end."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pgdyno.model.errors import TargetError
from pgdyno.shell import OsUser, start

_SAID_CHARS = 300
_SAID_BYTES_MAX = 64 << 20
_LOOK_S = 0.05  # between two looks at what was said so far


def run_probe(
    args: Sequence[str | Path],
    *,
    timeout_s: float,
    what: str,
    user: OsUser | None = None,
    folder: int | Path | None = None,
    enough: Callable[[str], bool] | None = None,
) -> str:
    """Run a program and return what it printed.

    Args:
        args: The program and its arguments.
        timeout_s: After so many seconds it hangs.
        what: What it does, for the message.
        user: Who runs it; None: this process's user.
        folder: Where it works, by a descriptor or by name; None: it needs no place.
        enough: Whether what it printed so far is all that is wanted: it is ended then.

    Raises:
        TargetError: It does not start, fails or hangs; its first words are in the message.
    """
    name = Path(args[0]).name
    with tempfile.TemporaryFile("r+", errors="replace") as log:

        def said_so_far() -> str:
            # Its descriptor shares our place in the file, which must stay where it writes.
            return os.pread(log.fileno(), _SAID_BYTES_MAX, 0).decode(errors="replace")

        process = start(
            args, user=user, log=log.fileno(), folder=folder, dies_with_us=signal.SIGKILL
        )
        try:
            deadline = time.monotonic() + timeout_s
            code = process.wait_unreaped(timeout_s if enough is None else _LOOK_S)
            while enough and code is None and time.monotonic() < deadline:
                if enough(said := said_so_far()):
                    return said.strip()
                code = process.wait_unreaped(_LOOK_S)
        finally:
            process.kill_group()
        said = said_so_far().strip()
    if code is None:
        raise TargetError(f"{what}: {name} did not end within {timeout_s:.0f} s")
    if code != 0:
        # fio repeats itself for each request that fails.
        first = said.partition("\n")[0][:_SAID_CHARS] or "it said nothing"
        raise TargetError(f"{what}: {name} ended with {_ending(code)}: {first}")
    return said


def _ending(code: int) -> str:
    return f"code {code}" if code > 0 else f"signal {signal.Signals(-code).name}"
