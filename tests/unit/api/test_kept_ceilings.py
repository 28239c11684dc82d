"""Which ceilings a host is asked for: of its own part, once for each kind and face."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.api import kept_ceilings
from pgdyno.api.kept_ceilings import ceilings_of, loads_of
from pgdyno.model.errors import HostLostError
from pgdyno.model.fleet import Fleet
from tests.data.workloads import tpcb, tpcc


def test_a_host_is_asked_for_its_own_part_of_each_load_once() -> None:
    one = replace(tpcb(1), connections=5)
    loads = [
        one,
        replace(one, face="pipeline"),
        replace(one, seed=7),
        replace(tpcc(2), connections=8),
    ]

    assert loads_of(loads, 0, 3) == (
        ("tpcb", "statement", 2), ("tpcb", "pipeline", 2), ("tpcc", "statement", 3),
    )  # fmt: skip
    assert [count for _, _, count in loads_of([one], 2, 3)] == [1]


def test_connections_with_a_replica_are_driven_as_well() -> None:
    load = replace(tpcc(2), connections=5, replica_connections=4)

    assert [loads_of([load], number, 3) for number in (0, 2)] == [
        (("tpcc", "statement", 4),), (("tpcc", "statement", 2),),
    ]  # fmt: skip


def test_nobody_is_asked_for_what_a_null_server_does_not_answer() -> None:
    loads = [replace(tpcb(1), engine="pgbench"), replace(tpcb(1), kind="mix")]

    assert loads_of(loads, 0, 2) == ()


def test_an_answer_without_ceilings_names_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_ceilings, "remote_call", lambda *_: {"motd": "hello"})

    with pytest.raises(HostLostError, match=r"host ssh://b answered .*motd.*, which is no answer"):
        ceilings_of(Fleet(("ssh://b",)), [tpcb(1)])
