"""Processes of a server by role: their titles in all versions, and sums that only grow."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from pgdyno.model.run import Missing
from pgdyno.sample import followed, process_roles
from pgdyno.sample.process_files import parse_io, parse_schedstat, parse_stat
from pgdyno.sample.process_roles import role_of
from pgdyno.sample.sampler import Row, Sampler, Subject
from pgdyno.sample.samplers import driver_cpu, driver_io, processes

TICKS = os.sysconf("SC_CLK_TCK")


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize(
    ("title", "role"),
    [
        ("postgres: checkpointer   ", "checkpointer"),  # 12
        ("postgres: background writer   ", "background_writer"),
        ("postgres: walwriter   ", "wal_writer"),
        ("postgres: stats collector   ", "other"),
        ("postgres: autovacuum launcher   ", "autovacuum"),
        ("postgres: autovacuum worker   bench", "autovacuum"),
        ("postgres: logical replication launcher   ", "other"),
        ("postgres: walsender rep 10.0.0.7(45112) streaming 0/3000148", "walsender"),
        ("postgres: walsender rep [local] streaming 0/3000148", "walsender"),
        ("postgres: startup recovering 000000010000000000000003", "startup"),
        ("postgres: io worker 2", "io_worker"),  # 18
        ("postgres: walsummarizer ", "other"),  # 17
        ("postgres: parallel worker for PID 4711 ", "backend"),
        ("postgres: bench tpcc [local] COMMIT", "backend"),
        ("postgres: bench tpcc 127.0.0.1(50012) idle in transaction", "backend"),
        ("postgres: bench tpcc ::1(50012) idle", "backend"),
        ("postgres: checkpointer tpcc [local] idle", "backend"),  # somebody is called so
        ("postgres: 15/main: checkpointer ", "checkpointer"),  # with cluster_name
        ("postgres: my server: bench tpcc [local] UPDATE waiting", "backend"),
        ("postgres: my server: io worker 0", "io_worker"),
        ("postgres: pg_cron launcher ", "other"),
        ("/usr/lib/postgresql/15/bin/postgres -D /data", None),  # forked a moment ago
        ("", None),
    ],
)
def test_roles_are_read_from_titles(title: str, role: str | None) -> None:
    assert role_of(title) == role


def test_a_process_name_may_hold_anything() -> None:
    fields = b"S 7 42 42 0 -1 4194560 100 200 0 0 150 50 300 100 20 0 1 0 555 0"

    stat = parse_stat(b"42 (post) gres ) 9) " + fields)

    assert stat.start == 555
    assert (stat.own_s, stat.reaped_s) == (200 / TICKS, 400 / TICKS)


def test_times_and_bytes_have_their_units() -> None:
    assert parse_schedstat(b"2500000000 500000000 443\n") == (2.5, 0.5)
    told = (
        b"rchar: 6986\nwchar: 10\nsyscr: 12\nsyscw: 1\nread_bytes: 4096\nwrite_bytes: 8192\n"
        b"cancelled_write_bytes: 5\n"
    )
    assert parse_io(told) == (4096, 8192)


class Host:
    """A /proc with a postmaster, number 10, and what tests add to it."""

    def __init__(self, proc: Path) -> None:
        self.proc = proc
        self.children: list[int] = []
        self.put(10, "/bin/postgres -D /data")

    def put(self, pid: int, title: str, ran_ms: int = 0, **more: int) -> None:
        """A process; what it used is told anew when it is put again."""
        told = {"waited_ms": 0, "read": 0, "reaped": 0, "start": 1, "ticks": 0} | more
        folder = self.proc / str(pid)
        (folder / "task" / str(pid)).mkdir(parents=True, exist_ok=True)
        stat = (f"S 1 1 1 0 -1 0 0 0 0 0 {told['ticks']} 0 {told['reaped']} 0"
                f" 20 0 1 0 {told['start']}")  # fmt: skip
        (folder / "stat").write_text(f"{pid} (postgres) {stat}")
        (folder / "schedstat").write_text(f"{ran_ms}000000 {told['waited_ms']}000000 1\n")
        (folder / "io").write_text(f"rchar: 1\nread_bytes: {told['read']}\nwrite_bytes: 0\n")
        (folder / "cmdline").write_text(title)
        if pid != 10 and pid not in self.children:
            self.children.append(pid)
        self._list()

    def end(self, pid: int) -> None:
        """It is reaped."""
        shutil.rmtree(self.proc / str(pid))
        self.children.remove(pid)
        self._list()

    def _list(self) -> None:
        text = "".join(f"{pid} " for pid in self.children)
        (self.proc / "10/task/10/children").write_text(text)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """Its files are read by their names: an open file of a real folder outlives it."""
    monkeypatch.setattr(process_roles, "descriptors_to_keep", lambda: 0)
    return Host(tmp_path)


def sampler(host: Host, **subject: Any) -> Sampler:
    found = processes.sampler(Subject(postmaster_pid=10, **subject), host.proc)
    assert isinstance(found, list)
    (one,) = found
    assert isinstance(one, Sampler)
    return one


def backend(row: Row) -> tuple[float, ...]:
    fields = ("count", "cpu_s", "wait_cpu_s", "read_bytes")
    return tuple(row[f"process.backend.{field}"] for field in fields)


def test_processes_of_a_role_are_added_up(host: Host) -> None:
    host.put(11, "postgres: a b [local] idle", 1500, waited_ms=250, read=4096)
    host.put(12, "postgres: a b [local] SELECT", 500, waited_ms=50)
    host.put(13, "postgres: checkpointer ", 70)
    host.put(14, "postgres: us b [local] idle", 30)

    one = sampler(host, own_pids={14})
    row = one.take()
    assert row.keys() == {column.name for column in one.columns}
    assert backend(row) == (2, 2.0, 0.3, 4096)
    assert (row["process.checkpointer.count"], row["process.checkpointer.cpu_s"]) == (1, 0.07)
    assert (row["process.telemetry.count"], row["process.telemetry.cpu_s"]) == (1, 0.03)
    assert row["process.io_worker.count"] == 0
    assert row["server.cpu_s"] == pytest.approx(2.1)


def test_a_session_that_is_known_to_look_on_later_takes_nothing_from_backends(host: Host) -> None:
    """It was met between its begin and ours knowing its number."""
    own: set[int] = set()
    host.put(11, "postgres: a b [local] idle", 1500)
    host.put(14, "postgres: us b [local] idle", 30)
    one = sampler(host, own_pids=own)
    assert backend(one.take())[:2] == (2, 1.53)

    own.add(14)
    host.put(14, "postgres: us b [local] idle", 90)
    row = one.take()
    assert backend(row)[:2] == (1, 1.53), "none of it is taken back, and none of ours is added"
    assert row["process.telemetry.cpu_s"] == pytest.approx(0.06)
    assert row["process.telemetry.count"] == 1

    host.end(14)
    host.put(11, "postgres: a b [local] idle", 1600)
    row = one.take()
    assert backend(row)[:2] == (1, pytest.approx(1.63))
    assert row["process.telemetry.cpu_s"] == pytest.approx(0.06)
    host.put(14, "postgres: c b [local] idle", 500)
    own.clear()
    assert backend(one.take())[:2] == (2, pytest.approx(2.13)), "the number is another's now"


def test_what_ended_stays_and_what_nobody_saw_of_it_is_told_apart(host: Host) -> None:
    host.put(11, "postgres: a b [local] idle", 1500)
    host.put(12, "postgres: a b [local] idle", 500)
    one = sampler(host)
    one.take()

    host.end(11)  # it had run for another half second
    host.put(10, "/bin/postgres", reaped=2 * TICKS)
    row = one.take()
    assert backend(row)[:2] == (1, 2.0)
    assert row["process.unseen.cpu_s"] == pytest.approx(0.5)
    assert row["server.cpu_s"] == pytest.approx(2.5)
    roles = sum(row[f"process.{role}.cpu_s"] for role in process_roles.ROLES)
    assert roles + row["process.unseen.cpu_s"] == pytest.approx(row["server.cpu_s"])


def test_bytes_of_the_reaped_are_no_bytes_of_the_postmaster(host: Host) -> None:
    """The kernel adds what a child has read and written to its parent's when it is reaped."""
    host.put(10, "/bin/postgres", read=4096)  # of children before
    host.put(11, "postgres: a b [local] idle", 1500, read=10 << 20)
    one = sampler(host)
    first = one.take()
    assert first["process.other.read_bytes"] == first["process.unseen.read_bytes"] == 0

    host.end(11)  # it had read another 8 KiB
    host.put(10, "/bin/postgres", read=4096 + (10 << 20) + 8192, reaped=2 * TICKS)
    row = one.take()
    assert row["process.backend.read_bytes"] == 10 << 20
    assert row["process.other.read_bytes"] == 0
    assert row["process.unseen.read_bytes"] == 8192


