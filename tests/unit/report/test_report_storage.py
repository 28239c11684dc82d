"""The page, Markdown and JSON of probed storage."""

from __future__ import annotations

import io
import json
import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from rich.console import Console

from pgdyno.analysis.storage import storage_facts
from pgdyno.analysis.storage_advice import not_known, storage_advice
from pgdyno.analysis.storage_facts import StorageFacts
from pgdyno.api.runs import Run
from pgdyno.model.errors import PlanError
from pgdyno.model.floor import PAUSES_US, ROUNDS_MAX, PathRound, Probed
from pgdyno.model.manifest import HostManifest, Installation
from pgdyno.model.record_json import from_json, to_json
from pgdyno.model.run import RunInfo
from pgdyno.report.storage import (
    limits,
    render_html,
    render_json,
    render_md,
    summary,
    tables,
)
from pgdyno.report.storage_advice import before_advice, nothing
from pgdyno.report.storage_answer import answer, warnings
from pgdyno.report.storage_charts import drawings
from pgdyno.store.run_file import RunFile
from tests.data.page_text import page_text
from tests.data.probed import DISK, MEMORY, after_rest, at_rates, floor, in_rounds, probed

PROBED = probed(floor("/a"), floor("/bb", MEMORY))
BOTH = storage_facts(PROBED)


def test_paths_stand_side_by_side() -> None:
    for table in tables(BOTH):
        assert [column.head for column in table.columns] == ["", "/a", "/bb"]
    claims, measured, follows = (
        {row[0].text: [cell.text for cell in row[1:]] for row in table.rows}
        for table in tables(BOTH)
    )

    assert claims["write cache"] == ["write back", "unknown"]
    assert claims["atomic writes"] == ["none promised", "unknown"]
    assert measured["a flush of one page"] == ["48.5 µs (48.5 µs to 376 µs)"] * 2
    assert measured["commits of one client, at most"] == ["20,600/s (2,659 to 20,600)"] * 2
    assert claims["block device"] == ["vda", "none"]
    assert measured["commits by pg_test_fsync"] == ["20,600/s"] * 2
    assert measured["commits by fio"] == ["2,659/s"] * 2
    assert measured["random read, fastest window of the grid"][0].startswith("100,000/s")
    assert follows["1 client"] == measured["commits of one client, at most"]
    assert follows["commit_delay to try"] == ["none, flushes are too short"] * 2


def test_without_a_heavier_load_nothing_is_said_of_what_it_would_reach() -> None:
    rising = storage_facts(probed(floor("/a", rates={1: 1000.0, 16: 8000.0})))
    level = storage_facts(probed(floor("/a", rates={1: 1000.0, 16: 8000.0, 64: 8100.0})))

    assert answer(rising)[0].endswith(
        "Random reads reach 8,000/s with 16 under way, the most that was tried; each load was"
        " measured once."
    )
    assert answer(level)[0].endswith(
        "Random reads reach 8,100/s, and nearly that with 16 under way; each load was measured"
        " once."
    )


def test_the_most_is_not_said_twice() -> None:
    falling = storage_facts(probed(floor("/a", rates={1: 1000.0, 16: 8000.0, 64: 7000.0})))
    assert answer(falling)[0].endswith(
        "Random reads reach 8,000/s with 16 under way, and no more beyond; each load was measured"
        " once."
    )


def test_of_memory_nothing_is_advised_and_nothing_is_cleared() -> None:
    alone = storage_facts(probed(floor("/dev/shm", MEMORY)))
    assert nothing(alone) == (
        "No disk was measured, and nothing is advised: /dev/shm lies in memory."
    )
    with_disk = storage_facts(probed(floor("/dev/shm", MEMORY), floor("/a")))
    assert "commits are not much slower" in nothing(with_disk)


def test_no_round_is_foretold_where_one_file_system_holds_both() -> None:
    pairs = [(at_rates("/a", *of_a), at_rates("/b", *of_b)) for of_a, of_b in (
        ((2000, 2000), (4000, 1500)), ((3000, 3000), (2500, 1800)), ((2500, 2600), (2600, 4000)),
    )]  # fmt: skip
    found = in_rounds(*pairs)
    one, other = (replace(each, device_number=7) for each in found.floors)
    apart = storage_facts(replace(found, floors=(one, replace(other, device_number=8))))
    alike = storage_facts(replace(found, floors=(one, other)))

    assert "would decide it" in answer(apart)[-1]
    assert "would decide it" not in render_md(alike)
    verdicts = {one.verdict for one in alike.paths[1].against_first.values()}
    assert verdicts == {"not judged"}, "whatever its interval says"
    assert answer(alike)[-1].endswith(
        "Both lie on one file system: what differs between them is chance, or where on it their"
        " files lie."
    )
    on_vda = [replace(each, claims=replace(each.claims, disks=("vda",))) for each in (one, other)]
    shared = replace(found, floors=(on_vda[0], replace(on_vda[1], device_number=8)))
    assert answer(storage_facts(shared))[-1].endswith(
        "Both lie on vda: what one does the other feels, and where one is faster than what they"
        " share, memory answered."
    )


