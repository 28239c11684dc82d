"""Who may see a run: the rules by which a request is answered or refused; no sockets.

* The Host must name the address that was asked, by number or by the name that was given for it: a
  page of somebody else whose name now leads here (DNS rebinding) has another one.
* A request that a page of another origin makes is refused, also one from another port of this host.
* The token gives access once; then a cookie does. Ports do not part cookies, so that this one is
  bound to a path that nobody else knows: another server on this host is never sent it.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import parse_qs, urlsplit

from pgdyno.live.address import Address, number

_SAME = ("none", "same-origin")  # of Sec-Fetch-Site: typed or a bookmark, or a page of ours
_HTTP_PORT = 80
_PLACE_LENGTH = 16


@dataclass(frozen=True, slots=True)
class Request:
    """What of a request matters to who may see."""

    target: str  # path and query, as sent
    local: Address  # where it arrived
    headers: Mapping[str, Sequence[str]]  # by name in lower case, all values

    def only(self, name: str) -> str | None:
        """The value of a header; None: there is none, or several, so that nobody knows which."""
        values = self.headers.get(name, ())
        return values[0] if len(values) == 1 else None

    def has(self, name: str) -> bool:
        """Whether a header is there at all."""
        return bool(self.headers.get(name))


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not answered."""

    status: HTTPStatus
    text: str


@dataclass(frozen=True, slots=True)
class Welcome:
    """The token was right: a cookie, and where to go with it."""

    cookie: str
    path: str


@dataclass(frozen=True, slots=True)
class Admitted:
    """It may be answered."""

    path: str  # below the place, e.g. `page.css`; empty: the place itself


Answer = Refusal | Welcome | Admitted


def refused_origin(request: Request, name: str) -> Refusal | None:
    """The rules that hold with and without a token.

    Args:
        request: What came.
        name: The host that was given when the server was started.
    """
    host = request.only("host")
    if host is None or not _is_here(host, request.local, name):
        return Refusal(
            HTTPStatus.MISDIRECTED_REQUEST,
            f"this is {request.local}, and no other name of it is known here",
        )
    site = request.headers.get("sec-fetch-site", ("none",))
    if any(one not in _SAME for one in site):
        return Refusal(HTTPStatus.FORBIDDEN, "another page asked for it; type the address instead")
    origins = request.headers.get("origin", ())
    if any(one.lower() != f"http://{host.lower()}" for one in origins):
        return Refusal(HTTPStatus.FORBIDDEN, "a page of another origin asked for it")
    if not request.target.startswith("/") or request.target.startswith("//"):
        return Refusal(HTTPStatus.BAD_REQUEST, "a path is expected")
    return None


class AccessControl:
    """Opens by a token, and then by a cookie.

    Args:
        token: The secret.
        name: The host that was given when the server was started.
        port: Where it listens.
    """

    def __init__(self, token: str, name: str, port: int) -> None:
        self._token, self._name = token, name
        # By its hash, so that a worker that is started again has the same.
        self.place = hashlib.sha256(f"place {token}".encode()).hexdigest()[:_PLACE_LENGTH]
        self._pass = hashlib.sha256(f"pass {token}".encode()).hexdigest()
        self.cookie_name = f"pgdyno-live-{port}"

    def answer(self, request: Request) -> Answer:
        """Whether, and how, a request is answered."""
        if refusal := refused_origin(request, self._name):
            return refusal
        target = urlsplit(request.target)
        if given := parse_qs(target.query).get("token"):
            return self._welcome(target.path, given)
        path = target.path.removeprefix(f"/{self.place}/")
        if path == target.path or not self._has_pass(request):
            return _CLOSED
        return Admitted(path)

    def _welcome(self, path: str, given: Sequence[str]) -> Answer:
        if path != "/" or len(given) != 1 or not _same(given[0], self._token):
            return _CLOSED
        place = f"/{self.place}/"
        cookie = f"{self.cookie_name}={self._pass}; Path={place}; HttpOnly; SameSite=Strict"
        return Welcome(cookie, place)

    def _has_pass(self, request: Request) -> bool:
        # By hand: other servers of this host set cookies of any form, which are sent here too, and
        # of which `http.cookies` takes none where it dislikes one.
        pairs = (one.partition("=") for one in (request.only("cookie") or "").split(";"))
        found = [value.strip() for name, _, value in pairs if name.strip() == self.cookie_name]
        return len(found) == 1 and _same(found[0], self._pass)


_CLOSED = Refusal(
    HTTPStatus.FORBIDDEN, "open the whole address that pgdyno printed, with its token"
)


def _same(one: str, other: str) -> bool:
    return secrets.compare_digest(one.encode(errors="replace"), other.encode())


def _is_here(host: str, local: Address, name: str) -> bool:
    """Whether a Host names the address where the request arrived."""
    try:
        parts = urlsplit(f"//{host}")
        asked, port = parts.hostname, parts.port or _HTTP_PORT
    except ValueError:
        return False
    if asked is None or parts.netloc != host or parts.username is not None:
        return False
    if port != local.port or parts.path or parts.query or parts.fragment:
        return False
    if asked == "localhost":
        return local.is_loopback
    if (by_number := number(asked)) is not None:
        return by_number == number(local.host)
    return asked == name.lower()
