"""The process that shows a run: reads messages, serves the latest parts, ends with the run.

Run as `python -m pgdyno.live.worker`. Standard input: lines of JSON, first `message.Wanted`, then
`message.Message`; its end is the run's end. Standard output: `message.Serving` once it serves, or
why it cannot; at the end `message.Cost`. It leaves nothing, and yields to whatever else runs.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from pgdyno.live.address import Address
from pgdyno.live.latest_parts import LatestParts
from pgdyno.live.message import Cost, End, Message, Serving, Wanted
from pgdyno.live.server import Listening, metrics_server, page_server
from pgdyno.live.watched import Watched
from pgdyno.model.record_json import from_json, to_json
from pgdyno.model.system_errors import SystemFailure, reason

_NICE = 19  # the least: what is measured comes first
_LAST_S = 3.0  # for viewers to be told of the end
_LOST = End("lost", "pgdyno has ended without a word. Finished trials are kept in the run file.")


def main() -> int:
    """Serve until the run is over.

    Returns:
        The exit code: 1 where it could not serve.
    """
    began = time.monotonic()
    os.nice(_NICE)
    wanted = from_json(Wanted, sys.stdin.readline())
    latest = LatestParts()
    watched = Watched(latest)
    servers: list[Listening] = []
    try:
        page = _listen(wanted.page, lambda at: page_server(at, wanted.token, latest), servers)
        found = _listen(wanted.metrics, lambda at: metrics_server(at, watched.exposition), servers)
    except SystemFailure as error:
        _say(Serving(fact=error.fact, hint=error.hint))
        return 1
    for one in servers:
        one.begin()
    _say(Serving(page=page, metrics=found))
    watched.ends(_follow(watched))
    latest.close(_LAST_S)
    _say(Cost(time.process_time(), time.monotonic() - began, latest.viewers_max))
    return 0


def _listen(
    at: Address | None, make: Callable[[Address], Listening], servers: list[Listening]
) -> Address | None:
    """Where it listens, if it is wanted.

    Raises:
        SystemFailure: It cannot.
    """
    if at is None:
        return None
    try:
        server = make(at)
    except OSError as error:
        raise SystemFailure(
            f"{at} cannot be listened on: {reason(error)}",
            "Name another port, or none for any that is free.",
        ) from error
    servers.append(server)
    return server.at


def _follow(watched: Watched) -> End:
    """Hear messages until the last, or until there is nobody who could send one."""
    for line in sys.stdin:
        if not line.endswith("\n"):
            break  # it was killed while it wrote
        message = from_json(Message, line)
        watched.hear(message)
        if message.end is not None:
            return message.end
    return _LOST


def _say(record: Serving | Cost) -> None:
    with suppress(BrokenPipeError):  # nobody listens any more
        print(to_json(record), flush=True)


if __name__ == "__main__":
    sys.exit(main())
