"""Active session history: who is counted as what, without a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pgdyno.catalog.waits import wait_of
from pgdyno.sample.activity import Met, Row, met
from pgdyno.sample.lock_queue import PREPARED, Waiter, root_of
from pgdyno.sample.run_queue import RunQueue, is_told
from pgdyno.sample.sampler import Subject
from pgdyno.sample.samplers.server_sessions import LOCKS, SESSIONS, History, sampler
from pgdyno.sample.statement_names import Known

PAYS = Known("pay_customer", "payment")
BY_HASH = {77: PAYS}
MS = 1_000_000


def schedstat(proc: Path, pid: int, run_ms: int, wait_ms: int) -> None:
    (proc / str(pid)).mkdir(exist_ok=True)
    (proc / str(pid) / "schedstat").write_text(f"{run_ms * MS} {wait_ms * MS} 17\n")


def test_a_session_that_ran_runs_and_one_that_was_kept_from_it_waits(tmp_path: Path) -> None:
    queue = RunQueue(tmp_path)
    for pid in (1, 2):
        schedstat(tmp_path, pid, 1000, 1000)
        assert not queue.waits(pid), "nothing is known of the first sample"
    schedstat(tmp_path, 1, 1090, 1010)
    schedstat(tmp_path, 2, 1010, 1090)

    assert not queue.waits(1)
    assert queue.waits(2)


def test_samples_add_up_to_the_kernels_own_account(tmp_path: Path) -> None:
    queue = RunQueue(tmp_path)
    run, wait, waits = 0, 0, 0
    schedstat(tmp_path, 1, run, wait)
    queue.waits(1)
    for tick in range(1000):
        run, wait = run + 70, wait + 30 + tick % 2
        schedstat(tmp_path, 1, run, wait)
        waits += queue.waits(1)

    assert abs(waits - 1000 * wait / (run + wait)) <= 1


def test_a_process_that_did_neither_owes_nothing(tmp_path: Path) -> None:
    queue = RunQueue(tmp_path)
    schedstat(tmp_path, 1, 10, 10)
    assert [queue.waits(1) for _ in range(5)] == [False] * 5


def stat(proc: Path, pid: int, state: str) -> None:
    (proc / str(pid) / "stat").write_text(f"{pid} (postgres: (a) R) {state} 1 2 3\n")


@pytest.mark.parametrize("step", [1, 4, 10])
def test_a_wait_that_is_longer_than_samples_are_apart_is_one_all_the_while(
    tmp_path: Path, step: int
) -> None:
    """The kernel counts a wait when it is over: ten looks long, then one that ran for a look."""
    queue = RunQueue(tmp_path)
    run, wait, waits = 0, 0, []
    schedstat(tmp_path, 1, run, wait)
    stat(tmp_path, 1, "R")
    queue.waits(1)
    for look in range(1, 441):
        if look % 11 == 10:
            wait += 1000
        elif look % 11 == 0:
            run += 100
        schedstat(tmp_path, 1, run, wait)
        if look % step == 0:
            waits.append(queue.waits(1))

    assert abs(sum(waits) - len(waits) * wait / (run + wait)) <= 11


def test_who_runs_is_not_taken_for_waiting_between_two_ticks_of_the_kernel(tmp_path: Path) -> None:
    queue = RunQueue(tmp_path)
    schedstat(tmp_path, 1, 0, 0)
    stat(tmp_path, 1, "R")
    waits = []
    for look in range(400):
        schedstat(tmp_path, 1, look // 4 * 4, 0)
        waits.append(queue.waits(1))

    assert sum(waits) <= 4, "but at the begin, of which the kernel tells later"


def test_who_sleeps_where_no_event_is_told_does_not_wait_for_a_cpu(tmp_path: Path) -> None:
    queue = RunQueue(tmp_path)
    schedstat(tmp_path, 1, 10, 10)
    stat(tmp_path, 1, "D")
    assert [queue.waits(1) for _ in range(5)] == [False] * 5


def test_a_number_that_is_given_again_is_a_new_process(tmp_path: Path) -> None:
    queue = RunQueue(tmp_path)
    schedstat(tmp_path, 1, 1000, 9000)
    queue.waits(1)
    schedstat(tmp_path, 1, 5, 9500)
    assert not queue.waits(1)


def test_a_process_that_has_ended_does_not_wait(tmp_path: Path) -> None:
    assert not RunQueue(tmp_path).waits(4711)
    assert not is_told(4711, tmp_path)


def test_only_processes_of_the_last_tick_are_remembered(tmp_path: Path) -> None:
    queue = RunQueue(tmp_path)
    for pid in range(300):
        schedstat(tmp_path, pid, 1000, 1000)
        queue.waits(pid)
    queue.forget_all_but({7})
    schedstat(tmp_path, 7, 1000, 2000)
    schedstat(tmp_path, 8, 1000, 2000)

    assert queue.waits(7)
    assert not queue.waits(8), "it is seen for the first time again"


def test_files_that_may_not_stay_open_tell_the_same(tmp_path: Path) -> None:
    queue = RunQueue(tmp_path, keep=1)
    for pid in (1, 2):
        schedstat(tmp_path, pid, 1000, 1000)
        queue.waits(pid)
        schedstat(tmp_path, pid, 1010, 1090)

    assert [queue.waits(pid) for pid in (1, 2)] == [True, True]


def backend(pid: int, wait: tuple[str, str] | None = None, **other: Any) -> Row:
    kind, event = wait or (None, None)
    hashed = other.get("hashed", 77)
    return (pid, other.get("role", "client backend"), other.get("state", "active"), kind, event,
            hashed)  # fmt: skip


def test_a_row_is_a_session_with_its_statement() -> None:
    one = met(backend(5, ("IO", "WALSync")), BY_HASH, wait_of)
    assert one.wait is not None
    assert (one.role, one.wait.wait_class, one.wait.event) == ("backend", "flush", "IO:WalSync")
    assert one.statement == PAYS
    assert met(backend(5, hashed=78), BY_HASH, wait_of).statement == Known("", "")


@pytest.mark.parametrize(
    ("backend_type", "role"),
    [
        ("walwriter", "wal_writer"),
        ("io worker", "io_worker"),
        ("autovacuum worker", "autovacuum"),
        ("autovacuum launcher", "autovacuum"),
        ("parallel worker", "parallel_worker"),
        ("pg_cron launcher", "other"),
    ],
)
def test_processes_have_the_roles_of_their_series(backend_type: str, role: str) -> None:
    assert met(backend(5, role=backend_type, state=""), {}, wait_of).role == role


class FakeActivity:
    """Gives one tick after the other."""

    def __init__(self, *ticks: list[Row]) -> None:
        self.ticks = iter(ticks)

    def take(self) -> dict[int, Met]:
        return {row[0]: met(row, BY_HASH, wait_of) for row in next(self.ticks)}


class FakeQueue:
    """A queue for locks as it would be asked for; the rest is the real one's."""

    def __init__(self, waiters: list[Waiter]) -> None:
        self.waiters, self.asked, self.roots = waiters, 0, dict[int, int]()

    def ask(self, _sessions: dict[int, Met]) -> list[Waiter]:
        self.asked += 1
        blocked = {waiter.pid: waiter.blockers for waiter in self.waiters}
        self.roots = {pid: root_of(pid, blocked) for pid in blocked}
        return self.waiters

    def root(self, one: Met) -> int | None:
        return self.roots.get(one.pid)

    def keep(self, waiting: set[int]) -> None:
        self.roots = {pid: root for pid, root in self.roots.items() if pid in waiting}


