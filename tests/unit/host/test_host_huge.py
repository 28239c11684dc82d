"""Huge pages of a server: found by its name, counted by its mapping, refused where it must be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pgdyno.host.huge_pages import Count, count, mapped_pages, total
from pgdyno.model.errors import PlanError, TargetError
from pgdyno.target.host_facts import host_facts

MIB = 1 << 20
MAPS = """\
55d0c8a00000-55d0c8b00000 r-xp 00000000 fe:00 1234       /usr/lib/postgresql/14/bin/postgres
7f1a10000000-7f1a10100000 rw-s 00000000 00:01 2001       /dev/shm/PostgreSQL.3021
7f1a20000000-7f1a28d00000 rw-s 00000000 00:01 2002       {name} (deleted)
7f1a30000000-7f1a30001000 rw-s 00000000 00:01 3          /SYSV0052e2c1 (deleted)
7ffd5a000000-7ffd5a021000 rw-p 00000000 00:00 0          [stack]
"""


@pytest.mark.parametrize("name", ["/dev/zero", "/anon_hugepage", "/SYSV0052e2c2"])
def test_the_largest_shared_mapping_counts(name: str) -> None:
    assert mapped_pages(MAPS.format(name=name), 2 * MIB) == 71  # 141 MiB
    assert mapped_pages(MAPS.format(name=name), 1 << 30) == 1


def test_a_process_without_a_cache_has_no_count() -> None:
    assert mapped_pages(MAPS.format(name="/dev/shm/x").replace("SYSV", "x"), 2 * MIB) is None


def cluster(folder: Path, major: int, conf: str = "") -> Path:
    folder.mkdir()
    (folder / "PG_VERSION").write_text(f"{major}\n")
    (folder / "postgresql.conf").write_text(conf)
    return folder


def test_a_name_is_a_folder_or_a_conninfo(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="'/no/such' is neither a folder nor a conninfo"):
        count("/no/such")
    with pytest.raises(TargetError, match=r"read .*PG_VERSION: no such file") as caught:
        count(str(tmp_path))
    assert "data directory" in (caught.value.hint or "")


def test_a_folder_without_a_configuration_cannot_be_asked(tmp_path: Path) -> None:
    data = cluster(tmp_path / "data", 15)
    (data / "postgresql.conf").unlink()
    with pytest.raises(PlanError, match=r"holds no postgresql.conf"):
        count(str(data))


def test_a_lock_that_a_crash_left_is_no_running_server(tmp_path: Path) -> None:
    data = cluster(tmp_path / "data", 15)
    (data / "postgresql.conf").unlink()
    (data / "postmaster.pid").write_text(f"{os.getpid()}\n{data}\n")  # we run, but not there
    with pytest.raises(PlanError, match=r"holds no postgresql.conf"):
        count(str(data))


@pytest.mark.parametrize("name", ["PG_VERSION", "postmaster.pid"])
@pytest.mark.parametrize(
    ("content", "fact"),
    [
        ("", "does not begin with a number"),
        ("9.6\n", "does not begin with a number"),
        ("9" * 400, "does not begin with a number"),
        ("1" * 5000, "is longer than 4096 bytes"),
        ("a link", "too many levels of symbolic links"),
        ("a pipe", "is not a regular file"),
    ],
)
def test_what_a_folder_holds_is_read_within_bounds_and_by_no_link(
    tmp_path: Path, name: str, content: str, fact: str
) -> None:
    """As root it is read in another user's folder, who could have what it says told by an error."""
    data = cluster(tmp_path / "data", 15)
    secret = tmp_path / "secret"
    secret.write_text("password\n")
    (data / name).unlink(missing_ok=True)
    if content == "a link":
        (data / name).symlink_to(secret)
    elif content == "a pipe":
        os.mkfifo(data / name)
    else:
        (data / name).write_text(content)

    with pytest.raises(TargetError, match=f"{name}.* {fact}") as caught:
        count(str(data))

    assert "password" not in f"{caught.value.fact} {caught.value.hint}"


def test_a_configuration_that_is_a_link_is_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("data_directory = '/password'\n")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "postgresql.conf").symlink_to(secret)
    with pytest.raises(TargetError, match=r"read .*postgresql\.conf: too many levels of symbolic"):
        count(str(tmp_path / "etc"))


def test_a_configuration_apart_tells_where_the_data_are(tmp_path: Path) -> None:
    conf = tmp_path / "etc"
    conf.mkdir()
    (conf / "postgresql.conf").write_text(f"data_directory = '{tmp_path}/nowhere'\n")
    with pytest.raises(TargetError, match=r"open folder .*/nowhere: no such file"):
        count(str(conf))


def test_more_than_the_machine_has_is_refused() -> None:
    facts = host_facts(Path("/"))
    pages = facts.memory_bytes // facts.huge_page_bytes
    assert total((Count("a", 3, ""), Count("b", 4, ""))) == 7
    with pytest.raises(PlanError, match=f"{pages} huge pages are"):
        total((Count("a", 3, ""), Count("b", pages - 3, "")))
