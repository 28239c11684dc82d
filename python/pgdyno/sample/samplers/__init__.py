"""The samplers, one file each; a file with a function `sampler` is found by location."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from pgdyno.model.by_location import modules_of
from pgdyno.model.run import Missing
from pgdyno.sample.sampler import Found, Sampler, Snapshot, Subject, Tally


def samplers_of(subject: Subject) -> list[Sampler | Tally | Snapshot | Missing]:
    """What can be read of this host and server with the telemetry that is asked for.

    Returns:
        In order of their files; what cannot be read is among them.
    """
    if subject.telemetry == "none":
        return []
    sets = ("default",) if subject.telemetry == "default" else ("default", "full")
    return [
        one
        for module in modules_of(__name__)
        for one in _each(module.sampler(subject))
        if isinstance(one, Missing) or one.telemetry in sets
    ]


def samplers_of_server(subject: Subject) -> list[Sampler | Tally | Snapshot | Missing]:
    """Those of the server, replica or pooler alone: this host is read once, whatever is on it."""
    bare = replace(subject, session=None, replica=None, pooler=None)
    of_host = {one.name for one in samplers_of(bare)}
    return [one for one in samplers_of(subject) if one.name not in of_host]


def samplers_for(columns: Collection[str]) -> list[Sampler]:
    """Those that read any of these columns of this host, and no others."""
    return [
        one
        for one in samplers_of(Subject())
        if isinstance(one, Sampler) and any(column.name in columns for column in one.columns)
    ]


def _each(found: Found) -> Iterator[Sampler | Tally | Snapshot | Missing]:
    if found is None:
        return
    if isinstance(found, (Sampler, Tally, Snapshot, Missing)):
        yield found
    else:
        yield from found
