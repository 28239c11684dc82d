"""Values as PostgreSQL reads them, checked against what two servers print."""

from __future__ import annotations

import pytest

from pgdyno.model.settings import ServerKnob
from pgdyno.plan.settings.values import BadValue, allowed, base_units, canonical, same_value, show
from tests.data.servers import installed, rows, running

KNOBS = running(18).knobs


def read(name: str, text: str) -> str:
    return canonical(KNOBS[name], text)


@pytest.mark.parametrize("major", [15, 18])
def test_show_prints_what_the_server_prints(major: int) -> None:
    octal = {"unix_socket_permissions", "log_file_mode", "data_directory_mode"}
    computed = {"wal_segment_size", "huge_page_size"}
    compared = 0
    for row in rows(major):
        knob, setting, shown = running(major).knobs[row[0]], row[8], row[9]
        if knob.vartype not in ("integer", "real") or knob.name in octal | computed:
            continue
        assert show(knob, setting) == shown, knob.name
        compared += 1
    assert compared > 140


@pytest.mark.parametrize("major", [15, 18])
def test_what_the_server_prints_is_what_it_has(major: int) -> None:
    octal = {"unix_socket_permissions", "log_file_mode", "data_directory_mode"}
    for row in rows(major):
        if row[0] not in octal:
            assert same_value(running(major).knobs[row[0]], row[9], row[8]), row[0]


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("shared_buffers", "16384", "16384"),
        ("shared_buffers", "128MB", "16384"),
        ("shared_buffers", "0.125GB", "16384"),
        ("shared_buffers", " 131072 kB ", "16384"),
        ("shared_buffers", "134217728B", "16384"),
        ("max_wal_size", "1TB", "1048576"),
        ("wal_buffers", "-1", "-1"),
        ("checkpoint_timeout", "15min", "900"),
        ("checkpoint_timeout", "0.5h", "1800"),
        ("checkpoint_timeout", "1d", "86400"),
        ("bgwriter_delay", "20000us", "20"),
        ("autovacuum_vacuum_cost_delay", "500us", "0.5"),
        ("checkpoint_completion_target", ".5", "0.5"),
        ("checkpoint_completion_target", "5e-1", "0.5"),
        ("fsync", "YES", "on"),
        ("fsync", "0", "off"),
        ("huge_pages", "TRY", "try"),
        ("synchronous_commit", "false", "off"),
        ("wal_compression", "1", "pglz"),
        ("DateStyle", "ISO, DMY", "ISO, DMY"),
    ],
)
def test_canonical(name: str, text: str, wanted: str) -> None:
    assert read(name, text) == wanted


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("shared_buffers", "1 GB MB"),
        ("shared_buffers", "0x10"),
        ("shared_buffers", "1e400"),
        ("shared_buffers", "nan"),
        ("shared_buffers", "١٦"),
        ("shared_buffers", ""),
        ("max_connections", "12.5"),
        ("fsync", "o"),
        ("wal_level", "none"),
        ("synchronous_commit", "remote"),
        ("DateStyle", "ISO\nfsync = off"),
        ("DateStyle", "ISO\x00"),
    ],
)
def test_bad_values_are_refused(name: str, text: str) -> None:
    with pytest.raises(BadValue):
        read(name, text)


def test_limits_are_part_of_the_range() -> None:
    assert read("checkpoint_timeout", "30s") == "30"
    assert read("checkpoint_timeout", "86400") == "86400"
    for beyond in ("29s", "86401s", "-1"):
        with pytest.raises(BadValue, match="allowed: 30s to 1d"):
            read("checkpoint_timeout", beyond)


def test_allowed_is_told_in_units_for_people() -> None:
    assert allowed(KNOBS["shared_buffers"]) == (
        "128kB to about 8TB (B, kB, MB, GB, TB; plain numbers are 8kB)"
    )
    assert allowed(KNOBS["autovacuum_naptime"]).startswith("1s to about 25d (us, ms, s, min, h, d;")
    assert allowed(KNOBS["bgwriter_lru_multiplier"]) == "0 to 10"
    assert allowed(KNOBS["fsync"]) == "on, off"


def test_enums_that_the_server_does_not_tell_are_left_to_it() -> None:
    knob = ServerKnob("future_method", "enum", None, "user", None, None, (), None)
    assert canonical(knob, "Fast") == "fast"
    with pytest.raises(BadValue):
        canonical(knob, "fast; rm")


def test_base_units_are_bytes_and_microseconds() -> None:
    assert base_units(KNOBS["shared_buffers"], "1") == 8192
    assert base_units(KNOBS["max_wal_size"], "2GB") == 2 << 30
    assert base_units(KNOBS["bgwriter_delay"], "200") == 200_000
    assert base_units(KNOBS["max_connections"], "100") == 100


@pytest.mark.parametrize(
    ("name", "wanted", "raw", "same"),
    [
        ("max_wal_size", "16GB", "16384", True),
        ("max_wal_size", "16GB", "16383", False),
        ("jit", "no", "off", True),
        ("wal_compression", "on", "pglz", True),  # shown as what it stands for
        ("wal_compression", "on", "off", False),
        ("jit", "no", "on", False),
        ("wal_buffers", "-1", "2048", True),  # the server was asked to choose
        ("wal_buffers", "16MB", "2048", True),
        ("wal_buffers", "16MB", "2047", False),
        ("random_page_cost", "1.10", "1.1", True),
        ("random_page_cost", "1.2", "1.1", False),
        ("default_tablespace", "a", "A", False),
    ],
)
def test_same_value(name: str, wanted: str, raw: str, same: bool) -> None:
    assert same_value(installed(18).knobs[name], wanted, raw) is same


def test_a_value_that_a_build_lacks_is_told_as_such() -> None:
    values = ("pglz", "on", "off")
    knob = ServerKnob("wal_compression", "enum", None, "superuser", None, None, values, "off")
    with pytest.raises(BadValue, match="is of servers built with lz4, and this one is not") as told:
        canonical(knob, "lz4")
    assert told.value.allowed.startswith("pglz, on, off; or another server by --bindir")
    with pytest.raises(BadValue, match="not among its values"):
        canonical(knob, "lz5")
