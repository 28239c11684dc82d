"""What a check of consistency may take: memory, where there is little, and whose failure it is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import psycopg
import pytest

from pgdyno.loader import consistency
from pgdyno.model.connection import Connection
from pgdyno.model.description import ConditionSql
from pgdyno.model.errors import CheckError
from pgdyno.target import interface
from pgdyno.target.interface import Target, own_work_mem

CONDITION = ConditionSql(10, "balances", "SELECT 1")


def a_target(role: object) -> Target:
    facts = SimpleNamespace(role=role)
    return cast("Target", SimpleNamespace(facts_of=lambda _: facts))


def test_checks_take_a_quarter_of_the_memory_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 256 MB for each, the kernel killed the server where a control group allows 3 GiB."""
    for gib, kib in ((3, 32 << 10), (24, 256 << 10), (1000, 256 << 10)):
        monkeypatch.setattr(interface, "memory_of", lambda gib=gib: gib << 30)
        assert own_work_mem(a_target(None)) == f"{kib}kB"


def test_the_memory_of_a_check_on_anothers_server_is_what_she_has_set() -> None:
    assert own_work_mem(a_target(object())) is None


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (psycopg.OperationalError("server closed the connection"), psycopg.OperationalError),
        (psycopg.errors.OutOfMemory("out of memory"), psycopg.OperationalError),
        (psycopg.errors.UndefinedTable("no such table"), CheckError),
    ],
)
def test_a_server_that_is_gone_says_nothing_of_the_data(
    error: psycopg.Error, told: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits for its data was asked whether pgdyno had loaded them."""

    def gone(_: object) -> object:
        raise error

    monkeypatch.setattr(consistency, "own_session", gone)
    with pytest.raises(told):
        consistency.check(cast("Connection", None), [CONDITION])
