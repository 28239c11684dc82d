"""Where a page or its figures are served: a port of this machine, or an address of it."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Self

from pgdyno.model.errors import PlanError
from pgdyno.model.text import one_line

LOOPBACK = "127.0.0.1"
_PORT_MAX = 65_535
_LABEL_MAX = 63  # letters between two dots of a name
_SHAPE = "A port, or an address with a port: 9188, 127.0.0.1:9188, [::1]:9188."


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a port; port 0 is any that is free."""

    host: str
    port: int

    @classmethod
    def read(cls, text: str, option: str) -> Self:
        """An address as it is typed; without a host it is this machine alone.

        Args:
            text: `9188`, `127.0.0.1:9188`, `[::1]:9188`, `db1:9188`.
            option: What it was given to.

        Raises:
            PlanError: It is none.
        """
        host, colon, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
        named = bool(host) and not any(one.isspace() for one in host) and _is_host(host)
        if not port.isascii() or not port.isdigit() or (colon and not named):
            raise PlanError(f"{option} is {one_line(text)!r}, an address is expected", _SHAPE)
        if len(port.lstrip("0")) > len(str(_PORT_MAX)) or int(port) > _PORT_MAX:
            raise PlanError(f"{option} has port {port}, at most {_PORT_MAX} are there", _SHAPE)
        return cls(host or LOOPBACK, int(port))

    @property
    def is_v6(self) -> bool:
        """Whether it is one of IPv6."""
        return ":" in self.host

    @property
    def is_loopback(self) -> bool:
        """Whether nobody but this machine reaches it."""
        if self.host == "localhost":
            return True
        found = number(self.host)
        return found is not None and found.is_loopback

    @property
    def from_here(self) -> Address:
        """The same as this machine reaches it: one that stands for all has no name of its own."""
        found = number(self.host)
        if found is None or not found.is_unspecified:
            return self
        return Address("::1" if found.version == 6 else LOOPBACK, self.port)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if self.is_v6 else f"{self.host}:{self.port}"


def number(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """A host that is an address, as one; IPv4 in IPv6 is IPv4. None: it is a name."""
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return None
    inner = getattr(found, "ipv4_mapped", None)
    return inner or found


def _is_host(text: str) -> bool:
    """Whether it is an address, or letters that a name can have."""
    if number(text) is not None:
        return True
    parts = text.removesuffix(".").split(".")
    if not all(0 < len(part) <= _LABEL_MAX for part in parts):  # no resolver takes such a name
        return False
    return all(one.isascii() and (one.isalnum() or one in "-._") for one in text)
