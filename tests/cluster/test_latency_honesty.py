"""A server that stands still shows in the response times of an open loop as it must.

The exact distribution is compared on virtual time in `crates/drive/tests/stall.rs`; here are the
bounds that a real server cannot leave. With a rate R and a stall of S seconds, the requests due at
least x before its end waited longer than x, and those are R * (S - x): so the m-th largest response
time lies at S - m / R at least, on any machine. It is larger by what catching up takes, at most;
what a busy machine adds to that is not the driver's, so the best of some runs has to keep to it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pgdyno import _core
from pgdyno.drive.driver import drive
from pgdyno.drive.result import Driven
from pgdyno.model.connection import Connection
from pgdyno.model.plan import Protocol
from pgdyno.model.progress import DriveProgress
from pgdyno.model.response_times import SECOND_NS, counted
from pgdyno.model.run import KindResult
from pgdyno.model.settings import Rung
from pgdyno.model.workload import Arrivals, Tpcc, Workload
from pgdyno.stats.window_end import stuck_reason, window_end
from tests.cluster.conftest import loaded, opened
from tests.cluster.standstill import standstill

pytestmark = pytest.mark.cluster
RATE = 200.0
STALL_S = 2.0
WARMUP_S = 0.5
WINDOW_S = 6.0
CONNECTIONS = 4
SHARES = [0.999, 0.99, 0.95, 0.9, 0.8]
ATTEMPTS = 5
READING = {
    "new_order": 0.0, "payment": 0.0, "order_status": 1.0, "delivery": 0.0, "stock_level": 0.0,
}  # fmt: skip


@dataclass
class Stall:
    """Stops the server's sessions once, as soon as the window has begun."""

    connection: Connection
    lasted_s: float = field(default=0.0, init=False)
    stood_ns: tuple[int, int] = field(default=(0, 0), init=False)  # within it, by the calendar

    def __call__(self, progress: DriveProgress) -> None:
        """Told how far the run is."""
        if progress.phase != "window" or self.lasted_s > 0:
            return
        with standstill(self.connection):
            began, began_ns = time.monotonic(), time.time_ns()
            time.sleep(STALL_S)  # the stall itself
            self.stood_ns = began_ns, time.time_ns()
            # Letting them go on again may take a while on a busy machine, and some go on before.
            self.lasted_s = time.monotonic() - began


@dataclass
class StallAtEnd:
    """Stops the server's sessions about a second before the window ends, until after its end."""

    connection: Connection
    beyond_s: float  # after the window's end
    before_s: float = field(default=0.0, init=False)

    def __call__(self, progress: DriveProgress) -> None:
        """Told how far the run is, twice a second."""
        if progress.phase != "window" or progress.phase_left_s > 1.1 or self.before_s > 0:
            return
        asked = time.monotonic()
        with standstill(self.connection):
            left_s = progress.phase_left_s - (time.monotonic() - asked)
            time.sleep(left_s + self.beyond_s)  # the stall itself
        self.before_s = left_s


@pytest.fixture(scope="module")
def connection(session_home: Path) -> Iterator[Connection]:
    """To a server that is only read from: every stall finds the same."""
    with opened("embedded-18", session_home) as target:
        target.restore(loaded(target).ident)
        yield target.apply(()).connection


def driven(
    connection: Connection,
    stall: Stall | StallAtEnd,
    window_s: float = WINDOW_S,
    drain_s: float = 5.0,
) -> Driven:
    workload = Workload(
        "tpcc", 7, connections=CONNECTIONS, terminals=20, threads=1,
        arrivals=Arrivals("open", RATE), tpcc=Tpcc(2, mix=READING),
    )  # fmt: skip
    protocol = Protocol(
        rounds=1, warmup_s=WARMUP_S, window_s=window_s, drain_s=drain_s, prewarm=False, margin=0.05,
        confidence=0.95, lowest_rung=Rung.D0,
    )  # fmt: skip
    return drive(connection, workload, protocol, None, stall)


def test_a_stall_of_the_server_shows_in_every_request_due_meanwhile(
    connection: Connection,
) -> None:
    slower: list[str] = []
    for _ in range(ATTEMPTS):
        stall = Stall(connection)
        result = driven(connection, stall)
        kind = answered(result, stall)
        shown_where_it_was(result, stall)
        slower = exceeded(kind, stall)
        if not slower:
            break

    assert slower == [], f"not even the best of {ATTEMPTS} runs was as fast as it must be"


