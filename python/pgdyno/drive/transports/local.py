"""A process of this host."""

from __future__ import annotations

import signal

from pgdyno.drive.transport import Transport, here
from pgdyno.model.fleet import Fleet
from pgdyno.model.host_address import HostAddress
from pgdyno.shell import Process, start


def _start(_address: HostAddress, _fleet: Fleet, log: int, module: str) -> Process:
    return start(here(module), pipes=True, log=log, dies_with_us=signal.SIGTERM)


TRANSPORT = Transport("local", _start)
