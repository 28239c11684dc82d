"""Hostile requests to the live page and its metrics, sent as bytes: none is shown anything."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPException
from urllib.parse import urlsplit

import pytest

from pgdyno.live.address import Address
from pgdyno.live.audience import Audience
from tests.data.miniature import write_miniature
from tests.data.played import Played
from tests.viewer import Viewer, answer, opened, raw
from tests.waiting import DEADLINE_S, until

pytestmark = pytest.mark.cluster
ANY = Address("127.0.0.1", 0)
Served = tuple[str, str]  # the page and the metrics


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("live")
    played = Played(write_miniature(folder / "whole.sqlite"), folder / "run.sqlite")
    with Audience(lambda _: None, ANY, ANY) as audience:
        audience(played.begin())
        assert audience.page_url is not None
        assert audience.metrics_url is not None
        yield audience.page_url, audience.metrics_url


def status(answered: bytes) -> int:
    return int(answered.split(b" ", 2)[1]) if answered.startswith(b"HTTP/") else 0


HOSTILE = {
    "rebinding": b"GET %(target)s HTTP/1.1\r\nHost: evil.example:%(port)d\r\n\r\n",
    "other port": b"GET %(target)s HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n",
    "no host": b"GET %(target)s HTTP/1.1\r\n\r\n",
    "two hosts": b"GET %(target)s HTTP/1.1\r\nHost: 127.0.0.1:%(port)d\r\nHost: x\r\n\r\n",
    "old": b"GET %(target)s HTTP/1.0\r\n\r\n",
    "oldest": b"GET %(target)s\r\n\r\n",
    "absolute": b"GET http://evil.example%(target)s HTTP/1.1\r\nHost: 127.0.0.1:%(port)d\r\n\r\n",
    "bytes": b"GET %(target)s HTTP/1.1\r\nHost: \xff\x00\r\n\r\n",
    "origin": b"GET %(target)s HTTP/1.1\r\nHost: 127.0.0.1:%(port)d\r\n"
    b"Origin: http://evil.example\r\n\r\n",
    "site": b"GET %(target)s HTTP/1.1\r\nHost: 127.0.0.1:%(port)d\r\n"
    b"Sec-Fetch-Site: same-site\r\n\r\n",
    "post": b"POST %(target)s HTTP/1.1\r\nHost: 127.0.0.1:%(port)d\r\nContent-Length: 0\r\n\r\n",
    "options": b"OPTIONS %(target)s HTTP/1.1\r\nHost: 127.0.0.1:%(port)d\r\n\r\n",
    "put": b"PUT %(target)s HTTP/1.1\r\nHost: 127.0.0.1:%(port)d\r\n\r\n",
    "connect": b"CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1:%(port)d\r\n\r\n",
    "nonsense": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "long line": b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n",
    "many headers": b"GET %(target)s HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n",
}
EXPECTED = {"rebinding": 421, "other port": 421, "no host": 421, "two hosts": 421, "old": 421,
            "absolute": 400, "bytes": 421, "origin": 403, "site": 403, "post": 405, "options": 405,
            "put": 405, "connect": 405}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("which", [0, 1], ids=["page", "metrics"])
def test_a_hostile_request_is_refused_whoever_has_the_token(
    served: Served, which: int, name: str
) -> None:
    url = served[which]
    parts = urlsplit(url)
    target = f"{parts.path}?{parts.query}" if parts.query else parts.path
    port = parts.port
    request = HOSTILE[name].replace(b"%(target)s", target.encode()).replace(
        b"%(port)d", str(port).encode()
    )  # fmt: skip
    found = raw(url, request)

    assert status(found) == EXPECTED.get(name, status(found))
    assert status(found) == 0 or status(found) >= 400, found[:200]
    assert b"Set-Cookie" not in found
    assert b"pgdyno_phase" not in found
    assert b"token=" not in found
    assert answer(url, target).status in (200, 303), "it still serves others"


@pytest.mark.parametrize(
    "path", ["", "page.css", "page.js", "events", "../", "%2e%2e/", "..%2f..%2fetc/passwd", "x"]
)
def test_without_a_cookie_no_path_is_shown(served: Served, path: str) -> None:
    place, cookie = opened(served[0])

    assert answer(served[0], f"{place}{path}").status == 403
    assert answer(served[0], f"/{path}", {"Cookie": cookie}).status == 403


def test_every_answer_is_closed_to_others_pages(served: Served) -> None:
    place, cookie = opened(served[0])
    for url, path, headers in (
        (served[0], place, {"Cookie": cookie}), (served[0], "/", {}), (served[1], "/metrics", {}),
        (served[1], "/", {}), (served[0], f"{place}none", {"Cookie": cookie}),
    ):  # fmt: skip
        found = answer(url, path, headers).headers
        policy = found["Content-Security-Policy"] or ""
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert found["X-Content-Type-Options"] == "nosniff"
        assert found["Referrer-Policy"] == "no-referrer"
        assert found["Cache-Control"] == "no-store"
        assert found["Cross-Origin-Resource-Policy"] == "same-origin"
        assert not [name for name in found if name.lower().startswith("access-control")]
        assert found["Server"] == "pgdyno"


def test_head_says_what_get_would_without_a_body(served: Served) -> None:
    place, cookie = opened(served[0])
    for path in (place, f"{place}page.css", f"{place}events"):
        found = answer(served[0], path, {"Cookie": cookie}, "HEAD")
        assert (found.status, found.body) == (200, b"")  # type: ignore[attr-defined]


@contextmanager
def silent(url: str) -> Iterator[None]:
    """More connections than the server has threads for, which say nothing."""
    parts = urlsplit(url)
    with ExitStack() as stack:
        for _ in range(80):
            stack.enter_context(socket.create_connection((parts.hostname, parts.port), DEADLINE_S))
        yield


def comes_in(url: str) -> bool:
    try:
        with Viewer(url) as viewer:
            return viewer.until("head") is not None
    except (OSError, HTTPException):
        return False


def test_connections_that_say_nothing_are_gone_when_they_leave(served: Served) -> None:
    with silent(served[0]):
        assert not comes_in(served[0]), "there are no more threads than fixed"
    until(lambda: comes_in(served[0]), "a place for a viewer")


@pytest.mark.long
def test_connections_that_say_nothing_are_thrown_out(served: Served) -> None:
    with silent(served[0]):
        until(lambda: comes_in(served[0]), "a place for a viewer")
