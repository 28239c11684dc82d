"""The file of ceilings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.model.errors import StoreError
from pgdyno.store.calibration import add_ceilings, calibration_of, read_ceilings
from tests.unit.stats.test_stats_ceiling import CEILING, MACHINE


def test_ceilings_come_back_and_replace_those_of_their_key(tmp_path: Path) -> None:
    newer = replace(CEILING, measured_unix_ns=2)
    other = replace(CEILING, face="pipeline")

    assert read_ceilings(tmp_path) == ()
    add_ceilings(tmp_path / "deeper", [CEILING, other])
    path = add_ceilings(tmp_path / "deeper", [newer])

    assert read_ceilings(tmp_path / "deeper") == (other, newer)
    assert [file.name for file in path.parent.iterdir()] == ["calibration.json"]


def test_a_run_keeps_those_of_its_machine_and_workload(tmp_path: Path) -> None:
    elsewhere = replace(CEILING, machine=replace(MACHINE, kernel="5.10"))
    add_ceilings(tmp_path, [CEILING, elsewhere, replace(CEILING, workload="tpcb")])

    kept = calibration_of(tmp_path, MACHINE, ["tpcc"])

    assert kept == (CEILING,)
    assert calibration_of(tmp_path, MACHINE, ["select-only"]) == ()


@pytest.mark.parametrize("text", ["{", "[]", '{"version": 1, "ceilings": [{}]}'])
def test_a_broken_file_is_named_with_what_to_do(tmp_path: Path, text: str) -> None:
    (tmp_path / "calibration.json").write_text(text)

    with pytest.raises(StoreError, match=r"calibration\.json does not hold ceilings") as caught:
        read_ceilings(tmp_path)

    assert caught.value.hint is not None


def test_a_file_of_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "calibration.json").write_text('{"version": 2, "ceilings": []}')

    with pytest.raises(StoreError, match="has version 2, expected 1"):
        read_ceilings(tmp_path)
