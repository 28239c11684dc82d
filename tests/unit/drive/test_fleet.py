"""Hosts that drive together: clocks, shares, who is refused, and how an account is kept."""

from __future__ import annotations

import io
import json
import queue
import time
from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.drive import fleet as head
from pgdyno.drive import host_link, remote_call
from pgdyno.drive.host_link import Heard, HostLink, Inbox, open_link
from pgdyno.drive.host_results import combined, connections_of, share_of, together
from pgdyno.drive.remote_call import answer_in
from pgdyno.drive.transport import Transport, transports
from pgdyno.drive.transports.ssh import command
from pgdyno.model.client import Client
from pgdyno.model.connection import Connection
from pgdyno.model.errors import DriveError, HostLostError
from pgdyno.model.fleet import Fleet, FleetResult, HostKind, HostResult, Machine, Offset
from pgdyno.model.host_address import SCHEMES, BadAddress, host_address
from pgdyno.model.progress import DriveProgress
from pgdyno.stats.fleet import ceiling_remarks, fleet_reasons, unlike
from tests.data.workloads import tpcc
from tests.waiting import DEADLINE_S, until

SECOND_NS = 1_000_000_000
MACHINE = Machine("0.1.0", 8, "c0ffee", "3.11.2", "6.1", "boot-a", "net:[1]", 2, 1024)
CLIENT = Client(1.0, 0.5, 10.0, 2, 0.075, 1, 1, 0.0, 1, 1000, (1.5,), (0.0,))
WAYS_NS = st.integers(0, 50_000_000)
CLOCK_NS = st.integers(-(10**18), 10**18)


class Process:
    """Has ended with a code, or not."""

    def __init__(self, code: int | None = None) -> None:
        self._code = code

    def wait(self, _timeout_s: float) -> int | None:
        return self._code


def link(name: str, code: int | None = None, **changes: Any) -> HostLink:
    found = HostLink(name, Process(code), io.BytesIO())  # type: ignore[arg-type]
    found.machine = replace(MACHINE, **changes)
    return found


def host(name: str, begin_s: float = 0.0, end_s: float = 10.0, **changes: Any) -> HostResult:
    summary = {"p50": 1_000_000, "p999": 2_000_000}
    kind = HostKind("tpcb", 100, "", "", "", summary, summary, summary)
    offsets = (Offset(0, 5, 1000), Offset(20 * SECOND_NS, 5, 1000))
    window = (round(begin_s * SECOND_NS), round(end_s * SECOND_NS))
    found = HostResult(name, MACHINE, 4, 8, offsets, window, 0, (kind,), CLIENT, summary, 10, "0")
    return replace(found, **changes)


@given(offset=CLOCK_NS, there=WAYS_NS, back=WAYS_NS, work=WAYS_NS, asked=st.integers(0, 10**18))
def test_the_true_offset_lies_within_its_bound(
    offset: int, there: int, back: int, work: int, asked: int
) -> None:
    """However long the ways there and back took, and however unlike they were."""
    heard, said = asked + there + offset, asked + there + work + offset
    came = asked + there + work + back

    found = head.offset_of(
        asked, {"received_ns": heard, "sent_ns": said, "answered_ns": came, "clock": 0}
    )

    assert abs(found.offset_ns - offset) <= found.bound_ns
    assert found.bound_ns <= (there + back) // 2 + 1


@given(st.integers(0, 500), st.integers(1, 50))
def test_shares_are_dealt_round_robin_and_are_the_whole(there: int, hosts: int) -> None:
    shares = [share_of(there, number, hosts) for number in range(hosts)]

    assert sum(shares) == there
    assert max(shares) - min(shares) <= 1


def test_what_a_host_opens_is_all_that_it_opens() -> None:
    load = replace(tpcc(4).over(2, "block"), connections=10)
    assert [connections_of(load, number, 3) for number in range(3)] == [4, 4, 2]
    read = replace(tpcc(4), connections=10, replica_connections=5)
    assert [connections_of(read, number, 3) for number in range(3)] == [4 + 2, 3 + 2, 3 + 1]
    first, second = (link(name, descriptors_max=70) for name in ("local:a", "local:b"))
    both = head.Head(Fleet(("local:a", "local:b")), {})
    both.links = [first, second]
    both.require_alike(replace(read, replica_connections=2))
    with pytest.raises(DriveError, match=r"may open 70 files and sockets, its 8 connections need"):
        both.require_alike(read)


def test_a_transport_is_registered_by_where_it_lies() -> None:
    assert set(transports()) == set(SCHEMES)