def test_who_came_and_went_between_two_looks_is_unseen(host: Host) -> None:
    one = sampler(host)
    before = one.take()

    host.put(10, "/bin/postgres", reaped=3 * TICKS)
    row = one.take()
    assert row["process.unseen.cpu_s"] - before["process.unseen.cpu_s"] == 3.0
    assert row["process.backend.cpu_s"] == 0


def test_children_that_ended_before_the_first_look_are_not_unseen(host: Host) -> None:
    host.put(10, "/bin/postgres", reaped=3 * TICKS)

    assert sampler(host).take()["process.unseen.cpu_s"] == 0


def test_a_number_that_is_used_again_is_another_process(host: Host) -> None:
    host.put(11, "postgres: a b [local] idle", 1500, start=5)
    one = sampler(host)
    one.take()

    host.put(11, "postgres: walwriter ", 200, start=9)
    rows = [one.take(), one.take()]
    assert backend(rows[0])[:2] == backend(rows[1])[:2] == (0, 1.5)
    assert rows[1]["process.wal_writer.cpu_s"] == 0.2


def test_a_process_without_a_title_is_met_when_it_has_one(host: Host) -> None:
    host.put(11, "/bin/postgres -D /data", 100)
    one = sampler(host)
    assert one.take()["process.other.count"] == 1  # the postmaster

    host.put(11, "postgres: startup ", 300)
    row = one.take()
    assert (row["process.startup.count"], row["process.startup.cpu_s"]) == (1, 0.3)


