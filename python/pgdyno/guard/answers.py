"""A session on a server that is believed nothing before it is counted: rows, bytes and time.

The server is listened to by a process of its own (`listener.py`), whose memory has a bound. What
comes from there is taken row by row, no row longer than its question allows, and every value has to
be what the question asks for. Whatever else a server does, it is a refusal and no more.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NoReturn, Self

import psycopg

from pgdyno.guard.columns import Column
from pgdyno.guard.listener import (
    END,
    FAILED,
    HEAD,
    LENGTH,
    MEMORY_BYTES,
    MODULE,
    READY,
    ROW,
    SESSION,
    SQLSTATE_BYTES,
    TEXT_BYTES_MAX,
    TOO_MUCH,
)
from pgdyno.model.connection import Connection
from pgdyno.model.errors import TargetError
from pgdyno.model.units import bytes_text
from pgdyno.model.wording import plural
from pgdyno.session import NO_TIMEOUTS
from pgdyno.shell import Process, start

Given = str | int | Sequence[str] | Sequence[int]
_CONNECT_S = 10  # where a conninfo does not say
_ADDRESSES = 4  # of a name
_SPARE_S = 60.0
_START_S = 600.0  # of our own process on a machine that is busy
_END_S = 5.0
_READ_BYTES = 1 << 16


class NotTaken(psycopg.OperationalError):
    """What a server said is more than its question allows, or something else."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one answer may have; more is refused before it is kept."""

    rows: int = 100_000
    row_bytes: int = 1 << 20
    all_bytes: int = 64 << 20
    patience_s: float | None = None  # for the whole of it; None: the session's


USUAL = Limits()
LONG_S = 3600.0
"""For a checkpoint, and for a look at each of millions of files."""


