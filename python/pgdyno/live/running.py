"""The trial that runs, as glances tell it: sessions, CPUs, devices, and what the server logs.

    Glance -> Running -> part of the page, samples of metrics

The same words and groups as those of trials that have ended, of which the run file tells.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from pgdyno.analysis.session_facts import GROUP_LABELS
from pgdyno.analysis.sessions import class_of, group_of
from pgdyno.live.over_time import OverTime
from pgdyno.live.run_progress import Moment
from pgdyno.live.tables import devices_table, events_table
from pgdyno.live.telemetry import EVENTS_MAX, Device, devices, seen
from pgdyno.model.glance import Glance, Grown
from pgdyno.model.host_time import HOST_IDLE_COLUMNS, host_cpu_s, host_idle_share
from pgdyno.model.record_json import JsonObject
from pgdyno.model.run import Event
from pgdyno.model.units import bytes_text
from pgdyno.model.wording import listed, plural
from pgdyno.report.document import Cell, Column, Table

_NS = 1e9
_DRIVES = "drive"
_DEVICES = "Block devices of this host in the last second or so."
_CLASSES = "Active sessions in the last second, by what they do or wait for."
_NO_LOG = "The server ran before pgdyno came, so that its log is not followed while the load runs."
_BUSY = "busy"
_STATES = {  # of CPUs: the kernel's own that each is made of
    "user": ("user", "nice"), "system": ("system", "irq", "softirq"), "iowait": ("iowait",),
    "steal": ("steal",),
}  # fmt: skip
_STATE_WORDS = {"iowait": "idle while disks work", "steal": "stolen by other machines"}


@dataclass(slots=True)
class Running:
    """Follows the trial that runs, and counts what the server logs over all of them."""

    happened: Counter[tuple[str, str]] = field(default_factory=Counter)  # stage, kind
    sessions: dict[str, float] = field(default_factory=dict)  # now, on average, by class
    cpus: dict[str, float] = field(default_factory=dict)  # shares of the time of all, by state
    devices: tuple[Device, ...] = ()
    _stage: str | None = None
    _is_driven: bool = False
    _began_ns: int | None = None  # of the trial that is shown
    _last: Glance | None = None
    _groups: OverTime = field(default_factory=OverTime)
    _busy: OverTime = field(default_factory=OverTime)
    _ended: deque[Event] = field(default_factory=lambda: deque(maxlen=EVENTS_MAX))
    _used: set[str] = field(default_factory=set)  # devices
    _told: int = 0  # events of this trial, those that are not kept included

    @property
    def is_shown(self) -> bool:
        """Whether there is a trial that runs, and something is known of it."""
        return self._is_driven and self._last is not None

    def hear(self, moment: Moment) -> None:
        """Take in where the run is."""
        self._stage = moment.stage
        self._is_driven = moment.phase == _DRIVES
        if not self._is_driven:
            self._forget()

    def glance(self, glance: Glance) -> None:
        """Take in what was seen."""
        if self._stage is not None:  # a moment comes before the first glance
            for kind, count in glance.counts.items():
                self.happened[self._stage, kind] += count
        if not self._is_driven:  # the last of a trial that is not driven any more
            return
        if glance.began_ns != self._began_ns:
            self._forget()
            self._began_ns = glance.began_ns
        self._last = glance
        self._ended.extend(glance.ended)
        self._told += sum(glance.counts.values())
        self._take_sessions(glance)
        for grown in glance.grown:
            self._take_grown(grown, glance.taken_s)

    def _forget(self) -> None:
        self._began_ns = self._last = None
        self._groups, self._busy = OverTime(), OverTime()
        self._ended.clear()
        self._told = 0
        self._used.clear()
        self.sessions, self.cpus, self.devices = {}, {}, ()

    def _take_sessions(self, glance: Glance) -> None:
        if glance.met is None:
            return
        counts: Counter[str] = Counter()
        for role, state, wait_class, count in glance.met.counts:
            if name := class_of({"role": role, "state": state, "wait_class": wait_class}):
                counts[name] += count
        looks = glance.met.looks
        self.sessions = {name: count / looks for name, count in counts.most_common()}
        groups: Counter[str] = Counter()
        for name, count in counts.items():
            groups[group_of(name)] += count
        self._groups.take(glance.taken_s, groups, looks)

    def _take_grown(self, grown: Grown, taken_s: float) -> None:
        if found := devices(grown.columns, grown.seconds):
            self.devices = found
            self._used.update(one.name for one in found if one.is_used)
        idle = host_idle_share(grown.columns, grown.seconds)
        if idle is None or not all(name in grown.columns for name in HOST_IDLE_COLUMNS):
            return
        self.cpus = {_BUSY: 1 - idle} | _states(grown)
        self._busy.take(taken_s, {_BUSY: 1 - idle})

    # -- what is shown -----------------------------------------------------------------------

    def part(self) -> JsonObject:
        """The part of the page; texts as they are read."""
        assert self._last is not None, "nothing runs that is shown"
        return {
            "sessions": self._sessions_part(),
            "classes": asdict(_classes_table(self.sessions)) if self.sessions else None,
            "cpus": self._cpus_part(),
            "devices": self._devices_part(),
            "events": asdict(self._events_table(self._last)) if self._has_events else None,
            "log": self._log_text(self._last),
        }

    def _sessions_part(self) -> JsonObject | None:
        if not (names := self._groups.names):
            return None
        return {
            "step_s": self._groups.step_s,
            "groups": [
                {"name": name.replace("_", "-"), "label": GROUP_LABELS[name],
                 "values": [*self._groups.values(name)], "ends": [*self._groups.ends(name)]}
                for name in GROUP_LABELS if name in names
            ],
        }  # fmt: skip

    def _cpus_part(self) -> JsonObject | None:
        if not self.cpus:
            return None
        parts = [
            f"{_STATE_WORDS.get(name, name)} {share:.0%}"
            for name, share in self.cpus.items()
            if name != _BUSY
        ]
        return {
            "step_s": self._busy.step_s,
            "values": [*self._busy.values(_BUSY)],
            "ends": [*self._busy.ends(_BUSY)],
            "text": f"{self.cpus[_BUSY]:.0%} busy in the last second: {listed(parts)}.",
        }

    def _devices_part(self) -> JsonObject | None:
        """Those that did something since the load began."""
        used = [one for one in self.devices if one.name in self._used]
        if not self.devices:
            return None
        if idle := len(self.devices) - len(used):
            that = plural(idle, "more had", "more had")
            return asdict(devices_table(f"{_DEVICES} {that} no request since it began.", used))
        return asdict(devices_table(_DEVICES, used))

    @property
    def _has_events(self) -> bool:
        return bool(self._ended or (self._last and self._last.under_way))

    def _events_table(self, last: Glance) -> Table:
        now_ns = last.began_ns + round(last.taken_s * _NS)
        going_on = [seen(one, last.began_ns, now_ns) for one in last.under_way]
        ended = [seen(one, last.began_ns) for one in reversed(self._ended)]
        left_out = self._told - len(self._ended)
        earlier = plural(left_out, "earlier one is", "earlier ones are", thousands=True)
        before = f"; {earlier} left out" if left_out else ""
        caption = f"What the server's log tells of this trial, the last first{before}."
        return events_table(caption, "s since its load began", [*going_on, *ended])

    def _log_text(self, last: Glance) -> str:
        if not last.follows_log:
            return _NO_LOG
        if last.unread_bytes:
            return (
                f"The server logs faster than it is followed here: {bytes_text(last.unread_bytes)}"
                " of it were skipped. The report reads all of it."
            )
        return "" if self._has_events else "The server has logged nothing since the load began."


def _states(grown: Grown) -> dict[str, float]:
    total_s = host_cpu_s(grown.columns, grown.seconds)
    return {
        name: sum(grown.columns[f"cpu.{state}_s"] for state in states) / total_s
        for name, states in _STATES.items()
    }


def _classes_table(sessions: Mapping[str, float]) -> Table:
    rows = [(Cell(name.replace("_", " ")), Cell(f"{one:.1f}")) for name, one in sessions.items()]
    rows.append((Cell("all active"), Cell(f"{sum(sessions.values()):.1f}")))
    return Table(_CLASSES, (Column("class", align="left"), Column("sessions")), tuple(rows))
