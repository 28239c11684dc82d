"""The two servers: the page with its stream of parts, and the metrics. Loopback, few viewers.

Only GET and HEAD exist, and nothing that is asked changes anything. Every answer is closed after
it; the stream lasts as long as its viewer reads. No request is logged.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from io import BufferedReader
from socketserver import TCPServer
from typing import Any

from pgdyno.live.access_control import AccessControl, Refusal, Request, Welcome, refused_origin
from pgdyno.live.address import Address, number
from pgdyno.live.arriving import Arriving
from pgdyno.live.latest_parts import LatestParts

_REQUEST_S = 10.0  # for a request to arrive, and for a viewer to take what is sent
_REQUEST_BYTES = 1 << 17  # a browser's cookies for this host included
_HEARTBEAT_S = 5.0  # so often a stream without news says that it is there
_CONNECTIONS_MAX = 48
_RETRY_MS = 1000  # a viewer that lost the connection tries again after this
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
    " img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_TEXT = "text/plain; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


class Listening(ThreadingHTTPServer):
    """A server of few connections at once.

    Args:
        at: Where it listens; a name is looked up.
        handler: Answers requests.

    Raises:
        OSError: The port is in use, or the address is none of this machine.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, at: Address, handler: type[Handler]) -> None:
        family, _, _, _, where = socket.getaddrinfo(
            at.host, at.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        self.address_family = family
        self.name = at.host
        self._free = threading.BoundedSemaphore(_CONNECTIONS_MAX)
        super().__init__(where[:2], handler)  # type: ignore[arg-type]
        self.at = Address(at.host, int(self.server_address[1]))

    def server_bind(self) -> None:
        """As `HTTPServer` does, but for asking a name server what this host is called."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self.name, int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """In a thread, if there is one left."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:  # there is no thread that would give the place back
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """In the thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Say nothing: a connection that breaks is its viewer's affair."""

    def begin(self) -> None:
        """Serve in a thread; it ends with the process."""
        threading.Thread(target=self.serve_forever, name="pgdyno live", daemon=True).start()


class Handler(BaseHTTPRequestHandler):
    """What both servers have in common."""

    server: Listening
    timeout = _REQUEST_S
    error_content_type = _TEXT
    error_message_format = "%(message)s\n"

    def setup(self) -> None:
        """As the library does; but all of a request has one deadline, not each of its bytes."""
        super().setup()
        self.rfile = BufferedReader(Arriving(self.connection, _REQUEST_S, _REQUEST_BYTES))

    def parse_request(self) -> bool:
        """As the library does; other methods than two do not exist."""
        if not super().parse_request():
            return False
        self.connection.settimeout(_REQUEST_S)  # from now on for what is sent
        if self.command not in ("GET", "HEAD"):
            self._answer(
                HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD exist\n", {"Allow": "GET, HEAD"}
            )
            return False
        return True

    def do_GET(self) -> None:
        """Answer."""
        raise NotImplementedError

    def do_HEAD(self) -> None:
        """Answer without a body."""
        self.do_GET()

    def asked(self) -> Request:
        """The request, as the access control looks at it."""
        host, port = self.connection.getsockname()[:2]
        found = number(host)
        local = Address(str(found) if found else host, port)
        names = {name.lower() for name in self.headers}
        return Request(self.path, local, {name: self.headers.get_all(name) or () for name in names})

    def refuse(self, refusal: Refusal) -> None:
        """Say why not."""
        self._answer(refusal.status, f"{refusal.text}\n")

    def _answer(
        self, status: HTTPStatus, body: str | bytes, headers: Mapping[str, str] | None = None
    ) -> None:
        content = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        sent = {"Content-Type": _TEXT, "Content-Length": str(len(content))} | dict(headers or {})
        for name, value in sent.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def end_headers(self) -> None:
        """Every answer has what keeps a browser from doing more than it should."""
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def version_string(self) -> str:
        """No versions."""
        return "pgdyno"

    def log_message(self, *_: Any) -> None:  # noqa: ANN401
        """No request is logged: its address may hold the token."""


def page_server(at: Address, token: str, latest: LatestParts) -> Listening:
    """The page, and its stream of parts."""
    kept = _files()

    class Page(Handler):
        def do_GET(self) -> None:
            match access.answer(self.asked()):
                case Refusal() as refusal:
                    self.refuse(refusal)
                case Welcome(cookie, path):
                    sent = {"Location": path, "Set-Cookie": cookie}
                    self._answer(HTTPStatus.SEE_OTHER, "", sent)
                case admitted:
                    self._show(admitted.path)

        def _show(self, path: str) -> None:
            if path == "events":
                self._stream()
            elif (found := kept.get(path)) is not None:
                kind, content = found
                self._answer(HTTPStatus.OK, content, {"Content-Type": kind})
            else:
                self._answer(HTTPStatus.NOT_FOUND, "there is no such page\n")

        def _stream(self) -> None:
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "text/event-stream; charset=utf-8")
            self.end_headers()
            if self.command == "HEAD":
                return
            with latest, suppress(OSError):  # a viewer that left, or takes nothing any more
                self.wfile.write(f"retry: {_RETRY_MS}\n\n".encode())
                version, is_last = 0, False
                while not is_last:
                    version, parts, is_last = latest.newer(version, _HEARTBEAT_S)
                    lines = [b"event: %b\ndata: %b\n\n" % (n.encode(), t) for n, t in parts]
                    self.wfile.write(b"".join(lines) or b"event: ping\ndata: 0\n\n")

    server = Listening(at, Page)
    access = AccessControl(token, at.host, server.at.port)
    return server


def metrics_server(at: Address, exposition: Callable[[], str]) -> Listening:
    """The metrics. They need no token, as Prometheus has none; the rules of origin hold."""

    class Metrics(Handler):
        def do_GET(self) -> None:
            request = self.asked()
            if refusal := refused_origin(request, at.host):
                self.refuse(refusal)
            elif request.target.partition("?")[0] != "/metrics":
                self._answer(HTTPStatus.NOT_FOUND, "there is /metrics\n")
            else:
                self._answer(HTTPStatus.OK, exposition(), {"Content-Type": OPENMETRICS})

    return Listening(at, Metrics)


def _files() -> dict[str, tuple[str, bytes]]:
    """What the page is made of, by path; its style begins with that of the report."""
    here, report = files("pgdyno.live") / "page", files("pgdyno.report") / "page"
    style = (report / "report.css").read_bytes() + (here / "live.css").read_bytes()
    return {
        "": ("text/html; charset=utf-8", (here / "live.html").read_bytes()),
        "page.css": ("text/css; charset=utf-8", style),
        "page.js": ("text/javascript; charset=utf-8", (here / "live.js").read_bytes()),
    }
