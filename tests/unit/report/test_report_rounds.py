"""The chart of all rounds: its axis begins where its caption says."""

from __future__ import annotations

from dataclasses import replace

from pgdyno.analysis.facts import Facts
from pgdyno.report.charts import charts


def test_the_axis_of_rounds_begins_below_the_lowest_trial_and_above_zero(facts: Facts) -> None:
    """As its caption says, on a screen and on paper."""
    first, *others = facts.trials
    for slowest in (10.0, 10_000.0):
        of = replace(facts, trials=(replace(first, throughput=slowest), *others))
        (rounds,) = charts()["rounds"].panels(of)
        low, high = rounds.figure.layout.yaxis.range
        found = [one.throughput for one in of.trials if one.throughput is not None]
        assert 0 < low < min(found)
        assert high > max(found)
