"""How far a call is, in a notebook: a line below the cell, which goes when the call ends.

Nobody asks for it: it is there where a cell waits, and nowhere else. Whoever wants to be told gives
`on_event`, and then has no line.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from html import escape
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
_EACH_S = 0.25  # a line that changes more often is not read


def with_line(call: Callable[P, T]) -> Callable[P, T]:
    """A call that shows how far it is, where a notebook waits for it and nobody else listens."""

    @wraps(call)
    def shown(*args: P.args, **named: P.kwargs) -> T:
        if "on_event" in named or not in_notebook():
            return call(*args, **named)
        with _line() as tell:
            named["on_event"] = tell
            return call(*args, **named)

    return shown


def in_notebook() -> bool:
    """Whether this is the kernel of a notebook; a terminal's IPython is none."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


@contextmanager
def _line(clock: Callable[[], float] = time.monotonic) -> Iterator[Callable[[Any], None]]:
    from pgdyno.live.progress_line import ProgressLine  # noqa: PLC0415  a window needs no plan

    ipython: Any = import_module("IPython.display")  # where it runs already
    line, shown, said_at = ProgressLine(), None, -_EACH_S

    def tell(event: object) -> None:
        nonlocal shown, said_at
        text = line.hear(event)
        if text is None or clock() - said_at < _EACH_S:
            return
        said_at = clock()
        drawn = ipython.HTML(f"<pre>{escape(text)}</pre>")
        if shown is None:
            shown = ipython.display(drawn, display_id=True)
        else:
            shown.update(drawn)

    try:
        yield tell
    finally:
        if shown is not None:
            shown.update(ipython.HTML(""))
