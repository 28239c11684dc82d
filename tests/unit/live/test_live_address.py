"""Addresses as they are typed."""

from __future__ import annotations

import pytest

from pgdyno.live.address import Address
from pgdyno.model.errors import PlanError


@pytest.mark.parametrize(
    ("text", "host", "port", "loopback"),
    [
        ("0", "127.0.0.1", 0, True),
        ("8080", "127.0.0.1", 8080, True),
        ("127.0.0.1:9188", "127.0.0.1", 9188, True),
        ("127.9.9.9:1", "127.9.9.9", 1, True),
        ("localhost:1", "localhost", 1, True),
        ("[::1]:9188", "::1", 9188, True),
        ("0.0.0.0:9188", "0.0.0.0", 9188, False),
        ("[::]:9188", "::", 9188, False),
        ("192.0.2.1:65535", "192.0.2.1", 65535, False),
        ("db-1.lan:9188", "db-1.lan", 9188, False),
        ("db-1.lan.:9188", "db-1.lan.", 9188, False),
        (f"{63 * 'a'}.lan:09188", f"{63 * 'a'}.lan", 9188, False),
    ],
)
def test_an_address_is_read(text: str, host: str, port: int, loopback: bool) -> None:
    found = Address.read(text, "--live")

    assert (found.host, found.port) == (host, port)
    assert found.is_loopback is loopback
    assert Address.read(str(found), "--live") == found


@pytest.mark.parametrize(
    ("served", "reached"),
    [
        ("0.0.0.0:1", "127.0.0.1:1"),
        ("[::]:1", "[::1]:1"),
        ("192.0.2.1:1", "192.0.2.1:1"),
        ("db1.lan:1", "db1.lan:1"),
        ("[::1]:1", "[::1]:1"),
    ],
)
def test_an_address_that_stands_for_all_is_reached_by_one(served: str, reached: str) -> None:
    assert str(Address.read(served, "--live").from_here) == reached


@pytest.mark.parametrize(
    "text",
    ["", ":", ":8080", "x", "-1", "65536", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "a b:1", "::1",
     "..:1", "a..b:1", ".:1", f"{64 * 'a'}.lan:1", 5000 * "9", f"db1:{5000 * '9'}",
     "²", "[::1]", "[]:1", "http://x:1", "a/b:1", "a@b:1", "\x1b[2J:1", "1:2:3:4"],
)  # fmt: skip
def test_what_is_none_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(PlanError, match=r"--metrics (is|has)") as caught:
        Address.read(text, "--metrics")

    assert caught.value.hint is not None
    assert "127.0.0.1:9188" in caught.value.hint
    assert "\x1b" not in caught.value.fact
