"""What servers say of their settings, read from their own words."""

from __future__ import annotations

import pytest

from pgdyno.model.errors import TargetError
from pgdyno.plan.settings.server import knob_of_row, parse_describe_config
from tests.data.servers import describe_config, installed, running


def test_a_setting_is_read_from_both_sources_alike() -> None:
    for server in (installed(18), running(18)):
        knob = server.knobs["max_wal_size"]
        assert (knob.vartype, knob.unit, knob.context) == ("integer", "MB", "sighup")
        assert (knob.minimum, knob.maximum, knob.default) == (2.0, 2147483647.0, "1024")
        assert server.major == 18


def test_an_enum_has_its_values() -> None:
    assert installed(15).knobs["wal_level"].enum_values == ("minimal", "replica", "logical")


def test_hidden_settings_are_filled_in() -> None:
    assert "ignore_checksum_failure" not in describe_config(18)
    assert installed(18).knobs["ignore_checksum_failure"].context == "superuser"
    assert installed(18).knobs["block_size"].context == "internal"
    assert "debug_io_direct" not in installed(15).knobs


def test_a_default_by_which_the_server_chooses_is_told_as_such() -> None:
    assert running(18).knobs["wal_buffers"].default == "-1"


def test_another_program_is_told_apart() -> None:
    with pytest.raises(TargetError, match="line 1 of postgres --describe-config has 1 field,"):
        parse_describe_config("usage: postgres\n", 180006, "PostgreSQL 18.6")


def test_a_row_of_text_only() -> None:
    knob = knob_of_row(("a", "string", None, "user", None, None, None, ""))
    assert (knob.unit, knob.minimum, knob.enum_values, knob.default) == (None, None, (), "")