def test_rounds_that_no_option_takes_are_told_as_such() -> None:
    rates = ((1000, 1100), (1000, 910), (1000, 1090), (1000, 930))
    rounds = [(at_rates("/a", one, one), at_rates("/b", other, other)) for one, other in rates]
    found = in_rounds(*rounds)
    one, other = found.floors
    apart = storage_facts(replace(found, floors=(one, replace(other, device_number=8))))
    told = r"about (\d+) rounds in all \(more than --rounds takes, 100\) would decide it, if"
    (needed,) = {int(rounds) for rounds in re.findall(told, answer(apart)[-1])}
    assert needed > ROUNDS_MAX


def test_a_busy_machine_is_told_first_and_before_advice() -> None:
    found = in_rounds((at_rates("/a", 1000, 1000),), (at_rates("/a", 1000, 1000),))
    first, second = found.rounds
    idle = storage_facts(replace(found, rounds=(first, replace(second, others_cpus=0.3))))
    busy = storage_facts(replace(found, rounds=(first, replace(second, others_cpus=1.6))))

    assert "kept the machine busy" not in render_md(idle)
    assert warnings(busy)[0].startswith(
        "other programs kept the machine busy while this was measured: they used up to 1.6 of 2"
        " CPUs in a round, and this warning comes above 25% of all, a threshold that is chosen, not"
        " measured."
    )
    assert "measure again when the machine is idle before you set anything" in render_md(busy)
    assert "measure again when the machine is idle before you set anything" in shown(busy)
    assert "before you set anything" not in render_md(idle)


def test_what_stands_before_advice_stands_on_the_page_where_all_of_it_is_not_known() -> None:
    def hindered(under_per_s: float) -> PathRound:
        one = at_rates("/a", 20_000.0, 20_000.0)
        under = replace(one.mixed.under, per_s=under_per_s)
        return replace(one, mixed=replace(one.mixed, under=under))

    found = in_rounds(*((hindered(per_s),) for per_s in (3_000.0, 10_000.0, 19_000.0)))
    busy = replace(found.rounds[0], others_cpus=1.6)
    unsteady = storage_facts(replace(found, rounds=(busy, *found.rounds[1:])))
    assert not storage_advice(unsteady)
    assert not_known(unsteady)

    said = before_advice(unsteady)
    assert [one.split()[0] for one in said] == ["Many", "What"]
    page = page_text(render_html(unsteady))
    for text in (page, unescape(render_md(unsteady).replace("\\", "")), shown(unsteady)):
        assert all(one in text for one in said)


def test_what_was_stopped_says_so_and_what_may_still_run_does_not() -> None:
    found = in_rounds((at_rates("/a", 1000, 1000),), (at_rates("/a", 1000, 1000),))
    wish = replace(found.wish, paths=("/a", "/b"), rounds=3)
    begun = storage_facts(replace(found, wish=wish, floors=(), rounds=()))
    half = storage_facts(replace(found, wish=wish))

    assert warnings(begun)[0] == (
        "it had not ended when this was written: 0 of 3 rounds of probes, and 0 of 2 paths in full"
        " were measured. If it still runs, it writes its page at its end; if it was killed, `pgdyno"
        " resume` measures the rest."
    ), "nobody has said that it was stopped"
    told = storage_facts(replace(half.measured, ended="it was interrupted"))
    assert warnings(told)[0] == (
        "it was stopped (it was interrupted): 2 of 3 rounds of probes, and 1 of 2 paths in full"
        " were measured. `pgdyno resume` measures the rest."
    )
    assert "Nothing is known yet: no path was measured in full." in render_md(begun)
    assert "|" not in render_md(begun), "a table of no path has no columns"
    assert "2 of 3 rounds of probes, and 1 of 2 paths in full" in shown(half)
    assert "stopped" not in render_md(storage_facts(found))
    assert render_html(begun)


def shown(facts: StorageFacts) -> str:
    """What a terminal shows, on one line."""
    console = Console(file=io.StringIO(), width=400)
    console.print(summary(facts))
    assert isinstance(console.file, io.StringIO)
    return " ".join(console.file.getvalue().split())


