"""Active session history: what every session and background process is doing, ten times a second.

With full telemetry it is fifty times a second, for short windows.

Tally `sessions`, one key for each that a sample meets:
    role: backend, parallel_worker, checkpointer, background_writer, wal_writer, io_worker,
        autovacuum, walsender, startup, other.
    wait_class: of `catalog/data/waits.toml`; `cpu`: it waits for nothing and runs; `cpu_wait`: it
        waits for nothing and has no CPU, told where its processes are seen, see `sample.run_queue`.
    wait_event: `Type:Name` as 18 calls it; empty where there is none.
    state: as pg_stat_activity has it; empty: a background process.
    kind, statement: of the workload, in sessions of the driven databases that are not idle.
    blocker: `<wait_class> <pid>` of who stands at the head of the queue for a lock: `client 4711`
        is a session that holds it and waits for its client. Empty: no lock, or not known yet.

Tally `locks`, one key for each session that waits for a lock, while any was seen to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pgdyno.model.wait import CPU, CPU_WAIT
from pgdyno.sample.activity import Activity, Met
from pgdyno.sample.lacking import is_on, not_granted, not_seen, reads_all_statistics, switched_off
from pgdyno.sample.lock_queue import PREPARED, LockQueue, Waiter
from pgdyno.sample.run_queue import RunQueue, is_told
from pgdyno.sample.sampler import Found, Missing, Subject, Tally
from pgdyno.sample.statement_names import Known, known_statements

SESSIONS = ("role", "wait_class", "wait_event", "state", "kind", "statement", "blocker")
LOCKS = (
    "lock", "mode", "relation", "kind", "statement", "blocker_class", "blocker_state",
    "blocker_kind", "blocker_statement", "blocker",
)  # fmt: skip
_INTERVAL_S = {"default": 0.1, "full": 0.02}
_LOCKS_INTERVAL_S = 0.5
_OF_PREPARED = "prepared transaction"
_TOLD_WITH = "track_activities"
_NOT_KNOWN = Known("", "")

Key = tuple[str, ...]


class History:
    """Both tallies of one server.

    Args:
        activity: Its sessions.
        queue: Its locks.
        run_queue: Of the kernel that its processes run on; None: it cannot be asked here.
    """

    def __init__(self, activity: Activity, queue: LockQueue, run_queue: RunQueue | None) -> None:
        self._activity = activity
        self._queue = queue
        self._run_queue = run_queue
        self._last: dict[int, Met] = {}
        self._classes: dict[int, str] = {}

    def sessions(self) -> list[Key]:
        """A key for each process that is met now."""
        self._last = self._activity.take()
        self._classes = {pid: self._class_of(met) for pid, met in self._last.items()}
        if self._run_queue:
            self._run_queue.forget_all_but(set(self._last))
        self._queue.keep({pid for pid, met in self._last.items() if met.awaits_lock})
        return [self._key(met) for met in self._last.values()]

    def locks(self) -> list[Key]:
        """A key for each session that waits for a lock; not asked for where none was seen to."""
        if not any(met.awaits_lock for met in self._last.values()):
            return []
        # Sessions move on within milliseconds: what they do is asked in the moment of the queue.
        now = self._activity.take()
        return list(self._queued(self._queue.ask(now), now))

    def _class_of(self, met: Met) -> str:
        if met.wait:
            return met.wait.wait_class
        return CPU_WAIT if self._run_queue and self._run_queue.waits(met.pid) else CPU

    def _key(self, met: Met) -> Key:
        root = self._queue.root(met) if met.awaits_lock else None
        event = met.wait.event if met.wait else ""
        of = met.statement
        return (
            met.role, self._classes[met.pid], event, met.state, of.kind, of.name,
            "" if root is None else _named(root, self._classes.get(root, "")),
        )  # fmt: skip

    def _class_now(self, met: Met) -> str:
        """Of a session met beside the ticks, of which the run queue is not asked."""
        if met.wait:
            return met.wait.wait_class
        last = self._classes.get(met.pid)
        return CPU_WAIT if last == CPU_WAIT else CPU

    def _queued(self, waiters: list[Waiter], now: Mapping[int, Met]) -> Iterator[Key]:
        for waiter in waiters:
            met = now.get(waiter.pid)
            # Who waited for something else just before has sent another statement since.
            of = met.statement if met and (met.awaits_lock or not met.wait) else _NOT_KNOWN
            first = waiter.blockers[0] if waiter.blockers else None
            by = now.get(first) if first is not None else None
            doing = self._class_now(by) if by else ""
            yield (
                waiter.lock, waiter.mode, waiter.relation, of.kind, of.name,
                doing, by.state if by else "",
                by.statement.kind if by else "", by.statement.name if by else "",
                "" if first is None else _named(first, doing),
            )  # fmt: skip


def _named(pid: int, doing: str) -> str:
    return _OF_PREPARED if pid == PREPARED else f"{doing} {pid}".lstrip()


def sampler(subject: Subject) -> Found:
    """Both tallies, and what of them cannot be told here; None without a session to ask."""
    if (session := subject.session) is None:
        return None
    missing = []
    if not reads_all_statistics(session):
        missing.append(
            not_granted(session, "sessions of others", "what other roles and processes do")
        )
    if not is_on(session, _TOLD_WITH):
        missing.append(switched_off("states and statements of sessions", _TOLD_WITH))
    run_queue = None
    if _is_seen(subject) and is_told(session.info.backend_pid):
        run_queue = RunQueue()
    if run_queue is None:
        missing.append(_without_run_queue(subject))
    statements = known_statements(subject.described) if subject.described else {}
    assert subject.wait_of is not None, "nobody gives wait events their names"
    activity = Activity(session, subject.databases, statements, subject.wait_of, subject.own_pids)
    history = History(activity, LockQueue(session), run_queue)
    interval_s = _INTERVAL_S["full" if subject.telemetry == "full" else "default"]
    return [
        Tally("sessions", SESSIONS, history.sessions, interval_s),
        Tally("locks", LOCKS, history.locks, _LOCKS_INTERVAL_S),
        *missing,
    ]


def _is_seen(subject: Subject) -> bool:
    """Whether the kernel may be asked about the server's processes."""
    return subject.ours or subject.postmaster_pid is not None


def _without_run_queue(subject: Subject) -> Missing:
    """Such sessions count as ones that run."""
    name = "waiting for a CPU by session"
    if not _is_seen(subject):
        assert subject.session is not None
        return not_seen(subject.session, name)
    return Missing(
        name, "the kernel keeps no /proc/PID/schedstat", "Use a kernel with CONFIG_SCHED_INFO."
    )
