"""Limits of commits where a flush takes another time beside other writes, or after rest."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from pgdyno.analysis.storage import storage_facts
from pgdyno.analysis.storage_advice import not_known
from pgdyno.analysis.storage_facts import StorageFacts
from pgdyno.analysis.storage_steps import COMMITS
from pgdyno.model.floor import PathRound
from pgdyno.report.storage import limits, render_html, render_md, tables
from pgdyno.report.storage_answer import answer, warnings
from tests.data.probed import DISK, MEMORY, at_rates, floor, in_rounds, probed


def test_commits_that_are_faster_otherwise_are_told_with_both_rates() -> None:
    one = at_rates("/a", 462, 462)
    busy = replace(one, mixed=replace(one.mixed, under=replace(one.mixed.under, per_s=2248.0)))
    found = storage_facts(in_rounds((busy,), (busy,)))

    assert (
        "one client commits at most 2,248 times a second (462 to 20,600) and 16 clients 17,984,"
        " where CPU allows. That is under a checkpoint: back to back it commits 462 times a"
        " second and 16 clients 3,696." in answer(found)[0]
    )
    timed = storage_facts(replace(found.measured, wish=replace(found.wish, transaction_us=150)))
    _, measured, follows, together = (
        {row[0].text: row[1].text for row in table.rows} for table in tables(timed)
    )
    assert measured["commits of one client, at most"] == "462 to 2,248/s (462 to 20,600)"
    assert follows["16 clients"] == "3,696 to 17,984/s (3,696 to 164,797)"
    row, mid, low, high = re.findall(r"[\d,]+", together["1 client"])
    assert 0 < int(row) < 462 < int(mid.replace(",", "")) < 2248
    assert abs(int(row) - int(low)) <= 1, "it is the slow end of the spread here"
    assert int(high.replace(",", "")) > 2248
    (said,) = (one for one in warnings(found) if "after rest" in one)
    assert "with which the limits of commits begin" in said
    assert "(2,248/s), fastest under a checkpoint, back to back 2.16 ms (462/s)" in said


def test_what_was_fastest_is_named_from_the_quarter_on_that_the_guide_tells() -> None:
    """The guide promised it of every commit that was faster otherwise."""
    told = (Path(__file__).parents[3] / "docs/guides/storage.md").read_text()
    rule = "faster under a checkpoint or after rest by more than a quarter, the sentence names that"

    assert rule in " ".join(told.split())
    for under_per_s, named in ((1_240.0, False), (1_260.0, True)):
        busy = under(at_rates("/a", 1_000, 1_000), under_per_s)
        said = answer(storage_facts(in_rounds((busy,), (busy,))))[0]
        assert f"commits at most {under_per_s:,.0f} times a second" in said
        assert ("That is under a checkpoint: back to back" in said) is named


def test_a_loop_device_that_uses_the_page_cache_is_told_with_what_ends_it() -> None:
    loop = replace(DISK, block_device="loop0", backing_file="/f", disks=("vda",), cached_file=True)
    cached, past = (
        storage_facts(probed(replace(floor("/a"), claims=each)))
        for each in (loop, replace(loop, cached_file=False))
    )

    assert "/a: the file of loop0 is used through this kernel's page cache" in " ".join(
        limits(cached)
    )
    assert loop.place == "on ext4, loop0, a file on vda through the page cache"
    assert "page cache" not in " ".join(limits(past))


def test_the_delay_to_try_is_not_told_from_flushes_that_few_commits_meet() -> None:
    """Half of the faster is too short, half of those back to back is not."""
    quick = under(at_rates("/a", 1_600, 1_600), 7_000.0)

    found = storage_facts(in_rounds((quick,), (quick,)))
    assert delay(found) == "not known, see below"
    (said,) = (one.because for one in not_known(found) if one.what == COMMITS.what)
    assert "a flush takes 143 µs under a checkpoint, and 625 µs back to back" in said
    short = under(at_rates("/a", 6_000, 6_000), 9_000.0)
    assert delay(storage_facts(in_rounds((short,), (short,)))) == "none, flushes are too short"


def test_nothing_is_told_below_of_a_delay_for_memory() -> None:
    quick = under(at_rates("/a", 462, 462), 2_248.0)
    found = in_rounds((quick,), (quick,))
    memory = replace(found, floors=tuple(replace(one, claims=MEMORY) for one in found.floors))
    assert delay(storage_facts(memory)) == "not known"


def test_a_file_on_each_is_told_of_several_paths_alone() -> None:
    alone, two = (
        render_md(storage_facts(probed(*map(floor, paths)))) for paths in (["/a"], ["/a", "/bb"])
    )
    assert "1 path · a file of 4.00 GiB, written in full first" in alone
    assert "2 paths · a file of 4.00 GiB on each, written in full first" in two


def test_a_path_that_labels_values_on_a_narrow_page_may_break_where_its_folders_do() -> None:
    """On a telephone `/tmp/storage/w` ended a line and `alk/disk-a` began the next."""
    page = render_html(
        storage_facts(probed(*map(floor, ["/srv/pgdata<", "/mnt/some/other/place"])))
    )
    assert 'data-head="/mnt/&#8203;some/&#8203;other/&#8203;place"' in page
    assert "/mnt/<wbr>some/<wbr>other/<wbr>place" in page
    assert 'data-head="/srv/pgdata&lt;"' in page, "short enough for any line"


def test_a_path_that_labels_values_never_breaks_within_the_name_of_a_folder() -> None:
    """On a telephone `/tmp/storage/walk/disk-` ended a line and `b` began the next."""
    page = render_html(storage_facts(probed(*map(floor, ["/srv/disk-a", "/tmp/storage/disk-b"]))))
    assert 'data-head="/tmp/&#8203;storage/&#8203;disk-&#8288;b"' in page
    assert 'data-head="/srv/disk-&#8288;a"' in page


def test_no_line_ends_with_the_first_slash_of_a_path_in_brackets() -> None:
    probes = probed(*map(floor, ["/mnt/some/other/place", "/mnt/some/other/corner"]))
    page = render_html(storage_facts(probes))
    assert "(/mnt/<wbr>some/" in page
    assert "(/<wbr>" not in page


def under(one: PathRound, per_s: float) -> PathRound:
    """The same round, with commits under a checkpoint at this rate."""
    return replace(one, mixed=replace(one.mixed, under=replace(one.mixed.under, per_s=per_s)))


def delay(facts: StorageFacts) -> str:
    """What the table of commits says of `commit_delay`."""
    (told,) = (row[1].text for table in tables(facts) for row in table.rows
               if row[0].text == "commit_delay to try")  # fmt: skip
    return told
