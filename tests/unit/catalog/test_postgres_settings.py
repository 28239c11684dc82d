"""The catalogue against what PostgreSQL 15.20 and 18.6 say of their own settings."""

from __future__ import annotations

import pytest

from pgdyno.catalog import entries, known_settings
from pgdyno.plan.settings.values import canonical
from tests.data.servers import describe_config, installed, rows, running

MAJORS = (15, 18)
# Reach back to minor versions of older majors, so that no major version says when they came.
BACKPORTED = {"output_plugin_libraries", "composite_type_mismatch"}


@pytest.mark.parametrize("major", MAJORS)
def test_installed_facts_have_every_setting_of_the_server(major: int) -> None:
    told = {row[0] for row in rows(major)} - BACKPORTED
    # Debian's own, and one whose backport the release notes date to no major version.
    late = {"restrict_nonsystem_relation_kind"} if major < 17 else set()

    missing = told - installed(major).knobs.keys() - late

    assert missing == set()


@pytest.mark.parametrize("major", MAJORS)
def test_installed_facts_agree_with_the_server(major: int) -> None:
    for name, wanted in running(major).knobs.items():
        knob = installed(major).knobs.get(name)
        if knob is None or wanted.context == "internal":
            continue
        assert knob.vartype == wanted.vartype, name
        assert knob.unit == wanted.unit, name
        assert knob.context == wanted.context, name
        if knob.minimum is not None:
            assert (knob.minimum, knob.maximum) == (wanted.minimum, wanted.maximum), name


@pytest.mark.parametrize("major", MAJORS)
def test_enum_values_hold_those_of_the_server(major: int) -> None:
    enums = [knob for knob in running(major).knobs.values() if knob.vartype == "enum"]
    assert len(enums) > 20
    for knob in enums:
        if knob.context == "internal" or knob.name in BACKPORTED:
            continue
        ours = set(installed(major).knobs[knob.name].enum_values)
        assert set(knob.enum_values) - {""} <= ours, knob.name


@pytest.mark.parametrize("major", MAJORS)
def test_defaults_are_those_of_the_server(major: int) -> None:
    initdb_or_session_chose = {"max_stack_depth", "data_checksums"}
    compared = 0
    for name, wanted in running(major).knobs.items():
        knob = installed(major).knobs.get(name)
        if knob is None or knob.default is None or name in initdb_or_session_chose:
            continue
        assert wanted.default is not None
        assert canonical(wanted, knob.default) == canonical(wanted, wanted.default), name
        compared += 1
    assert compared > 250


@pytest.mark.parametrize("major", MAJORS)
def test_versions_are_right_for_the_servers_at_hand(major: int) -> None:
    described = {line.partition("\t")[0] for line in describe_config(major).splitlines()}
    for name, setting in known_settings().items():
        if not setting.hidden:
            assert (name in described) == setting.exists_in(major), name


def test_before_10_the_first_version_without_a_setting_has_two_numbers() -> None:
    known = known_settings()

    assert known["checkpoint_segments"].gone_since == "9.5"
    assert known["krb_srvname"].gone_since == "9.4"
    assert known["sql_inheritance"].gone_since == "10"
    assert known["wal_keep_segments"].gone_since == "13"
    assert known["max_wal_size"].gone_since == ""
    assert entries()["checkpoint_segments"].gone == "since PostgreSQL 9.5"
    assert entries()["checkpoint_segments"].versions == "PostgreSQL before 9.5"


def test_what_a_later_version_replaced_names_something_that_exists() -> None:
    for name, setting in known_settings().items():
        if setting.instead is not None:
            assert setting.instead in installed(18).knobs, name
            assert setting.until is not None, name
