"""Tables: what is missing stays missing, and libraries that are not there are named."""

from __future__ import annotations

import math

import pytest

from pgdyno.api import table
from pgdyno.api.table import Table
from pgdyno.model.errors import PgdynoError

ROWS: list[dict[str, object]] = [
    {"trial": 1, "nopm": 9.5, "stage": "a", "ok": True},
    {"trial": 2, "nopm": None, "stage": None, "ok": False},
]
NAMES = ("trial", "nopm", "stage", "ok", "nothing")


def test_columns_have_types_and_what_is_missing_is_no_zero() -> None:
    made = Table.of(ROWS, NAMES)

    assert [made[name].dtype.kind for name in NAMES] == ["i", "f", "O", "b", "O"]
    assert len(made) == 2
    first, second = made.rows()
    assert first == {"trial": 1, "nopm": 9.5, "stage": "a", "ok": True, "nothing": None}
    assert math.isnan(second["nopm"])
    assert second["stage"] is None


def test_whole_numbers_with_gaps_become_floats() -> None:
    made = Table.of([{"n": 1}, {}], ["n"])

    assert made["n"].dtype.kind == "f"
    assert math.isnan(made["n"][1])


def test_an_empty_table_has_its_columns() -> None:
    made = Table.of([], NAMES)

    assert len(made) == 0
    assert list(made.columns) == list(NAMES)
    assert list(made.rows()) == []


def test_a_notebook_shows_text_and_no_markup_of_others() -> None:
    shown = Table.of([{"stage": "<b>x</b>", "n": float("nan")}] * 30, ["stage", "n"])._repr_html_()

    assert "&lt;b&gt;x" in shown
    assert "nan" not in shown
    assert "10 more rows" in shown


@pytest.mark.parametrize("name", ["pandas", "polars", "arrow"])
def test_a_library_that_is_not_there_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(wanted: str) -> None:
        raise ImportError(wanted)

    monkeypatch.setattr(table, "import_module", nothing)
    with pytest.raises(PgdynoError, match="is not installed") as caught:
        getattr(Table.of(ROWS, NAMES), f"to_{name}")()
    assert "pip install" in str(caught.value.hint)
