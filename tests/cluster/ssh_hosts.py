"""Hosts that SSH reaches on this machine: a server of it in each of two network namespaces.

OpenSSH's own server, with keys made for the test. Each has a file of users and a /run of its own,
in which its unprivileged user and its folder are, so that nothing of it is installed here.
"""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.networked import namespaces
from tests.waiting import DEADLINE_S, until

UNPACKED = Path(sys.prefix) / "sshd"
"""Where `make packages` unpacks it: installed, it would begin to serve the machine."""
_INSTALLED = Path("/usr/sbin/sshd")
SSHD = _INSTALLED if _INSTALLED.exists() else UNPACKED / "usr/sbin/sshd"
_USER = "sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n"
_CONFIG = """
ListenAddress {address}
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
PidFile none
LogLevel VERBOSE
"""
_CLIENT = """
Host *
  User root
  IdentityFile {folder}/user
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known
"""


@dataclass(frozen=True, slots=True)
class SshHosts:
    """Two of them, for as long as they are served."""

    addresses: tuple[str, ...]  # on the network
    config: Path  # for `ssh -F`
    known: Path  # keys of hosts that the client knows
    folder: Path  # of keys and logs

    @property
    def names(self) -> tuple[str, ...]:
        """As a plan has them."""
        return tuple(f"ssh://{address}" for address in self.addresses)

    def logs(self) -> str:
        """What the servers told."""
        return "".join(one.read_text() for one in self.folder.glob("*.log"))


@contextmanager
def ssh_hosts(folder: Path) -> Iterator[SshHosts]:
    """Serve SSH in two network namespaces, to whoever has a key in this folder."""
    for name in ("host", "user"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(words, check=True, capture_output=True)
    users = Path("/etc/passwd").read_text()
    (folder / "users").write_text(users if "\nsshd:" in users else users + _USER)
    config, known = folder / "client", folder / "known"
    config.write_text(_CLIENT.format(folder=folder))
    key = " ".join((folder / "host.pub").read_text().split()[:2])
    with namespaces() as names, ExitStack() as stack:
        known.write_text("".join(f"{address} {key}\n" for address in names.values()))
        for name, address in names.items():
            stack.enter_context(_served(name, address, folder))
        yield SshHosts(tuple(names.values()), config, known, folder)


@contextmanager
def _served(name: str, address: str, folder: Path) -> Iterator[None]:
    own = folder / f"{name}.conf"
    own.write_text(_CONFIG.format(folder=folder, address=address))
    serve = shlex.join([str(SSHD), "-D", "-e", "-f", str(own)])
    users = shlex.quote(str(folder / "users"))
    # `ip netns exec` gives mounts of its own, which end with it.
    script = (
        f"mount --bind {users} /etc/passwd && mount -t tmpfs pgdyno-test /run"
        f" && mkdir -m 0755 /run/sshd && exec {serve}"
    )
    libraries = {"LD_LIBRARY_PATH": str(next(UNPACKED.glob("usr/lib/*-linux-*"), ""))}
    with (folder / f"{name}.log").open("wb") as log:
        server = subprocess.Popen(
            ["ip", "netns", "exec", name, "sh", "-c", script],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=os.environ | libraries,
        )  # fmt: skip
    try:

        def answers() -> bool:
            assert server.poll() is None, (folder / f"{name}.log").read_text()
            with suppress(OSError), socket.create_connection((address, 22)):
                return True
            return False

        until(answers, f"SSH at {address}")
        yield
    finally:
        server.kill()
        server.wait(DEADLINE_S)
