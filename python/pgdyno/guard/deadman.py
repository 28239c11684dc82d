"""The daemon's second process: turns full pages on when the daemon gives no sign of life.

It knows no server and opens no connection: it reads lines from the daemon, and when none comes for
a while, or the daemon is gone, it writes one file and sends one signal. So what can hang in the
daemon cannot hang here. `python -m pgdyno.guard.deadman DATA INCLUDE SECONDS`; without a daemon on
its standard input it turns them on and ends, which is what the systemd unit does after any end.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from pgdyno.guard.data_directory import data_directory
from pgdyno.guard.include_file import read_pages, write_pages
from pgdyno.model.errors import TargetError
from pgdyno.model.system_errors import told

MODULE = "pgdyno.guard.deadman"
_READ_BYTES = 4096
ALIVE = b"alive\n"
"""What the daemon says again and again."""


def turn_on(data: Path, include: Path) -> bool:
    """Turn full pages on; tells whether they were off.

    Raises:
        TargetError: The file cannot be written.
    """
    directory = data_directory(data)
    was_off = read_pages(directory, include) == "off"
    if was_off:
        write_pages(directory, include, "on")
    directory.reload()  # also where they were on: who wrote that may have ended before it was read
    return was_off


def watch(data: Path, include: Path, patience_s: float, source: int) -> None:
    """Wait for signs of life until there is nobody to give any."""
    quiet = False
    while True:
        # Once they are on, there is nothing to do before the daemon lives again.
        ready, _, _ = select.select([source], [], [], None if quiet else patience_s)
        if not ready:
            quiet = _try(data, include)
        elif os.read(source, _READ_BYTES):
            quiet = False
        else:
            while not _try(data, include):
                time.sleep(patience_s)
            return


def _try(data: Path, include: Path) -> bool:
    """Turn them on; tells whether that is done, or nothing is left to be done."""
    try:
        if turn_on(data, include):
            _say("the daemon gave no sign of life: full pages are on")
    except (TargetError, OSError) as error:
        _say(f"the daemon gave no sign of life, and full pages may be off: {told(error)}")
        return not data.is_dir() or read_pages(data_directory(data), include) is None
    return True


def _say(what: str) -> None:
    with suppress(OSError):  # whoever would read it may be gone
        sys.stderr.write(f"pgdyno guard: {what}\n")
        sys.stderr.flush()


def main() -> None:
    """Read where, and watch; a signal to end is the daemon's alone."""
    data, include, patience_s = sys.argv[1:]
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(one, signal.SIG_IGN)
    watch(Path(data), Path(include), float(patience_s), sys.stdin.fileno())


if __name__ == "__main__":
    main()
