"""What paths are compared by stands in the table of what was measured, with its spread."""

from __future__ import annotations

from dataclasses import replace

from pgdyno.analysis.storage import storage_facts
from pgdyno.model.floor import COMPARED, PathRound, Wish
from pgdyno.report.storage import tables
from pgdyno.stats.across_paths import FIGURES
from tests.data.probed import at_rates, floor, in_rounds, probed

WISH = Wish.of("/a", "/b", depths=(1, 64), jobs=(1,), rounds=3)


def one_round(path: str, per_s: float) -> PathRound:
    one = at_rates(path, 1000, per_s)
    assert one.reads is not None
    assert one.writes is not None
    loads = [WISH.heaviest(pattern) for pattern in COMPARED]
    windows = [
        replace(point, pattern=load.pattern, depth=load.depth, jobs=load.jobs)
        for point, load in zip((one.reads, one.writes), loads, strict=True)
    ]
    return replace(one, reads=windows[0], writes=windows[1])


def test_every_figure_that_paths_are_compared_by_is_in_the_table() -> None:
    rounds = [(one_round("/a", rate), one_round("/b", 2 * rate)) for rate in (500, 1000, 2000)]
    found = replace(in_rounds(*rounds), wish=WISH)
    against, _, measured, *_ = tables(storage_facts(found))
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in measured.rows}

    assert {row[1].text for row in against.rows} == set(FIGURES)
    for figure in FIGURES:
        name = next(name for name in rows if name.startswith(figure))
        assert all("/s" in text for text in rows[name]), name
    reads = "random reads in rounds, the heaviest load"
    assert rows[reads] == ["20,000/s (10,000 to 40,000)", "40,000/s (20,000 to 80,000)"]


def test_without_rounds_there_is_none() -> None:
    _, measured, *_ = tables(storage_facts(probed(floor("/a"))))
    rows = {row[0].text: row[1].text for row in measured.rows}
    assert rows["random writes in rounds, the heaviest load"] == "not measured"
