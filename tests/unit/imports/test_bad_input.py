"""What is refused, and what is imported with what is missing: never a traceback."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from pgdyno.imports.numbers import grouped, printed, whole
from pgdyno.imports.read import read
from pgdyno.imports.reading import sha256_of
from pgdyno.model.errors import PlanError
from pgdyno.model.scrub import scrubbed
from tests.attack.outcome import bounded
from tests.data.hammerdb_jobs import job_store
from tests.data.imported import FOLDER, SAMPLES, Sample

ONE_OF_EACH = tuple({sample.tool: sample for sample in SAMPLES}.values())


def written(folder: Path, text: str) -> Path:
    path = folder / "output"
    path.write_text(text)
    return path


def text(name: str) -> str:
    return (FOLDER / name).read_text()


def test_output_of_no_tool_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="no output of a tool that is known"):
        read(written(tmp_path, "hello\n" * 100))
    with pytest.raises(PlanError, match="no output of a tool that is known"):
        read(written(tmp_path, ""))


def test_a_wrong_tool_is_named_with_what_it_looks_like() -> None:
    with pytest.raises(PlanError, match="no output of sysbench; it looks like go-tpc"):
        read(FOLDER / "go-tpc-1-plain.txt", tool="sysbench")
    with pytest.raises(PlanError, match="the tool is 'gotpc', allowed are"):
        read(FOLDER / "go-tpc-1-plain.txt", tool="gotpc")


def test_a_tool_may_be_named_in_any_case() -> None:
    assert read(FOLDER / "go-tpc-1-plain.txt", tool="GO-TPC")


def test_two_tools_in_one_file_are_refused_or_one_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, text("pgbench-18-tpcb.txt") + text("sysbench-1.0-text.txt"))

    with pytest.raises(PlanError, match=r"pgbench \(line \d+\) and sysbench \(line \d+\)"):
        read(path)
    (one,) = read(path, tool="pgbench")
    assert one.comparable == read(FOLDER / "pgbench-18-tpcb.txt")[0].comparable
    assert one.counts["lines of the file that are of no figure"] > 10


def test_a_second_tool_far_behind_is_refused_too(tmp_path: Path) -> None:
    log = text("pgbench-18-log.log") * 60
    path = written(tmp_path, log + text("go-tpc-1-plain.txt"))

    with pytest.raises(PlanError, match=r"pgbench \(line 1\) and go-tpc \(line 24\d\d\d\)"):
        read(path)


def test_two_outputs_of_a_tool_in_one_file_are_refused(tmp_path: Path) -> None:
    both = text("benchmarksql-5.0-console.txt") + text("benchmarksql-6-console.txt")

    with pytest.raises(PlanError, match=r"BenchmarkSQL: console \(line 3\) and console of 6 \("):
        read(written(tmp_path, both))
    late = text("pgbench-18-log.log") * 60 + text("pgbench-18-tpcb.txt")
    with pytest.raises(PlanError, match=r"pgbench: log \(line 1\) and summary \(line 24\d\d\d\)"):
        read(written(tmp_path, late))


def test_more_results_than_anybody_has_end_the_reading(tmp_path: Path) -> None:
    line = "[Thread-{}] INFO jTPCC : Term-00, Measured tpmC (NewOrders) = 1.5\n"
    path = written(tmp_path, "".join(line.format(number) for number in range(5000)))

    with pytest.raises(PlanError, match="more than 1000 results, one more begins in line 1001"):
        read(path)


def test_a_file_that_is_cut_short_says_what_is_missing(tmp_path: Path) -> None:
    whole_ = text("sysbench-1.0-text.txt")
    (one,) = read(written(tmp_path, whole_[: whole_.index("SQL statistics")]))
    assert one.missing == ("the summary: only intervals are there",)
    assert one.failed is None

    summary = text("pgbench-18-tpcb.txt")
    (one,) = read(written(tmp_path, summary[: summary.index("transaction type")]))
    assert one.missing == ("the summary: only progress is there",)

    console = text("benchmarksql-5.0-console.txt")
    (one,) = read(written(tmp_path, console[: console.index("Measured tpmTOTAL")]))
    assert one.missing == ("tpmTOTAL", "Transaction Count", "Session Start and End")
    assert one.value("nopm_ended") == 11226.71
    assert one.value("tpm_all_ended") is None


def test_a_console_without_its_end_holds_no_result(tmp_path: Path) -> None:
    console = text("benchmarksql-5.0-console.txt")

    with pytest.raises(PlanError, match="holds no result of BenchmarkSQL"):
        read(written(tmp_path, console[: console.index("Measured tpmC")]))


@pytest.mark.parametrize("sample", ONE_OF_EACH, ids=lambda one: one.file)
def test_lines_of_others_among_a_tools_lines_are_counted(sample: Sample, tmp_path: Path) -> None:
    lines = sample.path.read_text().splitlines()
    mixed = "\n".join(f"{line}\nkernel: something {n}" for n, line in enumerate(lines))
    if sample.path.suffix == ".json":
        return  # another line within a document of JSON is no line of its own
    mine, its = read(sample.path), read(written(tmp_path, mixed))

    assert [one.comparable for one in its] == [one.comparable for one in mine]
    assert its[0].counts["lines of the file that are of no figure"] >= len(lines)


def test_clients_that_wrote_line_by_line_are_told_apart(tmp_path: Path) -> None:
    blocks = [
        [line.rstrip() for line in text("field-six-stages.txt").splitlines()[a : a + 5]]
        for a in (6, 12, 18, 24)
    ]
    assert all("Measured tpmC" in block[0] for block in blocks)
    threads = [("Thread-22", "Thread-1"), ("Thread-12", "Thread-2"), ("Thread-12", "Thread-3"),
               ("Thread-23", "Thread-4")]  # fmt: skip
    own = [
        [line.replace(*names) for line in block]
        for block, names in zip(blocks, threads, strict=True)
    ]
    mixed = "\n".join(line for row in zip(*own, strict=True) for line in row)
    results = read(written(tmp_path, mixed + "\n"))

    assert [one.said("tpmC") for one in results] == [45416.28, 45292.48, 45336.15, 45231.67]
    assert [one.said("tpmTOTAL") for one in results] == [113487.61, 113269.54, 113247.19, 113054.3]


def test_clients_that_cannot_be_told_apart_have_no_figure_that_is_compared(tmp_path: Path) -> None:
    """Two with one name of a thread, line by line: a tpmC stood beside the other's tpmTOTAL."""
    tail = [
        line for line in text("benchmarksql-5.0-console.txt").splitlines() if "Thread-1]" in line
    ]
    block = tail[next(n for n, line in enumerate(tail) if "Measured tpmC" in line) :]
    other = [line.replace("11226.71", "5.71").replace("25025.38", "12.38") for line in block]
    mixed = "\n".join(line for pair in zip(block, other, strict=True) for line in pair)
    results = read(written(tmp_path, mixed))

    assert [one.comparable for one in results] == [()] * len(results)
    assert all("of which client each figure is" in one.missing[-1] for one in results)
    # One that was cut short, and one behind it that was not: nothing is mixed.
    short, whole_ = read(written(tmp_path, "\n".join([*block[:2], *other])))
    assert short.value("nopm_ended") == 11226.71
    assert whole_.value("nopm_ended") == 5.71
    assert whole_.missing == ()


