"""Charts of long windows: what stood out in a second is drawn, though points are longer."""

from __future__ import annotations

from dataclasses import replace

from pgdyno.analysis.facts import Facts
from pgdyno.analysis.timeline_facts import Extremes, Timeline
from pgdyno.report.charts import charts


def test_a_stall_of_a_second_is_drawn_in_an_hour(facts: Facts) -> None:
    """As deep as it was: the mean of its point hides it."""
    at = tuple(7.5 + 15 * one for one in range(240))
    least = tuple(0.0 if one == 117 else 5_400.0 for one in range(240))
    hour = Timeline(3_600.0, 15.0, at, (6_000.0,) * 240, (), least=least,
                    greatest=(6_600.0,) * 240)  # fmt: skip
    told = replace(facts, trials=(replace(facts.trials[0], timeline=hour),))
    chart = charts()["timeline"]
    (panel,) = chart.panels(told)
    envelope, line = panel.figure.data
    assert [x for x, y in zip(envelope.x, envelope.y, strict=True) if y == 0] == [at[117]]
    assert min(line.y) == 6_000
    assert "between 0 and 6,600 tpmTotal" in panel.alt
    assert panel.figure.layout.yaxis.range[1] > 6_600
    assert any(one.label.startswith("paler") for one in chart.keys(told))
    assert not any(one.label.startswith("paler") for one in chart.keys(facts)), "of seconds alone"


def test_the_second_with_the_most_sessions_is_drawn_in_an_hour(facts: Facts) -> None:
    first = facts.sessions[0]
    most = tuple(40.0 if one == 117 else 5.0 for one in range(240))
    line = replace(first.lines[0], step_s=15.0, second=tuple(7.5 + 15 * n for n in range(240)),
                   groups={"wal": (4.5,) * 240}, least=(4.0,) * 240, greatest=most,
                   apart={"wal": Extremes((1_742.5, 1_762.5), (4.0, 39.0))})  # fmt: skip
    chart = charts()["active_sessions"]
    told = replace(facts, sessions=(replace(first, lines=(line,)),))
    (panel,) = chart.panels(told)
    stack, fewest, greatest, wal = panel.figure.data
    assert (wal.yaxis, wal.y, wal.x) == ("y3", (4.0, 39.0), (1_742.5, 1_762.5))
    assert panel.figure.layout.yaxis3.range[1] > 39
    assert panel.figure.layout.yaxis3.domain[1] < panel.figure.layout.yaxis.domain[0]
    assert chart.height(told) > chart.height(facts), "there is nothing below in the other"
    assert stack.stackgroup is not None
    assert fewest.stackgroup is greatest.stackgroup is None, "they are not on top of it"
    assert (min(fewest.y), max(greatest.y)) == (4.0, 40.0)
    assert greatest.x[greatest.y.index(40.0)] == line.second[117]
    assert panel.figure.layout.yaxis.range[1] > 40
    assert panel.alt.endswith("; between 4.0 and 40.0 in single seconds.")
    assert len(chart.keys(told)) == len(chart.keys(replace(told, sessions=()))) + 2
