"""What a load needs against what there is, file system by file system."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pgdyno.loader.room import needs, require_room, room_text
from pgdyno.model.errors import TargetError
from pgdyno.model.loading import LoadEstimate
from pgdyno.model.server_host import Area, ServerHost

MIB = 1 << 20


def estimate(**changes: Any) -> LoadEstimate:
    known = LoadEstimate(
        version=1, unit="warehouses", units=20, units_before=0, rows=10_000_000,
        disk_bytes=2000 * MIB, sort_bytes=300 * MIB, wal_bytes=2000 * MIB, seconds=12.2,
        connections=2, choices=(),
    )  # fmt: skip
    return replace(known, **changes)


def place(data_mib: int, wal_mib: int, *, one_disk: bool = False) -> ServerHost:
    data = Area("/data", 1, data_mib * MIB)
    wal = Area("/wal", 1 if one_disk else 2, wal_mib * MIB)
    return ServerHost(8 << 30, data, data, wal, 1000 * MIB, 100 * MIB)


def test_wal_is_what_is_kept_beyond_the_files_that_are_there() -> None:
    sizes = {what: size for what, size, _ in needs(estimate(), place(9000, 9000))}

    assert sizes == {
        "tables and indexes": 2000 * MIB, "sorting": 300 * MIB, "WAL": 1000 * MIB,
    }  # fmt: skip
    little = {what: size for what, size, _ in needs(estimate(wal_bytes=0), place(9000, 9000))}
    assert little["WAL"] == 0


def test_wal_that_an_archive_or_a_slot_waits_for_is_kept_as_a_whole() -> None:
    host = replace(place(9000, 9000), wal_limit_bytes=None)

    sizes = {what: size for what, size, _ in needs(estimate(), host)}

    assert sizes["WAL"] == 2000 * MIB


def test_sessions_of_others_are_told() -> None:
    host = replace(place(9000, 9000), sessions_of_others=2)

    assert room_text(estimate(), host).endswith("; 2 sessions of others will feel it")


def test_each_disk_must_have_room_for_what_goes_there() -> None:
    require_room(estimate(), place(2300, 1000))
    with pytest.raises(TargetError) as error:
        require_room(estimate(), place(2299, 1000))
    assert error.value.fact == "the load needs 2.25 GiB at /data, free are 2.25 GiB"
    assert error.value.hint is not None
    assert "tables and indexes 1.95 GiB + sorting 300 MiB" in error.value.hint
    with pytest.raises(TargetError, match="at /wal"):
        require_room(estimate(), place(2300, 999))
    with pytest.raises(TargetError, match=r"needs 3\.22 GiB at /data"):
        require_room(estimate(), place(3299, 3299, one_disk=True))


def test_a_disk_that_cannot_be_seen_refuses_nothing_and_is_told() -> None:
    require_room(estimate(), ServerHost())

    assert room_text(estimate(), ServerHost()) == (
        "20 warehouses will take 1.95 GiB on disk, 1.95 GiB of WAL, about 12 s;"
        " the server's free space is not known here"
    )


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({}, "20 warehouses will take 1.95 GiB on disk, 1.95 GiB of WAL, about 12 s"),
        ({"units": 1, "disk_bytes": 112 * MIB, "wal_bytes": 0, "seconds": 0.4},
         "1 warehouse will take 112 MiB on disk, about 1 s"),
        ({"units_before": 10}, "20 warehouses, of which 10 are there, will take 1.95 GiB on disk,"
                               " 1.95 GiB of WAL, about 12 s"),
        ({"unit": "scale", "units": 5, "seconds": None, "wal_bytes": 0},
         "scale 5 will take 1.95 GiB on disk"),
    ],
)  # fmt: skip
def test_the_estimate_is_one_line(changes: dict[str, Any], line: str) -> None:
    assert room_text(estimate(**changes), place(9000, 9000)) == line
