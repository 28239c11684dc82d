"""Results of other tools, imported: read, checked, set beside each other, kept in a run file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pgdyno.api.table import Table
from pgdyno.imports import hammerdb_jobs
from pgdyno.imports.beside import Beside, beside
from pgdyno.imports.read import read
from pgdyno.imports.reading import Lines, is_sqlite, sha256_of
from pgdyno.imports.recognise import tools
from pgdyno.imports.simultaneous import Together, simultaneous
from pgdyno.imports.traps import checked
from pgdyno.model.bounds import require_within
from pgdyno.model.errors import PlanError
from pgdyno.model.imported import Condition, Imported
from pgdyno.model.scrub import Scrubber, scrubbed
from pgdyno.model.text import json_document
from pgdyno.model.units import bytes_text
from pgdyno.report.imported import lines, ratio_lines
from pgdyno.store.run_file import RunFile

SCHEMA = "pgdyno.imports/1"
IMPORTED_TOOLS = tools()
"""Names of the tools whose output is read, by the alphabet."""
_SETTINGS = ("runInfo.csv", "properties")  # outputs that say how a run was asked for, and no more
_SAID_EACH = 64 << 20  # bytes
_PART = 1 << 20  # characters of a text that is kept, in one row
_COLUMNS = (
    "result", "tool", "version", "form", "file", "line", "metric", "value", "unit", "of", "told",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ImportedResults:
    """What was imported, in the order of the files: no interval, no verdict."""

    results: tuple[Imported, ...]
    together: tuple[Together, ...]

    def beside(self, metric: str, one: int = 0, other: int = 1) -> Beside:
        """A ratio that was asked for, with all that differs.

        Raises:
            PlanError: There is no such result, or it has no such figure.
        """
        for place in (one, other):
            if not 0 <= place < len(self.results):
                raise PlanError(f"result {place + 1} was asked for, {len(self.results)} were read")
        return beside(self.results[one], self.results[other], metric)

    def table(self) -> Table:
        """A row for each figure; `told` says whether the tool told it, or the importer counted."""
        return Table.of(list(self._rows()), _COLUMNS)

    def _rows(self) -> Iterator[dict[str, object]]:
        for number, one in enumerate(self.results, 1):
            of: dict[str, object] = {
                "result": number, "tool": one.tool, "version": one.version, "form": one.form,
                "file": one.source.file,
            }  # fmt: skip
            for told in one.told:
                yield of | {
                    "line": told.line, "metric": told.metric, "value": told.value,
                    "unit": told.unit, "of": told.of, "told": True,
                }  # fmt: skip
            for figure in one.comparable:
                yield of | {"metric": figure.metric, "value": figure.value, "told": False}

    def lines(self, ratio: str | None = None) -> Iterator[str]:
        """What a terminal prints; with a metric also the second result against the first.

        Raises:
            PlanError: As `beside`.
        """
        asked = None if ratio is None else self.beside(ratio)
        yield from lines(self.results, self.together)
        if asked is not None:
            yield from ratio_lines(asked)

    def to_json(self, ratio: str | None = None) -> str:
        """All of it; null is what nobody told.

        Raises:
            PlanError: As `beside`.
        """
        plain = {"schema": SCHEMA, **asdict(self)}
        if ratio is not None:
            plain["beside"] = asdict(self.beside(ratio))
        return json_document(plain)

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def import_results(
    files: Sequence[str | Path],
    *,
    tool: str | None = None,
    warehouses: int | None = None,
    repeats: bool = False,
    into: str | Path | None = None,
    progress: Callable[[str], None] | None = None,
) -> ImportedResults:
    """Read what other tools printed or wrote.

    Args:
        files: In the order in which they are to stand.
        tool: That wrote all of them; None: each by its content.
        warehouses: Of the load, where the output does not tell.
        repeats: Whether the files are repeats of one configuration of one server.
        into: A run file that keeps the results, and the texts by their hash, without secrets.
        progress: Is told in words how far a long file is read.

    Raises:
        PlanError: A file cannot be read, is of no tool or of two, holds no result, or tells another
            number of warehouses; or these are none.
        StoreError: The run file cannot be written.
    """
    if not files:
        raise PlanError("no file was named")
    if warehouses is not None:
        require_within("warehouses", warehouses, 1, None, "Nobody loads less than one.")
    read_ = [(Path(one), _read(Path(one), tool, progress)) for one in files]
    results = _with_settings([one for _, found in read_ for one in found])
    results = [_asked(one, warehouses, repeats) for one in results]
    done = ImportedResults(checked(results), simultaneous(results))
    if into is not None:
        _keep(Path(into), done, {found[0].source.sha256: path for path, found in read_})
    return done


def _read(
    path: Path, tool: str | None, progress: Callable[[str], None] | None
) -> tuple[Imported, ...]:
    said = 0

    def tell(done: int, size: int) -> None:
        nonlocal said
        if progress is not None and done - said >= _SAID_EACH:
            said = done
            progress(f"{path.name}: {bytes_text(done)} of {bytes_text(size)} read")

    return read(path, tool=tool, progress=tell)


def _with_settings(results: Sequence[Imported]) -> list[Imported]:
    """What a file says of how a run was asked for belongs to the tool's results; alone it stays.

    Where there are two such files of one kind, nobody knows which results are of which.
    """
    found = list(results)
    for form in _SETTINGS:
        infos = [one for one in found if one.form == form]
        if len(infos) != 1:
            continue
        info = infos[0]
        of_run = [one for one in found if one.tool == info.tool and one.form not in _SETTINGS]
        if of_run:
            found = [
                replace(
                    one, conditions=info.conditions | one.conditions,
                    version=one.version or info.version,
                )
                if one in of_run
                else one
                for one in found
                if one is not info
            ]  # fmt: skip
    return found


def _asked(one: Imported, warehouses: int | None, repeats: bool) -> Imported:
    more: dict[str, Condition] = {"repeats": "yes"} if repeats else {}
    if warehouses is not None:
        told = one.conditions.get("warehouses")
        if told is not None and told != warehouses:
            where = one.source.place
            raise PlanError(f"{where} tells {told:g} warehouses, {warehouses} were named")
        more["warehouses"] = warehouses
    return replace(one, conditions=one.conditions | more)


def _keep(run_file: Path, done: ImportedResults, paths: dict[str, Path]) -> None:
    with RunFile.append(run_file) as file:
        for sha256, path in paths.items():
            parts = _of_store if is_sqlite(path) else _of_text
            file.put_imported_text(sha256, parts(path, sha256))
        file.put_imported(done.results)


def _of_store(path: Path, sha256: str) -> Iterator[str]:
    """What users of a job store said, without secrets: the rest of it is figures."""
    yield from _in_parts(f"{scrubbed(line)}\n" for line in hammerdb_jobs.said(path))
    _require_same(path, sha256_of(path)[0], sha256)


def _of_text(path: Path, sha256: str) -> Iterator[str]:
    """The text without secrets."""
    lines, scrubber = Lines(path), Scrubber()
    yield from _in_parts(
        scrubber.piece(text, ended=lines.ended) + ("\n" if lines.ended else "") for _, text in lines
    )
    if held := scrubber.piece("", ended=True):
        yield held
    _require_same(path, lines.sha256, sha256)


def _in_parts(texts: Iterable[str]) -> Iterator[str]:
    part, size = [], 0
    for text in texts:
        part.append(text)
        size += len(text)
        if size >= _PART:
            yield "".join(part)
            part, size = [], 0
    yield "".join(part)


def _require_same(path: Path, now: str, read: str) -> None:
    """Refuse a text that is not of the file whose figures were read."""
    if now != read:
        raise PlanError(f"file {path} changed while it was read")
