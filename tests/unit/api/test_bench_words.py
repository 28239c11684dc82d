"""What `pgdyno bench` says of a window in which little happened: what is known, and no zeros."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pgdyno.api import Driven, windows
from pgdyno.api.bench_words import client_sentence, rates_line
from pgdyno.model.connection import Connection
from pgdyno.model.workload import TEXT_MIX, Tpcc, Workload
from pgdyno.stats.client_limit import ClientLoad, client_limit
from pgdyno.stats.finding import Finding
from tests.data.hosts import CLIENT

LIKE = "(TPC-C-like, not a TPC result)"


def window(new_orders: int, others: int) -> Driven:
    """A window of 5 s."""
    transactions = new_orders + others
    return cast(
        "Driven",
        SimpleNamespace(
            window_s=5.0, transactions=transactions, nopm=12.0 * new_orders,
            tpm_total=12.0 * transactions, tps=transactions / 5,
        ),
    )  # fmt: skip


def tpcc(think: float = 0.0, **mix: float) -> Workload:
    return Workload("tpcc", 1, tpcc=Tpcc(2, mix=mix or dict(TEXT_MIX), think_multiplier=think))


def test_a_window_with_new_orders_has_a_rate() -> None:
    assert rates_line(window(10, 12), tpcc()) == f"120 NOPM, 264 tpmTotal over 5.0 s {LIKE}"


@pytest.mark.parametrize(("think", "way"), [(0.0, "--seconds"), (1.0, "--think")])
def test_no_new_order_is_no_rate_of_them(think: float, way: str) -> None:
    said = rates_line(window(0, 1), tpcc(think))
    assert said.startswith(f"12 tpmTotal over 5.0 s {LIKE}; no New-Order was committed in it")
    assert "0 NOPM" not in said
    assert way in said


def test_a_window_without_a_transaction_has_no_rate_at_all() -> None:
    said = rates_line(window(0, 0), tpcc())
    assert said.startswith("No transaction ended in the window of 5.0 s, so no rate is known.")


def test_a_mix_without_new_orders_is_not_blamed() -> None:
    assert rates_line(window(0, 5), tpcc(payment=100.0)).endswith("; the mix has no New-Orders")


CALM = ClientLoad(window_s=5.0, host_cpus=4, threads=1, cpu_s=1.0, run_queue_wait_s=0.1,
                  host_idle_share=0.5)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, "The client was not the limit: the busiest driver thread"),
        ({"window_s": 4.99956}, "The client was not the limit: the busiest driver thread"),
        ({"window_s": 2.0}, "Whether the client was the limit is not known: the window lasted 2.0"),
        ({"cpu_s": 4.9}, "The client was the limit: a driver thread ran or waited"),
    ],
)
def test_whether_the_client_was_the_limit_is_a_sentence(changes: dict[str, Any], says: str) -> None:
    answer = client_limit(replace(CALM, **changes))
    said = client_sentence(answer)
    assert said.startswith(says)
    assert said.endswith(".")
    assert not isinstance(answer, Finding) or answer.advice in said


def test_a_window_whose_driver_nobody_looked_at_has_figures_all_the_same() -> None:
    """One second of pgbench on a busy machine ended with an error, its transactions lost."""
    unseen = cast(
        "Driven",
        SimpleNamespace(
            client=replace(CLIENT, user_s=None, system_s=None), transactions=10, window_s=1.0
        ),
    )
    pgbench = replace(tpcc(), engine="pgbench")
    said = windows._client(unseen, pgbench, 0.5, Connection("/tmp", 5432, "u", "d"))
    assert said == (
        "Whether the client was the limit is not known: the driver's CPU time in the window is not"
        " known, it was not read near its ends."
    )