@pytest.mark.parametrize(
    "name",
    [
        "local:a",
        "netns:client-1",
        "ssh://b",
        "ssh://bench@b.example:2222",
        "ssh://[fe80::1]:22",
        "ray:10.0.0.7",
    ],
)
def test_addresses_are_read(name: str) -> None:
    assert host_address(name).scheme == name.partition(":")[0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("b", "is of no known transport; allowed: local:NAME"),
        ("ray://b", "is no address; allowed: ray:NODE"),
        ("dask:b", "is of no known transport"),
        ("ssh:b", "is no address; allowed: ssh://"),
        ("ssh://-oProxyCommand=x", "is no address"),
        ("ssh://a b", "is no address"),
        ("local:", "is no address; allowed: local:NAME"),
        ("netns:../x", "is no address"),
        ("netns:-n", "is no address"),
    ],
)
def test_what_is_no_address_is_refused(name: str, text: str) -> None:
    with pytest.raises(BadAddress, match=text):
        host_address(name)


def test_ssh_always_checks_the_hosts_key_and_asks_nobody() -> None:
    words = command(host_address("ssh://bench@b:2222"), Fleet((), "/opt/my python", "/etc/own"))

    assert "StrictHostKeyChecking=yes" in words
    assert "BatchMode=yes" in words
    # What stands on the command line first, no file overrules.
    assert words.index("StrictHostKeyChecking=yes") < words.index("-F")
    assert words[-6:-1] == ("/etc/own", "-p", "2222", "--", "bench@b")
    assert words[-1] == "exec '/opt/my python' -P -m pgdyno.drive.host_worker"


@pytest.mark.parametrize("what", ["pgdyno", "contract", "core"])
def test_hosts_of_other_versions_are_refused_with_both(what: str) -> None:
    changes: dict[str, Any] = {what: 9 if what == "contract" else "other"}
    other = link("ssh://b", boot="boot-b", **changes)

    with pytest.raises(DriveError, match=rf"host local:a has {what} .*, host ssh://b has"):
        head.require_alike([link("local:a"), other])


def test_a_machine_that_is_reached_twice_by_ssh_is_refused() -> None:
    here = [link(name, boot="boot-b") for name in ("local:a", "netns:c", "local:b")]
    once = [link("ssh://a"), link("ssh://b", network="net:[2]"), *here]
    head.require_alike(once)

    with pytest.raises(DriveError, match="hosts ssh://a and ssh://c are one and the same"):
        head.require_alike([*once, link("ssh://c")])


def test_this_machine_by_another_name_is_refused() -> None:
    for hosts in (["local:a", "local:b", "ssh://localhost"], ["ssh://localhost", "local:a"]):
        with pytest.raises(DriveError, match=f"hosts {hosts[0]} and {hosts[-1]} are one and the"):
            head.require_alike([link(name) for name in hosts])


def test_a_server_that_only_this_host_reaches_is_refused_for_others() -> None:
    here = Connection("/run/postgresql", 5432, "u", "d", password="secret")
    head.require_reachable(Fleet(("local:a", "netns:b")), here)
    head.require_reachable(Fleet(("ssh://b",)), replace(here, host="10.0.0.1"))

    with pytest.raises(DriveError, match="ssh://b would look for on its own") as caught:
        head.require_reachable(Fleet(("local:a", "ssh://b")), here)
    assert "secret" not in caught.value.line


def test_progress_is_that_of_the_last_host_with_the_counts_of_all() -> None:
    first, second = link("local:a"), link("local:b")
    first.progress = DriveProgress("window", 5.0, 9.0, {"a": 3}, {"a": 1}, 1, 2, 3, 4, 5)
    second.progress = DriveProgress("warmup", 1.0, 8.0, {"a": 4, "b": 1}, {}, 1, 1, 1, 1, 1)

    assert head._together([first, second]) == DriveProgress(
        "warmup", 1.0, 9.0, {"a": 7, "b": 1}, {"a": 1}, 2, 3, 4, 5, 6
    )
    first.result = "{}"
    assert head._together([first]).phase == "done"


def test_a_host_is_lost_when_it_ends_or_says_what_is_no_line_and_says_why() -> None:
    gone = link("ssh://b", code=255)
    gone.errors.write(b"noise\nHost key verification failed.\n")
    gone.take(Heard(gone, None, 0))
    assert gone.lost == "its process ended with code 255: Host key verification failed."

    odd = link("ssh://d")
    odd.take(Heard(odd, "Welcome to d!\n", 0))
    assert odd.lost == "it said 'Welcome to d!', which is no line of a host"

    for said in ("42", "[]", "null", '"hello"', '{"clock": 1}', '{"clock": {}, "sent_ns": 1}',
                 '{"hello": 1}', '{"error": 1}', '{"error": {}}', '{"phase": 1}',
                 '{"phase": "brewing", "phase_left_s": 1}', '{"result": 1, "around": 1}',
                 "[" * 100_000):  # fmt: skip
        odd = link("ssh://d")
        odd.take(Heard(odd, said + "\n", 0))
        assert odd.lost == f"it said {said[:300]!r}, which is no line of a host"

    done = link("ssh://e", code=0)
    done.result = "{}"
    done.take(Heard(done, None, 0))
    assert done.lost is None


