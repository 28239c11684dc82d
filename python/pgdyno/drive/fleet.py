"""Drives one window from several hosts at once: one load, begun at one instant, one result.

Every host is told the whole load and which part of it is its own, so that all together ask for
exactly what one would (`crates/drive/src/hosts.rs`). They begin when their own steady clocks show
an instant that the head works out from the offsets of these clocks. What they measured is added up
by the core, and each host's own account is kept beside.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

from pgdyno.drive.checkpoint_pace import OPEN, Pace
from pgdyno.drive.host_link import PHASES, SAME_WHEEL, HostLink, Inbox, open_link
from pgdyno.drive.host_results import combined, connections_of
from pgdyno.drive.listening import Listening
from pgdyno.drive.result import Driven
from pgdyno.drive.transport import Transport, transports
from pgdyno.model.connection import Connection
from pgdyno.model.errors import DriveError, HostLostError
from pgdyno.model.fleet import LOST_AFTER_S, Fleet, Offset
from pgdyno.model.fleet_check import FleetLooked, HostLooked
from pgdyno.model.host_address import host_address
from pgdyno.model.plan import Workload
from pgdyno.model.progress import DriveProgress
from pgdyno.model.record_json import JsonObject
from pgdyno.model.wording import listed, plural

_LATE_S = 30.0  # besides its drain: so long a host may take to end when it was told to
_PROBES = 16
_BEGIN_S = 1.0  # from when hosts are told to the begin, at least
_TELL_S = 0.1  # likewise of what is told while they drive
_WAYS = 20  # of the longest way of a line: what is told is there by then
_PACE_S = 0.1
_TOLD_S = 0.5
_SESSIONS_BESIDE = 64  # descriptors that a driver needs beside its connections


def drive_fleet(
    fleet: Fleet,
    spec: JsonObject,
    workload: Workload,
    drain_s: float,
    progress: Callable[[DriveProgress], None] = lambda _: None,
    pace: Pace | None = None,
    started: Callable[[int], None] = lambda _: None,
) -> Driven:
    """Drive one window from all hosts of a fleet.

    Args:
        fleet: The hosts.
        spec: The whole load as the core wants it, of one host.
        workload: The same as a plan has it.
        drain_s: So long requests in flight may take after the window, in seconds.
        progress: Told twice a second, of all hosts together.
        pace: Says when warm-up and window end; None: as the spec has it, by the clock.
        started: Told each driver process of this host.

    Raises:
        DriveError: A host is not alike, or failed.
        HostLostError: A host cannot be reached, was lost before the window, or all were in it.
        KeyboardInterrupt: Ctrl-C; all hosts are stopped first.
    """
    with Head(fleet, transports()) as head:
        head.require_alike(workload)
        head.tell_here(started)
        head.connect(spec)
        head.begin()
        head.watch(progress, pace, drain_s)
        head.compare_clocks()
        return combined(head.links, spec["workload"], workload, pace, went_on=fleet.degraded)


def look(fleet: Fleet, workloads: Sequence[Workload] = ()) -> FleetLooked:
    """Reach all hosts of a fleet, compare what they are, and measure their clocks.

    Args:
        fleet: The hosts.
        workloads: That they are to drive; none: whether they could is not looked at.

    Raises:
        DriveError: A host is of another version, is there twice, or may not open as many
            connections as it would have to.
        HostLostError: A host cannot be reached.
    """
    with Head(fleet, transports()) as head:
        require_alike(head.links)
        for workload in workloads:
            head.require_alike(workload)
        head.compare_clocks()
        head.require_all("tell its clock")
        return FleetLooked(tuple(head.looked(workloads)))


class Head:
    """What hears all hosts of a fleet and tells them when."""

    def __init__(self, fleet: Fleet, ways: Mapping[str, Transport]) -> None:
        self._fleet, self._ways = fleet, ways
        self._inbox: Inbox = queue.SimpleQueue()
        self.listening = Listening()
        self._stack = ExitStack()
        self._over = threading.Event()
        self.links: list[HostLink] = []

    def __enter__(self) -> Head:
        """Reach all hosts: each has said what it is."""
        try:
            # First of all: of many hosts, one is begun long after another.
            threading.Thread(target=self._show_life, name="pgdyno head", daemon=True).start()
            for name in self._fleet.hosts:
                link = self._open(name)
                self.links.append(link)
                self._stack.callback(link.end)
            patience_s = max(self._way_to(one.name).hello_s for one in self.links)
            self._until(lambda: all(one.machine for one in self.links), patience_s, "be reached")
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End what still runs on any host."""
        self._close()

    def _open(self, name: str) -> HostLink:
        way = self._way_to(name)
        return open_link(name, self._fleet, way, self._inbox, listening=self.listening)

    def _way_to(self, name: str) -> Transport:
        return self._ways[name.partition(":")[0]]

    def _show_life(self) -> None:
        """Say something twice a second, whatever else we wait for: hosts go by our silence."""
        while not self._over.wait(_TOLD_S):
            for link in tuple(self.links):
                link.say({"alive": True})

    def _close(self) -> None:
        self._over.set()
        for link in self.links:  # all are told before any is waited for
            link.say({"stop": None})
        self._stack.close()

    def require_alike(self, workload: Workload) -> None:
        """Refuse hosts that run other versions, are one and the same, or cannot open as much.

        Raises:
            DriveError: With both values.
        """
        require_alike(self.links)
        for number, link in enumerate(self.links):
            assert link.machine is not None
            own = connections_of(workload, number, len(self.links))
            most, needed = link.machine.descriptors_max, own + _SESSIONS_BESIDE
            if most < needed:
                raise DriveError(
                    f"host {link.name} may open {plural(most, 'file')} and sockets, its"
                    f" {plural(own, 'connection')} need {needed}",
                    "Raise its limit (ulimit -n), or take more hosts or fewer connections.",
                )

    def looked(self, workloads: Sequence[Workload]) -> Iterator[HostLooked]:
        """What was found of each host."""
        for number, link in enumerate(self.links):
            assert link.machine is not None
            counts = [connections_of(one, number, len(self.links)) for one in workloads]
            yield HostLooked(link.name, link.machine, link.offsets[-1], max(counts, default=None))

    def tell_here(self, started: Callable[[int], None]) -> None:
        """Tell which processes of this host drive."""
        for link in self.links:
            if host_address(link.name).is_here:
                started(link.process.pid)

    def connect(self, spec: JsonObject) -> None:
        """Have all hosts connect, the first one first: it sets up what the others' sessions need.

        Raises:
            DriveError: A host cannot.
            HostLostError: A host is lost.
        """
        hosts = len(self.links)
        for number, link in enumerate(self.links):
            share: JsonObject = {"share": {"host": number, "hosts": hosts}, "begin": "when_told"}
            link.say({"spec": spec | share})
            if number == 0:
                self._until(lambda: _connections(self.links[0]) > 0, None, "connect")
        self._until(lambda: all(_phase(one) == "ready" for one in self.links), None, "connect")

    def begin(self) -> None:
        """Compare all clocks, and tell each host its own instant of the common begin."""
        self.compare_clocks()
        self.require_all("tell its clock")
        begin_ns = self._soon_ns(_BEGIN_S)
        unix_ns = time.time_ns() + begin_ns - time.monotonic_ns()
        for link in self.links:
            link.say({"begin": [begin_ns + link.offsets[-1].offset_ns, unix_ns]})

    def compare_clocks(self) -> None:
        """Measure each host's offset once more; one that does not answer is lost."""
        for link in self.links:
            if link.lost is None and (found := self._offset(link)) is not None:
                link.offsets.append(found)

    def watch(
        self, progress: Callable[[DriveProgress], None], pace: Pace | None, drain_s: float
    ) -> None:
        """Hear the hosts until each has given its result.

        A lost one ends the window of all, unless the plan lets the load go on without it.

        Raises:
            DriveError: A host failed.
            HostLostError: One was lost before the window began.
        """
        told_s, stopped_s = 0.0, None  # the one by the clock, the other by what is listened
        while not all(link.is_over for link in self.links):
            phase = _together(self.links).phase
            if pace is not None and stopped_s is None:
                self._follow(pace, phase)
            self.hear(_PACE_S)
            now_s, listened_s = time.monotonic(), self.listening.seconds
            lost = [link for link in self.links if link.lost is not None]
            if lost:
                self._require_begun(lost[0], phase)
            if lost and stopped_s is None and not self._fleet.degraded:
                stopped_s = listened_s
                for link in self.links:
                    link.say({"stop": None})
            if stopped_s is not None and listened_s > stopped_s + drain_s + _LATE_S:
                for link in self.links:
                    link.lost = link.lost or "it did not end when it was told to"
            if now_s - told_s >= _TOLD_S:
                progress(_together(self.links))
                told_s = now_s

    def _require_begun(self, link: HostLink, phase: str) -> None:
        if PHASES.index(phase) < PHASES.index("window"):
            raise HostLostError(f"host {link.name} was lost before the window: {link.lost}")

    def _follow(self, pace: Pace, phase: str) -> None:
        due = pace.turn(phase, time.monotonic())
        if due is None:
            return
        at_ns = self._soon_ns(_TELL_S)
        for link in self.links:
            what = "open" if due == OPEN else "stop"
            link.say({what: at_ns + link.offsets[-1].offset_ns})

    def _soon_ns(self, at_least_s: float) -> int:
        """An instant to come, by which every host has heard of it."""
        way_ns = max(link.offsets[-1].bound_ns * 2 for link in self.links)
        return time.monotonic_ns() + max(int(at_least_s * 1e9), _WAYS * way_ns)

    def _offset(self, link: HostLink) -> Offset | None:
        """The question with the quickest answer tells most; None: it gives no answer."""
        best: Offset | None = None
        for number in range(_PROBES):
            link.answer = None
            asked_ns, asked_s = time.monotonic_ns(), self.listening.seconds
            link.say({"clock": number})
            while link.answer is None or link.answer["clock"] != number:
                self.hear(_PACE_S)
                if link.lost is None and self.listening.seconds - asked_s > LOST_AFTER_S:
                    why = f"it did not tell its clock for {LOST_AFTER_S:g} s"
                    link.lost = why + link.last_words()
                if link.lost is not None:
                    return best
            found = offset_of(asked_ns, link.answer)
            if best is None or found.bound_ns < best.bound_ns:
                best = found
        return best

    def _until(self, there: Callable[[], bool], patience_s: float | None, what: str) -> None:
        """Hear the hosts until something is there; one that is lost meanwhile is an error."""
        begun_s = self.listening.seconds
        while not there():
            self.hear(_PACE_S, silence=patience_s is None)
            late = patience_s is not None and self.listening.seconds - begun_s > patience_s
            for link in self.links:
                if link.lost is None and late and link.machine is None:
                    link.lost = f"it said nothing for {patience_s:g} s{link.last_words()}"
            self.require_all(what)

    def require_all(self, what: str) -> None:
        """Refuse to go on without a host.

        Raises:
            HostLostError: One is lost, before it could do what it was to do.
        """
        for link in self.links:
            if link.lost is not None:
                raise HostLostError(f"host {link.name} could not {what}: {link.lost}", _way(link))

    def hear(self, patience_s: float, *, silence: bool = True) -> None:
        """Take in what hosts said, until nothing waits or one never stops; wait for the first."""
        until_s = time.monotonic() + patience_s
        try:
            heard = self._inbox.get(timeout=patience_s)
            heard.link.take(heard)
            while time.monotonic() < until_s:
                heard = self._inbox.get_nowait()
                heard.link.take(heard)
        except queue.Empty:
            pass
        self.listening.look()
        for link in self.links:
            link.notice_flood()
            if silence:
                link.notice_silence()


