"""Stages with a pooler: which have one, and what does not go with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.model.errors import PlanError
from pgdyno.model.plan import Plan
from pgdyno.model.pooler import Pooler
from pgdyno.plan import read_plan
from pgdyno.plan.resolve.plan import resolve
from pgdyno.shell import postgres_user
from pgdyno.target import pooler as pooler_of_target
from tests.data.servers import HOST, installed

PLAN = """
name = "one"
question = "Does a pooler help?"
[workload]
kind = "tpcb"
scale = 1
connections = 40
[[stage]]
name = "direct"
why = "Each client has a session."
settings = { max_connections = 60 }
[[stage]]
name = "pooled"
why = "They share some."
pooler = { sessions = 8 }
[[stage]]
name = "also"
why = "It builds on the one before."
[[stage]]
name = "dropped"
why = "And again without."
pooler = { mode = "none" }
[[stage]]
name = "afresh"
why = "It does not build on it."
afresh = true
"""


def resolved(folder: Path, text: str = PLAN) -> Plan:
    path = folder / "plan.toml"
    path.write_text(text)
    return resolve(read_plan(path), installed(18), HOST)


def test_a_stage_has_that_of_the_one_before_until_one_drops_it(tmp_path: Path) -> None:
    plan = resolved(tmp_path)
    eight = Pooler("transaction", 8)
    assert [one.pooler for one in plan.stages] == [None, eight, eight, None, None]
    without = resolved(tmp_path, PLAN.replace("pooler = { sessions = 8 }", ""))
    idents = [{one.stage: one.ident for one in of.trials} for of in (plan, without)]
    same = {name for name, ident in idents[0].items() if idents[1][name] == ident}
    assert same == {"direct", "dropped", "afresh"}, "trials with one have names of their own"


def test_the_server_needs_sessions_for_the_pool_alone(tmp_path: Path) -> None:
    many = PLAN.replace("connections = 40", "connections = 400")
    with pytest.raises(PlanError, match=r"stage direct.*max_connections"):
        resolved(tmp_path, many)
    pooled = many.replace(
        "settings = { max_connections = 60 }",
        "settings = { max_connections = 60 }\npooler = { sessions = 8 }",
    ).partition('[[stage]]\nname = "dropped"')[0]
    assert resolved(tmp_path, pooled).stages[0].pooler == Pooler("transaction", 8)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{ sessions = 8 }", '{ sessions = 8, mode = "session" }',
         "session, 8 sessions, and the load has 40 connections: 32 connections would wait"),
        ("{ sessions = 8 }", "{}", "has mode transaction, which needs sessions"),
        ('{ mode = "none" }', '{ mode = "none", sessions = 2 }',
         "has mode none, which needs no sessions"),
        ("{ sessions = 8 }", "{ sessions = 0 }", "pooler.sessions: 0 is out of range"),
        ("{ sessions = 8 }", "{ size = 8 }", "size"),
        ("[workload]", '[target]\nkind = "running"\nconninfo = "host=/run/x dbname=y"\n[workload]',
         "transaction, 8 sessions, and the server runs already"),
    ],
    ids=["session", "no sessions", "sessions of none", "zero", "unknown key", "running"],
)  # fmt: skip
def test_what_does_not_go_with_it_is_refused(old: str, new: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=said):
        resolved(tmp_path, PLAN.replace(old, new))


def test_where_none_is_installed_the_first_stage_that_asks_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages = resolved(tmp_path).stages
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    ((stage, problem),) = pooler_of_target.pooler_problems(stages, postgres_user())
    assert stage == "pooled"
    assert "program pgbouncer is not on PATH" in problem
    monkeypatch.setattr(pooler_of_target, "left_out", lambda *_: "/a/pgbouncer is not looked at")
    ((_, problem),) = pooler_of_target.pooler_problems(stages, postgres_user())
    assert problem == "pooler: /a/pgbouncer is not looked at, or leave `pooler` out"
    assert not list(pooler_of_target.pooler_problems(stages[:1], postgres_user()))