def history(queue: FakeQueue, *ticks: list[Row]) -> History:
    return History(FakeActivity(*ticks), queue, None)  # type: ignore[arg-type]


def test_who_waits_for_nothing_is_on_the_cpu() -> None:
    (key,) = history(FakeQueue([]), [backend(5)]).sessions()
    assert dict(zip(SESSIONS, key, strict=True)) == {
        "role": "backend", "wait_class": "cpu", "wait_event": "", "state": "active",
        "kind": "payment", "statement": "pay_customer", "blocker": "",
    }  # fmt: skip


def test_locks_are_asked_for_only_while_somebody_waits_for_one() -> None:
    queue = FakeQueue([])
    one = history(queue, [backend(5)], *[[backend(5, ("Lock", "tuple"))]] * 2)
    one.sessions()
    assert one.locks() == []
    assert queue.asked == 0
    one.sessions()
    one.locks()
    assert queue.asked == 1


def test_the_head_of_the_queue_is_named_with_what_it_does() -> None:
    """7 waits for 6, 6 for 5, and 5 for its client, in a transaction."""
    rows = [
        backend(5, ("Client", "ClientRead"), state="idle in transaction"),
        backend(6, ("Lock", "transactionid")),
        backend(7, ("Lock", "tuple")),
    ]
    queue = FakeQueue([
        Waiter(6, "transactionid", "ShareLock", "warehouse", (5,)),
        Waiter(7, "tuple", "ExclusiveLock", "warehouse", (6,)),
    ])  # fmt: skip
    one = history(queue, rows, rows, rows, [*rows[:2], backend(7)], rows)
    assert [key[-1] for key in one.sessions()] == ["", "", ""], "nobody was asked yet"
    first, second = (dict(zip(LOCKS, key, strict=True)) for key in one.locks())
    assert [key[-1] for key in one.sessions()] == ["", "client 5", "client 5"]
    assert [key[-1] for key in one.sessions()] == ["", "client 5", ""]
    assert [key[-1] for key in one.sessions()] == ["", "client 5", ""], "7 waits anew"

    assert first["blocker"] == "client 5"
    assert first["blocker_state"] == "idle in transaction"
    assert (second["relation"], second["blocker_class"]) == ("warehouse", "row")
    assert second["blocker_statement"] == "pay_customer"


def test_a_queue_is_told_by_what_sessions_do_when_it_is_asked_for() -> None:
    """Since the tick before, 5 has asked its client, and 8 has come to wait from its commit."""
    queue = FakeQueue([
        Waiter(6, "transactionid", "ShareLock", "warehouse", (5,)),
        Waiter(8, "tuple", "ExclusiveLock", "warehouse", (6,)),
        Waiter(9, "tuple", "ExclusiveLock", "warehouse", (PREPARED,)),
    ])  # fmt: skip
    waits = backend(6, ("Lock", "transactionid"))
    one = history(
        queue, [backend(5), waits],
        [backend(5, ("Client", "ClientRead"), state="idle in transaction"), waits,
         backend(8, ("IO", "WALSync"))],
    )  # fmt: skip
    one.sessions()
    first, second, third = (dict(zip(LOCKS, key, strict=True)) for key in one.locks())

    assert (first["statement"], first["blocker_class"]) == ("pay_customer", "client")
    assert (first["blocker"], first["blocker_state"]) == ("client 5", "idle in transaction")
    assert (second["statement"], second["blocker"]) == ("", "row 6"), "its commit waits for no row"
    assert (third["blocker"], third["blocker_class"]) == ("prepared transaction", "")


def test_a_circle_of_waiters_has_an_end() -> None:
    assert root_of(1, {1: (2,), 2: (3,), 3: (1,)}) == 3
    assert root_of(1, {1: (PREPARED,)}) == PREPARED
    assert root_of(1, {}) == 1


def test_without_a_session_there_is_nothing_to_ask() -> None:
    assert sampler(Subject()) is None
