"""What samplers and the server's log told in the last second or so, of a trial that still runs.

For whoever looks on: no figure of a run rests on it, and nobody waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pgdyno.model.run import Event


@dataclass(frozen=True, slots=True)
class Grown:
    """By how much counters of one sampler grew between two of its looks."""

    seconds: float  # between these
    columns: dict[str, float]  # those that grew, or stood still; who began anew is left out


@dataclass(frozen=True, slots=True)
class Met:
    """What sessions did in whole seconds that were looked at; see the tally `sessions`."""

    looks: int
    counts: tuple[
        tuple[str, str, str, int], ...
    ]  # role, state, wait class; how often all looks met


@dataclass(frozen=True, slots=True)
class Glance:
    """Everything since the glance before."""

    began_ns: int  # since the epoch, when it was first looked: of another trial, another time
    taken_s: float  # since then
    grown: tuple[Grown, ...] = ()
    met: Met | None = None  # None: no whole second has gone by, or sessions are not sampled
    ended: tuple[Event, ...] = ()  # in the log; the last ones, where there are very many
    counts: dict[str, int] = field(default_factory=dict)  # by kind, of all that ended
    under_way: tuple[Event, ...] = ()  # the first ones that have begun, and are not told to end
    unread_bytes: int = 0  # of a log that grows faster than it is followed
    follows_log: bool = False  # else it is not known what happens: the server is not ours
