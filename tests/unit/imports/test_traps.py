"""Each trap fires on a sample and stays silent on a clean one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.api.imports import import_results
from pgdyno.imports.simultaneous import simultaneous
from pgdyno.imports.traps import checked, traps
from pgdyno.model.imported import Imported
from tests.data.imported import FOLDER, SAMPLES, Sample, imported, warned

FIRES = {
    "T1": ("field-benchmarksql-9.5.txt", "0.400 of all transactions"),
    "T2": ("benchmarksql-6-console.txt", "more than the 12.86"),
    "T3": ("benchmarksql-5.0-console-oracle.txt", "2 transactions failed"),
    "T4": ("benchmarksql-6-summary-errors.csv", "4 transactions ended in an error"),
    "T5": ("go-tpc-1-plain.txt", "NEW_ORDER: 99th of 44 ms"),
    "T6": ("go-tpc-0-summary.txt", "by the longest time are 19,384 a minute"),
    "T7": ("hammerdb-3.2-console.txt", "NOPM is 0.333 of TPM, the mix has 0.435"),
    "T8": ("hammerdb-4.9-primary.txt", "the instance is a primary"),
    "T9": ("sysbench-1.0-tpcc-command.txt", "about 43.5%"),
    "T10": ("pgbench-15-select-connect.txt", "connected anew"),
    "T12": ("dbt2-0.40-mix.log", "35 New-Orders rolled back and 22 failed"),
    "T13": ("ycsb-0.1-text.txt", "whole milliseconds; CLEANUP"),
    "T14": (
        "benchmarksql-4.1-apart.txt",
        "only in part as benchmarksql-4.1-apart.txt, line 6 (90%)",
    ),
    "T15": ("pgbench-10-summary.txt", "number of failed transactions"),
    "E2": ("field-benchmarksql-9.5-properties.txt", "36% of Payments"),
    "E6": ("benchmarksql-5.0-console.txt", "it is one run"),
    "E7": ("field-benchmarksql-9.5-properties.txt", "60 s were asked for, and it ran 600 s"),
}
SILENT = {
    "T1": "benchmarksql-4.1-console.txt",
    "T2": "hammerdb-4.9-waiting.txt",
    "T3": "benchmarksql-4.1-console.txt",
    "T4": "benchmarksql-6-console.txt",
    "T5": "go-tpc-1-last-line.txt",
    "T6": "go-tpc-1-plain.txt",
    "T7": "hammerdb-4.9-cli.txt",
    "T8": "hammerdb-4.9-cli.txt",
    "T9": "sysbench-1.0-oltp-command.txt",
    "T10": "pgbench-18-tpcb.txt",
    "T11": "go-tpc-1-plain.txt",
    "T12": "dbt2-0.61-mix.log",
    "T13": "ycsb-0.17-text.txt",
    "T14": "benchmarksql-4.1-console.txt",
    "T15": "pgbench-18-tpcb.txt",
    "E2": "benchmarksql-4.1-console.txt",
    "E7": "benchmarksql-4.1-console.txt",
    "E10": "pgbench-18-tpcb.txt",
    "E11": "pgbench-18-tpcb.txt",
}


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
    here = {"T11", "E10", "E11"}  # fire below, of two samples beside each other
    quiet = {"E6"}  # is silent below

    assert FIRES.keys() | here == {trap.ident for trap in traps()}
    assert SILENT.keys() | quiet == {trap.ident for trap in traps()}


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.file)
def test_what_a_trap_says_is_a_fact_or_what_it_lacks(sample: Sample) -> None:
    for result in imported(sample.file):
        for check in result.checks:
            assert (check.fact is None) == (check.outcome == "silent")
            assert check.fact is None or not check.fact.endswith(".")


def test_rows_beside_a_console_tell_what_its_tpmc_holds() -> None:
    console, rows = imported("benchmarksql-5.0-console.txt", "benchmarksql-5.0-result.csv")
    fact = str(warned(console, "T3").fact)

    assert warned(one("benchmarksql-5.0-console.txt"), "T3").outcome == "silent"
    assert "of those in benchmarksql-5.0-result.csv" in fact
    share = 1 - (rows.value("nopm_committed") or 0) / (rows.value("nopm_ended") or 1)
    assert f"{share:.2%} did" in fact
    assert warned(rows, "T3").outcome == "silent"  # none of the rows failed
    # The console alone, without its beginning, cannot tell.
    assert warned(one("field-six-stages.txt"), "T3").outcome == "unknown"


def test_errors_that_benchmarksql_6_counts_are_found() -> None:
    assert warned(one("benchmarksql-6-summary.csv"), "T4").outcome == "silent"
    assert warned(one("benchmarksql-6-result.csv"), "T4").outcome == "unknown"
    beside = imported("benchmarksql-6-result.csv", "benchmarksql-6-summary.csv")
    assert warned(beside[0], "T4").fact is None


def test_without_its_warehouses_no_load_is_said_to_wait() -> None:
    told = one("hammerdb-4.9-waiting.txt")

    assert warned(again(replace(told, conditions={})), "T2").outcome == "unknown"
    few = replace(told, conditions=told.conditions | {"warehouses": 97})
    assert warned(again(few), "T2").outcome == "fires"


def test_without_its_command_the_script_of_sysbench_is_not_known() -> None:
    assert warned(one("sysbench-1.0-text.txt"), "T9").outcome == "unknown"


def test_another_transaction_type_beside_fires() -> None:
    both = imported("pgbench-18-tpcb.txt", "pgbench-18-select-connect.txt")

    assert warned(both[0], "T10").outcome == "fires"
    assert "select only" in str(warned(both[0], "T10").fact)


def test_what_the_server_counted_beside_go_tpc_fires() -> None:
    both = imported("go-tpc-1-plain.txt", "hammerdb-4.9-cli.txt")

    assert warned(both[0], "T11").outcome == "fires"


def test_clients_that_ran_apart_are_not_added_up() -> None:
    late = imported("benchmarksql-4.1-apart.txt")

    assert simultaneous(late) == ()
    same = [replace(x, span=late[0].span) for x in late]
    assert warned(checked(same)[0], "T14").outcome == "silent"
    assert len(simultaneous(same)) == 1


def test_repeats_have_a_spread() -> None:
    names = [FOLDER / f"pgbench-{version}-tpcb.txt" for version in (15, 18)]

    first = import_results(names).results[0]
    assert warned(first, "E6").outcome == "unknown"
    first = import_results(names, repeats=True).results[0]
    assert warned(first, "E6").outcome == "silent"


def test_figures_that_agree_to_the_digit_are_copies() -> None:
    both = imported("field-storage-local-ssd.txt", "field-storage-essd-104-cores.txt")
    copied = [x for x in both if warned(x, "E10").outcome == "fires"]

    assert {x.source.file for x in copied} == {
        "field-storage-local-ssd.txt", "field-storage-essd-104-cores.txt",
    }  # fmt: skip
    assert all("1058.21" in str(warned(x, "E10").fact) for x in copied)


def test_other_isolation_and_other_statements_are_named() -> None:
    told = one("benchmarksql-5.0-console.txt")
    forms = {"statement_form": "procedures", "isolation": "serializable"}
    other = replace(told, conditions=told.conditions | forms, span=None)
    mine = replace(told, conditions=told.conditions | {"statement_form": "client's SQL"})
    (first, _) = checked([mine, other])

    assert warned(first, "E11").fact == "statements client's SQL beside procedures"
    assert warned(checked([mine, replace(mine, span=None)])[0], "E11").outcome == "silent"


def test_other_numbers_of_clients_are_named() -> None:
    both = imported("field-storage-local-ssd.txt", "field-storage-essd-32-cores.txt")
    found = [warned(x, "E11") for x in both if x.conditions.get("scale") == 10000 and x.comparable]

    assert all(check.outcome == "fires" for check in found)
    assert "128 clients stand beside 32" in str(found[0].fact)
