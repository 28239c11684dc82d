"""Host facts from saved files, and folders that PostgreSQL's user can reach."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pgdyno.model.errors import TargetError
from pgdyno.model.manifest import HostManifest
from pgdyno.model.record_json import from_json, to_json
from pgdyno.shell import OsUser, postgres_user, run
from pgdyno.target import home, host_facts
from pgdyno.target.binaries import version_number
from pgdyno.target.file_systems import file_system


def test_meminfo_is_bytes_and_counts() -> None:
    text = "MemTotal: 1000 kB\nHugePages_Free:      64\nHugepagesize:    2048 kB\n\n"

    assert host_facts.read_meminfo(text) == {
        "MemTotal": 1_024_000, "HugePages_Free": 64, "Hugepagesize": 2 << 20,
    }  # fmt: skip


def test_this_host_has_facts() -> None:
    facts = host_facts.host_facts(Path("/tmp/not/there/yet"))

    assert facts.cpus == len(os.sched_getaffinity(0))
    assert facts.memory_bytes > 1 << 28
    assert facts.free_disk_bytes > 0
    assert facts.file_system != ""


def test_the_manifest_of_this_host_is_a_record_with_the_folders_that_stages_name() -> None:
    found = host_facts.manifest(Path("/tmp/not/there/yet"), ["/tmp", "/dev/shm"])

    assert found.cpus == len(os.sched_getaffinity(0))
    assert found.file_system is not None
    assert found.file_system.mount.startswith("/")
    assert found.sysctl["vm/swappiness"].isdecimal()
    assert list(found.folders) == ["/tmp", "/dev/shm"]
    assert found.folders["/tmp"].type == file_system(Path("/tmp"))["type"]
    assert from_json(HostManifest, to_json(found)) == found


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("postgres (PostgreSQL) 18.6", 180006),
        ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", 150018),
        ("postgres (PostgreSQL) 19beta1", 190000),
    ],
)
def test_version_numbers(text: str, number: int) -> None:
    assert version_number(text) == number


def test_home_is_named_by_the_environment() -> None:
    assert home.home({"PGDYNO_HOME": "/x/y"}) == Path("/x/y")


def test_a_closed_folder_is_found(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    for folder in (*inner.parents, inner):
        if str(folder).startswith("/tmp") and folder != Path("/tmp"):
            folder.chmod(0o755)
    (tmp_path / "a").chmod(0o700)
    stranger = OsUser("stranger", 4242, 4242)

    assert home.closed_folder(inner, stranger) == tmp_path / "a"
    (tmp_path / "a").chmod(0o711)
    assert home.closed_folder(inner, stranger) is None


def test_a_failing_program_tells_its_last_words() -> None:
    with pytest.raises(TargetError, match="sh ended with code 3: it broke"):
        run(["sh", "-c", "echo it broke >&2; exit 3"])


def test_a_missing_program_is_an_error() -> None:
    with pytest.raises(TargetError, match="cannot be started"):
        run(["/no/such/program"])


def test_variables_that_redirect_libpq_do_not_reach_programs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PGHOST", "elsewhere")

    assert "PGHOST" not in run(["env"]).stdout


def test_postgresql_is_never_run_as_root() -> None:
    assert postgres_user().uid != 0
    with pytest.raises(TargetError):
        postgres_user("root" if os.geteuid() == 0 else "somebody else")
