"""Tables for data frames: columns of numbers and texts; a unit is the end of a column's name."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from math import isnan
from typing import Any

import numpy as np
import numpy.typing as npt

from pgdyno.model.errors import PgdynoError
from pgdyno.model.units import digits_text
from pgdyno.model.wording import plural

_SHOWN = 20  # rows, in a notebook


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of equal length; nothing that is missing is a zero.

    Columns of numbers are float64 or int64, with NaN for what was not measured; others are lists of
    texts, or None. pandas, polars and pyarrow are imported when they are asked for.
    """

    columns: dict[str, npt.NDArray[Any]]  # name -> (rows,)

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, object]], names: Sequence[str]) -> Table:
        """A table of these rows; a key that a row does not have is missing there."""
        return cls({name: _column([row.get(name) for row in rows]) for name in names})

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self.columns[name]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Row by row, as plain values."""
        listed = {name: column.tolist() for name, column in self.columns.items()}
        for number in range(len(self)):
            yield {name: column[number] for name, column in listed.items()}

    def to_pandas(self) -> Any:  # noqa: ANN401  pandas may not be there
        """A pandas DataFrame.

        Raises:
            PgdynoError: pandas is not installed.
        """
        return library("pandas").DataFrame(self.columns)

    def to_polars(self) -> Any:  # noqa: ANN401
        """A polars DataFrame; what is missing is null.

        Raises:
            PgdynoError: polars is not installed.
        """
        # It makes null of NaN in what numpy holds, not in lists.
        columns = {
            name: column.tolist() if column.dtype == object else column
            for name, column in self.columns.items()
        }
        return library("polars").DataFrame(columns, strict=False, nan_to_null=True)

    def to_arrow(self) -> Any:  # noqa: ANN401
        """A pyarrow Table; what is missing is null.

        Raises:
            PgdynoError: pyarrow is not installed.
        """
        arrow = library("pyarrow")
        return arrow.table(
            {name: arrow.array(column, from_pandas=True) for name, column in self.columns.items()}
        )

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join(
            f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row.values())}</tr>"
            for _, row in zip(range(_SHOWN), self.rows(), strict=False)
        )
        more = f"<p>{plural(len(self) - _SHOWN, 'more row')}</p>" if len(self) > _SHOWN else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cell(value: object) -> str:
    if value is None or (isinstance(value, float) and isnan(value)):
        return ""
    return digits_text(value, 6) if isinstance(value, float) else html.escape(str(value))


def _column(values: Sequence[object]) -> npt.NDArray[Any]:
    kinds = {type(value) for value in values if value is not None}
    if kinds and kinds <= {int, float}:
        if kinds == {int} and None not in values:
            return np.array(values, dtype=np.int64)
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    if kinds == {bool} and None not in values:
        return np.array(values, dtype=np.bool_)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def library(name: str) -> Any:  # noqa: ANN401
    """A library that is imported only when it is asked for.

    Raises:
        PgdynoError: It is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise PgdynoError(
            f"{name} is not installed",
            f"`pip install {name}`, or use the columns.",
        ) from error