class Session:
    """Answers what its server's method of I/O is."""

    def __init__(self, method: str) -> None:
        self._method = method

    def execute(self, text: str) -> Session:
        assert text == "SHOW io_method"
        return self

    def fetchone(self) -> tuple[str]:
        return (self._method,)


@pytest.mark.parametrize(
    ("method", "major", "cpu_s"), [("io_uring", 18, 4.0), ("worker", 18, 1.5), ("none", 17, 1.5)]
)
def test_workers_of_the_kernel_are_counted_with_io_uring(
    host: Host, monkeypatch: pytest.MonkeyPatch, method: str, major: int, cpu_s: float
) -> None:
    """They are threads of the process, of which schedstat does not tell."""
    monkeypatch.setattr(process_roles, "descriptors_to_keep", lambda: 99)
    host.put(11, "postgres: a b [local] idle", 1500, ticks=4 * TICKS)

    one = sampler(host, session=Session(method), major=major)
    assert backend(one.take())[1] == cpu_s


def test_what_the_kernel_does_not_tell_is_missing(host: Host) -> None:
    for name in ("schedstat", "io"):
        (host.proc / "10" / name).unlink()
    host.put(11, "postgres: a b [local] idle", ticks=TICKS)

    found = processes.sampler(Subject(postmaster_pid=10), host.proc)
    assert isinstance(found, list)
    one, *missing = found
    assert isinstance(one, Sampler)
    row = one.take()
    assert row["process.backend.cpu_s"] == 1.0
    assert not any(name.endswith(("wait_cpu_s", "_bytes")) for name in row)
    assert [part.name for part in missing if isinstance(part, Missing)] == [
        "waiting for a CPU by process", "bytes read and written by process"
    ]  # fmt: skip
    (host.proc / "10/task/10/children").unlink()
    none = processes.sampler(Subject(postmaster_pid=10), host.proc)
    assert isinstance(none, Missing)
    assert "CONFIG_PROC_CHILDREN" in none.remedy


class Looker:
    """A session of a role that may look at others, or not."""

    def __init__(self, *, sees_all: bool) -> None:
        self._sees_all = sees_all

    def execute(self, text: str) -> Looker:
        self._row = ("engineer",) if "quote_ident" in text else (self._sees_all,)
        return self

    def fetchone(self) -> tuple[Any, ...]:
        return self._row


@pytest.mark.parametrize(
    ("sees_all", "remedy"),
    [(False, "GRANT pg_monitor TO engineer;"), (True, "Run pgdyno on the server's host")],
)
def test_processes_that_are_not_to_be_seen_are_told_with_what_shows_them(
    sees_all: bool, remedy: str
) -> None:
    there: Any = Looker(sees_all=sees_all)

    assert processes.sampler(Subject()) is None
    missing = processes.sampler(Subject(session=there))

    assert isinstance(missing, Missing)
    assert missing.remedy.startswith(remedy)


