"""No password is kept: whatever quotes it, however long it is, wherever a long line is cut."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

import pgdyno
from pgdyno.imports.read import read
from pgdyno.imports.reading import LINE_MAX, Lines
from pgdyno.model.scrub import HIDDEN, Scrubber, scrubbed
from pgdyno.store import RunFile
from tests.data.imported import FOLDER, SAMPLES, Sample
from tests.data.miniature import write_miniature

SECRET = "hunter2"
LINES = (
    "password=hunter2", "PGPASSWORD=hunter2 pgbench -n", " pg_superuserpass      = hunter2",
    "conn=jdbc:postgresql://h/d?user=u&password=hunter2", "postgresql://u:hunter2@h/d",
    '"pg_pass": "hunter2",', "--mysql-password=hunter2 run", "--pgsql-password hunter2",
    "pg_pass {hunter2}", "host=h password='hunter2 hunter2' dbname=d",
    # A value that was cut off before its quote was closed, and one that holds its own quote.
    'password="hunter2', "password='hunter2 hunter2", "pg_pass {hunter2 hunter2",
    r'"password": "a\"hunter2",', "CREATE ROLE r PASSWORD 'a''hunter2' LOGIN",
    # Addresses: a password with an @, one without a user, and Oracle's.
    "postgresql://u:a@hunter2@h/d", "postgresql://:hunter2@h/d",
    "postgresql://a:hunter2@h,postgresql://b:hunter2@i/d",
    "conn=jdbc:oracle:thin:scott/hunter2@//h:1521/s", "SQL> CONNECT scott/hunter2@orcl",
    "CREATE USER u IDENTIFIED BY hunter2", "password=" + SECRET * 20_000,
)  # fmt: skip


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[:30])
def test_no_password_is_kept(line: str) -> None:
    assert SECRET not in scrubbed(line)
    assert HIDDEN in scrubbed(line)


def test_what_stands_around_a_password_stays() -> None:
    assert scrubbed("a password=x b") == f"a password={HIDDEN} b"
    assert scrubbed("postgresql://u:x@h/d") == f"postgresql://u:{HIDDEN}@h/d"
    assert scrubbed("conn=jdbc:oracle:thin:@h:1521:s") == "conn=jdbc:oracle:thin:@h:1521:s"


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.file)
def test_figures_are_no_secrets(sample: Sample) -> None:
    lines = [line for line in sample.path.read_text().splitlines() if SECRET not in line]

    assert [scrubbed(line) for line in lines] == lines


@pytest.mark.parametrize("seed", range(8))
def test_pieces_of_a_line_are_scrubbed_as_the_whole_line_is(seed: int) -> None:
    rng = np.random.default_rng([18, seed])
    parts = [
        text
        for _ in range(rng.integers(1, 6))
        for text in ("x y,", " " * int(rng.integers(3)), LINES[rng.integers(len(LINES))], " ")
        for text in [text * int(rng.integers(1, 12_000)) if text == "x y," else text]
    ]
    line = "".join(parts)
    scrubber, kept, at = Scrubber(), [], 0
    while at < len(line):
        to = at + int(rng.choice([7, 20_000, LINE_MAX]))
        kept.append(scrubber.piece(line[at:to], ended=to >= len(line)))
        at = to

    assert SECRET not in "".join(kept)
    assert "".join(kept) == scrubbed(line)


@pytest.mark.parametrize("before", [-20, -12, -7, -3, 0])
def test_a_password_across_the_seam_of_a_long_line_is_not_kept(before: int, tmp_path: Path) -> None:
    """A line over `LINE_MAX` comes in pieces; each was scrubbed alone."""
    summary = (FOLDER / "pgbench-18-tpcb.txt").read_text()
    long = f"{'x' * (LINE_MAX + before)}password={SECRET} and what follows"
    console = tmp_path / "console.txt"
    console.write_text(f"{summary}{long}\n\x1b[1mlast line\x1b[0m")
    run = write_miniature(tmp_path / "run.sqlite")
    pgdyno.import_results([console], into=run)

    with RunFile.read(run) as file:
        kept = "".join(text for name, text in file.logs().items() if name.startswith("imported"))
    assert SECRET not in kept
    assert not {SECRET[:n] for n in range(4, 8)} & set(kept.replace("=", " ").split())
    assert kept.rstrip("\n") == f"{summary}{long.replace(SECRET, HIDDEN)}\nlast line"


def test_a_long_line_is_cut_at_a_blank_so_that_no_number_is(tmp_path: Path) -> None:
    path = tmp_path / "long"
    text = f"{'x ' * (LINE_MAX // 2 - 2)}12345.678 \x1b[31mred\x1b[0m"
    path.write_text(f"{text}\nnext")
    lines = Lines(path)
    pieces = [(number, piece, lines.ended) for number, piece in lines]

    assert [(number, ended) for number, _, ended in pieces] == [(1, False), (1, True), (2, True)]
    assert pieces[1][1] == "12345.678 red"


def test_what_a_tool_tells_of_a_statement_holds_no_password(tmp_path: Path) -> None:
    summary = (FOLDER / "pgbench-18-tpcb.txt").read_text()
    path = tmp_path / "summary.txt"
    statement = f"         0.681           0  SELECT dblink('host=h password={SECRET} dbname=d');\n"
    path.write_text(
        f"{summary}{statement}".replace("TPC-B (sort of)", f"postgresql://u:{SECRET}@h/d")
    )
    (one,) = read(path)

    assert any("dblink" in str(told.of) for told in one.told)
    assert "postgresql" in str(one.conditions["transaction_type"])
    assert SECRET not in json.dumps(asdict(one))
