"""A process of this host in a network namespace, with addresses of its own; needs root.

Unix sockets are files, and so are reached from there as from here.
"""

from __future__ import annotations

import signal

from pgdyno.drive.transport import Transport, here
from pgdyno.model.fleet import Fleet
from pgdyno.model.host_address import HostAddress
from pgdyno.shell import Process, start


def _start(address: HostAddress, _fleet: Fleet, log: int, module: str) -> Process:
    # `ip` replaces itself by what it runs, so that the process is ours.
    words = ("ip", "netns", "exec", address.place, *here(module))
    return start(words, pipes=True, log=log, dies_with_us=signal.SIGTERM)


TRANSPORT = Transport("netns", _start)
