"""Hosts that load together: what each is told, how far they are, and who is refused."""

from __future__ import annotations

import json
import queue
import threading
from dataclasses import asdict, replace
from typing import Any

import pytest

from pgdyno.drive import loading_hosts
from pgdyno.drive.loading_hosts import LoadingHosts, together
from pgdyno.drive.transport import Transport
from pgdyno.model.connection import Connection
from pgdyno.model.errors import DriveError, HostLostError
from pgdyno.model.fleet import Fleet
from pgdyno.model.loading import LoadReport, PhaseSeconds
from pgdyno.model.progress import LoadProgress
from tests.data.hosts import MACHINE
from tests.waiting import DEADLINE_S

SERVER = Connection("10.0.0.5", 5432, "u", "shop")
REPORT = LoadReport(1, {}, 2.0, (PhaseSeconds("copy", 1.5, 3.0),), 10, 100)
HALF = LoadProgress("copy", 5, 10, 50, 100.0, 1.0, 0.5, work=1_000)


class Host:
    """A process that says hello, how far it is, and a result for each load that it is told."""

    def __init__(self, **changes: Any) -> None:
        self.stdin, self.stdout = self, self
        self.told: list[dict[str, Any]] = []
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._lines.put(json.dumps({"hello": asdict(replace(MACHINE, **changes))}) + "\n")
        self.answer: dict[str, Any] | None = {"result": asdict(REPORT)}
        self.is_closed = False
        self.sees_life = threading.Event()

    def write(self, line: str) -> None:
        message = json.loads(line)
        if "alive" in message:
            self.sees_life.set()
        if "load" in message:
            self.told.append(message["load"])
            self._lines.put(json.dumps({"loading": asdict(HALF)}) + "\n")
            if self.answer is None:
                self.close()
            else:
                self._lines.put(json.dumps(self.answer) + "\n")

    def flush(self) -> None: ...

    def close(self) -> None:
        self.is_closed = True
        self._lines.put("")

    def readline(self, _size: int = -1) -> str:
        return self._lines.get()

    def wait(self, _timeout_s: float) -> int | None:
        return 0

    def close_pipes(self) -> None: ...


def loading(monkeypatch: pytest.MonkeyPatch, *hosts: Host) -> LoadingHosts:
    names = tuple(f"local:{number}" for number in range(len(hosts)))
    start: Any = lambda at, *_: hosts[int(at.place)]  # noqa: E731
    ways = {"local": Transport("local", start)}
    monkeypatch.setattr(loading_hosts, "transports", lambda: ways)
    return LoadingHosts(Fleet(names), SERVER)


def test_each_host_is_told_the_whole_and_its_part(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = [Host() for _ in range(3)]
    told: list[LoadProgress] = []
    with loading(monkeypatch, *hosts) as them:
        them.reach({"version": 1}, 8)
        copied = them.copy({"version": 1}, 8, told.append)
        alone = them.copy({"version": 1}, None)
    first, second, third = ([one["part"] for one in host.told] for host in hosts)
    assert first[0] == second[0] == third[0] == "reach"
    assert [one[1]["copy"]["host"] for one in (first, second, third)] == [0, 1, 2]
    assert [host.told[1]["connections"] for host in hosts] == [3, 3, 2]
    assert all("connections" not in host.told[2] for host in hosts)
    assert [one.name for one in copied] == ["local:0", "local:1", "local:2"]
    assert [one.copy_s for one in alone] == [1.5] * 3
    assert (told[-1].rows, told[-1].share) == (30, 1.0)
    assert all(host.is_closed for host in hosts)


def test_the_first_of_many_hosts_hears_of_the_head_while_the_last_is_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It went by five seconds of silence, and a hundred take longer to begin."""
    hosts = [Host(), Host()]

    def start(at: Any, *_: object) -> Any:
        if at.place == "1":
            assert hosts[0].sees_life.wait(DEADLINE_S)
        return hosts[int(at.place)]

    monkeypatch.setattr(loading_hosts, "transports", lambda: {"local": Transport("local", start)})
    with LoadingHosts(Fleet(("local:0", "local:1")), SERVER):
        pass


def test_progress_is_that_of_all_hosts_by_their_work() -> None:
    done = replace(HALF, rows=30, rows_total=30, share=1.0, work=3_000, seconds=2.0)
    both = together([HALF, done])
    assert (both.rows, both.rows_total, both.bytes_per_s, both.work) == (35, 40, 200.0, 4_000)
    assert (both.share, both.seconds) == (0.875, 2.0)
    assert together([replace(HALF, work=0)]).share == 0.0


def test_who_cannot_load_together_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        pytest.raises(DriveError, match="connections are 1, hosts are 2"),
        loading(monkeypatch, Host(), Host()) as them,
    ):
        them.reach({}, 1)
    with (
        pytest.raises(DriveError, match="has core c0ffee, host local:1 has 0ther"),
        loading(monkeypatch, Host(), Host(core="0ther")),
    ):
        raise AssertionError("they are not alike")
    with pytest.raises(DriveError, match="which ssh://b would look for on its own host"):
        LoadingHosts(Fleet(("ssh://b",)), Connection("/tmp", 5432, "u", "shop"))


def test_a_host_that_fails_or_ends_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    failing, ending = Host(), Host()
    failing.answer = {"error": {"kind": "target", "fact": "copy stock: ERROR 53100", "hint": "h"}}
    with (
        pytest.raises(DriveError, match="host local:1: copy stock: ERROR 53100") as error,
        loading(monkeypatch, Host(), failing) as them,
    ):
        them.copy({}, None)
    assert error.value.hint == "h"
    ending.answer = None
    with (
        pytest.raises(HostLostError, match="host local:1 could not copy its rows: its process"),
        loading(monkeypatch, Host(), ending) as them,
    ):
        them.copy({}, None)
    nonsense = Host()
    nonsense.answer = {"result": {"rows": "many"}}
    with (
        pytest.raises(DriveError, match="what local:0 says of its load is not understood"),
        loading(monkeypatch, nonsense) as them,
    ):
        them.copy({}, None)
