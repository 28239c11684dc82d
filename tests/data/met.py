"""What looks at sessions met: tallies made up from known averages."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pgdyno.model.run import TallySeries
from pgdyno.sample.samplers.server_sessions import SESSIONS

TICKS = 10  # a second
Key = tuple[str, ...]


def key(wait_class: str, event: str = "", **more: str) -> Key:
    """A key of the tally `sessions`: a backend that runs a statement, unless told otherwise."""
    known = {"role": "backend", "state": "active", "wait_class": wait_class, "wait_event": event}
    return tuple((known | more).get(name, "") for name in SESSIONS)


USUAL: Mapping[Key, float] = {
    key("cpu", kind="new_order", statement="no_district"): 1.4,
    key("flush", "IO:WalSync", kind="payment"): 2.1,
    key("row", "Lock:transactionid", kind="payment", blocker="client 4711"): 0.8,
    key("client", "Client:ClientRead", state="idle in transaction", kind="new_order"): 0.5,
    key("client", "Client:ClientRead", state="idle"): 2.0,
    key("checkpoint", "Timeout:CheckpointWriteDelay", role="checkpointer", state=""): 0.9,
}


def sessions(
    begin_s: int,
    seconds: int,
    averages: Mapping[Key, float] = USUAL,
    rng: np.random.Generator | None = None,
) -> TallySeries:
    """Sessions at moments, each met as often as its average says; independent looks with `rng`.

    Args:
        begin_s: Of the first second, since the Unix epoch.
        seconds: That were looked at.
        averages: How many of each there are.
        rng: Draws how many are met at each look; None: no look is luckier than another.
    """
    means = np.array(list(averages.values()))[:, None] * TICKS
    shape = (len(averages), seconds)
    counts = np.rint(np.broadcast_to(means, shape)) if rng is None else rng.poisson(means, shape)
    at, keys = np.meshgrid(np.arange(seconds), np.arange(len(averages)))
    return TallySeries(
        name="sessions",
        dimensions=SESSIONS,
        keys=tuple(averages),
        seconds=begin_s + at.ravel(),
        key=keys.ravel(),
        counts=counts.astype(np.int64).ravel(),
        tick_seconds=begin_s + np.arange(seconds),
        ticks=np.full(seconds, TICKS),
    )