def offset_of(asked_ns: int, answer: Mapping[str, object]) -> Offset:
    """The offset of a clock, from when it was asked, when it heard and said, when that came."""
    heard_ns, said_ns, came_ns = (
        int(str(answer[key])) for key in ("received_ns", "sent_ns", "answered_ns")
    )
    way_ns = max(0, (came_ns - asked_ns) - (said_ns - heard_ns))
    offset_ns = ((heard_ns - asked_ns) + (said_ns - came_ns)) // 2
    return Offset((asked_ns + came_ns) // 2, offset_ns, way_ns // 2 + 1)


def require_reachable(fleet: Fleet, connection: Connection) -> None:
    """Refuse a server that is on this host by its name, where other hosts would look on theirs.

    Raises:
        DriveError: With the server's and the host's name.
    """
    far = [name for name in fleet.hosts if not host_address(name).is_here]
    if far and connection.is_local:
        raise DriveError(
            f"the server is at {connection.shown()}, which {listed(far)} would look for on its own"
            " host",
            "Name the server by an address that all hosts of the fleet reach.",
        )


def require_alike(links: Sequence[HostLink]) -> None:
    """Refuse hosts of other versions than the first, and one that is reached twice.

    Raises:
        DriveError: With both values.
    """
    first = links[0]
    seen: dict[tuple[str, str], HostLink] = {}
    for link in links:
        ours, theirs = first.machine, link.machine
        assert ours is not None
        assert theirs is not None
        for what in ("pgdyno", "contract", "core"):
            if (a := getattr(ours, what)) != (b := getattr(theirs, what)):
                raise DriveError(
                    f"host {first.name} has {what} {a}, host {link.name} has {b}",
                    SAME_WHEEL,
                )
        other = seen.setdefault((theirs.boot, theirs.network), link)
        if other is not link and not (_is_here(other) and _is_here(link)):
            raise DriveError(
                f"hosts {other.name} and {link.name} are one and the same machine",
                "Name it once; several processes of this machine are local:a, local:b, ….",
            )


def _is_here(link: HostLink) -> bool:
    return host_address(link.name).is_here


def _way(link: HostLink) -> str | None:
    """What may be done about a host that is not reached."""
    address = host_address(link.name)
    if address.scheme != "ssh":
        return None
    destination, port = address.destination
    there = f"-p {port} {destination}" if port else destination
    return f"`ssh {there}` has to get there, by a known key, without asking anything."


def _connections(link: HostLink) -> int:
    return link.progress.connected if link.progress else 0


def _phase(link: HostLink) -> str:
    if link.result is not None:
        return "done"
    return link.progress.phase if link.progress else "connect"


def _together(links: Iterable[HostLink]) -> DriveProgress:
    """How far the hosts that are left are: as the last of them, with the counts of all."""
    told = [replace(one.progress, phase=_phase(one))
            for one in links if one.progress is not None and one.lost is None]  # fmt: skip
    if not told:
        return DriveProgress("connect", 0.0)
    last = min(told, key=lambda one: PHASES.index(one.phase))

    def sums(of: Callable[[DriveProgress], Mapping[str, int]]) -> dict[str, int]:
        kinds = dict.fromkeys(kind for one in told for kind in of(one))
        return {kind: sum(of(one).get(kind, 0) for one in told) for kind in kinds}

    return DriveProgress(
        phase=last.phase,
        phase_left_s=last.phase_left_s,
        elapsed_s=max(one.elapsed_s for one in told),
        committed=sums(lambda one: one.committed),
        last_second=sums(lambda one: one.last_second),
        rolled_back=sum(one.rolled_back for one in told),
        failed=sum(one.failed for one in told),
        retries=sum(one.retries for one in told),
        reconnects=sum(one.reconnects for one in told),
        connected=sum(one.connected for one in told),
    )
