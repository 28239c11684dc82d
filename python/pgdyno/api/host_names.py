"""Hosts of a load as they are named without a plan."""

from __future__ import annotations

from pgdyno.catalog.contract import greatest
from pgdyno.model.errors import PlanError
from pgdyno.model.fleet import Fleet
from pgdyno.model.host_address import BadAddress, host_address
from pgdyno.model.wording import often, plural

_MOST = greatest("DriveSpec", "share.hosts")


def require_named(fleet: Fleet) -> None:
    """Refuse hosts that are not named as they can be.

    Raises:
        PlanError: Naming the first.
    """
    if not 1 <= len(fleet.hosts) <= _MOST:
        raise PlanError(f"{plural(len(fleet.hosts), 'host')} named, allowed are 1 to {_MOST}")
    for name in fleet.hosts:
        try:
            host_address(name)
        except BadAddress as error:
            raise PlanError(f"host {name!r} {error}") from error
        if fleet.hosts.count(name) > 1:
            raise PlanError(f"host {name!r} is named {often(fleet.hosts.count(name))}")


def require_whole(fleet: Fleet) -> None:
    """Refuse hosts that cannot load tables together.

    Raises:
        PlanError: They are not named as they can be, or the load would go on without some.
    """
    require_named(fleet)
    if fleet.degraded:
        raise PlanError(
            "degraded is set, and tables are to be loaded",
            "A load has all its rows or is not complete: it ends when a host is lost.",
        )
