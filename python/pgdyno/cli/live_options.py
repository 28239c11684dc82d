"""The options by which others may watch a run: a page, and metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from pgdyno import api
from pgdyno.cli.console import stderr
from pgdyno.model.progress import Event, Noted

LiveOption = Annotated[
    str | None,
    typer.Option(
        "--live",
        metavar="[PORT]",
        help="Show the run as a page for a browser, on this port of this machine or on any that is"
        " free. ADDRESS:PORT lets other machines see it.",
    ),
]
MetricsOption = Annotated[
    str | None,
    typer.Option(
        "--metrics",
        metavar="ADDRESS",
        help="Serve metrics for Prometheus in OpenMetrics, e.g. at 127.0.0.1:9188.",
    ),
]
Listener = Callable[[Event], None]


@contextmanager
def watched(listener: Listener, live: str | None, metrics: str | None) -> Iterator[Listener]:
    """The listener, with whoever watches behind it.

    Raises:
        PgdynoError: An address is none, or cannot be served.
    """
    page = None if live is None else api.Address.read(live, "--live")
    figures = None if metrics is None else api.Address.read(metrics, "--metrics")
    if page is None and figures is None:
        yield listener
        return
    with api.Audience(listener, page, figures) as audience:
        for what, url in (("live page", audience.page_url), ("metrics  ", audience.metrics_url)):
            if url is not None:
                stderr.print(f"{what} {url}", soft_wrap=True)
        for address in audience.open_to_others:
            listener(
                Noted(
                    f"{address} is open to other machines, which reach it by this machine's"
                    " address. What it sends is not encrypted."
                )
            )
        yield audience
