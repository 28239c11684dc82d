"""Waiting for what another process does: polled, with a deadline, never slept for."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(so: Callable[[], object], what: str, within_s: float = 30.0) -> None:
    """Wait until something is so.

    Raises:
        AssertionError: It is not within the time.
    """
    deadline = time.monotonic() + within_s
    while not so():
        assert time.monotonic() < deadline, f"not within {within_s:.0f} s: {what}"
        time.sleep(0.02)
