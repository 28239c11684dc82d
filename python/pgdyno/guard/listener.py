"""A process that listens to a server for the guard, in memory that has a bound.

libpq makes room for whatever a server announces, up to 2 GiB a message, and keeps what a server
reports of its settings for as long as it reports more. So nobody who has something to lose calls
it: this process holds `MEMORY_BYTES` at most, and gives row by row to the one that asks
(`answers.py`), who counts them and ends it when they are too many, too long or too late.

`python -m pgdyno.guard.listener`: questions come on standard input, answers go to standard output.
"""

from __future__ import annotations

import json
import os
import re
import resource
import select
import signal
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

import psycopg
from psycopg import pq

MODULE = "pgdyno.guard.listener"
MEMORY_BYTES = 256 << 20
"""For what a server answers, libpq, OpenSSL and Python: an answer's largest row has 8 MiB."""
HEAD = struct.Struct("!cI")
"""Before each answer: what it is, and its bytes."""
LENGTH = struct.Struct("!i")
"""Before each value of a row, as in PostgreSQL's protocol; -1: it is NULL."""
READY, SESSION, ROW, END, FAILED, TOO_MUCH = b"H", b"S", b"R", b"D", b"E", b"M"
TEXT_BYTES_MAX = 8192
"""Of an error's text, which a server may make as long as it likes."""
_BROKEN = "consuming input failed: "  # psycopg's, before the server's words
# libpq's own words; those of a server come behind ERROR or FATAL.
_NO_ROOM = re.compile(rb"cannot allocate memory for input buffer|(?:^|failed: )out of memory")
_ROWS = (pq.ExecStatus.SINGLE_TUPLE,)
_ENDS = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK, pq.ExecStatus.EMPTY_QUERY)
_FAILURES = (pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.NONFATAL_ERROR, pq.ExecStatus.BAD_RESPONSE)
SQLSTATE_BYTES = 5
"""Of what an error begins with; blanks where none is known."""


def main() -> None:
    """Answer until nobody asks any more."""
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    bound = MEMORY_BYTES if most == resource.RLIM_INFINITY else min(MEMORY_BYTES, most)
    resource.setrlimit(resource.RLIMIT_DATA, (bound, bound))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asks decides
    try:
        _listen()
    except MemoryError:
        _say(TOO_MUCH)
    except BrokenPipeError:
        pass
    _exit()


def _listen() -> None:
    session: psycopg.Connection[Any] | None = None
    _say(READY)
    while (question := _question()) is not None:
        if "connect" in question:
            if session is not None:
                session.close()
            session = _connected(question["connect"], question["patience_s"])
        elif session is not None:
            _answer(session.pgconn, question)
    if session is not None:
        session.close()


def _question() -> Any:  # noqa: ANN401  what JSON has
    """The next question; None: there will be none."""
    line = sys.stdin.buffer.readline()
    return json.loads(line) if line.endswith(b"\n") else None


def _say(kind: bytes, *parts: bytes) -> None:
    out = sys.stdout.buffer
    out.write(HEAD.pack(kind, sum(map(len, parts))))
    for part in parts:
        out.write(part)
    if kind != ROW:
        out.flush()


def _connected(arguments: Any, patience_s: int) -> psycopg.Connection[Any] | None:  # noqa: ANN401
    signal.alarm(patience_s)  # should whoever asks be killed meanwhile
    try:
        session = psycopg.connect(**arguments, autocommit=True)
    except psycopg.Error as error:
        _failed(error.sqlstate or "", str(error).encode(errors="replace"))
        return None
    finally:
        signal.alarm(0)
    pgconn = session.pgconn
    told = {"version": pgconn.server_version, "host": session.info.host,
            "address": session.info.hostaddr, "port": session.info.port}  # fmt: skip
    _say(SESSION, json.dumps(told).encode())
    return session


def _answer(pgconn: pq.abc.PGconn, question: Any) -> None:  # noqa: ANN401
    given: Sequence[str | None] = question["given"]
    try:
        pgconn.send_query_params(
            question["query"].encode(),
            [None if one is None else one.encode() for one in given],
            result_format=pq.Format.BINARY if question["binary"] else pq.Format.TEXT,
        )
        pgconn.set_single_row_mode()
        while pgconn.flush():
            _wait(pgconn, writes=True)
        _give(pgconn)
    except psycopg.Error as error:  # what it said last, if it said anything
        _failed("", str(error).removeprefix(_BROKEN).encode(errors="replace"))


def _give(pgconn: pq.abc.PGconn) -> None:
    """Rows, and what ended them."""
    failed: tuple[str, bytes] | None = None
    while (result := _result(pgconn)) is not None:
        if result.status in _ROWS:
            if failed is None:
                _give_row(result)
        elif result.status in _FAILURES:
            state = result.error_field(pq.DiagnosticField.SQLSTATE) or b""
            failed = failed or (state.decode(errors="replace"), pq.error_message(result).encode())
        elif result.status not in _ENDS:  # a COPY: libpq would say so for ever
            _failed("", f"the server began {pq.ExecStatus(result.status).name} by itself".encode())
            _exit()
        result.clear()
    if failed is None:
        _say(END)
    else:
        _failed(*failed)


def _give_row(result: pq.abc.PGresult) -> None:
    parts: list[bytes] = []
    for column in range(result.nfields):
        value = result.get_value(0, column)
        parts.append(LENGTH.pack(-1 if value is None else len(value)))
        if value:
            parts.append(value)
    _say(ROW, *parts)


def _result(pgconn: pq.abc.PGconn) -> pq.abc.PGresult | None:
    while pgconn.is_busy():
        sys.stdout.buffer.flush()
        _wait(pgconn, writes=False)
    return pgconn.get_result()


def _wait(pgconn: pq.abc.PGconn, *, writes: bool) -> None:
    """Until the server has something to say; nobody asks meanwhile, unless they are gone."""
    server, asker = pgconn.socket, sys.stdin.fileno()
    ready, _, _ = select.select([server, asker], [server] if writes else [], [])
    if asker in ready:
        _exit()
    if server in ready:
        pgconn.consume_input()


def _failed(sqlstate: str, text: bytes) -> None:
    if not sqlstate and _NO_ROOM.search(text):
        raise MemoryError
    state = sqlstate.encode().ljust(SQLSTATE_BYTES)[:SQLSTATE_BYTES]
    _say(FAILED, state, text[:TEXT_BYTES_MAX])


def _exit() -> NoReturn:
    with suppress(OSError, MemoryError):
        sys.stdout.buffer.flush()
    os._exit(0)  # nothing is to be said to a server that was listened to for long enough


if __name__ == "__main__":
    main()
