"""How tests wait: by looking again and again, and for long, since a busy machine is no defect."""

from __future__ import annotations

import time
from collections.abc import Callable

DEADLINE_S = 900.0  # of what takes seconds on an idle machine; only a defect reaches it
_PAUSE_S = 0.02


def until(ready: Callable[[], object], what: str) -> None:
    """Wait until it is so.

    Raises:
        AssertionError: It is not so at the deadline; `what` is in the message.
    """
    deadline = time.monotonic() + DEADLINE_S
    while not ready():
        assert time.monotonic() < deadline, f"not within {DEADLINE_S:.0f} s: {what}"
        time.sleep(_PAUSE_S)
