"""Every sample is read by its content, and says what its tool said."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pgdyno.cli.app import app
from pgdyno.imports.formats import formats
from pgdyno.imports.read import read
from pgdyno.imports.recognise import tools
from pgdyno.model.imported import COMPARABLE, CONDITIONS, Imported
from tests.data.imported import FOLDER, SAMPLES, Sample

TOOLS = {
    "BenchBase",
    "BenchmarkSQL",
    "DBT-2",
    "fio",
    "go-tpc",
    "HammerDB",
    "pgbench",
    "sysbench",
    "YCSB",
}
FIGURES: dict[str, dict[str, float]] = {
    # what was told, from the files themselves
    "benchmarksql-4.1-console.txt": {"tpmC": 7412.83, "tpmTOTAL": 16444.1},
    "benchmarksql-5.0-console.txt": {"tpmC": 11226.71, "Transaction Count": 25054},
    "benchmarksql-5.1-console.txt": {"tpmC": 7093.4},
    "benchmarksql-6-console.txt": {"Overall NOPM": 619, "Overall TPM": 1400},
    "benchmarksql-6-console-de.txt": {
        "Overall NOPM": 586, "Overall TPM": 1422, "share of the theoretical maximum": 4556.77,
    },
    "pgbench-9.5-summary.txt": {
        "tps excluding connecting": 622.977698, "tps including connecting": 618.764555,
        "latency average": 15.844,
    },
    "pgbench-10-summary.txt": {"tps excluding connecting": 622.977698, "latency stddev": 2.715},
    "hammerdb-4.9-cli.txt": {"NOPM": 69200, "TPM": 160000},
    "hammerdb-3.2-console.txt": {"NOPM": 401371, "TPM": 1204113},
    "hammerdb-4.9-job.json": {"NOPM": 69200, "TPM": 160000},
    "go-tpc-1-plain.txt": {"tpmC": 14445.6, "tpmTotal": 31653.8, "efficiency": 112329.7},
    "go-tpc-1.0.9-plain.txt": {"tpmC": 2102.2, "tpmTotal": 4672.6, "efficiency": 16346.5},
    "go-tpc-1.0.9-json.txt": {"tpmC": 1872.9, "tpmTotal": 4389.6, "efficiency": 14564.0},
    "go-tpc-1-json.txt": {"tpmC": 9872.9, "tpmTotal": 22054.1, "efficiency": 76772.0},
    "go-tpc-1-table.txt": {"tpmC": 10832.7, "tpmTotal": 23864.1, "efficiency": 84235.2},
    "sysbench-1.0-tpcc.txt": {"transactions": 1402, "transactions per sec.": 172.32},
    "sysbench-0.5-text.txt": {"transactions": 2057, "latency approx.  95 percentile": 52.89},
    "fio-3-text.txt": {"iops read": 21_400, "bandwidth write": 168, "latency avg read": 0.19484},
    "fio-2-text.txt": {"iops write": 89, "latency avg write": 48.53},
    "sysbench-0.5-run.txt": {"transactions": 3643, "ignored errors": 27, "other operations": 7313,
                             "latency sum": 20_006.2},
    "sysbench-1.1-text.txt": {"transactions": 3477, "events per second": 694.1938},
    "sysbench-1.1-rate.txt": {"transactions": 1002, "latency 99th percentile": 137.35},
    "benchbase-2023-summary.json": {"Goodput (requests/second)": 455.21},
}  # fmt: skip
COUNTED: dict[str, dict[str, float]] = {
    # recomputed by the importer, by comparable metric
    "benchmarksql-4.1-console.txt": {"nopm_ended": 7412.83, "tpm_all_ended": 16459.0},
    "benchmarksql-6-result.csv": {"nopm_ended": 620.0, "tpm_all_ended": 1401.0},
    "go-tpc-0-summary.txt": {"tpm_all_ended": (1120 + 13044 + 1190 + 12480 + 1210) / 89.9 * 60},
    "go-tpc-1.0.9-plain.txt": {"tpm_all_ended": (24 + 351 + 27 + 345 + 26) / 10.0 * 60},
    "dbt2-0.61-mix.log": {"nopm_committed": 176.0656, "nopm_ended": 176.0656},
    "pgbench-12-aggregate.log": {"tps": (7884 + 7208 + 7685 + 7073) / 8},
    "hammerdb-4.9-cli.txt": {"nopm_committed": 69200},
    "sysbench-1.0-text.txt": {"tps": 2453 / 5.0189},
    "sysbench-1.1-text.txt": {"tps": 3477 / 5.0087},
    "sysbench-0.5-run.txt": {"tps": 3643 / 5.0061},
    "sysbench-1.0-tpcc.txt": {"tps": 1402 / 8.1353},
}


def first(name: str) -> Imported:
    return read(FOLDER / name)[0]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda one: one.file)
def test_a_sample_is_known_by_its_content(sample: Sample) -> None:
    results = read(sample.path)

    assert {one.tool for one in results} == {sample.tool}
    assert all(one.told or one.comparable or one.counts or one.conditions for one in results)
    for one in results:
        assert {figure.metric for figure in one.comparable} <= COMPARABLE.keys()
        assert one.conditions.keys() <= CONDITIONS.keys()
        assert one.source.size_bytes == sample.path.stat().st_size


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda one: one.file)
def test_no_line_of_a_sample_is_lost(sample: Sample) -> None:
    counts = read(sample.path)[0].counts

    assert "lines of the file that could not be read" not in counts


@pytest.mark.parametrize("name", ["sysbench-0.5-run", "sysbench-1.1-text", "sysbench-1.1-rate"])
def test_every_line_that_sysbench_printed_here_is_known(name: str) -> None:
    one = first(f"{name}.txt")

    assert "lines of the file that are of no figure" not in one.counts
    assert one.conditions.get("rate_limit_tps") == (200 if name == "sysbench-1.1-rate" else None)


@pytest.mark.parametrize("name", FIGURES)
def test_figures_stay_as_they_were_told(name: str) -> None:
    one = first(name)

    assert {metric: one.said(metric) for metric in FIGURES[name]} == FIGURES[name]


@pytest.mark.parametrize("name", COUNTED)
def test_what_can_be_recomputed_is(name: str) -> None:
    one = first(name)

    assert {metric: one.value(metric) for metric in COUNTED[name]} == pytest.approx(COUNTED[name])


def test_the_index_lists_every_sample() -> None:
    there = {path.name for path in FOLDER.iterdir()} - {"index.toml"}

    assert there == {one.file for one in SAMPLES}
    assert {one.origin for one in SAMPLES} == {"run", "document", "field report"}


def test_each_tool_has_samples_of_two_versions() -> None:
    versions = {tool: {one.version for one in SAMPLES if one.tool == tool} for tool in TOOLS}

    assert set(tools()) == TOOLS
    assert all(len(found) >= 2 for found in versions.values()), versions


def test_the_guide_and_the_help_name_each_tool_whose_output_is_read() -> None:
    guide = (Path(__file__).parents[3] / "docs" / "guides" / "import.md").read_text()
    _, _, after = guide.partition("| tool | versions | output |\n|---|---|---|\n")
    rows = after.partition("\n\n")[0].splitlines()
    shown = CliRunner().invoke(app, ["import", "--help"], env={"COLUMNS": "200"})

    assert sorted((row.split("|")[1].strip() for row in rows), key=str.lower) == list(tools())
    assert ", ".join(tools()) in " ".join(shown.output.split())


def test_every_format_has_a_sample() -> None:
    read_ = {(one.tool, one.form) for sample in SAMPLES for one in read(sample.path)}
    least = Counter(one.tool for one in formats())

    for tool, count in least.items():
        assert sum(1 for of, _ in read_ if of == tool) >= count, tool


def test_a_log_of_pgbench_gives_the_rate_that_pgbench_told() -> None:
    one = first("pgbench-15-tpcb.txt")

    assert one.said("tps excluding connecting") == one.value("tps")
    assert one.version == "15.20"
    assert one.failed == 0


def test_what_nobody_told_is_unknown_and_never_zero() -> None:
    old = first("pgbench-10-summary.txt")

    assert old.failed is None
    assert "number of failed transactions" in old.unknown
    assert first("hammerdb-4.9-cli.txt").failed is None
    assert first("benchbase-2023-raw.csv").failed is None
    assert first("pgbench-9.5-summary.txt").conditions.get("duration_s") is None


def test_percentiles_are_counted_not_averaged() -> None:
    one = first("pgbench-15-log.log")

    assert one.latencies is not None
    assert sum(one.latencies.counts) == 400
    assert list(one.latencies.lower_us) == sorted(one.latencies.lower_us)


def test_a_german_machine_tells_the_same_rows() -> None:
    english, german = first("benchbase-2023-raw.csv"), first("benchbase-2023-raw-de.csv")

    assert german.comparable == english.comparable
    assert german.latencies == english.latencies


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda one: one.file)
@pytest.mark.parametrize("way", ["crlf", "utf-16", "bom"])
def test_line_ends_and_encodings_change_nothing(sample: Sample, way: str, tmp_path: Path) -> None:
    text = sample.path.read_text()
    other = tmp_path / "other"
    if way == "crlf":
        other.write_bytes(text.replace("\n", "\r\n").encode())
    else:
        other.write_bytes(text.encode("utf-16" if way == "utf-16" else "utf-8-sig"))

    mine, its = read(sample.path), read(other)

    assert [one.told for one in its] == [one.told for one in mine]
    assert [one.comparable for one in its] == [one.comparable for one in mine]
    assert [one.conditions for one in its] == [one.conditions for one in mine]
