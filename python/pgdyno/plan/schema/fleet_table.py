"""`[fleet]` of a plan file: the hosts that the load comes from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from pgdyno.catalog.contract import greatest
from pgdyno.model.host_address import BadAddress, host_address
from pgdyno.model.wording import plural
from pgdyno.plan.schema.complaint import Complaint, shown
from pgdyno.plan.schema.workload_table import Line, Table


class FleetTable(Table):
    """Hosts that drive the load together.

    Terminals, connections, rate and requests of the plan are those of all of them; each takes its
    part, and all begin at one instant.
    """

    hosts: Annotated[tuple[Line, ...], Field(strict=False)] = Field(
        min_length=1,
        max_length=greatest("DriveSpec", "share.hosts"),
        description="Each once: `local:NAME` is a process of this host, `netns:NAME` one in a "
        "network namespace of it, `ssh://[USER@]HOST[:PORT]` a host that SSH reaches and whose "
        "key is known, `ray:NODE` a node of a Ray cluster by its name or address.",
    )
    python: Line = Field(
        "python3", description="The Python that has pgdyno on hosts that are reached by SSH."
    )
    ssh_config: Line | None = Field(
        None, description="A file for `ssh -F`, by its absolute path, instead of the user's own."
    )
    degraded: bool = Field(
        False,
        description="Whether the load goes on with the hosts that are left when one is lost in the "
        "window. Such trials are marked, and compared with nothing. Without it they are invalid, "
        "and measured once more at once.",
    )


def fleet_complaints(fleet: FleetTable) -> Iterator[Complaint]:
    """What is wrong with the hosts as they are named."""
    for name, count in Counter(fleet.hosts).items():
        if count > 1:
            text = f"{shown(name)} stands there {plural(count, 'time')}; allowed: once"
            hint = "Several processes of this host are local:a, local:b, …."
            yield Complaint("fleet.hosts", text, hint)
        try:
            host_address(name)
        except BadAddress as error:
            yield Complaint("fleet.hosts", f"{shown(name)} {error}")
    if fleet.degraded and len(fleet.hosts) == 1:
        text = "is true, but without its only host there is no load; allowed with 1 host: false"
        yield Complaint("fleet.degraded", text)
    if fleet.ssh_config is not None and not fleet.ssh_config.startswith("/"):
        yield Complaint("fleet.ssh_config", f"{shown(fleet.ssh_config)} is no absolute path")
