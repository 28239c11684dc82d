"""Names and ticks of charts: what plotly would misread or leave out."""

from __future__ import annotations

import plotly.graph_objects as go
import pytest

from pgdyno.report.charts import look


@pytest.mark.parametrize(
    ("low", "high"), [(0.05, 90.0), (307.0, 546.0), (210.0, 481.0), (1.05, 1.77), (1.0, 1e9)]
)
def test_an_axis_has_ticks_and_none_beyond_its_ends(low: float, high: float) -> None:
    ticks = look.decade_ticks(low, high)
    assert len(ticks) > 1
    assert all(low <= tick <= high for tick in ticks)
    assert len(ticks) <= 15
    assert len(look.log_axis_between("ms", low, high)["ticktext"]) == len(ticks)


def test_a_name_that_a_plan_allows_stands_whole_at_an_axis() -> None:
    name = "wal-compression-and-full-page-writes-with--tuned"
    assert len(name) == 48
    lines = look.label(name).split("<br>")
    assert len(lines) > 1
    assert "".join(lines) == name
    assert max(map(len, lines)) <= look.LINE_LETTERS


def test_a_name_without_an_end_is_cut_visibly() -> None:
    assert look.label("x" * 500).endswith("…")
    assert look.label("x" * 500).count("<br>") < look.LINES
    assert look.short("x" * 500).endswith("…")
    assert len(look.short("x" * 500)) == look.NAME_LETTERS


def test_plotly_finds_no_tag_no_tex_and_no_field_in_a_name() -> None:
    found = look.plain("<b>$x$ %{y} &amp;")
    assert not set("<>$%") & set(found)
    assert found == "&lt;b&gt;&#36;x&#36; &#37;{y} &amp;amp;"


def test_numbers_of_axes_are_written_as_those_of_tables() -> None:
    """`3500` beside `20,000` looks like two kinds of numbers."""
    assert look.axis("µs")["separatethousands"]


def test_a_figure_brings_no_template_of_plotly() -> None:
    """Hundreds of figures of a long page brought 6 kB of it each."""
    made = look.figure([go.Bar(x=["10"], y=[1.0])])
    assert len(made.to_json()) < 600
    assert made.layout.autotypenumbers == "strict", "a stage may be called 10"
