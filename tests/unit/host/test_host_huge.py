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


@pytest.mark.parametrize("name", ["PG_VERSION", "postmaster.pid", "postgresql.conf"])
@pytest.mark.parametrize("what", ["link", "pipe", "long"])
def test_a_servers_folder_leads_us_to_no_other_file(tmp_path: Path, name: str, what: str) -> None:
    """Whoever owns the folder may have put anything there; root reads what it is asked to."""
    data = cluster(tmp_path / "data", 15)
    if name == "postgresql.conf":
        (data / "PG_VERSION").unlink()
    (tmp_path / "secret").write_text("s3cret of root\n")
    (data / name).unlink(missing_ok=True)
    match what:
        case "link":
            (data / name).symlink_to(tmp_path / "secret")
        case "pipe":
            os.mkfifo(data / name)
        case "long":
            (data / name).write_text("9" * (64 << 20))
    with pytest.raises(TargetError) as refused:
        count(str(data))
    assert name in refused.value.fact
    assert "s3cret" not in refused.value.fact


@pytest.mark.parametrize("text", ["", "\n", "s3cret of root\n", "-1\n", "²\n"])
@pytest.mark.parametrize("name", ["PG_VERSION", "postmaster.pid"])
def test_a_file_cut_short_is_named_and_not_shown(tmp_path: Path, name: str, text: str) -> None:
    data = cluster(tmp_path / "data", 15)
    (data / name).write_text(text)
    with pytest.raises(TargetError, match=f"{name} does not begin with a number") as refused:
        count(str(data))
    assert "s3cret" not in refused.value.fact
