"""Whether a stage can have a guard: a standby of its own, from which torn pages are repaired."""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.plan.settings.configured import Configured

_MINIMAL = "minimal"


def guard_problems(config: Configured, kind: str) -> Iterator[tuple[str, str, str | None]]:
    """What keeps a stage from having one: setting or key, text, hint."""
    if kind == "running":
        text = "true, and the server is not ours: pgdyno makes no standby of it"
        yield "guard", text, "Guard it with `pgdyno guard`, or measure a cluster of ours."
        return
    if config.word("full_page_writes") == "on":
        text = "true, and full_page_writes = on: there is nothing to guard"
        yield "guard", text, 'Write full_page_writes = "off" in its settings, or guard = false.'
    if config.word("wal_level") == _MINIMAL:
        yield "wal_level", "minimal lets no standby follow, and the stage has a guard", None
    for name in ("max_wal_senders", "max_replication_slots"):
        if config.word(name) == "0":
            yield name, "0 lets no standby follow, and the stage has a guard", None
