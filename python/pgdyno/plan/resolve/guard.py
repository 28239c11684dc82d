"""Whether a stage can have a standby of its own: one that answers reads, or that its guard needs.

From the guard's, torn pages are repaired.
"""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.model.pooler import Pooler
from pgdyno.plan.settings.configured import Configured

_MINIMAL = "minimal"


def guard_problems(config: Configured, kind: str) -> Iterator[tuple[str, str, str | None]]:
    """What keeps a stage from having a guard: setting or key, text, hint."""
    if kind == "running":
        text = "true, and the server runs already: pgdyno makes no standby of it"
        yield "guard", text, "Guard it with `pgdyno guard`, or measure a cluster that pgdyno makes."
        return
    if config.word("full_page_writes") == "on":
        text = "true, and full_page_writes = on: there is nothing to guard"
        yield "guard", text, 'Write full_page_writes = "off" in its settings, or guard = false.'
    yield from _standby_problems(config, "the stage has a guard")


def synchronous_problems(
    config: Configured, *, guarded: bool
) -> Iterator[tuple[str, str, str | None]]:
    """What keeps commits of a stage from waiting for its standby: setting or key, text, hint."""
    if not guarded:
        text = "true, and the stage has no guard: there is no standby to wait for"
        yield "synchronous", text, "Write guard = true, or synchronous = false."
    word = config.word("synchronous_commit")
    if word in ("off", "local"):
        text = f"true, and synchronous_commit = {word}: no commit waits for a standby"
        yield "synchronous", text, 'Write synchronous_commit = "on", or synchronous = false.'


def replicas_problems(
    config: Configured, *, pooler: Pooler | None
) -> Iterator[tuple[str, str, str | None]]:
    """What keeps a stage from having a replica of our making: setting or key, text, hint."""
    if pooler is not None:
        text = f"{pooler.shown}, and reads of target.replicas go past it"
        yield "pooler", text, 'Leave out target.replicas, or write pooler = { mode = "none" }.'
    if config.word("hot_standby") == "off":
        yield "hot_standby", "off lets no standby answer, and target.replicas asks for one", None
    yield from _standby_problems(config, "target.replicas asks for a standby")


def _standby_problems(config: Configured, why: str) -> Iterator[tuple[str, str, str | None]]:
    if config.word("wal_level") == _MINIMAL:
        yield "wal_level", f"minimal lets no standby follow, and {why}", None
    for name in ("max_wal_senders", "max_replication_slots"):
        if config.word(name) == "0":
            yield name, f"0 lets no standby follow, and {why}", None
