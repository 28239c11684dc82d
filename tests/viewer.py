"""A viewer of the live page without a browser: it shows its token, reads the stream of parts."""

from __future__ import annotations

import json
import socket
from http.client import HTTPConnection, HTTPResponse
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from tests.waiting import DEADLINE_S

Head = dict[str, str]


def answer(url: str, path: str, headers: Head | None = None, method: str = "GET") -> HTTPResponse:
    """The answer to one request; its body is read."""
    connection = HTTPConnection(urlsplit(url).netloc, timeout=DEADLINE_S)
    connection.request(method, path, headers=headers or {})
    found = connection.getresponse()
    found.body = found.read()  # type: ignore[attr-defined]
    connection.close()
    return found


def raw(url: str, request: bytes) -> bytes:
    """What comes back for bytes that no client of HTTP would send, until the connection ends."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), DEADLINE_S) as connection:
        connection.sendall(request)
        found = b""
        while piece := connection.recv(1 << 16):
            found += piece
        return found


def opened(url: str) -> tuple[str, str]:
    """The path of the page, and the cookie, that the address leads to."""
    parts = urlsplit(url)
    found = answer(url, f"{parts.path}?{parts.query}")
    assert found.status == 303
    cookie, path = found.headers["Set-Cookie"], found.headers["Location"]
    assert cookie
    assert path
    return path, cookie.partition(";")[0]


class Viewer:
    """Reads the stream; use it as a context."""

    def __init__(self, url: str) -> None:
        self.path, self.cookie = opened(url)
        self._connection = HTTPConnection(urlsplit(url).netloc, timeout=DEADLINE_S)
        self._connection.request("GET", f"{self.path}events", headers={"Cookie": self.cookie})
        self._stream = self._connection.getresponse()
        assert self._stream.status == 200
        self.parts: dict[str, Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._stream.close()
        self._connection.close()

    def next(self) -> str | None:
        """The name of the next part, once it is here; None: the stream has ended."""
        name = ""
        while line := self._stream.readline():
            head, _, rest = line.decode().rstrip("\n").partition(": ")
            if head == "event":
                name = rest
            elif head == "data":
                self.parts[name] = json.loads(rest)
                return name
        return None

    def until(self, name: str) -> Any:
        """Read on until a part of this name is here."""
        while name not in self.parts:
            assert self.next() is not None, f"the stream ended without {name}"
        return self.parts[name]

    def to_the_end(self) -> None:
        """Read on until the server has nothing more."""
        while self.next() is not None:
            pass