class Answers:
    """A session in autocommit mode without timeouts; closed where it is used as a context."""

    def __init__(self, *, name: str, patience_s: float = _SPARE_S) -> None:
        """Nothing is reached yet.

        Args:
            name: What others see in pg_stat_activity.
            patience_s: Within which an answer has to be there.
        """
        self._name, self._patience_s = name, patience_s
        self._process: Process | None = None
        self._in = self._out = -1
        self._here = bytearray()

    @property
    def closed(self) -> bool:
        """Whether nobody listens."""
        return self._process is None

    def reach(self, connection: Connection) -> None:
        """Connect, in place of a session that was before: by the same process, if it still lives.

        Args:
            connection: Where it leads.

        Raises:
            psycopg.Error: The server does not let us in.
            TargetError: Our own process cannot be started.
        """
        if self._process is None:
            self._process = start([sys.executable, "-m", MODULE], pipes=True)
            self._in, self._out = self._process.stdout.fileno(), self._process.stdin.fileno()
            self._here = bytearray()
            self._expect(READY, _START_S)
        arguments = {**connection.arguments(), "application_name": self._name}
        said = str(arguments.get("connect_timeout"))  # what is no number is libpq's to refuse
        timeout_s = (int(said) if said.isdecimal() else 0) or _CONNECT_S
        patience_s = _SPARE_S + timeout_s * len(connection.hosts) * _ADDRESSES
        self._ask({"connect": arguments, "patience_s": int(patience_s)})
        told = json.loads(self._expect(SESSION, patience_s))
        self.version: int = told["version"]
        self.host: str = told["host"]
        self.address: str = told["address"]
        self.port: int = told["port"]
        self.do(NO_TIMEOUTS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End it, and the process."""
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(OSError):
            process.stdin.close()
        if process.wait(_END_S) is None:
            process.kill()
        process.close_pipes()

    def do(
        self, query: str, given: Sequence[Given] = (), *, patience_s: float | None = None
    ) -> None:
        """Have something done whose answer says nothing.

        Raises:
            psycopg.Error: It cannot be done.
        """
        for _ in self._rows(query, given, None, Limits(patience_s=patience_s)):
            pass

    def row(
        self, query: str, columns: Sequence[Column], given: Sequence[Given] = (),
        *, patience_s: float | None = None,
    ) -> tuple[Any, ...]:  # fmt: skip
        """The one row of an answer.

        Raises:
            psycopg.Error: There is none, or as `rows`.
        """
        found = self.row_or_none(query, columns, given, patience_s=patience_s)
        if found is None:
            raise NotTaken("the answer has no row, and should have one")
        return found

    def row_or_none(
        self, query: str, columns: Sequence[Column], given: Sequence[Given] = (),
        *, patience_s: float | None = None,
    ) -> tuple[Any, ...] | None:  # fmt: skip
        """The same; None: there is none.

        Raises:
            psycopg.Error: As `rows`.
        """
        limits = Limits(rows=1, patience_s=patience_s)
        found = list(self.rows(query, columns, given, limits))
        return found[0] if found else None

    def rows(
        self,
        query: str,
        columns: Sequence[Column],
        given: Sequence[Given] = (),
        limits: Limits = USUAL,
    ) -> Iterator[tuple[Any, ...]]:
        """Rows, one by one as they come. Who leaves them before their end has closed the session.

        Args:
            query: In SQL; `$1` and so on stand for what is given.
            columns: What each has to be.
            given: In order.
            limits: What the answer may have.

        Raises:
            psycopg.Error: The server says no, or is gone.
            NotTaken: It says more than it may, or something else.
        """
        yield from self._rows(query, given, columns, limits)

    # -- what is asked ------------------------------------------------------------------------

    def _rows(
        self, query: str, given: Sequence[Given], columns: Sequence[Column] | None, limits: Limits
    ) -> Iterator[tuple[Any, ...]]:
        left_s = self._patience_s if limits.patience_s is None else limits.patience_s
        is_binary = any(one.is_binary for one in columns or ())
        self._ask({"query": query, "given": [_written(one) for one in given], "binary": is_binary})
        patience = Patience(left_s)
        rows = all_bytes = 0
        is_whole = False
        try:
            while True:
                kind, bytes_ = self._head(patience)
                if kind == END and not bytes_:
                    break
                if kind != ROW:
                    is_whole = kind == FAILED  # the session goes on
                    self._raise(kind, bytes_, patience)
                rows, all_bytes = rows + 1, all_bytes + bytes_
                self._require_within(limits, rows, bytes_, all_bytes)
                row = self._take(bytes_, patience)
                if columns is not None:
                    yield _read(row, columns)
            is_whole = True
        finally:
            if not is_whole:
                self._give_up()

    def _ask(self, question: Mapping[str, Any]) -> None:
        if self.closed:
            raise psycopg.OperationalError("the session is closed")
        left = memoryview(json.dumps(question).encode() + b"\n")
        try:
            while left:
                left = left[os.write(self._out, left) :]
        except OSError as error:
            self._gone(error)

    # -- what is answered ---------------------------------------------------------------------

    def _require_within(self, limits: Limits, rows: int, row_bytes: int, all_bytes: int) -> None:
        said = None
        if rows > limits.rows:
            said = f"{plural(rows, 'row', thousands=True)} at least; taken are {limits.rows:,}"
        elif row_bytes > limits.row_bytes:
            said = f"a row of {bytes_text(row_bytes)}; taken are {bytes_text(limits.row_bytes)}"
        elif all_bytes > limits.all_bytes:
            said = f"{bytes_text(all_bytes)} at least; taken are {bytes_text(limits.all_bytes)}"
        if said is not None:
            raise NotTaken(f"the answer has {said} at most")

    def _expect(self, wanted: bytes, patience_s: float) -> bytes:
        patience = Patience(patience_s)
        kind, bytes_ = self._head(patience)
        if kind != wanted:
            self._raise(kind, bytes_, patience)
        if bytes_ > TEXT_BYTES_MAX:
            self._gone()
        return bytes(self._take(bytes_, patience))

    def _raise(self, kind: bytes, bytes_: int, patience: Patience) -> NoReturn:
        if kind == FAILED and bytes_ <= SQLSTATE_BYTES + TEXT_BYTES_MAX:
            text = bytes(self._take(bytes_, patience))
            state = text[:SQLSTATE_BYTES].decode(errors="replace").strip()
            raise _kind_of(state)(text[SQLSTATE_BYTES:].decode(errors="replace").strip())
        if kind == TOO_MUCH:
            raise NotTaken(
                f"what it says takes more memory than the {bytes_text(MEMORY_BYTES)} that there"
                " are for it"
            )
        self._gone()

    def _head(self, patience: Patience) -> tuple[bytes, int]:
        kind, bytes_ = HEAD.unpack(self._take(HEAD.size, patience))
        return kind, bytes_

    def _take(self, bytes_: int, patience: Patience) -> bytearray:
        """So many bytes of what comes."""
        while len(self._here) < bytes_:
            self._here += self._some(patience)
        taken = self._here[:bytes_]
        del self._here[:bytes_]  # moves nothing, where a slice of the rest would copy it
        return taken

    def _some(self, patience: Patience) -> bytes:
        since_s = time.monotonic()
        ready, _, _ = select.select([self._in], [], [], max(patience.left_s, 0.0))
        patience.left_s -= time.monotonic() - since_s
        if not ready:
            self._give_up()
            raise psycopg.OperationalError(
                f"no whole answer within {patience.all_s:.0f} s: the session was given up"
            )
        found = os.read(self._in, _READ_BYTES)
        if not found:
            self._gone()
        return found

    def _gone(self, error: OSError | None = None) -> NoReturn:
        self._give_up()
        raise NotTaken("the process that listened to it ended on what it said") from error

    def _give_up(self) -> None:
        if self._process is not None:
            self._process.kill()
        self.close()


@contextmanager
def asking(connection: Connection) -> Iterator[None]:
    """Errors of the server's, told as such."""
    try:
        yield
    except psycopg.errors.InsufficientPrivilege as error:
        raise TargetError(
            f"role {connection.user} may not do at {connection.shown()} what a repair takes:"
            f" {str(error).strip()}",
            "docs/concepts/guard.md in the sources of pgdyno tells which rights it needs. A standby"
            " takes no GRANT: while its primary is down, name a superuser.",
        ) from error
    except NotTaken as error:
        raise TargetError(
            f"an answer of the server at {connection.shown()} is not taken: {error}",
            "PostgreSQL does not answer so: is it the server that you meant? Take nothing from it.",
        ) from error
    except psycopg.Error as error:
        said = " ".join(str(error).split())
        raise TargetError(
            f"the server at {connection.shown()} does not answer: {said}",
            "Start it, and see that it lets this host in.",
        ) from error


@dataclass(slots=True)
class Patience:
    """How long an answer is waited for; what is done with its rows meanwhile does not count."""

    all_s: float
    left_s: float = 0.0

    def __post_init__(self) -> None:
        self.left_s = self.all_s


def _read(row: bytearray, columns: Sequence[Column]) -> tuple[Any, ...]:
    """A row's values, once there are as many as were asked for."""
    places: list[tuple[int, int]] = []
    at = 0
    while at < len(row):
        (length,) = LENGTH.unpack_from(row, at)
        at += LENGTH.size
        places.append((at, length))
        at += max(length, 0)
    if len(places) != len(columns):
        had = plural(len(places), "column")
        raise NotTaken(f"the answer has {had}, and should have {len(columns)}")
    view = memoryview(row)
    return tuple(
        _value(None if length < 0 else bytes(view[begin : begin + length]), column, nth)
        for nth, (column, (begin, length)) in enumerate(zip(columns, places, strict=True), 1)
    )


def _value(value: bytes | None, column: Column, nth: int) -> Any:  # noqa: ANN401
    if value is None and column.may_be_null:
        return None
    try:
        if value is not None:
            return column.read(value)
    except (ValueError, KeyError):
        pass
    said = "NULL" if value is None else repr(value[:40])
    raise NotTaken(f"column {nth} of the answer is {said}, and should be {column.name}")


def _written(given: Given) -> str:
    """A parameter as PostgreSQL reads it."""
    if isinstance(given, str):
        return given
    if isinstance(given, int):
        return str(given)
    return "{" + ",".join(_element(one) for one in given) + "}"


def _element(one: str | int) -> str:
    if isinstance(one, int):
        return str(one)
    return '"' + one.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _kind_of(state: str) -> type[psycopg.Error]:
    try:
        return psycopg.errors.lookup(state)
    except KeyError:
        return psycopg.OperationalError
