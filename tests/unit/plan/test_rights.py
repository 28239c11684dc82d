"""Which rights a plan needs on a server that is not ours, by version, and what grants them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.model.errors import PlanError
from pgdyno.model.plan import Plan
from pgdyno.model.rights import NoPlace, Right, Role
from pgdyno.plan.resolve.plan import resolve
from pgdyno.plan.schema.read import read_plan_text
from pgdyno.plan.settings.rights import require_rights, rights, rights_there
from tests.data.servers import HOST, running

NOBODY = Role("engineer", False, False, False, False, True, False, False, frozenset())
ADMINISTRATOR = Role("postgres", True, True, True, True, True, True, True, frozenset())
PLAN = """
name = "rights"
question = "What may it do?"

[target]
kind = "running"
conninfo = "host=here"

[[stage]]
name = "as-it-is"
why = "What is there."

[[stage]]
name = "timed"
why = "Settings of superusers."
settings = { track_io_timing = "on", work_mem = "64MB" }
"""


def resolved(*overrides: str, major: int = 18) -> Plan:
    draft = read_plan_text(PLAN, "rights.toml", Path.cwd(), overrides)
    return resolve(draft, running(major), HOST)


def found(role: Role, *overrides: str, major: int = 18) -> dict[str, Right]:
    plan = resolved(*overrides, major=major)
    server = replace(running(major), role=role)
    return {one.what: one for one in rights(server, plan.protocol, plan.stages)}


def test_a_server_of_ours_asks_for_no_right() -> None:
    plan = resolved()
    assert rights(running(18), plan.protocol, plan.stages) == ()
    require_rights(plan, running(18))


def test_a_superuser_holds_all() -> None:
    assert all(one.is_held for one in found(ADMINISTRATOR).values())


def test_what_a_role_lacks_is_named_with_its_grant() -> None:
    missing = {what: one.grant for what, one in found(NOBODY).items() if not one.is_held}
    assert missing == {
        "create databases": ("ALTER ROLE engineer CREATEDB;",),
        "create pg_prewarm": ("\\c template1", "CREATE EXTENSION pg_prewarm;", "\\c postgres"),
        "make a checkpoint": ("GRANT pg_checkpoint TO engineer;",),
        "set track_io_timing": ("GRANT SET ON PARAMETER track_io_timing TO engineer;",),
        "read all settings": ("GRANT pg_read_all_settings TO engineer;",),
        "read what other sessions do": ("GRANT pg_monitor TO engineer;",),
    }


def test_what_the_plan_does_without_is_not_asked_for() -> None:
    named = found(NOBODY, "protocol.prewarm=false", "protocol.checkpoint_before=false",
                  "stage.timed.skip=true")  # fmt: skip
    assert set(named) == {"create databases", "read all settings", "read what other sessions do"}


def test_what_a_report_lacks_without_a_right_is_said_and_the_right_is_not_needed() -> None:
    right = found(NOBODY)["read what other sessions do"]
    assert not right.is_needed
    assert "pgdyno diagnose" in right.otherwise


def test_a_setting_may_be_granted_alone() -> None:
    role = replace(NOBODY, can_set=frozenset({"track_io_timing"}))
    assert found(role)["set track_io_timing"].is_held


@pytest.mark.parametrize("what", ["make a checkpoint", "set track_io_timing"])
def test_before_15_nothing_less_than_a_superuser_will_do(what: str) -> None:
    server = replace(running(15), version_num=140012, role=NOBODY)
    plan = resolved(major=15)
    named = {one.what: one for one in rights(server, plan.protocol, plan.stages)}
    assert "SUPERUSER" in named[what].grant[0]


def test_missing_files_are_installed_first() -> None:
    right = found(replace(NOBODY, has_prewarm_files=False, can_prewarm=True))["create pg_prewarm"]
    assert not right.is_held
    assert "postgresql-contrib" in right.before


def test_what_template1_holds_is_not_known_where_the_role_may_not_look() -> None:
    role = replace(ADMINISTRATOR, name="engineer", is_superuser=False, can_prewarm=None,
                   can_set=frozenset({"track_io_timing"}))  # fmt: skip
    right = found(role)["create pg_prewarm"]
    assert not right.is_held
    assert right.unknown == "engineer may not look into template1"
    assert "CREATE EXTENSION IF NOT EXISTS pg_prewarm;" in right.grant
    require_rights(resolved(), replace(running(18), role=role))


def test_files_that_are_missing_are_known_to_be_so() -> None:
    right = found(replace(NOBODY, has_prewarm_files=False, can_prewarm=None))["create pg_prewarm"]
    assert not right.is_held
    assert not right.unknown


def test_all_that_is_missing_is_one_refusal() -> None:
    with pytest.raises(PlanError) as refused:
        require_rights(resolved(), replace(running(18), role=NOBODY))
    for what in ("create databases", "create pg_prewarm", "make a checkpoint", "track_io_timing"):
        assert what in refused.value.fact
    assert "read all settings" not in refused.value.fact


def test_anchors_begin_with_a_checkpoint() -> None:
    with pytest.raises(PlanError, match="checkpoint_before: is false, but anchors begin"):
        resolved("protocol.checkpoint_before=false", 'protocol.checkpoints="anchors"')


def test_each_grant_of_a_refusal_has_a_line_that_can_be_pasted() -> None:
    with pytest.raises(PlanError) as refused:
        require_rights(resolved(), replace(running(18), role=NOBODY))
    lines = [line.strip() for line in refused.value.fact.splitlines()]
    at = lines.index("\\c template1")
    assert lines[at : at + 3] == ["\\c template1", "CREATE EXTENSION pg_prewarm;", "\\c postgres"]


@pytest.mark.parametrize(
    ("by_socket", "line"),
    [
        (True, 'local "/^pgdyno_" engineer scram-sha-256'),
        (False, 'host "/^pgdyno_" engineer ADDRESS scram-sha-256'),
    ],
)
def test_the_line_for_pg_hba_is_of_the_way_that_it_comes(by_socket: bool, line: str) -> None:
    role = replace(NOBODY, shut_out_of=("pgdyno_trial",), by_socket=by_socket)
    assert line in found(role)["enter databases pgdyno_trial"].before


@pytest.mark.parametrize(
    ("no_place", "what", "remedy"),
    [
        (NoPlace("app", None, False), "where no schema of search_path = app is",
         'ALTER ROLE engineer SET search_path = "$user", public;'),
        (NoPlace("app", None, True), "where no schema of search_path = app is",
         "leave search_path out of the conninfo"),
        (NoPlace('"$user", public', "public", False), "in schema public of a new database",
         'GRANT USAGE, CREATE ON SCHEMA "public" TO engineer;'),
    ],
)  # fmt: skip
def test_tables_need_a_place(no_place: NoPlace, what: str, remedy: str) -> None:
    with pytest.raises(PlanError) as caught:
        require_rights(resolved(), replace(running(18), role=replace(NOBODY, no_place=no_place)))
    assert what in str(caught.value)
    assert remedy in str(caught.value)


def test_a_replica_is_asked_for_the_sessions_that_it_is_to_have() -> None:
    text = PLAN.replace('"host=here"', '"host=here"\nreplica = "host=there"')
    text += "client = { replica_connections = 8 }\n"
    plan = resolve(read_plan_text(text, "replica.toml", Path.cwd(), ()), running(18), HOST)
    there = replace(NOBODY, sessions_left=10, sessions_max=10, shut_out_of=())
    server = replace(running(18), role=ADMINISTRATOR, replica=there)

    assert [(one.what, one.is_held) for one in rights_there(server, plan.stages)] == [
        ("have 10 sessions at once", True)
    ]
    require_rights(plan, server)
    assert rights_there(replace(server, replica=None), plan.stages) == ()
    few = replace(there, sessions_left=9, sessions_max=9, shut_out_of=("pgdyno_trial",))
    with pytest.raises(PlanError) as caught:
        require_rights(plan, replace(server, replica=few))
    said = caught.value.fact
    for what in ("enter databases pgdyno_trial", "have 10 sessions at once, but 9",
                 "take 10 sessions, as the server has 9 left"):  # fmt: skip
        assert f"replica: role engineer: may not {what}" in said
    assert "without it: stages with fewer replica_connections" in said
