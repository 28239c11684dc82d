"""The null server's process: answers a workload's statements at once, without a database.

Run as `python -m pgdyno.drive.null_server`, apart from the driver, so that each has cores of its
own. Standard input: one line `{"spec": ..., "cpus": [...] | null}` (`NullSpec` in `crates/sim`),
then one line for every status that is wanted; its end stops the server. Standard output: a status
for each line, or `{"error": {"kind", "fact", "hint"}}` and exit code 1.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from functools import partial
from typing import Any

from pgdyno import core
from pgdyno.drive.worker import end_with, told_of_failure


def main() -> int:
    """Serve until standard input ends.

    Returns:
        The exit code: 0, or 1 after an error.
    """
    # The parent's end, or that of our input, stops us; Ctrl-C is the parent's business.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    order = json.loads(sys.stdin.readline())
    return told_of_failure(lambda: _serve(order), partial(print, flush=True))


def _serve(order: dict[str, Any]) -> None:
    if order["cpus"]:
        os.sched_setaffinity(0, order["cpus"])
    server = core.NullServer(json.dumps(order["spec"]))
    server.start()
    print(server.poll(), flush=True)
    for _line in sys.stdin:
        print(server.poll(), flush=True)
    server.stop()


if __name__ == "__main__":
    end_with(main)
