"""`pgdyno storage`: what storage can do, what it claims, and what follows for commits."""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ByteSize, TypeAdapter, ValidationError
from rich.status import Status
from rich.table import Table as Printed
from rich.text import Text

from pgdyno.cli.console import say, stderr, stdout
from pgdyno.model.errors import PlanError
from pgdyno.model.floor import Probed, Wish
from pgdyno.model.plan import Target
from pgdyno.model.run import RunInfo
from pgdyno.model.text import shell_line, visible
from pgdyno.model.units import bytes_text, seconds_text
from pgdyno.report.document import Points, Table
from pgdyno.report.storage import answer, remarks, render_html, render_json, tables
from pgdyno.shell import postgres_user
from pgdyno.stage.binaries import Binaries, find_binaries
from pgdyno.stage.host import manifest, own_version
from pgdyno.storage import cost, probe_storage, require_possible
from pgdyno.store.page import require_page, write_page
from pgdyno.store.runfile import RunFile

_SIZE, _QUICK_SIZE = "4GiB", "256MiB"
_SECONDS, _QUICK_SECONDS = 5, 1
_DEPTHS = "1,4,16,64"
_JOBS, _QUICK_JOBS = "1,4", "1"
_SIZE_MIN = 64 << 20
_SECONDS_MAX = 3600
_TRANSACTION_US_MAX = 10_000_000


def storage(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Folders to measure in.")],
    size: Annotated[
        str | None, typer.Option(help=f"Of the file on each. Default: {_SIZE}.")
    ] = None,
    seconds: Annotated[
        int | None,
        typer.Option("--seconds", "-T", min=1, max=_SECONDS_MAX, help="A window. Default: 5."),
    ] = None,
    depths: Annotated[
        str | None, typer.Option(help=f"Requests under way in a job. Default: {_DEPTHS}.")
    ] = None,
    jobs: Annotated[str | None, typer.Option(help=f"At once. Default: {_JOBS}.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small file, short windows, small grid: a first look.")
    ] = False,
    transaction_us: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=_TRANSACTION_US_MAX,
            help="CPU time of a transaction of yours: adds the commits a second that it allows.",
        ),
    ] = None,
    bindir: Annotated[
        Path | None, typer.Option(help="PostgreSQL's programs. Default: the embedded ones.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Tell what it takes; no more.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Run file; the page goes beside it. Default: runs/….")
    ] = None,
) -> None:
    """Measure storage with pg_test_fsync, pg_test_timing and fio, several paths side by side.

    Files are made in a folder of our own below each path, and always removed. Reads are harmless to
    others, writes as fast as they can be are not: do not run it beside a server that matters.
    """
    wish = Wish(
        paths=tuple(str(path.absolute()) for path in paths),
        size_bytes=_bytes("--size", size or (_QUICK_SIZE if quick else _SIZE)),
        seconds=seconds or (_QUICK_SECONDS if quick else _SECONDS),
        depths=_numbers("--depths", depths or _DEPTHS),
        jobs=_numbers("--jobs", jobs or (_QUICK_JOBS if quick else _JOBS)),
        quick=quick,
        transaction_us=transaction_us,
    )
    _check(wish)
    require_possible(wish)
    _announce(wish)
    if dry_run:
        return
    target = Target("installed", bindir=str(bindir)) if bindir else Target("embedded")
    binaries = find_binaries(target, postgres_user())
    ident = f"{time.strftime('%Y%m%d-%H%M%S')}-storage"
    path = out or Path("runs") / f"{ident}.sqlite"
    require_page(path.with_suffix(".html"), beside=(path,))
    info = _info(ident, wish, binaries)
    with RunFile.create(path, info, ()) as run, Status("starting", console=stderr) as status:
        probed = probe_storage(
            wish, ident, binaries, told=partial(say, status), keep=run.put_probed
        )
    page = _page(path, probed)
    if as_json:
        sys.stdout.write(render_json(probed))
        return
    _print(probed)
    stdout.print(f"run file: {path}, page: {page.name}", soft_wrap=True)


def _bytes(option: str, text: str) -> int:
    try:
        return int(TypeAdapter(ByteSize).validate_python(text))
    except ValidationError as error:
        raise PlanError(
            f"{option} is {text!r}", "Write a size with its unit, e.g. 4GiB."
        ) from error


def _numbers(option: str, text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() and int(part) > 0 for part in parts):
        raise PlanError(f"{option} is {text!r}", "Write whole numbers above 0, e.g. 1,4,16.")
    return tuple(sorted({int(part) for part in parts}))


def _check(wish: Wish) -> None:
    least = max(_SIZE_MIN, max(wish.jobs) << 20)  # each job has a part of its own
    if wish.size_bytes < least:
        raise PlanError(
            f"--size is {bytes_text(wish.size_bytes)}, at least {bytes_text(least)} are needed"
        )
    for path in wish.paths:
        try:
            path.encode()
        except UnicodeEncodeError:
            raise PlanError(
                f"path {visible(path)} is no text in UTF-8",
                "Run file and page could not hold it. Measure a folder beside it.",
            ) from None
    if len(set(wish.paths)) < len(wish.paths):
        raise PlanError("a path is named twice", "Each is measured once.")


def _announce(wish: Wish) -> None:
    needed = cost(wish)
    stderr.print(
        f"{len(wish.paths)} × {bytes_text(needed.each_bytes)} on disk, removed at the end; about"
        f" {seconds_text(needed.seconds)}, of it {seconds_text(needed.writing_s)} to write the"
        f" files at an assumed 300 MB/s; then {seconds_text(needed.loaded_s)} on each path of"
        " writing as fast as it can",
        soft_wrap=True,
    )


def _info(ident: str, wish: Wish, binaries: Binaries) -> RunInfo:
    return RunInfo(
        ident=ident,
        started_ns=time.time_ns(),
        pgdyno=own_version(),
        command=shell_line(["pgdyno", *sys.argv[1:]]),
        plan={},
        host=manifest(Path(wish.paths[0])),
        build=binaries.manifest(),
        workload={},
    )


def _page(path: Path, probed: Probed) -> Path:
    """Write the page beside the run file."""
    page = path.with_suffix(".html")
    write_page(page, render_html(probed), beside=(path,))
    return page


def _print(probed: Probed) -> None:
    for sentence in answer(probed):
        stdout.print(Text(sentence, style="bold"))
    for table in tables(probed):
        stdout.print(_printed(table))
    for block in remarks(probed):
        assert isinstance(block, Points)
        for item in block.items:
            stdout.print(Text(f"- {item}", style="yellow" if block.tone == "warn" else "dim"))


def _printed(table: Table) -> Printed:
    printed = Printed(title=table.caption, title_justify="left", box=None, pad_edge=False)
    for column in table.columns:
        printed.add_column(column.head, justify=column.align, overflow="fold")
    for row in table.rows:
        printed.add_row(*(cell.text for cell in row))
    return printed
