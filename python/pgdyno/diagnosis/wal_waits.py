"""What waits for WAL are about: commits that want it on storage, or buffers that are full of it."""

from __future__ import annotations

from pgdyno.analysis.window_facts import WindowFacts

_FULL = "wal.buffers_full"
VOLUME = ("wal_insert", "wal_write")
"""Parts of the account that are about it wherever they are met."""


def commits_wait(window: WindowFacts) -> bool:
    """Whether it is commits that wait for flushes.

    Where they do not, since `synchronous_commit` is off, whoever waits for the lock under which WAL
    is written and flushed needs room in its buffers; unless these were never full (or that is not
    told, before 14), so that transactions must have asked for a flush by themselves.
    """
    return window.settings.get("synchronous_commit") != "off" or not window.grown.get(_FULL)


def volume_parts(window: WindowFacts) -> tuple[str, ...]:
    """Parts of the account that are about the volume of WAL."""
    return VOLUME if commits_wait(window) else (*VOLUME, "flush")
