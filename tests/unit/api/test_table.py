"""Tables: what is missing stays missing, and libraries that are not there are named."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pandas as pd
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


def test_a_data_frame_of_pandas_has_the_columns_and_their_types() -> None:
    frame = Table.of(ROWS, NAMES).to_pandas()

    assert list(frame.columns) == list(NAMES)
    assert frame["trial"].tolist() == [1, 2]
    assert [frame[name].dtype.kind for name in ("trial", "nopm", "ok")] == ["i", "f", "b"]
    assert frame["nopm"].isna().tolist() == [False, True]
    assert frame["stage"].isna().tolist() == [False, True]
    assert frame["nothing"].isna().all()
    assert frame.groupby("ok")["trial"].sum().to_dict() == {True: 1, False: 2}
    assert pd.DataFrame(frame).equals(frame)
    assert Table.of([], NAMES).to_pandas().shape == (0, len(NAMES))


# What polars 1 and 2 and pyarrow document: 100 MB, which are not installed for two tests.
FRAME = {"schema", "schema_overrides", "strict", "orient", "infer_schema_length", "nan_to_null"}
ARRAY = {"type", "mask", "size", "from_pandas", "safe", "memory_pool"}
TABLE = {"names", "schema", "metadata", "nthreads"}


def stand_in(monkeypatch: pytest.MonkeyPatch, **options_of: set[str]) -> Any:
    """A library whose calls take one thing, and options that are documented."""

    def call(options: set[str]) -> Mock:
        def refuse_others(_data: object, **named: object) -> None:
            assert named.keys() <= options

        return Mock(side_effect=refuse_others)

    made = SimpleNamespace(**{name: call(options) for name, options in options_of.items()})
    monkeypatch.setattr(table, "import_module", lambda _: made)
    return made


def test_what_is_missing_is_null_in_polars(monkeypatch: pytest.MonkeyPatch) -> None:
    polars = stand_in(monkeypatch, DataFrame=FRAME)

    Table.of(ROWS, NAMES).to_polars()

    (given,), named = polars.DataFrame.call_args
    assert named["nan_to_null"], "it keeps NaN otherwise, and in lists always"
    assert list(given) == list(NAMES)
    assert (given["stage"], given["nothing"]) == (["a", None], [None, None])
    assert isinstance(given["nopm"], np.ndarray)


def test_what_is_missing_is_null_in_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    arrow = stand_in(monkeypatch, array=ARRAY, table=TABLE)

    Table.of(ROWS, NAMES).to_arrow()

    assert [call.kwargs for call in arrow.array.call_args_list] == [{"from_pandas": True}] * 5
    ((columns,), _) = arrow.table.call_args
    assert list(columns) == list(NAMES)
