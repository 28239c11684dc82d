"""Several servers that run already and are not ours, each with a part of one workload.

Each is owned, loaded, restored, asked and left as one alone; here they are held together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TypeVar

from pgdyno.model.connection import Connection
from pgdyno.model.errors import PlanError, StoppedError
from pgdyno.model.manifest import Installation
from pgdyno.model.plan import Stage
from pgdyno.model.run import Fixture
from pgdyno.model.server_result import of_server
from pgdyno.model.settings import ServerFacts, Setting
from pgdyno.target.conninfo import resolve
from pgdyno.target.interface import NO_ENVIRONMENT, Ready, Restored, on_server
from pgdyno.target.not_ours import NotOurs
from pgdyno.target.running_target import RunningServer, RunningTarget, ask_server

Answer = TypeVar("Answer")


def ask_servers(conninfos: Sequence[str], *, knocks: bool = False) -> ServerFacts:
    """Ask several servers what they are, as `ask_server` does.

    Returns:
        Of the first, with those of the others.

    Raises:
        PlanError: A conninfo is refused, or two lead to one server.
        TargetError: A server does not answer.
    """
    names = _names_of(conninfos)
    asked: list[RunningServer] = []
    for name, conninfo in zip(names, conninfos, strict=True):
        with on_server(name):
            asked.append(ask_server(conninfo, knocks=knocks))
    for number, one in enumerate(asked):
        for other in asked[:number]:
            if one.identity == other.identity:
                raise PlanError(
                    f"{other.connection.shown()} and {one.connection.shown()} are one and the same"
                    " server",
                    "Name it once; several databases of one server are workload.databases.",
                )
    return _together(names, asked)


def _together(names: Sequence[str], asked: Sequence[RunningServer]) -> ServerFacts:
    first, *others = (replace(one.facts, name=name)
                      for name, one in zip(names, asked, strict=True))  # fmt: skip
    return replace(first, others=tuple(others))


def _names_of(conninfos: Sequence[str]) -> list[str]:
    """What the servers are called, before any of them is asked."""
    found = []
    for number, one in enumerate(conninfos, start=1):
        with on_server(str(number)):
            found.append(resolve(one))
    return server_names(found)


def server_names(connections: Sequence[Connection]) -> list[str]:
    """What each is called among the others: by where it is first looked for."""
    named = [f"{one.host}:{one.port}" for one in connections]
    twice = Counter(named)
    return [name if twice[name] == 1 else f"{name} ({number})"
            for number, name in enumerate(named, start=1)]  # fmt: skip


class ServersTarget(NotOurs):
    """Databases of ours on several servers."""

    _why = "the servers run already, and are"

    def __init__(self, conninfos: Sequence[str], *, prewarm: bool = True) -> None:
        """Take the servers one after the other; where one cannot be had, all are left again.

        Args:
            conninfos: Name them, as libpq has it.
            prewarm: Whether trials want pg_prewarm in their databases.

        Raises:
            PlanError: A conninfo is refused, or leads to a pooler.
            TargetError: A server does not answer, or another pgdyno has it.
        """
        self._names = _names_of(conninfos)
        with ExitStack() as stack:
            members = []
            for name, conninfo in zip(self._names, conninfos, strict=True):
                with on_server(name):
                    member = RunningTarget(conninfo, prewarm=prewarm)
                stack.callback(member.close)
                members.append(member)
            stack.pop_all()
        self._members = tuple(members)
        self._parts: dict[str, tuple[str, ...]] = {}  # fixtures of all by that of the first

    @property
    def each(self) -> Sequence[RunningTarget]:
        """See `Target.each`."""
        return self._members

    @property
    def names(self) -> Sequence[str]:
        """What each is called."""
        return self._names

    @property
    def build(self) -> Installation:
        """See `Target.build`; of the first, with where all are."""
        first = self._members[0].build
        where = "; ".join(one.connection.shown() for one in self._members)
        return replace(first, origin=f"running servers, {where}")

    def configuration(self) -> dict[str, str]:
        """See `Target.configuration`; those of the first by their names alone."""
        first, *others = self._each(lambda one: one.configuration())
        return first | {
            of_server(name, setting): value
            for name, found in zip(self._names[1:], others, strict=True)
            for setting, value in found.items()
        }

    def facts_of(self, build: str | None) -> ServerFacts:
        """See `Target.facts_of`; what they say of themselves is told by server."""
        first, *others = (
            replace(one.facts_of(build), name=name)
            for name, one in zip(self._names, self._members, strict=True)
        )
        about = {of_server(one.name, key): text
                 for one in (first, *others) for key, text in one.about.items()}  # fmt: skip
        return replace(first, about=about, others=tuple(others))

    def rehearse(self, stages: Sequence[Stage]) -> Iterator[tuple[str, str]]:
        """See `Target.rehearse`."""
        for name, member in zip(self._names, self._members, strict=True):
            with on_server(name):
                for stage, why in member.rehearse(stages):
                    yield stage, f"server {name}: {why}"

    # -- fixture: each server has its own -----------------------------------------------------

    def joined(self, fixtures: Sequence[Fixture]) -> Fixture:
        """One fixture of those that the servers have, in their order."""
        first, *others = fixtures
        self._parts[first.ident] = tuple(one.ident for one in fixtures)
        return replace(first, others=tuple(others))

    def find_fixture(self, ident: str) -> Fixture | None:
        """Of each server, not of all."""
        raise AssertionError(f"fixture {ident} is one server's")

    def begin_fixture(self, ident: str, build: str | None = None) -> Connection:
        """Of each server, not of all."""
        raise AssertionError(f"fixture {ident} is one server's")

    def keep_fixture(self, fixture: Fixture, databases: int = 1) -> Fixture:
        """Of each server, not of all."""
        raise AssertionError(f"fixture {fixture.ident} is one server's")

    def drop_half_fixture(self) -> None:
        """See `Target.drop_half_fixture`."""
        self._all(lambda one: one.drop_half_fixture())

    # -- trial --------------------------------------------------------------------------------

    def restore(self, ident: str, databases: int = 1, folder: str | None = None) -> Restored:
        """See `Target.restore`; each server has one database."""
        parts = dict(zip(self._members, self._parts[ident], strict=True))
        done = self._each(lambda member: member.restore(parts[member], 1, folder))
        return Restored(done[0].method, sum(one.seconds for one in done))

    def apply(
        self,
        settings: Sequence[Setting],
        build: str | None = None,
        environment: Mapping[str, str] = NO_ENVIRONMENT,
    ) -> Ready:
        """See `Target.apply`."""
        done = self._each(lambda member: member.apply(settings, build, environment))
        first, *others = (
            replace(one, name=name) for name, one in zip(self._names, done, strict=True)
        )
        return replace(first, others=tuple(others))

    def stop(self) -> None:
        """See `Target.stop`."""
        self._all(lambda one: one.stop())

    def came_back(self, patience_s: float) -> bool:
        """See `Target.came_back`: those that went away answer again, and nobody meant us."""
        stopped: list[StoppedError] = []
        for name, member in zip(self._names, self._members, strict=True):
            try:
                with on_server(name):
                    if not member.came_back(patience_s):
                        return False
            except StoppedError as error:  # this one never went away
                if member.was_sent_away:
                    raise
                stopped.append(error)
        if len(stopped) == len(self._members):
            raise stopped[0]
        return True

    def close(self) -> None:
        """See `Target.close`."""
        self._all(lambda one: one.close())

    def _each(self, asked: Callable[[RunningTarget], Answer]) -> list[Answer]:
        """What each server answers, in their order."""
        answers = []
        for name, member in zip(self._names, self._members, strict=True):
            with on_server(name):
                answers.append(asked(member))
        return answers

    def _all(self, act: Callable[[RunningTarget], None]) -> None:
        """Do it on all servers, also after one on which it fails."""
        with ExitStack() as stack:
            for name, member in reversed(list(zip(self._names, self._members, strict=True))):
                stack.callback(_act, name, act, member)


def _act(name: str, act: Callable[[RunningTarget], None], member: RunningTarget) -> None:
    with on_server(name):
        act(member)
