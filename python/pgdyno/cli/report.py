"""`pgdyno report`: a run file as a page for people, or as Markdown or JSON."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pgdyno.cli.console import stdout
from pgdyno.report import html, markdown, storage
from pgdyno.report import json as json_report
from pgdyno.store.page import write_page
from pgdyno.store.runfile import RunFile, as_written


class Format(StrEnum):
    """What a report is written as."""

    html = "html"
    md = "md"
    json = "json"


_RENDER = {Format.html: html.render, Format.md: markdown.render, Format.json: json_report.render}
_OF_STORAGE = {
    Format.html: storage.render_html, Format.md: storage.render_md, Format.json: storage.render_json
}  # fmt: skip


def report(
    run_file: Annotated[Path, typer.Argument(help="The run file.")],
    format_: Annotated[Format, typer.Option("--format", "-f")] = Format.html,
    out: Annotated[
        Path | None,
        typer.Option(help="Where to; `-` for standard output. Default: beside the run file."),
    ] = None,
) -> None:
    """Write the report of a run; needs nothing but the run file."""
    with RunFile.read(run_file) as run, as_written(run_file):
        probed = run.probed()
        text = _OF_STORAGE[format_](probed) if probed else _RENDER[format_](run)
    if str(out) == "-":
        sys.stdout.write(text)
        return
    path = out or run_file.with_suffix(f".{format_.value}")
    write_page(path, text, beside=(run_file,))
    stdout.print(str(path), soft_wrap=True)
