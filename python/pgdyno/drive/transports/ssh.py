"""A host that is reached by SSH: OpenSSH's own client, with the keys of its configuration.

It authenticates both sides and encrypts what is said, passwords of the database among it. The
host's key has to be known beforehand: nobody is asked, and nothing is accepted on first sight.
"""

from __future__ import annotations

import shlex
import signal

from pgdyno.drive.transport import WORKER, Transport, program
from pgdyno.model.fleet import Fleet
from pgdyno.model.host_address import HostAddress
from pgdyno.shell import Process, start

# On the command line, where no file overrules them.
_OPTIONS = {
    "StrictHostKeyChecking": "yes",
    "BatchMode": "yes",  # nobody is asked for a password
    "ConnectTimeout": "10",
    "ServerAliveInterval": "2",
    "ServerAliveCountMax": "2",
    "ControlPath": "none",  # a connection of its own, which ends with it
    "ForwardAgent": "no",
    "ForwardX11": "no",
    "LogLevel": "ERROR",
}


def command(address: HostAddress, fleet: Fleet, module: str = WORKER) -> tuple[str, ...]:
    """The command line that goes there."""
    destination, port = address.destination
    options = [word for name, value in _OPTIONS.items() for word in ("-o", f"{name}={value}")]
    return (
        "ssh",
        "-T",
        *options,
        *(("-F", fleet.ssh_config) if fleet.ssh_config else ()),
        *(("-p", port) if port else ()),
        "--",
        destination,
        shlex.join(("exec", fleet.python, *program(module))),
    )


def _start(address: HostAddress, fleet: Fleet, log: int, module: str) -> Process:
    return start(command(address, fleet, module), pipes=True, log=log, dies_with_us=signal.SIGTERM)


TRANSPORT = Transport("ssh", _start)