def test_each_row_is_understood_alone() -> None:
    """A page shows no indentation: what a row is of stands in its name."""
    for table in tables(BOTH):
        names = [row[0].text for row in table.rows]
        assert len(set(names)) == len(names)
        assert names == [name.strip() for name in names]
    assert "a knee is the first load that reaches 90% of the highest rate" in " ".join(limits(BOTH))


def test_a_flush_after_rest_is_told_where_it_takes_longer() -> None:
    measured = {row[0].text: row[1].text for row in tables(BOTH)[1].rows}
    one = floor("/a")
    assert one.mixed is not None
    alone = one.mixed.alone
    level = replace(one, rested=(alone, alone, alone))

    assert measured["flush after 60 µs of rest"] == "×1.25"
    assert "/a: after 800 µs of rest a flush takes 3.00 times as long as back to back" in (
        " ".join(limits(BOTH))
    )
    assert "of rest" not in " ".join(limits(storage_facts(probed(level))))
    before = storage_facts(probed(replace(floor("/a"), rested=())))
    assert "of rest" not in " ".join(limits(before))
    assert "not measured" in render_md(before)


def test_nothing_is_concluded_of_rest_from_an_interval_that_holds_1() -> None:
    def rested(*factors: float) -> str:
        one = at_rates("/a", 1000, 1000)
        alone = one.mixed.alone
        rounds = [
            (replace(one, rested=(alone, alone, after_rest(alone, PAUSES_US[2], factor))),)
            for factor in factors
        ]
        return " ".join(limits(storage_facts(in_rounds(*rounds))))

    wide, narrow = rested(0.5, 3.0, 3.5), rested(2.9, 3.0, 3.1)
    assert re.search(
        r"after 800 µs of rest a flush takes [\d.]+ times as long as back to back"
        r" \(0\.50 to 3\.50 in 3 rounds\); its interval, 0\.\d+ to [\d.]+, holds 1, so",
        wide,
    ), wide
    assert "a flush takes 3.00 times as long" in wide, "the middle that the table has"
    assert "a ratio is estimated from the ratios of single rounds" in wide
    assert "few clients" not in wide
    assert "in 3 rounds), so few clients stay further below the limits" in narrow


def test_a_warning_comes_before_the_answer() -> None:
    for text in (render_md(BOTH), printed(BOTH)):
        said = " ".join(text.split())
        warned = said.index(
            "pg\\_test" if "pg\\_test" in said else "pg_test_fsync and fio disagree"
        )
        assert warned < said.index("a flush of one page takes")
    page = render_html(BOTH)
    assert page.index("pg_test_fsync and fio disagree") < page.index("a flush of one page takes")


def printed(found: StorageFacts) -> str:
    console = Console(file=io.StringIO(), width=100, color_system=None)
    console.print(summary(found))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_no_warning_where_the_sources_agree() -> None:
    agreed = in_rounds(*((at_rates("/a", 5000 + n, 5010 - n),) for n in range(3)))
    one = replace(agreed.floors[0], claims=replace(DISK, write_cache="write through"))
    quiet = storage_facts(replace(agreed, floors=(one,)))

    assert warnings(quiet) == ()
    assert "Warning" not in printed(quiet)
    assert 'class="warnings"' not in render_html(quiet)


def test_every_place_of_a_page_has_the_same_figure() -> None:
    """The headline, the tables, the limits of commits and the JSON."""
    found = storage_facts(in_rounds(*((at_rates("/a", 1500 + n, 4800 - n),) for n in range(3))))
    sentence = answer(found)[0]
    _, measured, follows = (
        {row[0].text: row[1].text for row in table.rows} for table in tables(found)
    )
    told = json.loads(render_json(found))["derived"][0]

    assert "a flush of one page takes 208 µs" in sentence
    assert "one client commits at most 4,799 times a second (1,500 to 20,600)" in sentence
    assert measured["a flush of one page"].startswith("208 µs")
    assert measured["commits of one client, at most"] == "4,799/s (1,500 to 20,600)"
    assert follows["1 client"] == measured["commits of one client, at most"]
    assert told["commits_per_s_at_most"]["1"]["mid"] == pytest.approx(4799)
    assert told["flush_ns"]["mid"] == pytest.approx(1e9 / 4799)
    assert told["commit_delay_us"] == 104


