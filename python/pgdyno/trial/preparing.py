"""A server made ready for its load: a fresh copy of the data, a stage's settings, warm caches.

restore -> apply -> ... -> prewarm -> CHECKPOINT
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

from pgdyno.intervention.shim import Shim, preloadable
from pgdyno.model.connection import Connection
from pgdyno.model.plan import Protocol, Stage
from pgdyno.model.run import Fixture
from pgdyno.model.settings import Setting
from pgdyno.session import own_session
from pgdyno.shell import postgres_user
from pgdyno.target.interface import NO_ENVIRONMENT, Ready, Target, on_server
from pgdyno.target.prewarm import prewarm
from pgdyno.target.replica import caught_up
from pgdyno.trial.fixture import build_of

Phase = Callable[[str], AbstractContextManager[None]]
"""Held while a phase lasts: restore, start, prewarm, checkpoint."""


def settings_of(stage: Stage) -> Sequence[Setting]:
    """What a stage's server is started with: of a guarded one the guard decides on full pages."""
    if not stage.guard:
        return stage.settings
    return tuple(one for one in stage.settings if one.name != "full_page_writes")


@contextmanager
def shim_of(stage: Stage, *, needed: bool = False) -> Iterator[Shim | None]:
    """The library that a stage's server is started with, while servers run; None: it has none.

    Args:
        stage: Its disk may lie, which the library does.
        needed: Whether there is more for it to do.

    Raises:
        TargetError: There is no C compiler, or it failed.
    """
    if not (stage.lying_disk or needed):
        yield None
        return
    with preloadable(postgres_user()) as shim:
        if stage.lying_disk:
            shim.lie()
        yield shim


def started(
    stage: Stage, target: Target, fixture: Fixture, phase: Phase, shim: Shim | None
) -> tuple[Ready, list[Connection]]:
    """Start a stage's server on a fresh copy of its data, and the pooler that it asks for.

    Args:
        stage: Its settings are applied.
        target: The server under test.
        fixture: What is copied.
        phase: Told what is done.
        shim: The library that its server gets, see `shim_of`.

    Returns:
        The server, and the databases that are driven.

    Raises:
        PgdynoError: It cannot be restored, does not start, or starts without the library.
    """
    environment = shim.environment if shim is not None else NO_ENVIRONMENT
    with phase("restore"):
        target.restore(fixture.ident, stage.workload.databases, stage.folder)
    with phase("start"):
        ready = target.apply(settings_of(stage), build_of(stage), environment)
        if shim is not None:
            shim.require_loaded()
        ready = with_pooler(stage, target, ready)
    return ready, ready.databases(stage.workload)


def with_pooler(stage: Stage, target: Target, ready: Ready) -> Ready:
    """The server, and in front of it the pooler that its stage asks for.

    Raises:
        TargetError: It does not start.
    """
    if stage.pooler is None:
        return ready
    pooled = target.pool(stage.pooler, stage.workload.sessions, ready.connection)
    return replace(ready, pooled=pooled)


def warmed(ready: Ready, databases: Sequence[Connection], protocol: Protocol, phase: Phase) -> None:
    """Read the data into memory and end with a checkpoint, as far as the protocol asks for it.

    A replica then has all that the server has: what it reads while it follows is of the load.

    Raises:
        PgdynoError: It cannot be done.
    """
    names = [one.name for one in ready.each] if ready.others else [""] * len(databases)
    with phase("prewarm"):
        for name, database in zip(names, databases, strict=True) if protocol.prewarm else ():
            with on_server(name):
                prewarm(database)
    with phase("checkpoint"):
        if protocol.checkpoint_before:
            for one in ready.each:
                with on_server(one.name), own_session(one.connection) as session:
                    session.execute("CHECKPOINT")
    if ready.replica is not None:
        with phase("replica"):
            caught_up(ready.replica, ready.connection)
            if protocol.prewarm:
                prewarm(ready.replica)
