"""Runs as Parquet files: the views of a run file, what was sampled, and the verdicts.

Columns have the types and the order that are documented, whatever a run holds of them, so that
files of many runs can be read as one table.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pgdyno.analysis.sessions import TALLY
from pgdyno.api.interrupts import interruptible
from pgdyno.api.table import library
from pgdyno.folders import Folder
from pgdyno.model.errors import StoreError
from pgdyno.model.loading import ExportedFile
from pgdyno.model.run import TrialRecord
from pgdyno.model.system_errors import reason
from pgdyno.store.run_file import RunFile
from pgdyno.store.views import RUN, TRIAL, VIEWS, Column

_SESSIONS = ("role", "wait_class", "wait_event", "state", "kind", "statement", "blocker")
SERIES = (
    *TRIAL,
    Column("name", "text", "series, e.g. `wal.bytes`"),
    Column("unit", "text", "unit of its values"),
    Column("kind", "text", "rate, gauge, ..."),
    Column("unix_ns", "integer", "when it was sampled"),
    Column("value", "real", "the sample"),
)
SESSIONS = (
    *TRIAL,
    Column("unix_s", "integer", "the second"),
    *(Column(name, "text", f"{name.replace('_', ' ')} of the sessions") for name in _SESSIONS),
    Column("met", "integer", "sessions met, all looks of the second together"),
    Column("looks", "integer", "looks at sessions in that second"),
)
VERDICTS = (
    RUN,
    Column("stage", "text", "stage that is judged"),
    Column("base", "text", "stage that it is compared with"),
    Column("ratio", "real", "of their throughputs"),
    Column("low", "real", "lower end of its interval"),
    Column("high", "real", "upper end of it"),
    Column("confidence", "real", "of the interval"),
    Column("rounds", "integer", "rounds that both were measured in"),
    Column("verdict", "text", "better, worse, ..."),
    Column("reason", "text", "why it is no other one"),
    Column("p_adjusted", "real", "p value, adjusted for all stages"),
    Column("rounds_needed", "integer", "rounds that a verdict would take"),
)
TABLES = (
    *((one.name, one.meaning, one.columns) for one in VIEWS),
    ("series", "A sample of driver, host or server in a finished trial.", SERIES),
    ("sessions", "Sessions of one sort that were met in a second of a finished trial.", SESSIONS),
    ("verdicts", "What statistics say of a stage against the first one; of plans alone.", VERDICTS),
)
"""Name, sentence and columns of each; those that are no view have no SQL."""

Batch = Mapping[str, Sequence[Any] | npt.NDArray[Any] | int]  # by column; no sequence: in all rows


@dataclass(frozen=True, slots=True)
class WrittenRun:
    """The Parquet files of a run."""

    folder: Path
    files: tuple[ExportedFile, ...]


def write_parquet(
    file: RunFile, ident: str, verdicts: Sequence[Mapping[str, Any]], folder: Path
) -> WrittenRun:
    """Write a run into a new folder, named by the run's ident.

    Args:
        file: The run file.
        ident: The run's.
        verdicts: Of its stages.
        folder: Where that folder is put; others of other runs may be there.

    Raises:
        PgdynoError: pyarrow is not installed.
        StoreError: The run is there already, or cannot be written; nothing is left then.
        Interrupted: Ctrl-C; likewise.
    """
    library("pyarrow.parquet")
    with Folder.made(folder.absolute()) as above:
        above.require_closed()
        if above.has(ident):
            raise StoreError(
                f"folder {folder} has a {ident} already", "Name another folder, or remove that one."
            )
        passing = f".{ident}.{secrets.token_hex(8)}"
        with interruptible("stopped", "Nothing was left."), above.make(passing) as inner:
            try:
                files = _written(file, ident, verdicts, inner)
                above.rename(passing, ident)
            except OSError as error:
                raise StoreError(f"{folder / ident} cannot be written: {reason(error)}") from error
            finally:
                above.remove_folder(passing)
    return WrittenRun(folder / ident, tuple(files))


def _written(
    file: RunFile, ident: str, verdicts: Sequence[Mapping[str, Any]], folder: Folder
) -> list[ExportedFile]:
    laid_out = file.laid_out()
    batches: dict[str, Iterable[Batch]] = {
        **{one.name: _columns(laid_out[one.name], one.columns) for one in VIEWS},
        "series": _series(file),
        "sessions": _sessions(file),
        "verdicts": [{one.name: [row[one.name] for row in verdicts] for one in VERDICTS[1:]}],
    }
    return [_file(folder, name, columns, ident, batches[name]) for name, _, columns in TABLES]


def _columns(rows: Sequence[Sequence[Any]], columns: Sequence[Column]) -> Iterator[Batch]:
    if rows:
        cells = zip(*rows, strict=True)
        yield {column.name: each for column, each in zip(columns, cells, strict=True)}


def _series(file: RunFile) -> Iterator[Batch]:
    for trial in file.finished():
        if kept := list(file.series(trial.number).values()):
            sizes = [one.unix_ns.size for one in kept]
            texts = {
                name: np.repeat(np.array([getattr(one, name) for one in kept], dtype=object), sizes)
                for name in ("name", "unit", "kind")
            }
            yield {
                **_of(trial), **texts, "unix_ns": np.concatenate([one.unix_ns for one in kept]),
                "value": np.concatenate([one.values for one in kept]),
            }  # fmt: skip


def _sessions(file: RunFile) -> Iterator[Batch]:
    for trial in file.finished():
        tally = file.tallies(trial.number).get(TALLY)
        if tally is None:
            continue
        texts = {
            name: np.array([key[n] for key in tally.keys], dtype=object)[tally.key]
            for n, name in enumerate(tally.dimensions)
            if name in _SESSIONS
        }
        looks = dict(zip(tally.tick_seconds.tolist(), tally.ticks.tolist(), strict=True))
        yield {
            **_of(trial), **texts, "unix_s": tally.seconds, "met": tally.counts,
            "looks": [looks.get(second) for second in tally.seconds.tolist()],
        }  # fmt: skip


def _of(trial: TrialRecord) -> dict[str, Any]:
    return {"trial": trial.number, "round": trial.round, "stage": trial.stage}


def _file(
    folder: Folder, name: str, columns: Sequence[Column], ident: str, batches: Iterable[Batch]
) -> ExportedFile:
    arrow, parquet = library("pyarrow"), library("pyarrow.parquet")
    types = {"integer": arrow.int64(), "real": arrow.float64(), "text": arrow.string()}
    schema = arrow.schema(
        [arrow.field(one.name, types[one.type], metadata={"meaning": one.meaning})
         for one in columns]
    )  # fmt: skip
    file_name, rows = f"{name}.parquet", 0
    with (
        open(file_name, "xb", opener=partial(os.open, mode=0o644, dir_fd=folder.handle)) as out,
        parquet.ParquetWriter(out, schema, compression="zstd") as writer,
    ):
        for one in batches:
            table = _arrow(arrow, schema, {RUN.name: ident, **one})
            rows += table.num_rows
            writer.write_table(table)
    return ExportedFile(file_name, rows, os.stat(file_name, dir_fd=folder.handle).st_size)


def _arrow(arrow: Any, schema: Any, batch: Batch) -> Any:  # noqa: ANN401
    """A table of these columns; one that the batch has not is missing in all rows."""
    size = max((len(one) for one in batch.values() if not isinstance(one, (str, int))), default=0)
    columns = [batch.get(field.name) for field in schema]
    return arrow.table(
        [
            arrow.repeat(arrow.scalar(one, field.type), size)
            if isinstance(one, (str, int, type(None)))
            else arrow.array(one, field.type, from_pandas=True)
            for field, one in zip(schema, columns, strict=True)
        ],
        schema=schema,
    )
