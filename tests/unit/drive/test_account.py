"""What a process that is not ours costs: from /proc, between two instants."""

from __future__ import annotations

import os
import time
from dataclasses import replace

import pytest

from pgdyno.drive.process_cost import Sample, ThreadSample, cost, sample
from pgdyno.model.errors import PgdynoError
from pgdyno.stats.client_limit import load_of

S = 1_000_000_000


def at(second: int, user_s: float, cpu_s: int) -> Sample:
    threads = {7: ThreadSample(cpu_s * S, S, 10 * second, second), 8: ThreadSample(0, 0, 0, 0)}
    return Sample(second * S, user_s, 0.5, 1000 * second, threads)


def test_costs_are_those_of_the_window() -> None:
    samples = [at(4, 1.6, 1), at(6, 2.4, 3), at(10, 4.0, 4), at(20, 6.0, 6), at(30, 6.0, 6)]

    client = cost(samples, (5 * S, 20 * S), cpus=2)

    assert (client.user_s, client.system_s, client.window_s) == (4.0, 0.0, 15.0)
    assert client.share_of_host == pytest.approx(4 / 30)
    assert (client.thread_cpu_s, client.thread_wait_s) == ((4.0, 0.0), (0.0, 0.0))
    assert (client.voluntary_switches, client.involuntary_switches) == (150, 15)
    assert (client.threads, client.rss_max_bytes) == (2, 30_000)


@pytest.mark.parametrize(
    "samples",
    [[at(0, 0.0, 0), at(12, 4.0, 4), at(20, 6.0, 6)], [at(0, 0.0, 0), at(5, 1.0, 1)],
     [at(4, 9.0, 9), at(6, 9.5, 9), at(20, 1.0, 10)]],
    ids=["an end lies in a gap", "the last was long before the end", "another process"],
)  # fmt: skip
def test_what_nobody_looked_at_is_not_known(samples: list[Sample]) -> None:
    client = cost(samples, (5 * S, 20 * S), cpus=2)

    assert (client.user_s, client.cpu_s, client.share_of_host) == (None, None, None)
    assert (client.threads, client.window_s) == (2, 15.0)
    with pytest.raises(PgdynoError, match="CPU time in the window is not known"):
        load_of(client, host_idle_share=None, server_on_host=True)


def test_threads_that_come_later_and_go_earlier_are_counted() -> None:
    alone = [replace(at(t, 0.0, t), threads={7: at(t, 0.0, t).threads[7]}) for t in (0, 30)]

    client = cost([alone[0], at(10, 0.0, 4), at(20, 0.0, 6), alone[1]], (0, 20 * S), cpus=2)

    assert (client.threads, client.thread_cpu_s) == (2, (6.0, 0.0))


def test_this_process_is_read() -> None:
    before = sample(os.getpid())
    until = time.thread_time() + 0.03
    while time.thread_time() < until:
        pass
    after = sample(os.getpid())

    assert before is not None
    assert after is not None
    own = os.getpid()
    assert after.threads[own].cpu_ns - before.threads[own].cpu_ns >= 0.02 * S
    assert after.user_s + after.system_s > 0
    assert after.rss_max_bytes > 1 << 20


def test_an_ended_process_has_none() -> None:
    assert sample(2**22 + 1) is None
