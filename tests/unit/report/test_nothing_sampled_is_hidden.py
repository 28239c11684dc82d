"""Every column that a sampler declares is shown by some part of the report.

What samplers of a server declare is asked of real ones in `tests/cluster/test_nothing_hidden.py`.
"""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import pytest

from pgdyno.analysis.facts import Facts
from pgdyno.analysis.sampled import OTHERS, group_of
from pgdyno.report.sections import sections, statements, views
from pgdyno.report.sections.sampled import SHOWN_IN
from pgdyno.sample.process_roles import ROLES
from pgdyno.sample.sampler import Column, Label, Sampler, Snapshot, Subject, Tally
from pgdyno.sample.samplers import (
    driver_cpu,
    driver_io,
    samplers_of,
    server_buffers,
    server_io,
    server_plans,
    server_pooler,
    server_replica,
    server_restartpoints,
    server_statements,
    server_statistics,
    server_tables,
)
from pgdyno.sample.samplers.server_sessions import LOCKS, SESSIONS
from tests.data.declared import NOT_BY_ROWS, not_shown
from tests.data.pages import filled


def test_of_this_host_nothing_is_hidden(facts: Facts) -> None:
    found = samplers_of(Subject(telemetry="full"))
    assert len(found) > 5
    assert not_shown(found, facts) == set()


@pytest.mark.parametrize("major", range(12, 19))
def test_what_needs_a_server_of_some_kind_is_not_hidden(major: int, facts: Facts) -> None:
    columns = [
        *server_statistics.query(server_statistics.sources(major))[1],
        *server_restartpoints.query(major)[1],
        *driver_cpu._COLUMNS, *driver_io._COLUMNS, *server_pooler._OF_PROCESS,
        *server_pooler._OF_POOLS, *server_replica._COLUMNS,
        *(Column(f"process.{role}.cpu_s", "s") for role in (*ROLES, "unseen")),
    ]  # fmt: skip
    assert not_shown([Sampler("all of them", tuple(columns), dict)], facts) == set()


def test_a_new_series_is_shown_and_a_table_that_nobody_gave_a_place_is_found(facts: Facts) -> None:
    new = Sampler("new", (Column("a_new_thing.count", "1"),), dict)
    table = Snapshot("a_new_table", (Column("count", "1"),), list)
    assert not_shown([new, table], facts) == {"a_new_table"}


@pytest.mark.parametrize("major", range(12, 19))
def test_every_column_of_a_table_changes_the_page(major: int, facts: Facts) -> None:
    assert not_shown(_tables(major), facts) == set()


def _tables(major: int) -> list[Snapshot]:
    """As a server of this version has them."""
    of_io: list[Column | Label] = [*map(Label, server_io._KEY)]
    of_io += [Column("reads", "1"), Column("read_bytes", "B")]
    return [
        Snapshot("tables", (Label("relation"), *server_tables.tables_query(major)[1]), list),
        Snapshot("indexes", (*map(Label, ("relation", "of_table")),
                             *server_tables.indexes_query()[1]), list),
        Snapshot("statements", (*map(Label, server_statements._LABELS),
                                *server_statements.query("s", _COUNTED)[1]), list),
        Snapshot("plans", server_plans._COLUMNS, list),
        Snapshot("buffers", server_buffers._COLUMNS, list),
        Snapshot("pg_stat_io", tuple(of_io), list),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "dimensions"),
    [("sessions", SESSIONS), ("locks", LOCKS), ("progress", ("command", "relation", "phase")),
     ("aio", ("operation", "state", "target"))],
)  # fmt: skip
def test_every_dimension_of_a_tally_changes_the_page(
    name: str, dimensions: tuple[str, ...], facts: Facts
) -> None:
    assert not_shown([Tally(name, dimensions, list)], facts) == set()
    more = Tally(name, (*dimensions, "a_new_dimension"), list)
    assert not_shown([more], facts) == {f"{name}.a_new_dimension"}


_COUNTED = frozenset({*server_statements._KINDS, "stats_since"}).union(
    *server_statements._TIMES.values()
)


def test_a_column_that_no_section_shows_is_found_though_its_table_is_shown(facts: Facts) -> None:
    (tables, *_) = _tables(18)
    more = replace(tables, columns=(*tables.columns, Column("a_new_count", "1")))
    assert not_shown([more], facts) == {"tables.a_new_count"}


@pytest.mark.parametrize(
    ("name", "of_facts", "module"),
    [("indexes.rows_fetched", "views", views), ("statements.wal_fpi", "statements", statements),
     ("tables.vacuum_s", "tables", statements), ("plans.plan", "plans", statements)],
)  # fmt: skip
def test_a_column_that_the_page_does_not_tell_any_more_is_found(
    name: str, of_facts: str, module: ModuleType, facts: Facts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read and computed as before: what is left of the page is the same whatever it says."""
    told, empty = module.section, {of_facts: getattr(facts, of_facts)}
    monkeypatch.setattr(module, "section", lambda shown: told(replace(shown, **empty)))
    (table,) = [one for one in _tables(18) if one.name == name.partition(".")[0]]
    assert name in not_shown([table], facts)


def test_what_the_section_leaves_out_is_found(
    facts: Facts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pgdyno.analysis.sampled.SHOWN_MAX", 1)
    several = tuple(Column(f"wal.{name}", "1") for name in ("a", "b"))
    assert not_shown([Sampler("two", several, dict)], facts) == {"wal.b"}


def test_of_series_that_are_there_now_none_is_among_the_others() -> None:
    found = [one for one in samplers_of(Subject(telemetry="full")) if isinstance(one, Sampler)]
    columns = [column.name for one in found for column in one.columns]
    assert columns
    assert [name for name in columns if group_of(name) == OTHERS] == []


def test_the_sections_that_are_said_to_show_tables_are_there(facts: Facts) -> None:
    assert set(SHOWN_IN.values()) <= {one.title for one in sections(filled(facts))} | {"Resources"}
    assert not NOT_BY_ROWS & SHOWN_IN.keys()
