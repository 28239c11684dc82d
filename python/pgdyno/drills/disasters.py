"""The disasters that a drill can rehearse: one entry each."""

from __future__ import annotations

from dataclasses import replace

from pgdyno.model.drill import AS_WRITTEN, Device, Disaster, Fault, Standing
from pgdyno.model.errors import PlanError
from pgdyno.model.plan import Stage
from pgdyno.model.wording import listed

_FORGETS_S = 1.0  # what a lying device holds back
_FAULT_S = 1.0
_WAL = "pg_wal"
_BEHIND_S = 1.0

DISASTERS = (
    Disaster(
        "crash",
        "Every process of the server ends at once; the kernel lives, and keeps what was written.",
        AS_WRITTEN,
    ),
    Disaster(
        "power",
        "The power goes. The disk is honest, and writes sectors of 512 bytes whole or not at all.",
        Device(),
    ),
    Disaster(
        "power-4k",
        "The power goes. The disk is honest, and writes sectors of 4 KiB whole or not at all.",
        Device(sector_bytes=4096),
    ),
    Disaster(
        "power-lying",
        "The power goes. The disk acknowledged flushes, and forgets what came in its last"
        f" {_FORGETS_S:g} s.",
        Device(forgets_s=_FORGETS_S),
    ),
    Disaster(
        "power-twice",
        "The power goes, comes back, and goes again while the server recovers. Disk as in `power`.",
        Device(),
        again=True,
    ),
    Disaster(
        "write-error",
        f"For {_FAULT_S:g} s of the load, every write and every new file gets an error (EIO).",
        AS_WRITTEN,
        fault=Fault("write", "error", _FAULT_S),
    ),
    Disaster(
        "sync-error",
        f"For {_FAULT_S:g} s of the load, every fsync gets an error (EIO).",
        AS_WRITTEN,
        fault=Fault("sync", "error", _FAULT_S),
    ),
    Disaster(
        "disk-full",
        f"For {_FAULT_S:g} s of the load, every write finds no room (ENOSPC).",
        AS_WRITTEN,
        fault=Fault("write", "full", _FAULT_S),
    ),
    Disaster(
        "wal-full",
        f"For {_FAULT_S:g} s, from the first call on that needs it, there is no new room for WAL"
        " (ENOSPC); segments that are there can be written over.",
        AS_WRITTEN,
        fault=Fault("grow", "full", _FAULT_S, _WAL),
    ),
    Disaster(
        "data-full",
        f"For {_FAULT_S:g} s, from the first call on that needs it, there is no new room for"
        " anything but WAL (ENOSPC).",
        AS_WRITTEN,
        fault=Fault("grow", "full", _FAULT_S, _WAL, elsewhere=True),
    ),
    Disaster(
        "disk-hangs",
        f"For {_FAULT_S:g} s of the load, no fsync gets an answer.",
        AS_WRITTEN,
        fault=Fault("sync", "nothing", _FAULT_S),
    ),
    Disaster(
        "kill-postmaster",
        "The postmaster is killed under the load (SIGKILL); nobody starts it again.",
        AS_WRITTEN,
        kills="postmaster",
    ),
    Disaster(
        "kill-backend",
        "A session of the load is killed (SIGKILL), as the kernel does where memory is short.",
        AS_WRITTEN,
        kills="client backend",
    ),
    Disaster(
        "kill-checkpointer",
        "The checkpointer is killed under the load (SIGKILL).",
        AS_WRITTEN,
        kills="checkpointer",
    ),
    Disaster(
        "out-of-memory",
        "A session asks for more memory than there is: the kernel's OOM killer takes it.",
        AS_WRITTEN,
        starves=True,
    ),
    Disaster(
        "power-live",
        "The power goes while the server runs: all calls to its disk fail from then on, the server"
        " ends, and the disk itself is handed back as `power` leaves it.",
        Device(),
        cuts=True,
    ),
    Disaster(
        "failover",
        "Every process of the primary ends at once; a standby that commits do not wait for is"
        " promoted, and is what is left.",
        AS_WRITTEN,
        standby=Standing("primary"),
    ),
    Disaster(
        "failover-behind",
        f"As `failover`, after nothing was sent to the standby for {_BEHIND_S:g} s.",
        AS_WRITTEN,
        standby=Standing("primary", behind_s=_BEHIND_S),
    ),
    Disaster(
        "failover-sync",
        "As `failover`, with a standby that commits wait for (synchronous_standby_names).",
        AS_WRITTEN,
        standby=Standing("primary", synchronous=True),
    ),
    Disaster(
        "standby-lost",
        "Every process of a standby ends at once; commits do not wait for it.",
        AS_WRITTEN,
        standby=Standing("standby"),
    ),
    Disaster(
        "standby-lost-sync",
        "Every process of the standby that commits wait for ends at once.",
        AS_WRITTEN,
        standby=Standing("standby", synchronous=True),
    ),
    Disaster(
        "both-lost",
        "Every process of the primary and of its standby ends at once; the primary is started"
        " again.",
        AS_WRITTEN,
        standby=Standing("both"),
    ),
)


def device_of(stage: Stage, disaster: Disaster) -> Device:
    """The disk of a stage that a disaster strikes: where it lies, it does in each power cut."""
    device = disaster.device
    if not stage.lying_disk or device == AS_WRITTEN:
        return device
    return replace(device, forgets_s=_FORGETS_S)


def named(names: tuple[str, ...]) -> tuple[Disaster, ...]:
    """Those of these names, once each, in their order: what comes first strikes first.

    Raises:
        PlanError: One is not known.
    """
    known = [one.name for one in DISASTERS]
    if strangers := [name for name in names if name not in known]:
        raise PlanError(f"no disaster is called {strangers[0]!r}, known are {listed(known)}")
    by_name = {one.name: one for one in DISASTERS}
    return tuple(by_name[name] for name in dict.fromkeys(names))
