"""Files of an export: the same bytes for the same options, and all of them or none."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pgdyno import api
from pgdyno.loader.csv_files import read_folder
from pgdyno.loader.export import export
from pgdyno.model.errors import DriveError, Interrupted, StoreError
from pgdyno.model.progress import ExportProgress
from pgdyno.workload.describe import describe_tpcc
from tests.data.workloads import changed, tpcc

SPEC = tpcc(seed=5, schema="bmsql")


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_the_same_options_give_the_same_bytes(tmp_path: Path) -> None:
    report = export(tmp_path / "a", SPEC, threads=1)
    export(tmp_path / "b", SPEC, threads=4)
    export(tmp_path / "c", SPEC, loaded_at_unix_s=1_700_000_000)

    assert digests(tmp_path / "a") == digests(tmp_path / "b")
    dated = {name for name, found in digests(tmp_path / "c").items()
             if found != digests(tmp_path / "a")[name]}  # fmt: skip
    assert dated == {"customer.csv", "cust-hist.csv", "order.csv", "order-line.csv"}
    sizes = {file.name: file.bytes for file in report.files}
    assert sizes == {path.name: path.stat().st_size for path in (tmp_path / "a").iterdir()}
    # The room that is asked for is enough, and no more than a tenth too much.
    estimate = sum(file.bytes for file in describe_tpcc(SPEC)[1].csv.files)
    assert 1.0 <= estimate / sum(sizes.values()) < 1.1


def test_what_is_in_the_files_can_be_told_from_them(tmp_path: Path) -> None:
    export(tmp_path / "spec", changed(SPEC, schema="spec"))
    folder = read_folder(tmp_path / "spec")

    assert (folder.schema, folder.warehouses) == ("spec", 1)
    assert folder.c_last == describe_tpcc(SPEC)[1].c_load["c_last"]
    (tmp_path / "spec" / "stock.csv").unlink()
    with pytest.raises(DriveError, match=r"lacks stock\.csv"):
        read_folder(tmp_path / "spec")


@pytest.mark.parametrize(
    ("config", "fact"),
    [
        ("warehouses,1\n", "does not say nURandCLast"),
        ("warehouses;1\n", "is not understood"),
        ("warehouses,one\n", "is not understood"),
        (None, "no such file"),
    ],
)
def test_files_that_do_not_say_what_they_are_are_refused(
    tmp_path: Path, config: str | None, fact: str
) -> None:
    (tmp_path / "cust-hist.csv").touch()
    if config is not None:
        (tmp_path / "config.csv").write_text(config)

    with pytest.raises(DriveError, match=fact):
        read_folder(tmp_path)


def test_a_folder_without_an_export_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DriveError, match=r"has neither cust-hist\.csv nor history\.csv"):
        read_folder(tmp_path)


def test_nothing_that_is_there_is_touched(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(DriveError, match="is not empty"):
        export(tmp_path, SPEC)
    with pytest.raises(DriveError, match=r"mine\.txt: not a"):
        export(tmp_path / "mine.txt", SPEC)

    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_too_little_room_is_told_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nearly_full(_path: Path) -> Any:
        return SimpleNamespace(free=50_000_000)

    monkeypatch.setattr(shutil, "disk_usage", nearly_full)
    with pytest.raises(DriveError, match=r"the files take about \d.* MiB, .* has 47\.7 MiB free"):
        export(tmp_path / "new", SPEC)

    assert not (tmp_path / "new").exists()


def test_an_interrupted_export_leaves_nothing(tmp_path: Path) -> None:
    def press_ctrl_c(_state: ExportProgress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(Interrupted, match="the export was stopped after"):
        export(tmp_path / "new", changed(SPEC, warehouses=50), progress=press_ctrl_c)

    assert not (tmp_path / "new").exists()


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DriveError, match="cannot create folder"):
        export(tmp_path / "file" / "below", SPEC)


@pytest.mark.skipif(os.geteuid() != 0, reason="strangers are made by root")
def test_root_writes_no_files_where_others_can_put_links(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, 65534, 65534)
    for folder in (theirs, theirs / "new"):
        with pytest.raises(StoreError, match=r"others than root can change .*theirs"):
            api.export(folder, warehouses=1)
    assert not list(theirs.iterdir())