def test_paths_are_judged_in_sentence_table_and_json() -> None:
    rates = (5000.0, 2500.0, 4000.0)
    rounds = (
        (at_rates("/a", rate, rate), at_rates("/b", 2 * rate + n, 2 * rate + n))
        for n, rate in enumerate(rates)
    )
    probed_there = in_rounds(*rounds)
    one, other = probed_there.floors
    found = storage_facts(replace(probed_there, floors=(one, replace(other, device_number=8))))
    verdict, *_ = tables(found)
    sentence = answer(found)[-1]
    told = json.loads(render_json(found))["derived"]

    assert sentence.startswith(
        "/b against /a, 3 rounds, 95% intervals: better in commits by pg_test_fsync ×2.000 (2.000"
        " to 2.001), commits by fio ×2.000 (2.000 to 2.001), commits by fio under a checkpoint"
    )
    assert [cell.text for cell in verdict.rows[0]][:3] == [
        "/b",
        "commits by pg_test_fsync",
        "×2.000",
    ]
    assert {row[5].text for row in verdict.rows} == {"better"}
    assert told[0]["against_first"] == {}
    assert told[1]["against_first"]["random reads"]["verdict"] == "better"
    assert "×2.000" in render_md(found)


def test_what_is_undecided_says_how_many_rounds_would_decide_it() -> None:
    rounds = (
        (at_rates("/a", 5000.0, 5000.0), at_rates("/b", rate, rate))
        for rate in (4000.0, 5500.0, 4600.0)
    )
    found = in_rounds(*rounds)
    first, second = found.floors
    apart = replace(found, floors=(first, replace(second, device_number=8)))
    sentence = answer(storage_facts(apart))[-1]
    assert re.search(
        r"undecided in commits by pg_test_fsync ×[\d.]+ \([\d.]+ to [\d.]+; about \d+ rounds in"
        r" all would decide it, if ratio and spread stay\)",
        sentence,
    ), sentence


def test_markdown_has_no_heading_without_text() -> None:
    """Charts are not in it: a section of charts alone would be a heading alone."""
    lines = [line for line in render_md(storage_facts(probed())).splitlines() if line]
    headings = [number for number, line in enumerate(lines) if line.startswith("#")]
    assert not [lines[one] for one in headings if lines[one + 1].startswith("#")]


def test_paths_of_one_file_system_are_named() -> None:
    rounds = ((at_rates("/a", 10, 10), at_rates("/b", 10, 11)) for _ in range(2))
    found = storage_facts(in_rounds(*rounds))

    assert "/b and /a lie on one file system" in " ".join(limits(found))
    assert "lie on one file system" not in " ".join(limits(BOTH))


def test_transactions_lower_what_flushes_allow() -> None:
    untimed = probed(floor("/a"))
    timed = replace(untimed, wish=replace(untimed.wish, transaction_us=1000))
    told, asked = storage_facts(untimed), storage_facts(timed)
    most, fewer = (
        json.loads(render_json(each))["derived"][0]["commits_per_s"] for each in (told, asked)
    )
    *_, table = tables(asked)

    assert set(most.values()) == {None}
    assert fewer["1"] < fewer["16"] <= 2_000  # 2 CPUs
    assert (
        fewer["1"]
        <= json.loads(render_json(asked))["derived"][0]["commits_per_s_at_most"]["1"]["mid"]
    )
    assert len(tables(told)) == len(tables(asked)) - 1
    assert table.caption == "Synchronous commits with 1000 µs of CPU a transaction, 2 CPUs"
    assert table.rows[0][0].text == "1 client"


def test_atomic_writes_are_told_with_their_size() -> None:
    one = floor("/a", replace(DISK, atomic_write_bytes=16_384))

    assert "up to 16.0 KiB" in render_md(storage_facts(probed(one)))


def test_the_page_holds_charts_doubts_and_limits() -> None:
    page = render_html(BOTH)

    assert page.count('id="chart-grid-') == page.count('id="chart-latency-') == 4
    assert 'id="chart-methods-1"' in page
    assert 'id="chart-commits-1"' in page
    assert "tmpfs keeps its files in memory" in page
    assert "http://" not in page.split("<script")[0]


@pytest.mark.parametrize(("times", "unit"), [(1, "µs"), (1000, "ms")])
def test_long_flushes_are_drawn_in_milliseconds(times: int, unit: str) -> None:
    """An axis of 40k µs makes its reader count."""
    one = floor("/a")
    assert one.mixed is not None
    flush = one.mixed.under.flush
    slow = replace(flush, p99_ns=times * flush.p99_ns)
    under = replace(one.mixed.under, flush=slow)
    facts = storage_facts(probed(replace(one, mixed=replace(one.mixed, under=under))))
    (panel,) = drawings(facts)["commits"].panels
    figure = panel.figure.to_plotly_json()

    assert figure["layout"]["yaxis"]["title"]["text"] == unit
    assert figure["data"][0]["y"][-1] == slow.p99_ns / {"µs": 1e3, "ms": 1e6}[unit]


