"""Statements of the workload: their names, kinds, and their texts as the server keeps them."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest

from pgdyno.model.description import Description, PreparedSql
from pgdyno.sample.statement_names import Known, kind_of, known_statements, without_constants
from pgdyno.workload.describe import describe
from tests.data.workloads import tpcc

NO_KIND = {"begin", "begin_snapshot", "commit", "rollback", "names"}


@pytest.mark.parametrize("face", ["statement", "pipeline", "procedure"])
def test_every_statement_of_tpcc_has_its_kind(
    face: Literal["statement", "pipeline", "procedure"],
) -> None:
    described = describe(replace(tpcc(2), face=face))
    known = known_statements(described)

    assert {one.name for one in known.values()} == {one.name for one in described.statements}
    assert {one.name for one in known.values() if not one.kind} <= NO_KIND
    assert {one.kind for one in known.values() if one.kind} == set(described.kinds)


@pytest.mark.parametrize(
    ("name", "kinds", "kind"),
    [
        ("no_stock_03", ("new_order", "payment"), "new_order"),
        ("del_lines", ("new_order", "delivery"), "delivery"),
        ("new_order", ("new_order", "payment"), "new_order"),
        ("transfer.2", ("transfer", "look.up"), "transfer"),
        ("look.up.1", ("transfer", "look.up"), "look.up"),
        ("begin", ("new_order", "payment"), ""),
        ("begin", ("tpcb",), "tpcb"),
        ("p_x", ("payment", "picking"), ""),
    ],
)
def test_names_tell_kinds(name: str, kinds: tuple[str, ...], kind: str) -> None:
    assert kind_of(name, kinds) == kind


def test_a_text_of_two_kinds_is_of_none() -> None:
    same = "SELECT 1"
    described = Description(
        "mix", 1, kinds=("a", "b"), statements=(PreparedSql("a.1", same), PreparedSql("b.1", same))
    )
    assert known_statements(described) == {same: Known("a.1", "")}


def test_constants_are_alike_as_the_server_has_them() -> None:
    ours = "SELECT count(*) FROM order_line WHERE ol_o_id >= $3 - 20 AND t = 'it''s'"
    kept = "SELECT count(*)  FROM order_line\n WHERE ol_o_id >= $3 - $4 AND t = $5"
    assert without_constants(ours) == without_constants(kept)
    assert without_constants("SELECT s_dist_01") == "SELECT s_dist_01"
