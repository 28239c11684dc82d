"""What was seen of a finished trial beside its throughput: devices, events, what was noted.

Only what the run file holds is told: what nobody sampled is absent, never zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pgdyno.analysis.resource_measures import DEVICE
from pgdyno.analysis.resources import members
from pgdyno.model.run import Event, TrialRecord
from pgdyno.model.units import bytes_text, digits_text, ns_text, seconds_text

_NS = 1e9
_MINUTE_NS = 60 * _NS
EVENTS_MAX = 60  # that are listed, the last ones


@dataclass(frozen=True, slots=True)
class Device:
    """A block device over a window; what was not sampled is None."""

    name: str
    busy_share: float | None  # of the time
    reads_per_s: float | None
    read_bytes_per_s: float | None
    read_s: float | None  # one, on average, from when it was queued; None also where there was none
    writes_per_s: float | None
    write_bytes_per_s: float | None
    write_s: float | None
    flushes_per_s: float | None
    flush_s: float | None

    @property
    def is_used(self) -> bool:
        """Whether it had a request."""
        return any((self.reads_per_s, self.writes_per_s, self.flushes_per_s, self.busy_share))


@dataclass(frozen=True, slots=True)
class Seen:
    """Something that happened, in seconds since the window began."""

    kind: str
    start_s: float
    end_s: float | None  # None: it had not ended when the trial did
    text: str  # how long it took and what is known of it


@dataclass(frozen=True, slots=True)
class Telemetry:
    """What was seen of a trial."""

    devices: tuple[Device, ...]
    events: tuple[Seen, ...]
    events_left_out: int  # before these
    notes: tuple[str, ...]


def telemetry(trial: TrialRecord) -> Telemetry:
    """What is known of a trial that has numbers."""
    assert trial.result is not None
    result = trial.result
    begin, end = result.window_ns
    events = [
        seen(one, begin)
        for one in sorted(result.events, key=lambda one: one.start_ns)
        if one.start_ns < end and (one.end_ns is None or one.end_ns > begin)
    ]
    return Telemetry(
        devices=devices(result.deltas, result.window_s),
        events=tuple(events[-EVENTS_MAX:]),
        events_left_out=max(0, len(events) - EVENTS_MAX),
        notes=result.notes,
    )


def devices(deltas: Mapping[str, float], window_s: float) -> tuple[Device, ...]:
    """Block devices, from the growth of their counters over a window.

    That of the data alone, as `data`, where others were not sampled; else it is one of them.
    """
    named = {name: f"{DEVICE}{name}." for name in members(deltas, DEVICE)} or {"data": "disk."}
    found = {
        name: {
            full.removeprefix(prefix): grown / window_s
            for full, grown in deltas.items()
            if full.startswith(prefix)
        }
        for name, prefix in named.items()
    }
    return tuple(_device(name, per_s) for name, per_s in found.items() if per_s)


def _device(name: str, per_s: Mapping[str, float]) -> Device:
    return Device(
        name,
        busy_share=per_s.get("busy_s"),
        reads_per_s=per_s.get("reads"),
        read_bytes_per_s=per_s.get("read_bytes"),
        read_s=_each_s(per_s, "reads", "read_s"),
        writes_per_s=per_s.get("writes"),
        write_bytes_per_s=per_s.get("write_bytes"),
        write_s=_each_s(per_s, "writes", "write_s"),
        flushes_per_s=per_s.get("flushes"),
        flush_s=_each_s(per_s, "flushes", "flush_s"),
    )


def _each_s(per_s: Mapping[str, float], requests: str, seconds: str) -> float | None:
    """What one request takes, where there were any."""
    count, together_s = per_s.get(requests), per_s.get(seconds)
    return together_s / count if count and together_s is not None else None


def seen(event: Event, begin_ns: int, now_ns: int | None = None) -> Seen:
    """An event, by what the server's log tells of it.

    Args:
        event: What happened.
        begin_ns: Since when seconds count.
        now_ns: It has begun and goes on; None: it is over, or the trial is.
    """
    ended = event.end_ns if now_ns is None else None
    if now_ns is not None:
        took = [f"goes on, {_duration(max(0, now_ns - event.start_ns))} so far"]
    elif ended is None:
        took = ["not ended"]
    else:  # what has no length, or less than its line tells
        took = [_duration(ended - event.start_ns)] if ended > event.start_ns else []
    known = [f"{key} {_value(key, value)}" for key, value in event.detail.known().items()]
    return Seen(
        event.kind, (event.start_ns - begin_ns) / _NS,
        None if ended is None else (ended - begin_ns) / _NS, ", ".join([*took, *known]),
    )  # fmt: skip


def _duration(ns: int) -> str:
    return ns_text(ns) if ns < _MINUTE_NS else seconds_text(ns / _NS)


def _value(key: str, value: object) -> str:
    if isinstance(value, int | float) and key.endswith("_bytes"):
        return bytes_text(value)
    return digits_text(value, 4) if isinstance(value, float) else str(value)
