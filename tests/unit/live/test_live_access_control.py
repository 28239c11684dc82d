"""Who may see a run: every rule of the access control, from both sides."""

from __future__ import annotations

from http import HTTPStatus

import pytest

from pgdyno.live.access_control import (
    AccessControl,
    Admitted,
    Answer,
    Refusal,
    Request,
    Welcome,
    refused_origin,
)
from pgdyno.live.address import Address

TOKEN = "0123456789abcdef0123456789abcdef"
PORT = 9777
HERE = Address("127.0.0.1", PORT)
ACCESS = AccessControl(TOKEN, "127.0.0.1", PORT)
OWN = ("host", f"127.0.0.1:{PORT}")


def request(target: str, *headers: tuple[str, str], local: Address = HERE) -> Request:
    found: dict[str, list[str]] = {}
    for name, value in headers:
        found.setdefault(name, []).append(value)
    return Request(target, local, found)


def asked(target: str, *headers: tuple[str, str]) -> Answer:
    return ACCESS.answer(request(target, OWN, *headers))


def cookie() -> str:
    welcome = asked(f"/?token={TOKEN}")
    assert isinstance(welcome, Welcome)
    return welcome.cookie.partition(";")[0]


def status(answer: object) -> HTTPStatus | None:
    return answer.status if isinstance(answer, Refusal) else None


def test_the_token_opens_once_and_the_cookie_from_then_on() -> None:
    welcome = asked(f"/?token={TOKEN}")

    assert isinstance(welcome, Welcome)
    assert TOKEN not in welcome.path + welcome.cookie, "neither history nor cookie has the token"
    assert f"Path={welcome.path}" in welcome.cookie
    assert "HttpOnly" in welcome.cookie
    assert "SameSite=Strict" in welcome.cookie
    assert f"pgdyno-live-{PORT}=" in welcome.cookie
    assert asked(welcome.path, ("cookie", cookie())) == Admitted("")
    assert asked(f"{welcome.path}events", ("cookie", f"a=b; {cookie()}")) == Admitted("events")


def test_a_worker_that_is_started_again_knows_its_viewers() -> None:
    again = AccessControl(TOKEN, "127.0.0.1", PORT)

    assert again.answer(request(f"/{ACCESS.place}/", OWN, ("cookie", cookie()))) == Admitted("")
    assert AccessControl(TOKEN[::-1], "127.0.0.1", PORT).place != ACCESS.place


@pytest.mark.parametrize(
    ("target", "given"),
    [
        ("/", None),
        ("/page.css", None),
        ("/?token=", None),
        ("/?token=wrong", None),
        (f"/?token={TOKEN}x", None),
        (f"/?token={TOKEN}&token={TOKEN}", None),
        (f"/events?token={TOKEN}", None),
        (f"/?TOKEN={TOKEN}", None),
        (f"/{ACCESS.place}/", None),
        (f"/{ACCESS.place}/", "pgdyno-live-9777=wrong"),
        (f"/{ACCESS.place}/", f"pgdyno-live-9777={TOKEN}"),
        (f"/{ACCESS.place}/", "pgdyno-live-9777="),
        (f"/{ACCESS.place}/", "\x00=;;;==,"),
        (f"/{ACCESS.place}/", "pgdyno-live-9777=\udcff"),
    ],
)
def test_without_token_or_cookie_nothing_is_shown(target: str, given: str | None) -> None:
    headers = (("cookie", given),) if given is not None else ()

    assert status(asked(target, *headers)) is HTTPStatus.FORBIDDEN


@pytest.mark.parametrize(
    "other", ['choice={"a":[1,2]}', "bad name=1", "=x", "theme@x=1", "alone", "path=/", "x=\xe9"]
)
def test_cookies_of_other_servers_of_this_host_shut_nobody_out(other: str) -> None:
    for given in (f"{other}; {cookie()}", f"{cookie()}; {other}", f"{other};{cookie()} "):
        assert asked(f"/{ACCESS.place}/", ("cookie", given)) == Admitted("")


def test_the_same_cookie_twice_is_no_cookie() -> None:
    name = cookie().partition("=")[0]
    for other in (cookie(), f"{name}=x"):
        given = ("cookie", f"{cookie()}; {other}")
        assert status(asked(f"/{ACCESS.place}/", given)) is HTTPStatus.FORBIDDEN


def test_a_cookie_opens_no_other_path() -> None:
    assert status(asked("/", ("cookie", cookie()))) is HTTPStatus.FORBIDDEN
    assert status(asked(f"/{ACCESS.place}", ("cookie", cookie()))) is HTTPStatus.FORBIDDEN


