"""What a load needs against what there is: space on disk, and time. Pure, but for the telling."""

from __future__ import annotations

from collections import defaultdict

from pgdyno.model.errors import TargetError
from pgdyno.model.loading import LoadEstimate
from pgdyno.model.server_host import Area, ServerHost
from pgdyno.model.units import bytes_text, seconds_text
from pgdyno.model.wording import plural
from pgdyno.plan.estimate.needs import WAL_OVER


def needs(estimate: LoadEstimate, host: ServerHost) -> tuple[tuple[str, int, Area | None], ...]:
    """What a load needs of disk: what for, bytes, where.

    Args:
        estimate: Of `loader.estimate`.
        host: The server's disk.
    """
    wal = estimate.wal_bytes
    if host.wal_limit_bytes is not None:
        wal = min(wal, int(host.wal_limit_bytes * WAL_OVER))
        wal = max(wal - (host.wal_there_bytes or 0), 0)
    return (
        ("tables and indexes", estimate.disk_bytes, host.data),
        ("sorting", estimate.sort_bytes, host.sort),
        ("WAL", wal, host.wal),
    )


def require_room(estimate: LoadEstimate, host: ServerHost) -> None:
    """Refuse a load that does not fit.

    Raises:
        TargetError: A file system has less free space than goes there.
    """
    parts: dict[int, list[tuple[str, int]]] = defaultdict(list)
    areas: dict[int, Area] = {}
    for what, size, area in needs(estimate, host):
        if area is not None:
            parts[area.device].append((what, size))
            areas.setdefault(area.device, area)
    for device, area in areas.items():
        size = sum(one for _, one in parts[device])
        if size > area.free_bytes:
            terms = " + ".join(f"{what} {bytes_text(one)}" for what, one in parts[device] if one)
            raise TargetError(
                f"the load needs {bytes_text(size)} at {area.path},"
                f" free are {bytes_text(area.free_bytes)}",
                hint=f"That is {terms}. Make room, load less, or use another tablespace.",
            )


def room_text(estimate: LoadEstimate, host: ServerHost) -> str:
    """What a load takes, for people, e.g. `20 warehouses will take 1.98 GiB on disk, …`."""
    unit, count, before = estimate.unit, estimate.units, estimate.units_before
    if unit == "scale":
        what = f"scale {count}"
    else:
        what = f"{count} {unit if count > 1 else unit.removesuffix('s')}"
    if before:
        what += f", of which {before} are there,"
    line = f"{what} will take {bytes_text(estimate.disk_bytes)} on disk"
    if estimate.wal_bytes:
        line += f", {bytes_text(estimate.wal_bytes)} of WAL"
    if estimate.seconds is not None:
        line += f", about {seconds_text(max(estimate.seconds, 1.0))}"
    if host.data is None:
        line += "; the server's free space is not known here"
    if host.sessions_of_others:
        line += f"; {plural(host.sessions_of_others, 'session')} of others will feel it"
    return line
