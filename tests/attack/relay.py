"""Stands between a client and a server's socket, counts queries, and calls out at one of them."""

from __future__ import annotations

import shutil
import socket
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

_NAME = ".s.PGSQL.5432"
_PIECE = 1 << 16


class Relay:
    """A socket folder of its own; libpq's and the core's clients reach the server through it."""

    def __init__(self, server_folder: str, at: int, call: Callable[[], None]) -> None:
        self._server = str(Path(server_folder, _NAME))
        self._at, self._call = at, call
        self._guard = threading.Lock()
        self.queries = 0
        self.folder = Path(tempfile.mkdtemp(prefix="pgdyno-relay-", dir="/tmp"))
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.folder / _NAME))
        self._listener.listen()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def leads_to(self, server_folder: str) -> None:
        """Who connects from now on reaches another server."""
        self._server = str(Path(server_folder, _NAME))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(30)
        shutil.rmtree(self.folder)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._server)
            for target, args in ((self._ask, (client, server)), (_pass_on, (server, client))):
                thread = threading.Thread(target=target, args=args, daemon=True)
                self._threads.append(thread)
                thread.start()

    def _ask(self, client: socket.socket, server: socket.socket) -> None:
        """Passes on what the client says, message by message; the first has no kind."""
        with suppress(OSError), client.makefile("rb") as source:
            has_kind = False
            while head := source.read(5 if has_kind else 4):
                size = int.from_bytes(head[-4:]) - 4
                if head[:1] == b"Q" and has_kind:
                    self._count()
                server.sendall(head + source.read(size))
                has_kind = True
        _hang_up(server)

    def _count(self) -> None:
        with self._guard:
            self.queries += 1
            if self.queries == self._at:
                self._call()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(_PIECE):
            target.sendall(piece)
    _hang_up(target)


def _hang_up(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
