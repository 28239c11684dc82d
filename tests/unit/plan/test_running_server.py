"""What a running server has set, and what cannot be set there: told with a way on."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from pgdyno.model.errors import PlanError
from pgdyno.model.plan import Plan
from pgdyno.model.rights import Role
from pgdyno.model.settings import ServerFacts
from pgdyno.plan import render_dry_run
from pgdyno.plan.resolve.plan import resolve
from pgdyno.plan.schema.read import read_plan_text
from tests.data.servers import HOST, running

ROLE = Role("engineer", False, True, True, True, True, True, True, frozenset())
PLAN = """
name = "running"
question = "What does the server have?"

[target]
kind = "running"
conninfo = "host=here"

[protocol]
lowest_rung = "D2"

[[stage]]
name = "as-it-is"
why = "What is there."
"""


def having(**found: str) -> ServerFacts:
    """A server with these settings, each from a file that it tells."""
    of = running(15)
    knobs = of.knobs | {name: replace(of.knobs[name], default=value)
                        for name, value in found.items()}  # fmt: skip
    places = {name: f"/etc/postgresql.conf:{line}" for line, name in enumerate(found, start=823)}
    return replace(of, role=ROLE, knobs=knobs, set_in=places)


def resolved(server: ServerFacts, settings: str = "") -> Plan:
    return resolve(read_plan_text(PLAN + settings, "running.toml", Path.cwd()), server, HOST)


def test_a_rung_that_the_server_is_on_is_its_own_and_not_a_stages() -> None:
    with pytest.raises(PlanError) as refused:
        resolved(having(fsync="off"))
    fact, hint = refused.value.fact, refused.value.hint or ""
    assert "fsync = off, as the server has it (/etc/postgresql.conf:823), puts it on rung" in fact
    assert "Change fsync on the server and reload its configuration. Or, to measure it so" in (
        f"{fact} {hint}"
    )


@pytest.mark.parametrize(
    ("setting", "way"), [("shared_buffers", "a restart"), ("max_wal_size", "a reload of the")]
)
def test_what_a_running_server_does_not_let_be_set_has_a_way_on(setting: str, way: str) -> None:
    with pytest.raises(PlanError) as refused:
        resolved(having(), f'settings = {{ {setting} = "1GB" }}')
    told = f"{refused.value.fact} {refused.value.hint}"
    assert "cannot be set on a running server" in told
    assert "`--bindir`" in told
    assert f"A change of {setting} takes {way}" in told
    assert "`pgdyno compare`" in told


def test_of_several_such_settings_what_they_share_is_told_once() -> None:
    settings = 'settings = { shared_buffers = "1GB", max_wal_size = "1GB", wal_buffers = "8MB" }'
    with pytest.raises(PlanError) as refused:
        resolved(having(), settings)
    hint = refused.value.hint or ""
    assert hint.count("`--bindir`") == 1
    assert hint.endswith(
        " A change of shared_buffers takes a restart. A change of max_wal_size takes a reload of"
        " the configuration. A change of wal_buffers takes a restart. Nothing was touched."
    )


def test_what_the_server_puts_off_is_a_note_of_the_server() -> None:
    assert not [one for one in resolved(having()).notes if "autovacuum" in one]
    (note,) = (one for one in resolved(having(autovacuum="off")).notes if "autovacuum" in one)
    assert note.startswith("the server: autovacuum = off puts vacuuming off")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("statement_timeout", "30000", "30s fails transactions that run into it, and the trial"),
        ("lock_timeout", "1500", "1500ms fails transactions that run into it, and the trial"),
        ("log_min_duration_statement", "500", "500ms makes the logging of statements part of"),
        ("log_min_duration_statement", "0", "0 makes the logging of statements part of"),
        ("idle_session_timeout", "60000", "1min may end sessions that wait for their next"),
        ("session_replication_role", "replica", "replica leaves foreign keys unchecked"),
    ],
)
def test_a_note_reads_on_from_its_value_which_is_as_show_prints_it(
    name: str, value: str, said: str
) -> None:
    (note,) = (one for one in resolved(having(**{name: value})).notes if name in one)
    assert note.startswith(f"the server: {name} = {said}")


def test_what_is_known_of_a_rung_that_is_not_says_that_it_loses_nothing() -> None:
    of = having(wal_compression="on")
    console = Console(file=io.StringIO(), width=160)
    console.print(render_dry_run(resolved(of), of, HOST))
    assert isinstance(console.file, io.StringIO)
    assert (
        "known already: wal_compression = pglz (D1: nothing is lost; full pages are compressed)"
        in console.file.getvalue()
    )
