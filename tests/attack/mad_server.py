"""A server that lets everybody in, and then says what no PostgreSQL would, without an end."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Self

from pgdyno.model.connection import Connection

Saying = Callable[[str], Iterable[bytes] | None]
"""What is said to a statement; None: it has no rows."""
_BETWEEN_BYTES_S = 60.0
_TLS_OR_GSSAPI = (80877103, 80877104)


def message(tag: bytes, body: bytes = b"", length: int | None = None) -> bytes:
    """A message; its length may be a lie."""
    return tag + struct.pack("!i", len(body) + 4 if length is None else length) + body


def columns(*oids: int) -> bytes:
    """A row description in text format."""
    each = b"".join(struct.pack("!sxIhIhih", b"c", 0, 0, oid, -1, -1, 0) for oid in oids)
    return message(b"T", struct.pack("!H", len(oids)) + each)


def row(*values: bytes | None) -> bytes:
    """A row of data."""
    parts = (
        struct.pack("!i", -1) if one is None else struct.pack("!i", len(one)) + one
        for one in values
    )
    return message(b"D", struct.pack("!H", len(values)) + b"".join(parts))


BEGUN = message(b"1") + message(b"2")
READY = message(b"Z", b"I")
LET_IN = message(b"R", struct.pack("!i", 0)) + message(b"K", bytes(8)) + READY
NO_ROWS = BEGUN + message(b"n") + message(b"C", b"SELECT 0\0") + READY


def rows_of(oids: Iterable[int], rows: Iterable[bytes]) -> Iterator[bytes]:
    """A whole answer."""
    yield BEGUN + columns(*oids)
    yield from rows
    yield message(b"C", b"SELECT 1\0") + READY


class MadServer:
    """Listens on the loopback, each session in a thread of its own."""

    def __init__(self, saying: Saying, greeting: Iterable[bytes] = (LET_IN,)) -> None:
        self._saying, self._greeting = saying, greeting
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._over = threading.Event()
        self.connection = Connection(
            "127.0.0.1", int(self._socket.getsockname()[1]), "guard", "postgres", "secret",
            parameters=(("sslmode", "disable"), ("gssencmode", "disable")),
        )  # fmt: skip

    def __enter__(self) -> Self:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def dribbled(self, said: bytes) -> Iterator[bytes]:
        """Byte by byte, as long as a test waits between two."""
        for at in range(len(said)):
            yield said[at : at + 1]
            self._over.wait(_BETWEEN_BYTES_S)

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._socket.accept()
                threading.Thread(target=self._talk, args=(client,), daemon=True).start()

    def _talk(self, client: socket.socket) -> None:
        with client, suppress(OSError, EOFError):
            while self._startup(client) in _TLS_OR_GSSAPI:
                client.sendall(b"N")
            self._say(client, self._greeting)
            query = ""
            while True:
                tag, body = _heard(client, 1), b""
                (length,) = struct.unpack("!i", _heard(client, 4))
                body = _heard(client, length - 4)
                if tag == b"P":
                    query = body.split(b"\0")[1].decode()
                if tag == b"S":
                    said = None if "set_config(name" in query else self._saying(query)
                    self._say(client, [NO_ROWS] if said is None else said)

    def _startup(self, client: socket.socket) -> int:
        length, code = struct.unpack("!ii", _heard(client, 8))
        _heard(client, length - 8)
        return int(code)

    def _say(self, client: socket.socket, said: Iterable[bytes]) -> None:
        for one in said:
            if self._over.is_set():
                raise EOFError
            client.sendall(one)


def _heard(client: socket.socket, bytes_: int) -> bytes:
    found = b""
    while len(found) < bytes_:
        some = client.recv(bytes_ - len(found))
        if not some:
            raise EOFError
        found += some
    return found