def test_the_limits_of_the_numbers_are_told() -> None:
    told = " ".join(limits(BOTH))

    assert "/a: the file of 4.00 GiB fits into memory (16.0 GiB)" in told
    assert "/bb: tmpfs refuses direct I/O" in told
    large = replace(floor("/a").prepared, memory_bytes=1 << 30)
    assert "fits into memory" not in " ".join(
        limits(storage_facts(probed(replace(floor("/a"), prepared=large))))
    )


def test_json_holds_what_was_measured_and_what_follows() -> None:
    told = json.loads(render_json(BOTH))

    assert told["schema"] == "pgdyno.experiment.storage/2"
    assert told["measured"]["floors"][0]["grid"][0]["latency"]["p50_ns"] == 100_000
    assert told["derived"][0]["commits_per_s_at_most"]["4"]["mid"] == pytest.approx(2 * 20_599.670)
    assert told["derived"][1]["capped_by"]["by"] == "host", "it lies in memory"


def test_it_comes_back_from_the_run_file(tmp_path: Path) -> None:
    info = RunInfo(
        PROBED.ident, 1, "0.1.0", "pgdyno storage /a", None, HostManifest(), Installation(), None
    )
    path = tmp_path / "r.sqlite"
    with RunFile.create(path, info, ()) as run:
        assert run.found("storage", Probed) is None
        run.put_found("storage", replace(PROBED, floors=()))
        run.put_found("storage", PROBED)

    with RunFile.read(path) as run:
        assert run.found("storage", Probed) == PROBED
    assert from_json(Probed, to_json(PROBED)) == PROBED


def test_a_file_from_before_knees_were_stored_is_of_storage(tmp_path: Path) -> None:
    info = RunInfo(
        PROBED.ident, 1, "0.1.0", "pgdyno storage /a", None, HostManifest(), Installation(), None
    )
    path = tmp_path / "r.sqlite"
    with RunFile.create(path, info, ()) as run:
        run.put_found("storage", PROBED)
    with closing(sqlite3.connect(path)) as db, db:
        was_stored(db)
        head = json.loads(db.execute("SELECT value FROM head WHERE key = 'info'").fetchone()[0])
        del head["experiment"]
        db.execute("UPDATE head SET value = ? WHERE key = 'info'", (json.dumps(head),))
        db.execute("PRAGMA user_version = 3")

    found = Run(path)

    assert found.info.experiment == "storage"
    assert found.probed == PROBED
    assert not found.is_whole, "two devices were never read together"
    assert found.report("md") == render_md(BOTH)
    with pytest.raises(PlanError, match="searched no knee"):
        _ = found.curve


def was_stored(db: sqlite3.Connection) -> None:
    """Take what version 0.1 did not know out of what it stored."""
    for key, text in db.execute("SELECT key, value FROM head").fetchall():
        held = json.loads(text)
        if isinstance(held, dict) and "floors" in held:
            del held["rounds"], held["wish"]["rounds"]
            db.execute("UPDATE head SET value = ? WHERE key = ?", (json.dumps(held), key))
            return
    raise AssertionError("nothing of storage is stored")


def test_one_warning_names_all_paths_that_it_is_true_of() -> None:
    rounds = ((at_rates("/a", 1500 + n, 4800), at_rates("/b", 1000 + n, 4000)) for n in range(3))
    found = storage_facts(in_rounds(*rounds))
    (said,) = (one for one in warnings(found) if "disagree" in one)

    assert said.startswith("/a and /b: pg_test_fsync and fio disagree on what a flush takes (/a: ")
    assert "; /b: pg_test_fsync says 999 µs, fio 250 µs" in said


def test_a_loop_device_is_named_with_the_disk_of_its_file() -> None:
    rounds = ((at_rates("/a", 5000 + n, 5000), at_rates("/b", 4000 + n, 4000)) for n in range(3))
    found = in_rounds(*rounds)
    loop = replace(DISK, block_device="loop0", backing_file="/a/file", disks=("vda",))
    first, second = found.floors
    apart = (
        replace(first, claims=replace(DISK, disks=("vda",)), device_number=1),
        replace(second, claims=loop, device_number=2),
    )
    facts = storage_facts(replace(found, floors=apart))

    (said,) = (one for one in limits(facts) if "share" in one)
    assert said.startswith("/a and /b share the disk vda (/a on ext4, vda; /b on ext4, loop0, a")
    assert "loop0, a file on vda" in render_md(facts)
