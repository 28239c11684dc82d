"""Where a server is: folders that we may look at, or not."""

from __future__ import annotations

from pathlib import Path

from pgdyno.target.server_host import area


def test_an_area_is_the_file_system_of_a_folder_or_of_one_above(tmp_path: Path) -> None:
    found = area(tmp_path)

    assert found is not None
    assert (found.path, found.device) == (str(tmp_path), tmp_path.stat().st_dev)
    assert found.free_bytes > 0


def test_a_link_leads_to_where_the_files_are(tmp_path: Path) -> None:
    link = tmp_path / "pg_wal"
    link.symlink_to("/proc")
    found = area(link)

    assert found is not None
    assert found.device == Path("/proc").stat().st_dev


def test_a_folder_of_another_host_has_none(tmp_path: Path) -> None:
    assert area(tmp_path / "elsewhere" / "data") is None