@pytest.mark.parametrize("kept", [99, 1])
def test_the_driver_is_all_its_threads_from_when_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    monkeypatch.setattr(followed, "descriptors_to_keep", lambda: kept)

    def thread(tid: int, ran_ms: int) -> None:
        (tmp_path / f"20/task/{tid}").mkdir(parents=True, exist_ok=True)
        (tmp_path / f"20/task/{tid}/schedstat").write_text(f"{ran_ms}000000 5000000 1\n")

    (tmp_path / "self").mkdir()
    (tmp_path / "self/schedstat").write_text("1 1 1\n")
    there: Any = object()  # a session
    pids: list[tuple[int, ...]] = [(), (20,), (20,), (20,)]
    driver = driver_cpu.sampler(Subject(session=there, driver_pids=lambda: pids.pop(0)), tmp_path)
    assert isinstance(driver, Sampler)

    assert driver.take() == {"driver.cpu_s": 0, "driver.wait_cpu_s": 0, "driver.threads": 0}
    assert driver.take() == {}, "it has ended before it was seen, as far as anybody knows"
    thread(20, 100)
    thread(21, 400)
    before = open_files()
    told = driver.take()
    assert open_files() == before + min(kept, 2)
    assert (told["driver.cpu_s"], told["driver.wait_cpu_s"]) == pytest.approx((0.5, 0.01))
    thread(21, 900)
    thread(22, 50)
    told = driver.take()
    assert (told["driver.cpu_s"], told["driver.threads"]) == (pytest.approx(1.05), 3)
    assert open_files() == before + min(kept, 3)
    assert driver_cpu.sampler(Subject()) is None
    assert driver_cpu.sampler(Subject(session=there, driver_pids=None), tmp_path) is None
    (tmp_path / "self/schedstat").unlink()
    assert isinstance(driver_cpu.sampler(Subject(session=there), tmp_path), Missing)


def test_a_stranger_with_the_number_of_an_ended_driver_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followed, "descriptors_to_keep", lambda: 0)

    def runs(ran_ms: int, *threads: int) -> None:
        for tid in threads:
            (tmp_path / f"20/task/{tid}").mkdir(parents=True, exist_ok=True)
            (tmp_path / f"20/task/{tid}/schedstat").write_text(f"{ran_ms}000000 0 1\n")

    (tmp_path / "self").mkdir()
    (tmp_path / "self/schedstat").write_text("1 1 1\n")
    there: Any = object()  # a session
    driver = driver_cpu.sampler(Subject(session=there, driver_pids=lambda: (20,)), tmp_path)
    assert isinstance(driver, Sampler)
    runs(100, 20, 21)
    assert driver.take()["driver.cpu_s"] == pytest.approx(0.2)
    shutil.rmtree(tmp_path / "20")
    assert driver.take()["driver.threads"] == 0

    runs(9000, 20, 30)
    told = driver.take()
    assert (told["driver.cpu_s"], told["driver.threads"]) == (pytest.approx(0.2), 0)


def test_the_driver_has_read_and_written_what_its_processes_did(tmp_path: Path) -> None:
    def uses(pid: int | str, read: int, written: int) -> None:
        (tmp_path / str(pid)).mkdir(exist_ok=True)
        text = f"rchar: 9\nread_bytes: {read}\nwrite_bytes: {written}\n"
        (tmp_path / str(pid) / "io").write_text(text)

    there: Any = object()  # a session
    pids: list[int] = []
    subject = Subject(session=there, driver_pids=lambda: pids)
    assert isinstance(driver_io.sampler(subject, tmp_path), Missing)
    uses("self", 1, 1)
    driver = driver_io.sampler(subject, tmp_path)
    assert isinstance(driver, Sampler)
    assert driver.take() == {"driver.read_bytes": 0, "driver.write_bytes": 0}

    pids += [20, 21]
    uses(20, 4096, 100)
    uses(21, 0, 8192)
    assert driver.take() == {"driver.read_bytes": 4096, "driver.write_bytes": 8292}
    uses(20, 4096, 300)
    assert driver.take() == {"driver.read_bytes": 4096, "driver.write_bytes": 8492}
    pids.append(22)
    assert driver.take() == driver.take() == {}, "one that nobody saw is gone by now"
    assert driver_io.sampler(Subject(session=there, driver_pids=None), tmp_path) is None


def test_what_the_driver_used_stays_and_what_may_not_be_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there: Any = object()  # a session
    refusal: list[OSError] = []

    class Told:
        """A file of a process; a folder of a test cannot lose its processes."""

        def __init__(self, _: Path) -> None:
            pass

        def line(self) -> bytes:
            if refusal:
                raise refusal[0]
            return b"read_bytes: 4096\nwrite_bytes: 100\n"

        def close(self) -> None:
            pass

    monkeypatch.setattr(followed, "KernelFile", Told)
    (tmp_path / "self").mkdir()
    (tmp_path / "self/io").write_text("")

    def driver() -> Sampler:
        found = driver_io.sampler(Subject(session=there, driver_pids=lambda: (20,)), tmp_path)
        assert isinstance(found, Sampler)
        return found

    ends = driver()
    before = ends.take()
    refusal[:] = [ProcessLookupError()]
    assert ends.take() == ends.take() == before == {
        "driver.read_bytes": 4096, "driver.write_bytes": 100
    }  # fmt: skip
    refusal[:] = [PermissionError()]
    with pytest.raises(PermissionError, match="20/io is not ours to read"):
        driver().take()
