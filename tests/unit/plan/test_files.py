"""The one reader of files that a person names: regular ones, within a bound and a folder."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from pgdyno.model.errors import PlanError
from pgdyno.plan import read_plan
from pgdyno.plan.schema.files import BadFile, require_regular, text_file

PLAN = """
name = "reads"
question = "What may be read?"
[workload]
kind = "script"
file = "{file}"
[[stage]]
name = "one"
why = "The only one."
"""


def refused(path: str | Path, **how: object) -> str:
    with pytest.raises(BadFile) as caught:
        text_file(path, **how)  # type: ignore[arg-type]
    return str(caught.value)


def test_text_is_read_without_its_mark(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfname = 1\r\n")

    assert text_file(tmp_path / "a") == "name = 1\r\n"


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/null", "/dev/random"])
def test_a_device_is_not_opened(name: str) -> None:
    assert refused(name) == "is a character device, allowed is a regular file"


def test_what_is_no_file_is_told_from_one(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    (tmp_path / "loop").symlink_to("loop")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(tmp_path / "socket"))

    assert refused(tmp_path / "pipe") == "is a pipe, allowed is a regular file"
    assert refused(tmp_path / "link") == "is a pipe, allowed is a regular file"
    assert refused(tmp_path / "socket") == "is a socket, allowed is a regular file"
    assert refused(tmp_path) == "is a folder, allowed is a regular file"
    assert refused(tmp_path / "loop") == "cannot be read: too many levels of symbolic links"
    assert refused(tmp_path / "none") == "cannot be read: no such file or directory"
    assert refused("a\0b") == "cannot be read: its path holds a NUL"
    with pytest.raises(BadFile, match="is a pipe"):
        require_regular(tmp_path / "pipe")


def test_no_more_than_the_bound_is_read(tmp_path: Path) -> None:
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(1 << 40)  # without a block: who reads all of it ends badly

    assert refused(large) == f"has {1 << 40} bytes, allowed are {1 << 20}"
    large.write_bytes(b"12345")
    assert text_file(large, bytes_max=5) == "12345"
    assert refused(large, bytes_max=4) == "has 5 bytes, allowed are 4"


def test_a_file_of_the_kernel_without_a_size_is_bounded() -> None:
    assert "bytes, allowed are 100" in refused("/proc/self/smaps", bytes_max=100)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_other_encodings_are_called_what_they_are(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a"
    path.write_bytes("\ufeffname = 1".encode(encoding) if "be" in encoding else b"\xff\xfen\0")

    assert refused(path) == "is UTF-16, allowed is UTF-8"


def test_what_a_plan_stores_lies_in_its_folder(tmp_path: Path) -> None:
    home = tmp_path / "plans"
    (home / "below").mkdir(parents=True)
    (tmp_path / "secret").write_text("root:x")
    (tmp_path / "plans-too").mkdir()
    (tmp_path / "plans-too" / "a.sql").write_text("SELECT 1;")
    (home / "link.sql").symlink_to(tmp_path / "secret")
    (home / "below" / "good.sql").write_text("SELECT 1;")
    plan = home / "plan.toml"

    for name in ("../secret", str(tmp_path / "secret"), "link.sql", "../plans-too/a.sql"):
        plan.write_text(PLAN.format(file=name))
        with pytest.raises(PlanError, match="outside the plan's folder") as caught:
            read_plan(plan)
        assert "root:x" not in str(caught.value)
        assert name in str(caught.value)
    plan.write_text(PLAN.format(file="/proc/self/environ"))
    with pytest.raises(PlanError, match="a file of the kernel"):
        read_plan(plan)
    plan.write_text(PLAN.format(file="/dev/zero"))
    with pytest.raises(PlanError, match="is a character device"):
        read_plan(plan)
    plan.write_text(PLAN.format(file="below/../below/good.sql"))
    assert read_plan(plan).sources == {"below/../below/good.sql": "SELECT 1;"}


def test_a_script_of_nearly_the_name_is_suggested(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "lookup.sql").write_text("SELECT 1;")
    (tmp_path / "files" / "lookups.sql").mkdir()
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN.format(file="files/look.sql"))
    with pytest.raises(PlanError, match="no such file") as caught:
        read_plan(plan)
    assert "Did you mean lookup.sql?" in (caught.value.hint or "")
    plan.write_text(PLAN.format(file="files/of-another-name"))
    with pytest.raises(PlanError, match="no such file") as caught:
        read_plan(plan)
    assert "Did you mean" not in (caught.value.hint or "")
