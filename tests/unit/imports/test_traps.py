"""Each trap fires on a sample and stays silent on a clean one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.imports.traps import checked, traps
from pgdyno.model.imported import Imported, Span
from tests.data.imported import SAMPLES, Sample, imported, warned

FIRES = {
    "T1": ("field-benchmarksql-9.5.txt", "0.400 of all transactions"),
    "T2": ("benchmarksql-6-console.txt", "more than the 12.86"),
    "T5": ("go-tpc-1-plain.txt", "NEW_ORDER: 99th of 44 ms"),
    "T6": ("go-tpc-0-summary.txt", "by the longest time are 19,384 a minute"),
    "T7": ("hammerdb-3.2-console.txt", "NOPM is 0.333 of TPM, the mix has 0.435"),
    "T8": ("hammerdb-4.9-primary.txt", "the instance is a primary"),
    "T9": ("sysbench-1.0-tpcc-command.txt", "about 43.5 %"),
    "T10": ("pgbench-15-select-connect.txt", "connected anew"),
    "T12": ("dbt2-0.40-mix.log", "35 New-Orders rolled back and 22 failed"),
    "T13": ("ycsb-0.1-text.txt", "whole milliseconds; CLEANUP"),
    "T15": ("pgbench-10-summary.txt", "number of failed transactions"),
    "E2": ("field-benchmarksql-9.5-properties.txt", "36 % of Payments"),
    "E6": ("benchmarksql-5.0-console.txt", "it is one run"),
    "E7": ("field-benchmarksql-9.5-properties.txt", "60 s were asked for, and it ran 600 s"),
}
SILENT = {
    "T1": "benchmarksql-4.1-console.txt", "T3": "benchmarksql-4.1-console.txt",
    "T4": "benchmarksql-6-console.txt", "T6": "go-tpc-1-plain.txt", "T7": "hammerdb-4.9-cli.txt",
    "T8": "hammerdb-4.9-cli.txt", "T10": "pgbench-18-tpcb.txt", "T11": "go-tpc-1-plain.txt",
    "T12": "dbt2-0.61-mix.log", "T13": "ycsb-0.17-text.txt", "T14": "benchmarksql-4.1-console.txt",
    "T15": "pgbench-18-tpcb.txt", "E2": "benchmarksql-4.1-console.txt",
    "E7": "benchmarksql-4.1-console.txt", "E10": "pgbench-18-tpcb.txt",
    "E11": "pgbench-18-tpcb.txt",
}  # fmt: skip


def one(name: str) -> Imported:
    return imported(name)[0]


def again(result: Imported) -> Imported:
    return checked([result])[0]


@pytest.mark.parametrize("trap", FIRES)
def test_a_trap_fires_on_a_sample(trap: str) -> None:
    name, said = FIRES[trap]
    found = warned(one(name), trap)

    assert found.outcome == "fires"
    assert found.fact is not None
    assert said in found.fact


@pytest.mark.parametrize("trap", SILENT)
def test_a_trap_is_silent_on_a_clean_one(trap: str) -> None:
    assert warned(one(SILENT[trap]), trap).outcome == "silent"


def test_what_no_single_sample_shows_has_a_test_of_its_own() -> None:
    here = {"T3", "T4", "T11", "T14", "E10", "E11"}  # fire below
    quiet = {"T2", "T5", "T9", "E6"}  # are silent below

    assert FIRES.keys() | here == {trap.ident for trap in traps()}
    assert SILENT.keys() | quiet == {trap.ident for trap in traps()}


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.file)
def test_what_a_trap_says_is_a_fact_or_what_it_lacks(sample: Sample) -> None:
    for result in imported(sample.file):
        for check in result.checks:
            assert (check.fact is None) == (check.outcome == "silent")
            assert check.fact is None or not check.fact.endswith(".")


def test_failures_that_benchmarksql_5_counts_are_found() -> None:
    clean = one("benchmarksql-5.0-console.txt")

    assert clean.failed == 0
    assert warned(again(replace(clean, failed=3)), "T3").outcome == "fires"
    # The console alone, without its beginning, cannot tell.
    assert warned(one("field-six-stages.txt"), "T3").outcome == "unknown"


def test_errors_that_benchmarksql_6_counts_are_found() -> None:
    clean = one("benchmarksql-6-summary.csv")

    assert warned(clean, "T4").outcome == "silent"
    assert warned(again(replace(clean, failed=2)), "T4").outcome == "fires"
    assert warned(one("benchmarksql-6-result.csv"), "T4").outcome == "unknown"
    assert (
        warned(imported("benchmarksql-6-result.csv", "benchmarksql-6-summary.csv")[0], "T4").fact
        is None
    )


def test_waiting_terminals_stay_below_the_limit() -> None:
    told = one("hammerdb-4.9-cli.txt")  # 69,200 of 800 warehouses

    assert warned(told, "T2").outcome == "fires"
    waiting = replace(told, conditions=told.conditions | {"warehouses": 6000})
    assert warned(again(waiting), "T2").outcome == "silent"
    unknown = replace(told, conditions={})
    assert warned(again(unknown), "T2").outcome == "unknown"


def test_a_tool_without_percentiles_has_no_bucket() -> None:
    told = one("go-tpc-1-plain.txt")
    without = replace(
        told, told=tuple(t for t in told.told if t.metric in ("Count", "Takes", "tpmC"))
    )

    assert warned(again(without), "T5").outcome == "silent"


def test_a_script_of_sysbench_that_is_not_tpcc_is_silent() -> None:
    told = one("sysbench-1.0-tpcc-command.txt")
    other = replace(told, conditions=told.conditions | {"transaction_type": "oltp_read_write"})

    assert warned(again(other), "T9").outcome == "silent"
    assert warned(one("sysbench-1.0-text.txt"), "T9").outcome == "unknown"


def test_another_transaction_type_beside_fires() -> None:
    both = imported("pgbench-18-tpcb.txt", "pgbench-18-select-connect.txt")

    assert warned(both[0], "T10").outcome == "fires"
    assert "select only" in str(warned(both[0], "T10").fact)


def test_what_the_server_counted_beside_go_tpc_fires() -> None:
    both = imported("go-tpc-1-plain.txt", "hammerdb-4.9-cli.txt")

    assert warned(both[0], "T11").outcome == "fires"


def test_clients_that_ran_apart_are_not_added_up() -> None:
    first = one("benchmarksql-4.1-console.txt")
    assert first.span is not None
    late = replace(
        first,
        span=Span(first.span.begin_s + 30, first.span.end_s + 30, "local", 1.0),
        source=replace(first.source, file="other.txt"),
    )

    assert warned(checked([first, late])[0], "T14").outcome == "fires"
    together = replace(late, span=first.span)
    assert warned(checked([first, together])[0], "T14").outcome == "silent"


def test_repeats_have_a_spread() -> None:
    first = one("pgbench-18-tpcb.txt")
    other = replace(first, source=replace(first.source, file="other.txt"))

    assert warned(checked([first, other])[0], "E6").outcome == "unknown"
    both = [replace(x, conditions=x.conditions | {"repeats": "yes"}) for x in (first, other)]
    assert warned(checked(both)[0], "E6").outcome == "silent"


def test_figures_that_agree_to_the_digit_are_copies() -> None:
    both = imported("field-storage-local-ssd.txt", "field-storage-essd-104-cores.txt")
    copied = [x for x in both if warned(x, "E10").outcome == "fires"]

    assert {x.source.file for x in copied} == {
        "field-storage-local-ssd.txt", "field-storage-essd-104-cores.txt",
    }  # fmt: skip
    assert all("1058.21" in str(warned(x, "E10").fact) for x in copied)


def test_other_numbers_of_clients_are_named() -> None:
    both = imported("field-storage-local-ssd.txt", "field-storage-essd-32-cores.txt")
    found = [warned(x, "E11") for x in both if x.conditions.get("scale") == 10000 and x.comparable]

    assert all(check.outcome == "fires" for check in found)
    assert "128 clients stand beside 32" in str(found[0].fact)
