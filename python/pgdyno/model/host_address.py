"""How a plan names the hosts that a load comes from: a transport, and a place that it knows.

| address | what it is |
|---|---|
| `local:NAME` | a process of this host |
| `netns:NAME` | a process of this host in the network namespace of that name |
| `ssh://[USER@]HOST[:PORT]` | a host that is reached by SSH |
| `ray:NODE` | a node of a Ray cluster, by its name or address |
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pgdyno.model.fleet import Fleet

_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
_PLACES = {
    "local": re.compile(_NAME),
    "netns": re.compile(_NAME),
    "ray": re.compile(_NAME),
    "ssh": re.compile(rf"//(?:{_NAME}@)?(?:{_NAME}|\[[0-9a-fA-F:.]+\])(?::[0-9]{{1,5}})?"),
}
_FORMS = {
    "local": "local:NAME", "netns": "netns:NAME", "ray": "ray:NODE",
    "ssh": "ssh://[USER@]HOST[:PORT]",
}  # fmt: skip
SCHEMES = tuple(_PLACES)
"""Transports that there are."""
HERE = frozenset(("local", "netns"))
"""Those whose hosts are this one: they reach its sockets, and run what it runs."""


class BadAddress(ValueError):
    """What is wrong with an address, as the end of a sentence about it."""


@dataclass(frozen=True, slots=True)
class HostAddress:
    """A transport, and where it is to go."""

    scheme: str
    place: str

    @property
    def is_here(self) -> bool:
        """Whether it is this host."""
        return self.scheme in HERE

    @property
    def destination(self) -> tuple[str, str | None]:
        """Of SSH: `[USER@]HOST`, and the port if one is named."""
        place = self.place.removeprefix("//")
        before, colon, port = place.rpartition(":")
        if not colon or not port.isdigit():
            before, port = place, ""
        return before.replace("[", "").replace("]", ""), port or None


def host_address(text: str) -> HostAddress:
    """Read an address.

    Raises:
        BadAddress: Of a transport that there is not, or not in its form.
    """
    scheme, colon, place = text.partition(":")
    if not colon or scheme not in _PLACES:
        raise BadAddress(f"is of no known transport; allowed: {', '.join(_FORMS.values())}")
    if not _PLACES[scheme].fullmatch(place):
        raise BadAddress(f"is no address; allowed: {_FORMS[scheme]}")
    return HostAddress(scheme, place)


def drives_here(fleet: Fleet | None) -> bool:
    """Whether any of a load's processes is one of this host."""
    return fleet is None or any(host_address(name).is_here for name in fleet.hosts)
