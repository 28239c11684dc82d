"""Wait events of PostgreSQL 12 to 18 under one name, in classes: `data/waits.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal

from pgdyno.catalog.tables import Table, read_table
from pgdyno.model.wait import Wait

OTHER = "other"
_ANY = "*"
_LWLOCK = "lwlock"


class _Class(Table):
    group: Literal["wal", "io", "lock", "latch", "client", "other"]
    what: str
    events: tuple[str, ...]


class _Waits(Table):
    """The file, as it stands."""

    classes: Mapping[str, _Class]
    renamed: Mapping[str, str]


def wait_classes() -> Mapping[str, str]:
    """All classes of wait events with what they mean, in the order of the file."""
    return {name: table.what for name, table in _waits().classes.items()}


def wait_groups() -> Mapping[str, str]:
    """The group of each class of wait events, in which charts draw it."""
    return {name: table.group for name, table in _waits().classes.items()}


@cache
def wait_of(event_type: str, event: str) -> Wait:
    """The class and present name of an event.

    Args:
        event_type: `wait_event_type` of pg_stat_activity.
        event: `wait_event`.
    """
    before = f"{event_type}:{event}"
    now = _waits().renamed.get(before, before)
    known = _known()
    if found := known.get(_key(now)):
        return found
    if found := known.get(_key(f"{event_type}:{_ANY}")):
        return Wait(found.wait_class, before, True)
    return Wait(OTHER, before, False)


@cache
def _waits() -> _Waits:
    table = read_table("waits")
    return _Waits.model_validate({"classes": table["class"], "renamed": table["renamed"]})


@cache
def _known() -> Mapping[str, Wait]:
    known: dict[str, Wait] = {}
    for name, table in _waits().classes.items():
        for event in table.events:
            key = _key(event)
            assert key not in known, f"wait event {event} stands in two classes"
            known[key] = Wait(name, event, True)
    for now in _waits().renamed.values():
        assert _key(now) in known, f"wait event {now} is no name of 18"
    return known


def _key(event: str) -> str:
    """What is left of a name without what versions write differently."""
    event_type, _, name = event.lower().partition(":")
    if event_type == _LWLOCK:
        name = name.removesuffix("lock")
    return f"{event_type}:{name.replace('_', '').replace('/', '')}"