class Endless(io.StringIO):
    """Says the same letter for ever, and counts how many of them were taken."""

    taken = 0

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
        assert size > 0, "all of it would be read"
        self.taken += size
        return "x" * size


def test_a_host_that_never_ends_its_line_is_lost_and_takes_no_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A login shell that prints what its user likes, or a file as `/dev/zero`."""
    monkeypatch.setattr(host_link, "LINE_MAX", 1000)
    process: Any = Process()
    process.stdout, process.stdin = Endless(), io.StringIO()
    process.signal = process.kill_group = process.close_pipes = lambda *_: None
    way = Transport("ssh", lambda *_: process)
    inbox: Inbox = queue.SimpleQueue()
    one = open_link("ssh://b", Fleet(("ssh://b",)), way, inbox)
    for _ in range(2):
        one.take(inbox.get(timeout=DEADLINE_S))
    assert one.lost == "it said 1,000 letters without a line's end"
    assert process.stdout.taken == 1000, "nothing more is taken from it"
    one.end()

    monkeypatch.setattr(remote_call, "transports", lambda: {"ssh": way})
    process.stdin = io.StringIO()
    with pytest.raises(HostLostError, match="gave no answer: it said 1,000 letters without"):
        remote_call.remote_call("ssh://b", Fleet(("ssh://b",)), "m", {}, DEADLINE_S)


class Talkative(io.StringIO):
    """Says one valid line for ever, and counts how often."""

    said = 0

    def readline(self, _size: int = -1, /) -> str:  # type: ignore[override]
        self.said += 1
        return '{"phase": "window"}\n'


def test_a_host_that_never_stops_talking_waits_until_it_is_heard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process: Any = Process()
    process.stdout, process.stdin = Talkative(), io.StringIO()
    process.signal = process.kill_group = lambda *_: None
    process.close_pipes = process.stdout.close
    fleet, way = Fleet(("ssh://b",)), Transport("ssh", lambda *_: process)
    hears = head.Head(fleet, {"ssh": way})
    hears.links.append(open_link("ssh://b", fleet, way, hears._inbox))
    full = host_link.UNHEARD_MAX + 1
    until(lambda: process.stdout.said >= full, "lines are read")
    time.sleep(0.1)
    assert process.stdout.said == full, "it is not read on"
    hears.hear(0.05)
    until(lambda: process.stdout.said > full, "it is read on when it is heard")
    monkeypatch.setattr(Talkative, "readline", lambda *_: "")
    hears.links[0].end()


def test_a_host_that_fills_the_disk_with_its_errors_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(host_link, "ERRORS_MAX_BYTES", 1000)
    flooding = link("ssh://b")
    flooding.errors.write(b"x" * 999 + b"\n")
    flooding.notice_flood()
    assert flooding.lost is None
    flooding.errors.write(b"no room\n")
    flooding.notice_flood()
    assert flooding.lost == "it wrote 1,008 bytes of errors: no room"


def test_of_what_a_host_wrote_of_its_failure_the_end_is_read() -> None:
    gone = link("ssh://b", code=1)
    gone.errors.write(b"x" * 100_000 + b"\nno room\n")
    sizes: list[int] = []

    class Counted(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            sizes.append(-1 if size is None else size)
            return super().read(size)

    gone.errors.seek(0)
    gone.errors = Counted(gone.errors.read())
    assert gone.last_words() == ": no room"
    assert 0 < sizes[0] < 10_000, "not all of it is read"


def test_a_result_that_is_none_names_its_host() -> None:
    one = link("ssh://b", code=0)
    one.offsets = [Offset(0, 0, 1), Offset(1, 0, 1)]
    for said in ("1", '{"phase": "done"}', "[" * 100_000):
        one.result = said
        with pytest.raises(DriveError, match="a result of ssh://b is not understood") as caught:
            combined([one], {}, tpcc(1), None)
        assert caught.value.hint == "Install the same wheel of pgdyno on all hosts."


def test_a_host_that_tells_less_of_itself_is_of_another_build_and_is_named() -> None:
    told = asdict(MACHINE)
    del told["network"]
    one = link("ssh://b")

    with pytest.raises(DriveError, match=r"host ssh://b .*: version 0\.1\.0 there,") as caught:
        one.take(Heard(one, json.dumps({"hello": told}), 0))
    assert caught.value.hint == "Install the same wheel of pgdyno on all hosts."


@pytest.mark.parametrize(
    "said", ["42", "null", "[1]", "Welcome!", '{"error": 1}', '"error"', "[" * 100_000]
)
def test_an_answer_that_is_none_names_the_host(said: str) -> None:
    with pytest.raises(HostLostError, match=r"host ssh://b answered .*, which is no answer"):
        answer_in("ssh://b", said)


def test_a_remote_calls_error_names_the_host() -> None:
    assert answer_in("ssh://b", '{"ceilings": []}') == {"ceilings": []}
    with pytest.raises(DriveError, match="host ssh://b: no room") as caught:
        answer_in("ssh://b", '{"error": {"fact": "no room", "hint": null}}')
    assert not isinstance(caught.value, HostLostError)


def test_a_hosts_error_names_it() -> None:
    error = '{"error": {"kind": "target", "fact": "connect to b: refused", "hint": "Start it."}}'
    with pytest.raises(DriveError, match="host local:a: connect to b: refused") as caught:
        (one := link("local:a")).take(Heard(one, error, 0))
    assert caught.value.hint == "Start it."


def test_hosts_that_drove_together_all_the_time_may_be_used() -> None:
    whole = FleetResult((host("local:a"), host("local:b", 0.001, 10.0)))

    assert whole.overlap == pytest.approx(0.9999 - 2e-7, abs=1e-6)
    assert whole.skew_ns == 1_002_000
    assert not list(fleet_reasons(whole))
    assert FleetResult((host("local:a"),)).skew_ns == 0


def test_below_the_least_overlap_the_trial_is_no_good_and_says_why() -> None:
    apart = FleetResult((host("local:a"), host("local:b", 0.02, 10.0)))

    (reason,) = fleet_reasons(apart)
    assert reason == (
        "the hosts drove together for 99.80% of the window, 99.9% are needed: they began up to"
        " 20.0 ms apart"
    )
    # A clock that is not known better is no better than one that is off.
    vague = replace(host("local:b"), offsets=(Offset(0, 0, 20_000_000), Offset(1, 0, 1)))
    assert list(fleet_reasons(FleetResult((host("local:a"), vague))))
    # Windows that end with the last request end when each host has made its own.
    early = FleetResult((host("local:a"), host("local:b", 0.0, 7.0)), whole=False)
    assert not list(fleet_reasons(early))
    lost = replace(apart, lost=("host local:c was lost: it said nothing for 5 s",))
    assert list(fleet_reasons(lost)) == ["host local:c was lost: it said nothing for 5 s"]


def test_processes_of_one_machine_share_its_cpus() -> None:
    here = [host("local:a"), host("netns:b")]
    there = host("ssh://c", machine=replace(MACHINE, boot="boot-c"))

    assert together(here).cpus == 2
    assert together(here).share_of_host == pytest.approx(3.0 / 20)
    both = together([*here, there])
    assert (both.cpus, both.threads, both.thread_cpu_s) == (4, 3, (1.5, 1.5, 1.5))


def test_a_host_whose_requests_take_longer_is_unlike() -> None:
    summary = {"p50": 1_500_000, "p999": 1}
    kind = HostKind("tpcb", 90, "", "", "", summary, summary, summary)
    hosts = [host("local:a"), host("local:b"), host("local:c", kinds=(kind,))]

    assert unlike(hosts[2], hosts) == pytest.approx(0.5)
    assert unlike(hosts[0], hosts) == 0
    assert unlike(hosts[0], hosts[:1]) is None


def test_drift_is_the_change_of_the_offset_over_time() -> None:
    drifting = host("a", offsets=(Offset(0, 0, 10), Offset(10 * SECOND_NS, 50_000, 20)))

    assert drifting.drift_ppm == pytest.approx(5.0)
    assert drifting.bound_ns == 20


def test_a_host_whose_ceiling_is_unlike_the_others_or_too_low_is_told_before() -> None:
    per_thread = {"local:a": 10_000.0, "ssh://b": 10_500.0, "ssh://c": 6_000.0}

    assert not list(ceiling_remarks("local:a", 20_000.0, per_thread, 15_000.0))
    assert not list(ceiling_remarks("ssh://d", None, per_thread, 10**9))
    assert list(ceiling_remarks("ssh://c", 12_000.0, per_thread, 15_000.0)) == [
        "each of its threads drives 40% less than those of the others",
        "its part of the rate, 15,000/s, is 125% of its ceiling: it would be the limit",
    ]
