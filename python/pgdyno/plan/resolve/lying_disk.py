"""Stages whose disk lies: what does not go with that."""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.model.proof import WRITES_THAT_FLUSH
from pgdyno.model.settings import Rung
from pgdyno.plan.resolve.lowest_rung import too_low
from pgdyno.plan.settings.configured import Configured

_KEY = "lying_disk"
_METHOD = "wal_sync_method"


def lying_disk_problems(
    config: Configured, kind: str, lowest: Rung, *, guarded: bool
) -> Iterator[tuple[str, str, str | None]]:
    """What keeps the disk of a stage from lying: key, text, hint.

    Args:
        config: The stage's settings.
        kind: Of the target.
        lowest: The lowest rung that the plan allows.
        guarded: Whether the stage has a guard.
    """
    if kind == "running":
        text = "true, and the server runs already: pgdyno preloads nothing into it"
        yield _KEY, text, 'Name a target of another kind, e.g. kind = "embedded".'
    if guarded:
        text = "true, and the stage has a guard, which repairs pages and no WAL that a disk forgot"
        yield _KEY, text, "Write lying_disk = false, or guard = false."
    if config.word("fsync") == "off":
        text = "true, and fsync = off: nothing is flushed that a disk could acknowledge"
        yield _KEY, text, "Write lying_disk = false, or fsync = true."
    if (method := config.word(_METHOD)) in WRITES_THAT_FLUSH:
        text = f"true, and {_METHOD} = {method}: each write flushes, and no call that could be told"
        yield _KEY, text, f'Write {_METHOD} = "fdatasync", or lying_disk = false.'
    if lowest < Rung.D5:
        yield _KEY, *too_low("true", Rung.D5, lowest)