@pytest.mark.parametrize(
    "make",
    [
        os.mkfifo,
        lambda path: path.mkdir(),
        lambda path: None,
        lambda path: path.symlink_to("/dev/zero"),
    ],
    ids=["pipe", "folder", "missing", "device"],
)
def test_what_is_no_file_is_refused(make: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "a\x1b[31m"
    make(path)

    with pytest.raises(PlanError):
        read(path)


def test_a_line_without_an_end_takes_no_memory(tmp_path: Path) -> None:
    path = written(tmp_path, text("pgbench-18-tpcb.txt") + "x" * 3_000_000)

    assert read(path)[0].value("tps") is not None


LONG = 1 << 16
TIRING = {
    "digits": "1" * LONG, "letters": "a" * LONG, "blanks": " " * LONG, "NUL": "\0" * LONG,
    "errors": "ERROR" * (LONG // 5), "rows": "result, | A |" * (LONG // 13),
    "terminals": "Term-1, progress: " * (LONG // 18), "modes": "Setting " * (LONG // 8),
    "urls": "x://a:" * (LONG // 6), "secrets": "pass {" * (LONG // 6), "lists": "[" * LONG,
}  # fmt: skip


@pytest.mark.parametrize("sample", ONE_OF_EACH, ids=lambda one: one.file)
def test_no_long_line_takes_long(sample: Sample, tmp_path: Path) -> None:
    """A search that goes back and forth takes minutes for one of them."""
    if sample.path.suffix == ".json":
        return  # nothing may follow a document
    path = written(tmp_path, "\n".join((sample.path.read_text(), *TIRING.values())))

    with bounded():
        assert read(path, tool=sample.tool)


@pytest.mark.parametrize("kind", TIRING)
def test_no_long_line_takes_long_to_be_kept(kind: str) -> None:
    hidden = "pass (hidden)" if kind == "secrets" else "password=(hidden)"  # a brace stays open
    with bounded():
        assert scrubbed(TIRING[kind] + " password=hunter2").endswith(hidden)


@pytest.mark.parametrize("sample", ONE_OF_EACH, ids=lambda one: one.file)
def test_colours_and_an_encoding_without_a_mark_change_nothing(
    sample: Sample, tmp_path: Path
) -> None:
    mine = read(sample.path)
    shown = sample.path.read_text()
    coloured = "".join(f"\x1b[1;32m{line}\x1b[0m\n\x1b]0;title\x07" for line in shown.splitlines())
    path = written(tmp_path, coloured)
    assert [one.told for one in read(path)] == [one.told for one in mine]

    for encoding in ("utf-16-le", "utf-16-be"):
        path.write_bytes(shown.encode(encoding))
        assert [one.told for one in read(path)] == [one.told for one in mine]


def test_names_have_an_end(tmp_path: Path) -> None:
    console = text("benchmarksql-5.0-console-oracle.txt").replace("oracle", "o" * 50_000)
    (one,) = read(written(tmp_path, console))

    assert one.conditions["database"] == "o" * 200


# -- HammerDB's job store --------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["_ms", ""], ids=["6.0", "older"])
def test_a_job_store_is_read_as_a_database(suffix: str, tmp_path: Path) -> None:
    (one,) = read(job_store(tmp_path / "hammer.DB", suffix))

    assert (one.tool, one.form) == ("HammerDB", "job store")
    assert one.value("nopm_committed") == 69200
    assert one.conditions["clients"] == 8
    assert one.said("latency p99", "NEWORD") == 22.5


def test_a_database_that_is_no_job_store_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other"
    with sqlite3.connect(path) as db:
        db.execute("CREATE VIEW JOBMAIN AS SELECT 1 AS jobid")
        db.execute("CREATE VIEW JOBOUTPUT AS SELECT 1 AS jobid, 'x' AS output")
    db.close()

    with pytest.raises(PlanError, match="without JOBMAIN and JOBOUTPUT"):
        read(path)
    with pytest.raises(PlanError, match="not output of pgbench"):
        read(path, tool="pgbench")
    with pytest.raises(PlanError, match="holds no job with a result"):
        read(job_store(tmp_path / "cut", said=("Vuser 1:RUNNING",)))


# -- numbers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shown", "decimals", "value"),
    [
        ("1,234", 0, 1234), ("1.234", 0, 1234), ("1\u202f234", 0, 1234), ("1\u2019234", 0, 1234),
        ("12,34,567", 0, 1234567), ("4813,37", 2, 4813.37), ("4,813.37", 2, 4813.37),
        ("\u0661\u066c\u0662\u0663\u0664", 0, 1234), ("  0,022 ", 3, 0.022),
    ],
)  # fmt: skip
def test_a_number_of_any_locale(shown: str, decimals: int, value: float) -> None:
    assert grouped(shown, decimals) == pytest.approx(value)


@pytest.mark.parametrize("shown", ["nan", "inf", "-1", "1e400", "", "0x10", "1.2.3", "9" * 50])
def test_what_is_no_number_is_refused(shown: str) -> None:
    for read_ in (printed, whole, lambda one: grouped(one, 0)):
        if read_ not in (printed, whole) and shown == "1.2.3":
            continue  # separators of some locale
        with pytest.raises(ValueError, match=r".+"):
            read_(shown)


def test_an_instant_of_a_log_is_one(tmp_path: Path) -> None:
    rows = "0 1 2000 0 1795348700 100\n" * 3
    spoiled = f"0 1 2000 0 1795348700 {'1' * 400}\n0 1 {'9' * 5000} 0 1795348701 5\n"
    (one,) = read(written(tmp_path, rows + spoiled))

    assert one.counts["transactions"] == 3
    assert one.counts["lines of the file that could not be read"] == 2
    assert one.missing == ("what lines that could not be read hold",)


def test_a_hostile_name_is_shown_by_its_numbers(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"a\x1b[31m\xff")
    path.write_text(text("pgbench-18-tpcb.txt"))

    assert read(path)[0].source.file == r"a\x1b[31m\xff"


def test_a_store_that_went_while_it_was_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"file .*gone\.db cannot be read: no such file"):
        sha256_of(tmp_path / "gone.db")
