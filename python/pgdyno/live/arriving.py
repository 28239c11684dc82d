"""What a connection sends, within bounds: no request keeps a thread long, or fills the memory."""

from __future__ import annotations

import io
import socket
import time
from collections.abc import Callable


class Arriving(io.RawIOBase):
    """Reads a connection; its timeout is then what is left.

    Args:
        connection: It is read.
        patience_s: For all of it together, from now on.
        bytes_max: That all of it may have.
        clock: A steady one, s.
    """

    def __init__(
        self,
        connection: socket.socket,
        patience_s: float,
        bytes_max: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._connection, self._clock = connection, clock
        self._deadline_s = clock() + patience_s
        self._bytes_left = bytes_max

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """The next bytes.

        Raises:
            TimeoutError: They did not come in time.
            ConnectionError: There are more than it may have.
        """
        left_s = self._deadline_s - self._clock()
        if left_s <= 0:
            raise TimeoutError("the request did not arrive in time")
        self._connection.settimeout(left_s)
        size = self._connection.recv_into(buffer)
        self._bytes_left -= size
        if self._bytes_left < 0:
            raise ConnectionError("the request is too long")
        return size
