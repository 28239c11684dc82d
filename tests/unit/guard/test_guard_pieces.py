"""Lag, redo pointers, the line in a configuration, the unit: without servers and clocks."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.folders import Folder
from pgdyno.guard.control import read_control
from pgdyno.guard.data_directory import DataDirectory, claim, data_directory
from pgdyno.guard.facts import CYCLES
from pgdyno.guard.include_file import RUN_FOLDER, include_path, read_pages, write_pages
from pgdyno.guard.interlock import included, remove_line, write_line
from pgdyno.guard.look import without_passwords
from pgdyno.guard.lookers import Lag, Redos
from pgdyno.guard.unit import unit
from pgdyno.model.errors import PlanError, TargetError
from pgdyno.model.guard import Armed, GuardLimits, LimitsAsked, Step
from pgdyno.shell import OsUser

US = OsUser("us", os.geteuid(), os.getegid())


def test_lag_is_the_age_of_the_oldest_wal_that_is_not_replayed() -> None:
    lag = Lag()
    assert lag.age_s(100, 100, 0.0) == 0
    assert lag.age_s(200, 100, 1.0) == 0
    assert lag.age_s(300, 100, 5.0) == 4
    assert lag.age_s(300, None, 6.0) == 5, "who is not seen stands still"
    assert lag.age_s(None, 200, 7.0) == 2
    assert lag.age_s(300, 300, 8.0) == 0
    for step in range(20_000):
        age = lag.age_s(400 + step, 300, 10.0 + step)
    assert age == 19_999, "however much is kept"


def test_redo_pointers_are_those_of_some_checkpoints_before() -> None:
    redos = Redos()
    for lsn in (1, 1, 2, 3):
        redos.take(lsn)
    assert redos.oldest() is None
    redos.take(4)
    assert redos.oldest() == 4 - CYCLES
    redos.take(5)
    assert redos.oldest() == 5 - CYCLES


@pytest.mark.parametrize("before", [b"", b"port = 1", b"port = 1\n", b"# caf\xe9\n\nport = 1\n"])
def test_the_line_comes_last_and_goes_without_a_trace(tmp_path: Path, before: bytes) -> None:
    directory, include = DataDirectory(tmp_path, US), include_path(RUN_FOLDER, "7")
    conf = tmp_path / "postgresql.conf"
    conf.write_bytes(before)
    conf.chmod(0o640)
    for _ in range(2):
        write_line(directory, conf, include)
    text = conf.read_bytes()
    assert text.startswith(before)
    assert text.splitlines()[-1] == f"include '{include}' # pgdyno guard".encode()
    assert text.count(b"include '") == 1
    assert included(conf) == include
    assert conf.stat().st_mode & 0o777 == 0o640
    remove_line(directory, conf)
    assert conf.read_bytes() in (before, before + b"\n"), "but for an end of the last line"
    assert included(conf) is None


def test_a_configuration_without_an_end_is_not_read(tmp_path: Path) -> None:
    """Its server names it, and its server's user may make of it what he likes."""
    conf = tmp_path / "postgresql.conf"
    conf.touch()
    os.truncate(conf, 1 << 40)
    with pytest.raises(TargetError, match=r"postgresql.conf has 1099511627776 bytes, a config"):
        included(conf)


def test_options_that_no_server_wrote_are_not_understood(tmp_path: Path) -> None:
    (tmp_path / "postmaster.opts").write_text("/usr/bin/postgres '-D\n")
    with pytest.raises(TargetError, match=r"postmaster.opts is not understood: no closing") as it:
        read_control(DataDirectory(tmp_path, US))
    assert "--bindir" in (it.value.hint or "")


def test_the_file_of_the_interlock_is_made_only_where_that_is_meant(tmp_path: Path) -> None:
    directory, include = DataDirectory(tmp_path, US), include_path(tmp_path / "run", "7")
    with pytest.raises(TargetError, match="is gone"):
        write_pages(directory, include, "on")
    assert read_pages(directory, include) is None
    write_pages(directory, include, "on", make=True)
    assert read_pages(directory, include) == "on"
    size = include.stat().st_size
    write_pages(directory, include, "off")
    assert (read_pages(directory, include), include.stat().st_size) == ("off", size)
    assert include.parent.stat().st_mode & 0o777 == 0o700
    include.write_text("full_page_writes = maybe\n")
    with pytest.raises(TargetError, match="says neither"):
        read_pages(directory, include)


def test_passwords_are_kept_nowhere() -> None:
    for given in ("host=a password=secret user=b", "postgresql://b:secret@a/?sslpassword=secret"):
        kept = without_passwords(given)
        assert "secret" not in kept
        assert "host=a" in kept
    with pytest.raises(PlanError, match="conninfo is not understood") as caught:
        without_passwords("password='secret host")
    assert "secret" not in str(caught.value)


def armed(data: str, include: Path) -> Armed:
    return Armed(1, Step.armed, "7", "a", "/c", str(include), "", "host=b", (), GuardLimits(), data)


def test_a_unit_reads_a_strange_folder_as_it_is() -> None:
    data = '/srv/a b/100%/$HOME/"x"'
    directory = DataDirectory(Path(data), OsUser("postgres", 1, 1))
    text = unit(directory, armed(data, include_path(RUN_FOLDER, "7")), "pg.service", "postgres")
    (line,) = [one for one in text.splitlines() if one.startswith("ExecStart=")]
    words = shlex.split(line.removeprefix("ExecStart=").replace("$$", "$").replace("%%", "%"))
    assert words[1:] == ["-m", "pgdyno", "guard", "watch", data]
    assert "RuntimeDirectory=pgdyno-guard\n" in text
    assert "RuntimeDirectoryPreserve=yes\n" in text
    with pytest.raises(PlanError, match="cannot stand in a unit file"):
        unit(directory, armed(data, include_path(RUN_FOLDER, "7")), "pg\nExecStart=/x", "postgres")


def test_data_are_claimed_by_one_until_they_are_closed(tmp_path: Path) -> None:
    with Folder.hold(tmp_path) as second:
        with Folder.hold(tmp_path) as first:
            assert claim(first)
            assert claim(first), "it is still the same one"
            assert not claim(second)
        assert claim(second)
    assert list(tmp_path.iterdir()) == []


def test_limits_that_nobody_names_stay_as_they_were() -> None:
    armed = GuardLimits(lag_bytes=1 << 20, checkpoint_timeout_s=1800)
    assert LimitsAsked().over(armed) == armed
    assert LimitsAsked(hold_s=0).over(armed) == replace(armed, hold_s=0)
    with pytest.raises(PlanError, match="lag_s is 0"):
        LimitsAsked(lag_s=0)


@pytest.mark.parametrize("name", ["nowhere", "file"])
def test_a_mistyped_data_directory_is_told_what_to_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TargetError, match="open folder") as refused:
        data_directory(tmp_path / name)
    assert refused.value.hint == "Name what `SHOW data_directory` says on the primary."
