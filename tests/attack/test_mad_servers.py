"""What a server says that does not know when to stop, or what: it is refused, in bounded memory."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, count, repeat

import psycopg
import pytest

from pgdyno.guard import listener
from pgdyno.guard.answers import Answers, Limits
from pgdyno.guard.columns import FLAG, NUMBER, PLACE, TEXT, TIMELINE, Column, maybe
from pgdyno.guard.lookers import standby_looker
from pgdyno.guard.source import Source, Wanted
from pgdyno.model.errors import TargetError
from tests.attack.mad_server import (
    BEGUN,
    READY,
    MadServer,
    columns,
    message,
    row,
    rows_of,
)
from tests.waiting import DEADLINE_S, until

STRING, BYTEA = 25, 17
MIB = 1 << 20
NOISE = bytes(MIB)


def peak_kib() -> int:
    """The most memory that this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def listening(mad: MadServer) -> Answers:
    asked = Answers(name="a test", patience_s=DEADLINE_S)
    asked.reach(mad.connection)
    return asked


def fields(text: bytes) -> bytes:
    return b"SFATAL\0VFATAL\0CXX000\0M" + text + b"\0\0"


def endless(first: bytes, more: Iterable[bytes]) -> Iterator[bytes]:
    yield BEGUN + first
    yield from more


TOO_LONG = "takes more memory than the 256 MiB that there are for it"
GONE_ON: dict[str, tuple[Iterable[bytes], str]] = {
    "a row that is announced to have a gigabyte": (
        endless(columns(STRING) + message(b"D", b"\0\1", 1 << 30), repeat(NOISE)), TOO_LONG,
    ),
    "a row that never ends": (
        endless(columns(STRING) + message(b"D", b"\0\1", (1 << 31) - 1), repeat(NOISE)), TOO_LONG,
    ),
    "an error of two gigabytes": (
        endless(message(b"E", b"", (1 << 31) - 1), repeat(NOISE)), TOO_LONG,
    ),
    "a row longer than its question allows": (
        rows_of([STRING], [row(bytes(2 * MIB))]), r"a row of 2.00 MiB; taken are 1.00 MiB at most",
    ),
    "rows without end": (
        endless(columns(STRING), repeat(row(b"x") * 1000)), "1,001 rows at least; taken are 1,000",
    ),
    "long rows without end": (
        endless(columns(STRING), repeat(row(NOISE[:MIB - 64]))),
        "9.00 MiB at least; taken are 8.00 MiB at most",
    ),
    "rows of 65535 columns": (
        rows_of([STRING] * 65535, [row(*[b"x"] * 65535)]), "65535 columns, and should have 1",
    ),
    "a length below 4": (endless(message(b"D", b"", 3), repeat(NOISE)), "lost synchronization"),
    "a negative length": (endless(message(b"E", b"", -1), repeat(NOISE)), "lost synchronization"),
    "notices without end": (
        endless(b"", repeat(message(b"N", fields(b"x" * 1000)) * 100)), "no whole answer within",
    ),
    "settings without end": (
        endless(b"", (message(b"S", b"s%d\0" % n + bytes(MIB - 100) + b"\0") for n in count())),
        f"lost synchronization|no whole answer within|{TOO_LONG}",
    ),
    "small settings without end": (
        endless(b"", (message(b"S", b"s%d\0%s\0" % (n, b"v" * 20_000)) for n in count())),
        f"no whole answer within|{TOO_LONG}",
    ),
    "a copy that nobody asked for": (
        endless(message(b"H", b"\0\0\0"), repeat(message(b"d", NOISE))), "COPY_OUT by itself",
    ),
    "what is no message": (endless(b"", repeat(b"\xff" * MIB)), "lost synchronization"),
}  # fmt: skip


@pytest.mark.parametrize("how", GONE_ON)
def test_a_server_that_does_not_stop_is_refused_in_bounded_memory(how: str) -> None:
    said, refused = GONE_ON[how]
    before = peak_kib()
    with MadServer(lambda _: said) as mad, listening(mad) as asked:
        if "no whole answer" in refused:
            asked._patience_s = 5.0
        process = asked._process
        with pytest.raises(psycopg.Error, match=refused):
            list(asked.rows("SELECT 1", (TEXT,), limits=Limits(1000, MIB, 8 * MIB)))
    assert process is not None
    assert process.code() is not None, "nobody listens to it any more"
    assert peak_kib() - before < 100 << 10


def test_a_server_that_dribbles_is_given_up() -> None:
    mad: MadServer

    def saying(query: str) -> Iterable[bytes] | None:
        return None if "2" in query else mad.dribbled(BEGUN + columns(STRING))

    with MadServer(saying) as mad, listening(mad) as asked:
        asked._patience_s = 3.0
        with pytest.raises(psycopg.OperationalError, match="no whole answer within 3 s"):
            asked.row("SELECT 1", (TEXT,))
        assert asked.closed
        with pytest.raises(psycopg.OperationalError, match="session is closed"):
            asked.row("SELECT 1", (TEXT,))
        asked._patience_s = DEADLINE_S
        asked.reach(mad.connection)
        assert asked.row_or_none("SELECT 2", (TEXT,)) is None, "it is reached again"


