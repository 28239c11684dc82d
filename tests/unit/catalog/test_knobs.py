"""The catalogue's own promises."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from pgdyno.catalog import Fall, Knob, knobs, known_settings, profile, profile_names
from pgdyno.model.settings import Rung
from pgdyno.plan.settings.values import canonical
from tests.data.servers import installed


def known(name: str) -> bool:
    return (
        name in installed(18).knobs or name in known_settings() or name in ("search_path", "role")
    )


def test_every_knob_is_a_setting_of_postgresql() -> None:
    reports_only_in_sessions = {"search_path", "role", "session_authorization"}
    for name in knobs():
        assert known(name) or name in reports_only_in_sessions, name


def test_every_knob_says_something_and_why() -> None:
    for name, knob in knobs().items():
        if knob.owned is not None:
            # Nobody else's server asks what a plan may set, so that these may fall.
            assert (knob.note, knob.at_most) == ((), ()), name
            continue
        assert knob.why, name
        assert knob.sources, name
        assert all(source.startswith("https://www.postgresql.org/docs/") for source in knob.sources)


def test_values_of_falls_and_notes_are_values_of_the_setting() -> None:
    for name, knob in knobs().items():
        for choice in (*knob.fall, *knob.note):
            for value in (*choice.values, *choice.excepted):
                assert canonical(installed(18).knobs[name], value) == value, name


@pytest.mark.parametrize(
    ("name", "value", "rung"),
    [
        ("fsync", "off", Rung.D6),
        ("full_page_writes", "off", Rung.D4),
        ("wal_level", "minimal", Rung.D3),
        ("synchronous_commit", "off", Rung.D2),
        ("wal_compression", "pglz", Rung.D1),
        ("wal_compression", "zstd", Rung.D1),
        ("data_sync_retry", "on", Rung.D5),
        ("zero_damaged_pages", "on", Rung.D4),
        ("ignore_checksum_failure", "on", Rung.D4),
        ("ignore_invalid_pages", "on", Rung.D4),
        ("data_checksums", "off", Rung.D0),
    ],
)
def test_the_ladder(name: str, value: str, rung: Rung) -> None:
    assert [fall.rung for fall in knobs()[name].fall if fall.holds(value)] == [rung]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fsync", "on"),
        ("wal_level", "replica"),
        ("synchronous_commit", "local"),
        ("synchronous_commit", "remote_write"),
        ("wal_compression", "off"),
        ("archive_mode", "off"),
    ],
)
def test_what_is_no_fall(name: str, value: str) -> None:
    assert not any(fall.holds(value) for fall in knobs()[name].fall)


def test_a_choice_lists_values_or_exceptions_but_not_both() -> None:
    for content in ({}, {"values": ("a",), "except": ("b",)}):
        with pytest.raises(ValidationError):
            Fall.model_validate({"rung": "D1", "loses": "nothing", **content})


def test_an_unknown_key_is_a_bug() -> None:
    with pytest.raises(ValidationError):
        Knob.model_validate({"family": "durability", "risk": "high"})


def test_what_pgdyno_sets_itself_no_plan_may_set() -> None:
    ours = {
        "port", "listen_addresses", "unix_socket_directories", "logging_collector",
        "log_destination", "log_line_prefix", "log_timezone", "log_checkpoints",
        "log_autovacuum_min_duration", "lc_messages",
    }  # fmt: skip
    assert {name for name in ours if knobs()[name].owned} == ours


@pytest.mark.parametrize("name", profile_names())
def test_profiles_hold_settings_of_postgresql_in_an_order_that_can_be_computed(name: str) -> None:
    seen = {"memory", "free_disk"}
    for setting, content in profile(name).setting.items():
        assert setting in installed(18).knobs
        assert content.why
        assert content.of is None or content.of in seen
        seen.add(setting)


@pytest.mark.parametrize("name", profile_names())
def test_profiles_leave_alone_what_they_do_not_set(name: str) -> None:
    one = profile(name)
    assert not one.setting.keys() & one.left_alone.keys()
    assert all(known(setting) for setting in one.left_alone)