def test_two_cookies_headers_are_no_cookie() -> None:
    twice = (("cookie", cookie()), ("cookie", cookie()))

    assert status(asked(f"/{ACCESS.place}/", *twice)) is HTTPStatus.FORBIDDEN


HOSTILE_HOSTS = [
    "evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:80", "127.0.0.1:9778",
    "localhost", f"127.0.0.2:{PORT}", f"localhost.evil.example:{PORT}", f"127.0.0.1.nip.io:{PORT}",
    f"127.0.0.1:{PORT}@evil.example", f"evil.example@127.0.0.1:{PORT}", f"[::2]:{PORT}", "",
    f"127.0.0.1:{PORT}/x", f"127.0.0.1:{PORT}?", f"127.0.0.1:{PORT}#", f" 127.0.0.1:{PORT}",
    "127.0.0.1:99999999", "127.0.0.1:x", "[", f"0.0.0.0:{PORT}", f"2130706433:{PORT}",
    f"127.1:{PORT}", f"localhost.:{PORT}", f"\u2460\u2461\u2466.0.0.1:{PORT}",
]  # fmt: skip


@pytest.mark.parametrize("host", HOSTILE_HOSTS)
def test_another_host_is_misdirected_even_with_the_token(host: str) -> None:
    found = ACCESS.answer(request(f"/?token={TOKEN}", ("host", host)))

    assert status(found) is HTTPStatus.MISDIRECTED_REQUEST
    assert isinstance(found, Refusal)
    assert TOKEN not in found.text


@pytest.mark.parametrize("hosts", [(), (OWN, OWN), (OWN, ("host", "evil.example"))])
def test_none_or_several_hosts_are_misdirected(hosts: tuple[tuple[str, str], ...]) -> None:
    assert status(ACCESS.answer(request("/", *hosts))) is HTTPStatus.MISDIRECTED_REQUEST


@pytest.mark.parametrize(
    ("host", "local", "name"),
    [
        ("127.0.0.1:9777", HERE, "127.0.0.1"),
        ("localhost:9777", HERE, "127.0.0.1"),
        ("LOCALHOST:9777", HERE, "127.0.0.1"),
        ("[::1]:9777", Address("::1", 9777), "::1"),
        ("[0:0:0:0:0:0:0:1]:9777", Address("::1", 9777), "::1"),
        ("localhost:9777", Address("::1", 9777), "::1"),
        ("192.0.2.7:9777", Address("192.0.2.7", 9777), "0.0.0.0"),
        ("db1.lan:9777", Address("192.0.2.7", 9777), "db1.lan"),
        ("192.0.2.7:9777", Address("192.0.2.7", 9777), "db1.lan"),
        ("127.0.0.1", Address("127.0.0.1", 80), "127.0.0.1"),
    ],
)
def test_every_right_name_of_the_address_is_known(host: str, local: Address, name: str) -> None:
    assert refused_origin(request("/", ("host", host), local=local), name) is None


@pytest.mark.parametrize("host", ["localhost:9777", "db1.lan:9777", "192.0.2.8:9777"])
def test_open_to_others_it_is_known_by_the_number_alone(host: str) -> None:
    found = refused_origin(
        request("/", ("host", host), local=Address("192.0.2.7", 9777)), "0.0.0.0"
    )

    assert status(found) is HTTPStatus.MISDIRECTED_REQUEST


@pytest.mark.parametrize("site", ["cross-site", "same-site", "nonsense", ""])
def test_a_page_of_somebody_else_may_not_ask(site: str) -> None:
    given = ("sec-fetch-site", site)

    assert status(asked(f"/?token={TOKEN}", given)) is HTTPStatus.FORBIDDEN
    assert status(asked(f"/{ACCESS.place}/", ("cookie", cookie()), given)) is HTTPStatus.FORBIDDEN


@pytest.mark.parametrize(
    "origin",
    ["null", "https://127.0.0.1:9777", "http://127.0.0.1:9778", "http://evil.example",
     "http://localhost:9777", "http://127.0.0.1:9777.evil.example", ""],
)  # fmt: skip
def test_another_origin_may_not_ask(origin: str) -> None:
    found = asked(f"/{ACCESS.place}/", ("cookie", cookie()), ("origin", origin))

    assert status(found) is HTTPStatus.FORBIDDEN


def test_the_own_origin_may() -> None:
    own = (("origin", f"http://127.0.0.1:{PORT}"), ("sec-fetch-site", "same-origin"))

    assert asked(f"/{ACCESS.place}/events", ("cookie", cookie()), *own) == Admitted("events")


@pytest.mark.parametrize("target", ["http://evil.example/", "*", "//evil.example/", "", "page.css"])
def test_what_is_no_path_is_a_bad_request(target: str) -> None:
    assert status(asked(target)) is HTTPStatus.BAD_REQUEST
