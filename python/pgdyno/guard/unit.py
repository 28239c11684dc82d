"""A systemd unit for the daemon. It holds no password: those are where libpq looks for them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from pgdyno.guard.data_directory import DataDirectory
from pgdyno.guard.deadman import MODULE
from pgdyno.guard.include_file import RUN_FOLDER
from pgdyno.model.errors import PlanError
from pgdyno.model.guard import Armed

_WATCHDOG_S = 30
_END_S = 60
_UNIT = """\
# pgdyno guard: full pages off only while the standby qualifies. `pgdyno guard status` says how it
# stands. A password is looked for in ~/.pgpass of user {user}; none stands here.
[Unit]
Description=pgdyno guard of {data}
After=local-fs.target
# After an orderly restart of the machine it opens the interlock, so it comes first; after a power
# cut it does not, and the server says what to do.
Before={server}

[Service]
Type=notify
NotifyAccess=main
User={user}
Group={group}
{run_folder}ExecStart={watch}
# After any end, be it kill -9 or a daemon that hung: full pages on.
ExecStopPost={off}
Restart=always
RestartSec=2
WatchdogSec={watchdog_s}
TimeoutStopSec={end_s}
KillMode=mixed
NoNewPrivileges=yes
ProtectHome=read-only

[Install]
WantedBy=multi-user.target {server}
"""
_RUN_FOLDER = """\
RuntimeDirectory={name}
RuntimeDirectoryMode=0755
RuntimeDirectoryPreserve=yes
"""


def unit(directory: DataDirectory, armed: Armed, server: str, group: str) -> str:
    """The text of the unit.

    Args:
        directory: The data directory.
        armed: What is kept of it.
        server: The unit of the server, e.g. `postgresql@18-main.service`.
        group: Of the server's user.

    Raises:
        PlanError: A name holds what no unit file can.
    """
    include = Path(armed.include)
    is_usual = include.parent.parent == RUN_FOLDER
    watch = [sys.executable, "-m", "pgdyno", "guard", "watch", str(directory.path)]
    off = [sys.executable, "-m", MODULE, str(directory.path), str(include), "1"]
    for one in (*watch, *off, server):
        if not one.isprintable():
            raise PlanError(f"{one!r} cannot stand in a unit file", "Give it a plainer name.")
    return _UNIT.format(
        data=str(directory.path).replace("%", "%%"), user=directory.user.name, group=group,
        server=server,
        run_folder=_RUN_FOLDER.format(name=RUN_FOLDER.name) if is_usual else "",
        watch=_words(watch), off=_words(off), watchdog_s=_WATCHDOG_S, end_s=_END_S,
    )  # fmt: skip


def _words(words: Sequence[str]) -> str:
    """A command line as systemd.service(5) reads it."""
    quoted = []
    for word in words:
        text = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
        plain = all(one.isalnum() or one in "/._-=@:+,%$" for one in text)
        quoted.append(text if plain else f'"{text}"')
    return " ".join(quoted)
