"""What a transport is: it starts the driver's process on a host, and connects its pipes to us.

Everything else is the same for all of them: what is said stands in `drive.host_worker`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pgdyno.model.by_location import modules_of
from pgdyno.model.fleet import Fleet
from pgdyno.model.host_address import HostAddress
from pgdyno.shell import Process

WORKER = "pgdyno.drive.host_worker"
"""The module that drives a part of a load."""


def program(module: str) -> tuple[str, ...]:
    """What a Python runs on a host. -P: no module is looked for in the folder where it starts."""
    return "-P", "-m", module


def here(module: str) -> tuple[str, ...]:
    """The same on this host, by this Python."""
    return sys.executable, *program(module)


@dataclass(frozen=True, slots=True)
class Transport:
    """A way to a host.

    `start` gets a descriptor for what the process says of its failures, and the module of pgdyno
    that it is to run there. `hello_s` is how long that may take until it says something.
    """

    scheme: str
    start: Callable[[HostAddress, Fleet, int, str], Process]
    hello_s: float = 30.0


def transports() -> Mapping[str, Transport]:
    """Those that lie in `drive/transports`, each as the `TRANSPORT` of its module."""
    found = [module.TRANSPORT for module in modules_of("pgdyno.drive.transports")]
    return {one.scheme: one for one in found}
