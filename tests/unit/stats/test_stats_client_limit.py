"""Was the client the limit? Every answer once, at both sides of its threshold."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.model.errors import PgdynoError
from pgdyno.stats.client_limit import ClientLoad, client_limit
from pgdyno.stats.finding import Clear, Finding, Unknown

CALM = ClientLoad(
    window_s=60.0,
    host_cpus=4,
    threads=2,
    cpu_s=24.0,
    run_queue_wait_s=6.0,
    thread_cpu_s=(12.0, 12.0),
    thread_wait_s=(3.0, 3.0),
    host_idle_share=0.30,
)


def test_a_calm_client_is_clear_and_shows_its_evidence() -> None:
    answer = client_limit(CALM)
    assert isinstance(answer, Clear)
    told = {one.name: one.value for one in answer.evidence}
    assert told["client_share_of_host"] == pytest.approx(0.10)
    assert told["busiest_thread_wanted_at_least"] == pytest.approx(0.25)
    assert told["run_queue_wait_per_cpu_s"] == pytest.approx(0.25)
    assert told["host_idle_share"] == 0.30


@pytest.mark.parametrize(("cpu_s", "kind"), [(44.9, Clear), (45.1, Finding)])
def test_one_thread_wanted_four_fifths_of_the_time_is_the_limit(
    cpu_s: float, kind: type[object]
) -> None:
    load = replace(CALM, cpu_s=12 + cpu_s, thread_cpu_s=(12.0, cpu_s), host_cpus=8)
    assert isinstance(client_limit(load), kind)  # 3 s of waiting make it 48 of 60 s


def test_waiting_for_a_cpu_counts_like_using_it() -> None:
    load = replace(CALM, thread_wait_s=(3.0, 40.0), run_queue_wait_s=43.0)
    answer = client_limit(load)
    assert isinstance(answer, Finding)
    assert "waited for a CPU for 87%" in answer.fact


@pytest.mark.parametrize(
    ("idle", "local", "kind"),
    [(0.01, True, Clear), (0.30, True, Finding), (0.01, False, Finding)],
)
def test_on_a_full_shared_host_waiting_is_everybodys(
    idle: float, local: bool, kind: type[object]
) -> None:
    load = replace(
        CALM, thread_wait_s=(44.0, 44.0), run_queue_wait_s=88.0, host_idle_share=idle,
        server_on_host=local,
    )  # fmt: skip
    answer = client_limit(load)
    assert isinstance(answer, kind)
    if isinstance(answer, Clear):
        assert "driver thread ran for at most" in answer.fact, "it waited for most of the time"


@pytest.mark.parametrize(("cpu_s", "kind"), [(47.0, Clear), (49.0, Finding)])
def test_a_large_share_of_a_full_host_is_a_finding(cpu_s: float, kind: type[object]) -> None:
    load = replace(CALM, host_idle_share=0.01, cpu_s=cpu_s, thread_cpu_s=(cpu_s / 2, cpu_s / 2))
    answer = client_limit(replace(load, threads=2, thread_wait_s=(0.0, 0.0)))
    assert isinstance(answer, kind)
    assert "more throughput with the client elsewhere" in answer.fact


def test_a_full_host_of_its_own_is_a_finding() -> None:
    answer = client_limit(replace(CALM, host_idle_share=0.01, server_on_host=False))
    assert isinstance(answer, Finding)
    assert "host was full" in answer.fact


def test_sums_clear_the_client_when_no_thread_can_have_been_busy() -> None:
    load = replace(CALM, thread_cpu_s=None, thread_wait_s=None)
    assert isinstance(client_limit(load), Clear)  # 30 of 60 s even were it one thread


def test_sums_that_could_hide_a_busy_thread_are_unknown() -> None:
    load = replace(CALM, thread_cpu_s=None, thread_wait_s=None, cpu_s=44.0, host_cpus=8)
    answer = client_limit(load)
    assert isinstance(answer, Unknown)
    assert "for 42% to 83%" in answer.fact


def test_sums_above_the_limit_are_a_finding_whoever_was_busy() -> None:
    load = replace(CALM, thread_cpu_s=None, thread_wait_s=None, cpu_s=95.0, host_cpus=8)
    assert isinstance(client_limit(load), Finding)


def test_without_waiting_times_a_thread_may_have_waited_all_along() -> None:
    load = replace(CALM, run_queue_wait_s=None, thread_wait_s=None)
    assert isinstance(client_limit(load), Unknown)


def test_an_unmeasured_idle_share_matters_only_for_a_large_client() -> None:
    assert isinstance(client_limit(replace(CALM, host_idle_share=None)), Clear)
    small_host = replace(CALM, host_idle_share=None, host_cpus=1)
    assert isinstance(client_limit(small_host), Unknown)


def test_a_short_window_is_unknown() -> None:
    assert isinstance(client_limit(replace(CALM, window_s=4.0)), Unknown)
    asked = replace(
        CALM, window_s=4.9, cpu_s=2.0, run_queue_wait_s=0.5, thread_cpu_s=(1.0, 1.0),
        thread_wait_s=(0.25, 0.25),
    )  # fmt: skip
    assert not isinstance(client_limit(asked), Unknown), "5 s were asked for"


@pytest.mark.parametrize(
    "wrong",
    [
        {"cpu_s": -1.0},
        {"cpu_s": float("nan")},
        {"threads": 0},
        {"window_s": 0.0},
        {"host_cpus": 0},
        {"thread_cpu_s": (1.0,)},
        {"cpu_s": 140.0},
        {"host_idle_share": 30.0},
    ],
)
def test_contradictions_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(PgdynoError):
        client_limit(replace(CALM, **wrong))  # type: ignore[arg-type]


@pytest.mark.parametrize(("ceiling_per_s", "kind"), [(1_251.0, Clear), (1_249.0, Finding)])
def test_four_fifths_of_the_ceiling_is_the_limit(ceiling_per_s: float, kind: type[object]) -> None:
    load = replace(CALM, transactions_per_s=1_000.0, ceiling_per_s=ceiling_per_s)
    answer = client_limit(load)
    assert isinstance(answer, kind)
    told = {one.name: one.value for one in answer.evidence}
    assert told["share_of_ceiling"] == pytest.approx(1_000 / ceiling_per_s)


def test_an_impossible_ceiling_is_refused() -> None:
    with pytest.raises(PgdynoError, match="ceiling is 0"):
        client_limit(replace(CALM, transactions_per_s=1.0, ceiling_per_s=0.0))
