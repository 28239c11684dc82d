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

from pgdyno import core
from pgdyno.model.errors import DriveError


def main() -> int:
    """Serve until standard input ends.

    Returns:
        The exit code: 0, or 1 after an error.
    """
    # The parent's end, or that of our input, stops us; Ctrl-C is the parent's business.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    order = json.loads(sys.stdin.readline())
    try:
        if order["cpus"]:
            os.sched_setaffinity(0, order["cpus"])
        server = core.NullServer(json.dumps(order["spec"]))
        server.start()
        print(server.poll(), flush=True)
        for _line in sys.stdin:
            print(server.poll(), flush=True)
        server.stop()
    except core.CoreError as error:
        _refuse(*error.args)
        return 1
    except DriveError as error:  # the core is of other sources
        _refuse("drive", error.fact, error.hint)
        return 1
    except BrokenPipeError:  # nobody listens any more
        return 1
    return 0


def _refuse(kind: str, fact: str, hint: str | None) -> None:
    print(json.dumps({"error": {"kind": kind, "fact": fact, "hint": hint}}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