def answered(result: Driven, stall: Stall) -> KindResult:
    """What holds however slow the machine is: nobody waited for less than the stall."""
    kind = next(kind for kind in result.kinds if kind.kind == "order_status")
    counts = kind.window
    assert counts.due == counts.succeeded + counts.failed + counts.skipped + counts.unfinished
    assert (counts.failed, counts.skipped) == (0, 0)
    # Nothing was held back; on a busy machine some of the warm-up's wait when the window begins.
    assert kind.run.due == pytest.approx(RATE * (WARMUP_S + WINDOW_S), abs=RATE / 10)
    assert RATE * WINDOW_S - RATE / 10 <= counts.due <= kind.run.due
    ended = _core.histogram_count(kind.response)
    for share, ns in zip(SHARES, _core.quantiles(kind.response, SHARES), strict=True):
        exact_s = stall.lasted_s - (1 - share) * ended / RATE
        # Two requests at either end, and a thousandth of the histogram's buckets.
        assert exact_s * 0.999 - 2 / RATE <= ns / 1e9, f"{share}: {ns}"
    assert kind.queue_ns["p99"] / 1e9 > STALL_S / 2
    return kind


def shown_where_it_was(result: Driven, stall: Stall) -> None:
    """Second by second: nothing ended while all stood still, and what waited ended afterwards."""
    kept = counted({one.name: one for one in result.series})
    assert kept is not None
    unix_ns, step_s, edges_ns, counts = kept
    assert step_s == 1
    assert counts.sum() == sum(kind.run.succeeded + kind.run.rolled_back for kind in result.kinds)
    slow = edges_ns[:-1] >= STALL_S / 2 * 1e9
    began_ns, ended_ns = stall.stood_ns
    within = (unix_ns >= began_ns) & (unix_ns + SECOND_NS <= ended_ns)
    assert within.any()
    assert counts[:, within].sum() == 0
    after = unix_ns + SECOND_NS > ended_ns
    least_s = edges_ns[:-1][slow][0] / 1e9
    assert counts[slow][:, after].sum() >= RATE * (STALL_S - least_s) - 2


def exceeded(kind: KindResult, stall: Stall) -> list[str]:
    """Where times are longer than the stall alone explains; a busy machine only adds to them."""
    ended = _core.histogram_count(kind.response)
    # Catching up: the backlog, spread over the connections, at thrice the usual service time; and
    # a tenth of a second for processes that the kernel has to wake up.
    catching_up_s = 3 * kind.service_ns["p50"] / 1e9 * RATE * stall.lasted_s / CONNECTIONS + 0.1
    bounds = [
        (f"response of {share}", ns / 1e9, (stall.lasted_s - (1 - share) * ended / RATE) * 1.001)
        for share, ns in zip(SHARES, _core.quantiles(kind.response, SHARES), strict=True)
    ]
    found = [(what, is_s, most_s + catching_up_s) for what, is_s, most_s in bounds]
    # The stall had RATE * STALL_S of them; the others did not see it.
    [median] = _core.quantiles(kind.response, [0.5])
    found.append(("median", median / 1e9, STALL_S / 4))
    # A driver that times from the sending would show one slow request for each connection.
    [service] = _core.quantiles(kind.service, [1 - (CONNECTIONS + 1) / ended])
    found.append(("service", service / 1e9, STALL_S / 2))
    return [
        f"{what}: {is_s:.3f} s > {most_s:.3f} s" for what, is_s, most_s in found if is_s > most_s
    ]


def test_a_stall_across_the_end_of_the_window_is_timed_in_the_drain(
    connection: Connection,
) -> None:
    stall = StallAtEnd(connection, beyond_s=1.0)

    result = driven(connection, stall, window_s=3.0)

    kind = next(kind for kind in result.kinds if kind.kind == "order_status")
    counts = kind.window
    assert result.outcome == "complete"
    assert counts.unanswered == 0
    assert counts.drained is not None
    # What became due while it stood still, up to the window's end.
    assert counts.drained >= 0.8 * RATE * stall.before_s
    assert _core.histogram_count(kind.response) == counts.timed
    ended_s = stall.before_s + stall.beyond_s
    assert kind.response_ns["max"] / 1e9 > 0.9 * ended_s
    assert kind.response_ns["p99"] / 1e9 > 0.9 * ended_s - 0.01 * counts.timed / RATE
    assert result.drained_s > 0.9 * stall.beyond_s


def test_a_stall_that_outlasts_the_drain_leaves_lower_bounds(connection: Connection) -> None:
    stall = StallAtEnd(connection, beyond_s=2.0)

    result = driven(connection, stall, window_s=2.0, drain_s=0.5)

    kind = next(kind for kind in result.kinds if kind.kind == "order_status")
    counts = kind.window
    assert result.outcome == "unanswered"
    assert result.given_up_s is not None
    assert result.given_up_s > 0.49
    assert counts.stuck == CONNECTIONS
    assert counts.unanswered >= 0.8 * RATE * stall.before_s
    assert counts.due == counts.succeeded + counts.unfinished
    least_ns = kind.response_ns["exact_below"]
    # The last was due as the window ended, the first before the stall began.
    assert 0.4 < least_ns / 1e9 < result.given_up_s + 0.5
    assert kind.response_ns["max"] / 1e9 > 0.9 * (stall.before_s + 0.5)
    reason = stuck_reason(window_end([kind.window for kind in result.kinds], result.given_up_s))
    assert reason is not None
    assert reason.startswith(f"{CONNECTIONS} requests sent in the window had no answer")