GREETINGS: dict[str, tuple[Iterable[bytes], str]] = {
    "an error of two gigabytes": (
        [message(b"E", b"", (1 << 31) - 1), *repeat(NOISE, 20)], "connection failed: ",
    ),
    "settings without end": (
        chain([message(b"R", bytes(4))],
              (message(b"S", b"s%d\0%s\0" % (n, b"v" * 20_000)) for n in count())),
        f"timeout expired|no whole answer|{TOO_LONG}",
    ),
    "silence": ([], "timeout expired"),
}  # fmt: skip


@pytest.mark.parametrize("how", GREETINGS)
def test_a_server_that_greets_without_end_is_refused(how: str) -> None:
    said, refused = GREETINGS[how]
    before = peak_kib()
    with MadServer(lambda _: None, said) as mad, Answers(name="a test") as asked:
        connection = mad.connection.with_parameters(
            {
                **dict(mad.connection.parameters),
                "connect_timeout": "2" if "timeout" in refused else "600",
            }
        )
        with pytest.raises(psycopg.Error, match=refused):
            asked.reach(connection)
    assert peak_kib() - before < 100 << 10


WRONG: dict[str, tuple[Column, Iterable[bytes], str]] = {
    "no number": (NUMBER, [row(b"12x")], "column 1 of the answer is b'12x', and should be a nu"),
    "a number of a million digits": (NUMBER, [row(b"9" * 100_000)], "should be a number"),
    "NULL": (NUMBER, [row(None)], "is NULL, and should be a number"),
    "no flag": (FLAG, [row(b"true")], "should be true or false"),
    "no place": (PLACE, [row(b"0/123456789")], "should be a place in WAL"),
    "no timeline": (TIMELINE, [row(b"../../etc")], "should be a timeline"),
    "none": (TEXT, [], "has no row, and should have one"),
    "two": (TEXT, [row(b"1"), row(b"2")], "2 rows at least; taken are 1 at most"),
    "two columns": (TEXT, [row(b"1", b"2")], "unexpected field count|2 columns, and should have 1"),
}


@pytest.mark.parametrize("what", WRONG)
def test_an_answer_of_another_kind_is_refused(what: str) -> None:
    column, rows, refused = WRONG[what]
    with (
        MadServer(lambda _: rows_of([STRING], rows)) as mad,
        listening(mad) as asked,
        pytest.raises(psycopg.Error, match=refused),
    ):
        asked.row("SELECT 1", (column,))


def test_what_is_taken_comes_as_it_was_said_and_an_error_is_cut() -> None:
    long = b"x" * MIB

    def saying(query: str) -> Iterable[bytes]:
        if query == "fail":
            return [BEGUN, message(b"E", b"SERROR\0VERROR\0C42501\0M" + long + b"\0\0"), READY]
        values = row(b"7", None, b"t", b"caf\xe9"), row(b"-8", b"F/A", b"f", b"")
        return rows_of([STRING] * 4, values)

    with MadServer(saying) as mad, listening(mad) as asked:
        shape = (NUMBER, maybe(PLACE), FLAG, TEXT)
        assert list(asked.rows("give", shape)) == [
            (7, None, True, "caf\\xe9"), (-8, "F/A", False, ""),
        ]  # fmt: skip
        with pytest.raises(psycopg.errors.InsufficientPrivilege) as caught:
            asked.do("fail")
        assert 1000 < len(str(caught.value)) <= listener.TEXT_BYTES_MAX
        assert not asked.closed
        assert next(iter(asked.rows("give", shape))) == (7, None, True, "caf\\xe9")
        assert asked.closed, "what is left of an answer is not waited for"


def mad_standby(query: str) -> Iterable[bytes] | None:
    """It says who it is, and of each file more than anybody asked for."""
    if "pg_postmaster_start_time" in query:
        return rows_of([STRING] * 3, [row(b"7", b"t", b"1")])
    if "pg_read_binary_file" in query:
        return rows_of([BYTEA], repeat(row(bytes(8192)), 3))
    return rows_of([STRING], [row(None)])


FILE = Wanted("base/5/1", 0, 0, 1)
ASKED: dict[str, tuple[Callable[[Source], object], str]] = {
    "more than was asked for": (
        lambda standby: list(standby.read([FILE] * 2, 8192)), "not taken: the answer has 3 rows",
    ),
    "less": (lambda standby: list(standby.read([FILE] * 4, 8192)), "3 rows, and should have 4"),
    "something else": (Source.facts, "not taken: the answer has 1 column, and should have 11"),
}  # fmt: skip


@pytest.mark.parametrize("what", ASKED)
def test_a_standby_that_answers_so_is_a_refusal_of_the_repairs(what: str) -> None:
    ask, refused = ASKED[what]
    with (
        MadServer(mad_standby) as mad,
        Source(mad.connection) as standby,
        pytest.raises(TargetError, match=refused),
    ):
        ask(standby)


def test_a_standby_that_answers_so_does_not_stop_the_daemon() -> None:
    looker = standby_looker(lambda: mad.connection, 5.0, 0.05)
    with MadServer(mad_standby) as mad:
        looker.start()
        until(lambda: "of the answer is" in looker.seen(60.0).error, "the reason is told")
        looker.stop()
    looker._thread.join()


def test_a_listener_does_not_outlive_the_one_that_asks() -> None:
    """Also where that is killed while a server is silent."""
    with MadServer(lambda _: mad.dribbled(BEGUN)) as mad:
        asked = listening(mad)
        asked._ask({"query": "SELECT 1", "given": [], "binary": False})
        process = asked._process
        assert process is not None
        process.stdin.close()  # as the kernel does it for one that was killed
        until(lambda: process.code() is not None, "it ends by itself")
        asked.close()
