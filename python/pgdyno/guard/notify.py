"""What systemd is told of a service of Type=notify, see sd_notify(3); without systemd, nothing."""

from __future__ import annotations

import os
import socket
from contextlib import suppress


def ready() -> None:
    """What has to come before others are started is done."""
    _send("READY=1")


def alive(status: str) -> None:
    """A sign of life, with a line for `systemctl status`."""
    _send(f"WATCHDOG=1\nSTATUS={' '.join(status.split())}")


def _send(text: str) -> None:
    where = os.environ.get("NOTIFY_SOCKET", "")
    if not where.startswith(("/", "@")):
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
        out.settimeout(0)  # a systemd that hangs must not hang us
        out.sendto(text.encode(), where.replace("@", "\0", 1) if where[0] == "@" else where)
