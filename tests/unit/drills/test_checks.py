"""What pg_checksums says of what a power cut left: of which files it matters."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.drills.checks import Summed, _cut_parts, _is_harmless
from pgdyno.folders import Folder

SUMMED = Summed(8192, frozenset({"base/5/16384", "global/1262"}), frozenset({"base/4"}))


def said(path: str) -> str:
    return (
        f'pg_checksums: error: checksum verification failed in file "/srv/disk/{path}", block 3:'
        " calculated checksum 9F2 but block contains 0"
    )


@pytest.mark.parametrize(
    ("path", "orphan"),
    [
        ("base/5/16384", False), ("base/5/16384_vm", False), ("base/5/16384.1", False),
        ("global/1262", False), ("base/4/16399", False),
        ("base/5/16399", True), ("base/5/16399_fsm.2", True), ("base/6/16384", True),
    ],
)  # fmt: skip
def test_a_page_of_a_file_that_no_catalog_names_is_an_orphan(path: str, orphan: bool) -> None:
    assert _is_harmless(said(path), SUMMED, maps=True) is orphan


@pytest.mark.parametrize(
    ("path", "harmless"),
    [("base/5/16384_vm", True), ("base/5/16384_fsm.1", True), ("base/5/16384", False),
     ("base/5/16384_init", False)],
)  # fmt: skip
def test_a_torn_map_is_harm_where_it_was_to_be_repaired_alone(path: str, harmless: bool) -> None:
    assert _is_harmless(said(path), SUMMED, maps=False) is harmless
    assert not _is_harmless(said(path), SUMMED, maps=True)


def test_any_other_complaint_is_none() -> None:
    line = 'pg_checksums: error: could not read block 0 in file "/srv/disk/base/5/16399": read 4096'
    assert not _is_harmless(line, SUMMED, maps=False)


def test_parts_of_pages_are_cut_off_relations_alone(tmp_path: Path) -> None:
    for path, size in (("base/5/16384_vm", 4096), ("base/5/16384", 3 * 8192 + 5),
                       ("base/5/pg_filenode.map", 512), ("global/1262.1", 8192),
                       ("global/pg_control", 8000)):  # fmt: skip
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(b"x" * size)

    with Folder.hold(tmp_path) as data:
        _cut_parts(data, 8192)

    sizes = {str(one.relative_to(tmp_path)): one.stat().st_size
             for one in tmp_path.rglob("*") if one.is_file()}  # fmt: skip
    assert sizes == {
        "base/5/16384_vm": 0, "base/5/16384": 3 * 8192, "base/5/pg_filenode.map": 512,
        "global/1262.1": 8192, "global/pg_control": 8000,
    }  # fmt: skip
