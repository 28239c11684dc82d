"""Results are written over nothing but earlier results."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pgdyno.cli.app import app
from pgdyno.model.errors import StoreError
from pgdyno.store.output_file import require_page, write_page
from pgdyno.store.run_file import RunFile
from tests.data.miniature import write_miniature

PAGE = '<!doctype html>\n<meta name="generator" content="pgdyno 0.1.0">\n'
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root is attacked so")


@pytest.fixture(scope="module")
def run_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_miniature(tmp_path_factory.mktemp("runs") / "run.sqlite")


def refused(words: Sequence[str | Path]) -> StoreError:
    done = CliRunner().invoke(app, list(map(str, words)))
    assert isinstance(done.exception, StoreError), (done.exception, done.output)
    return done.exception


def test_a_report_replaces_a_report(tmp_path: Path) -> None:
    of_a_clone = "Own.\n\nMade by pgdyno 0.1.0 (a10f0258) from run x.\n"
    for text in (PAGE, "Own.\n\nMade by pgdyno 0.1 from run x.\n", of_a_clone,
                 "Own.\n\n-- Made by pgdyno 0.1.0 (a10f0258, changed) from run x.\n",
                 '{"schema": "pgdyno.report/1"}'):  # fmt: skip
        path = tmp_path / "report"
        path.write_text(text)
        write_page(path, PAGE)
        assert path.read_text() == PAGE
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("text", ["notes about pgdyno", '{"a": 1}', "[1]", "{", "\x00" * 10])
def test_nothing_else_is_replaced(tmp_path: Path, text: str) -> None:
    path = tmp_path / "report.html"
    path.write_text(text)

    with pytest.raises(StoreError, match=r"report.html exists and is not a report of pgdyno's"):
        write_page(path, PAGE)

    assert path.read_text() == text


@pytest.mark.parametrize("way", ["the same", "a link", "a hard link", "around"])
def test_one_file_under_two_names_is_seen(tmp_path: Path, way: str) -> None:
    source = tmp_path / "source"
    source.write_text(PAGE)
    other = tmp_path / "other"
    if way == "a link":
        other.symlink_to(source)
    elif way == "a hard link":
        other.hardlink_to(source)
    else:
        (tmp_path / "sub").mkdir()
        other = tmp_path / "sub" / ".." / "source" if way == "around" else source

    with pytest.raises(StoreError, match="which must stay"):
        require_page(other, beside=(source,))


def test_two_files_that_are_not_there_yet_are_compared_too(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="which must stay"):
        require_page(tmp_path / "x.html", beside=(tmp_path / "." / "x.html",))


@pytest.mark.parametrize("name", ["run.html", "run.md", "run.json"])
def test_a_run_file_is_not_replaced_by_its_report(
    tmp_path: Path, run_file: Path, name: str
) -> None:
    own = tmp_path / name
    own.write_bytes(run_file.read_bytes())

    refused(["report", own, "--format", own.suffix[1:]])
    refused(["report", own, "--out", own])
    refused(["report", run_file, "--out", own])

    assert own.read_bytes() == run_file.read_bytes()


def test_reports_of_all_formats_are_written_twice(tmp_path: Path, run_file: Path) -> None:
    for kind in ("html", "md", "json"):
        out = tmp_path / f"report.{kind}"
        for _ in range(2):
            done = CliRunner().invoke(app, ["report", str(run_file), "-f", kind, "--out", str(out)])
            assert done.exit_code == 0, done.output


def test_a_report_is_what_the_name_of_its_file_ends_with(tmp_path: Path, run_file: Path) -> None:
    begins = {"a.md": "# ", "a.json": "{", "a.html": "<!doctype",
              "a.conf": "# Stage ", "a.sql": "-- Stage "}  # fmt: skip
    for name, begin in begins.items():
        out = tmp_path / name
        done = CliRunner().invoke(app, ["report", str(run_file), "--out", str(out)])
        assert done.exit_code == 0, done.output
        assert out.read_text().startswith(begin), name
    # What is asked for by its name is not judged by that of its file.
    out = tmp_path / "b.md"
    CliRunner().invoke(app, ["report", str(run_file), "-f", "json", "--out", str(out)])
    assert out.read_text().startswith("{")


def test_commands_refuse_before_they_touch_anything(tmp_path: Path) -> None:
    page, curve = tmp_path / "x.html", tmp_path / "y.json"
    page.write_text("a page of mine")
    curve.write_text("{}")

    refused(["storage", tmp_path, "--out", tmp_path / "x.sqlite", "--quick", "--size", "64MiB"])
    refused(["storage", tmp_path, "--out", tmp_path / "z.html", "--quick", "--size", "64MiB"])
    refused(["knee", "tpcc", "-d", "host=/nowhere", "--out", tmp_path / "x.html"])
    refused(["knee", "tpcc", "-d", "host=/nowhere", "--out", tmp_path / "y.html"])

    assert sorted(tmp_path.iterdir()) == [page, curve]
    assert (page.read_text(), curve.read_text()) == ("a page of mine", "{}")


@as_root
def test_root_writes_no_result_where_others_could_put_a_link(
    tmp_path: Path, run_file: Path
) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, 65534, 65534)
    copy = theirs / "run.sqlite"
    copy.write_bytes(run_file.read_bytes())

    answers = ["--server", "embedded", "--warehouses", "1", "--setting", "wal_buffers=64MB"]
    commands: list[list[str | Path]] = [
        ["report", run_file, "--out", theirs / "report.html"],
        ["init", theirs / "first.toml", *answers],
        ["init", theirs / "new" / "first.toml", *answers],
        ["export", "tpcc", theirs, "--warehouses", "1"],
        ["export", "tpcc", theirs / "new" / "files", "--warehouses", "1"],
    ]
    for words in commands:
        assert "others than root can change" in refused(words).fact, words
    with pytest.raises(StoreError, match="others than root can change"):
        RunFile.append(copy)
    with pytest.raises(StoreError, match="others than root can change"):
        write_miniature(theirs / "new.sqlite")

    assert list(theirs.iterdir()) == [copy]
