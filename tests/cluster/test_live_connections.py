"""Connections that would keep the live page from others: each holds its place for a while only."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from pgdyno.live import server
from pgdyno.live.address import Address
from pgdyno.live.server import Listening, metrics_server
from tests.viewer import answer, raw
from tests.waiting import DEADLINE_S, until

pytestmark = pytest.mark.cluster


@pytest.fixture
def listening() -> Iterator[Listening]:
    found = metrics_server(Address("127.0.0.1", 0), lambda: "# EOF\n")
    found.begin()
    yield found
    found.shutdown()
    found.server_close()


def test_a_request_that_trickles_in_is_thrown_out(
    listening: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_REQUEST_S", 0.5)
    at = (listening.at.host, listening.at.port)
    with socket.create_connection(at, DEADLINE_S) as connection:
        connection.sendall(b"GET /metrics HTTP/1.1\r\nX: ")

        def is_over() -> bool:
            try:
                connection.sendall(b"y")  # always something, never the end
            except OSError:
                return True
            return False

        until(is_over, "the server closes it")
    assert answer(f"http://{listening.at}", "/metrics").status == 200


def test_a_request_that_would_fill_the_memory_is_thrown_out(listening: Listening) -> None:
    headers = b"".join(b"X-%d: %b\r\n" % (number, b"y" * 60_000) for number in range(90))
    request = b"GET /metrics HTTP/1.1\r\nHost: %b\r\n%b\r\n" % (str(listening.at).encode(), headers)
    try:
        found = raw(f"http://{listening.at}", request)
    except OSError:  # it was closed while we sent
        found = b""
    assert found == b""
    assert answer(f"http://{listening.at}", "/metrics").status == 200


def test_a_machine_without_threads_gives_places_back(
    listening: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched, closing(socket.socket()) as one:
        patched.setattr(threading.Thread, "start", full)
        for _ in range(server._CONNECTIONS_MAX + 1):
            with pytest.raises(RuntimeError):
                listening.process_request(one, ("", 0))
    assert answer(f"http://{listening.at}", "/metrics").status == 200
