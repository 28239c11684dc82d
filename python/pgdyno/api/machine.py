"""The machine under the database: looked at, changed with a journal, put back, laid out.

`pgdyno host` calls these. `pgdyno.host` is the package that does it, so this has another name.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard, cast, get_args

from pgdyno.host import change, huge_pages, layout_steps, undo
from pgdyno.host import layout as layouts
from pgdyno.host.advice import Line, Part, folded
from pgdyno.host.device import device
from pgdyno.host.journal import EARLIER_NAME, NAME, Change, Journal
from pgdyno.host.knob_location import knob_location, knob_locations
from pgdyno.host.layout import BLOCK_BYTES, FILE_SYSTEM, STRIPE_KB, FileSystem, Layout, Wish
from pgdyno.host.network import installed_ethtool
from pgdyno.host.processors import clock_reading_ns
from pgdyno.host.show import Asked, machine
from pgdyno.host.state_folder import state_folder
from pgdyno.host.undo import Resolutions, Undone
from pgdyno.model.errors import PlanError
from pgdyno.model.plan import Target
from pgdyno.shell import postgres_user
from pgdyno.target.binaries import find_binaries
from pgdyno.target.home import home

__all__ = [
    "STRIPE_KB", "Line", "Part", "Planned", "PlannedLayout", "Row", "apply", "folded", "layout",
    "not_as_advised", "plan", "restore", "show",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One value of the machine that is wished for."""

    key: str
    now: str
    then: str | None  # None: it is so already
    risk: str


@dataclass(frozen=True, slots=True)
class Planned:
    """Changes of the machine that would be made."""

    wanted: tuple[tuple[str, str], ...]  # knob, value; also those that are so already
    changes: tuple[Change, ...]
    counted: tuple[huge_pages.Count, ...]  # servers whose huge pages were counted

    @property
    def rows(self) -> tuple[Row, ...]:
        """All that is wished for, with what it risks."""
        changed = {one.key: one for one in self.changes}
        return tuple(
            Row(key, changed[key].before, changed[key].after, knob_location(key).knob.risk)
            if key in changed and changed[key].differs
            else Row(key, value, None, "")
            for key, value in self.wanted
        )

    @property
    def is_permitted(self) -> bool:
        """Whether this user may make them."""
        return change.may_write(self.changes)

    @property
    def commands(self) -> tuple[str, ...]:
        """What somebody who may types in a shell."""
        return tuple(change.commands(self.changes))

    @property
    def commands_back(self) -> tuple[str, ...]:
        """What puts all of them back as they are now."""
        return tuple(change.commands_back(self.changes))


@dataclass(frozen=True, slots=True)
class PlannedLayout:
    """A storage layout that would be made."""

    layout: Layout
    left: str | None  # what a layout that was killed left on these devices

    def make(self) -> None:
        """Make it: each step is taken once what it would destroy was looked at again.

        Raises:
            TargetError: A device is in use, or changed since; a step failed.
        """
        layout_steps.make(self.layout, _book())


def show(huge_pages_for: Sequence[str] = (), *, bindir: Path | None = None) -> tuple[Part, ...]:
    """The machine, each value beside what the catalogue advises. Takes a second.

    Args:
        huge_pages_for: Servers whose huge pages are counted: data directories or conninfos.
        bindir: PostgreSQL's programs for that; None: those of the servers.

    Raises:
        TargetError: A server cannot be asked.
    """
    program = find_binaries(Target("embedded"), postgres_user()).program("pg_test_timing")
    counted = _counted(huge_pages_for, bindir)
    return tuple(machine(asked=Asked(clock_reading_ns(program), installed_ethtool(), counted)))


def not_as_advised(parts: Sequence[Part]) -> tuple[Line, ...]:
    """What the catalogue advises otherwise."""
    return tuple(
        line for part in parts for line in part.lines if line.advised and not line.as_advised
    )


def plan(
    wishes: Sequence[str] = (),
    *,
    advised: bool = False,
    huge_pages_for: Sequence[str] = (),
    bindir: Path | None = None,
) -> Planned:
    """What would be changed, and what is so already; nothing is touched.

    Args:
        wishes: `NAME=VALUE`, e.g. `vm.swappiness=1`.
        advised: All that the catalogue advises and that carries no risk.
        huge_pages_for: `vm.nr_hugepages`, as many as these servers count.
        bindir: See `show`.

    Raises:
        PlanError: There is no such knob, or it cannot have the value; nothing is wished for.
    """
    counted = _counted(huge_pages_for, bindir)
    wanted = [change.parse(wish) for wish in wishes]
    if counted:
        wanted.append(("vm.nr_hugepages", str(huge_pages.total(counted))))
    if advised:
        named = {key: knob_location(key) for key, _ in wanted}
        wanted += [
            (one.key, value)
            for one in knob_locations()
            if one.key not in named
            and not any(one.excludes(other) for other in named.values())
            and one.knob.risk == "none"
            and _is_clear(value := one.advised())
        ]
    if not wanted:
        raise PlanError(
            "no change is asked for",
            "Name at least one NAME=VALUE, or give --advised or --huge-pages-for.",
        )
    return Planned(tuple(wanted), tuple(change.plan(wanted)), counted)


def apply(planned: Planned) -> None:
    """Change the running machine: each change is journalled before it is made, and read back.

    Raises:
        TargetError: One failed; all are put back.
    """
    if planned.changes:
        change.apply(planned.changes, journals()[0])


def restore(*, overwrite: Sequence[str] = (), keep: Sequence[str] = ()) -> tuple[Undone, ...]:
    """Put back everything that `apply` changed and that still stands, also after a crash.

    Args:
        overwrite: Put back though somebody else changed them.
        keep: Leave as they are, and forget that we changed them.
    """
    return tuple(undo.restore(journals(), resolutions=Resolutions(tuple(overwrite), tuple(keep))))


def layout(
    devices: Sequence[str],
    *,
    file_system: str = FILE_SYSTEM,
    block_bytes: int = BLOCK_BYTES,
    stripe_bytes: int = STRIPE_KB << 10,
    partition: bool = False,
    log_device: str | None = None,
    mount: str | None = None,
    erase: Sequence[str] = (),
) -> PlannedLayout:  # fmt: skip
    """Plan a file system on one device or a stripe of several; nothing is touched.

    Args:
        devices: Block devices.
        file_system: xfs or ext4.
        block_bytes: Of its blocks.
        stripe_bytes: On one device before the next.
        partition: An aligned partition on each device.
        log_device: For the journal of the file system.
        mount: Where it is mounted.
        erase: Devices that may lose what they hold.

    Raises:
        PlanError: It cannot be made.
        TargetError: A device is in use, or holds something and may not lose it.
    """
    if file_system not in get_args(FileSystem):
        raise PlanError(
            f"the file system is {file_system!r}, allowed are {', '.join(get_args(FileSystem))}"
        )
    wish = Wish(
        devices=tuple(device(path) for path in devices),
        file_system=cast(FileSystem, file_system),
        block_bytes=block_bytes,
        stripe_bytes=stripe_bytes,
        partition=partition,
        log_device=device(log_device) if log_device else None,
        mount=mount,
        erase=tuple(os.path.realpath(path) for path in erase),
    )
    if mount is not None:
        layouts.require_free(Path(mount))
    planned = layouts.plan(wish, layouts.this_kernel(os.uname().release))
    return PlannedLayout(planned, _book().left_by_a_kill([one.path for one in planned.devices]))


def _book() -> layout_steps.Book:
    return layout_steps.Book(state_folder() / layout_steps.NAME)


def journals() -> tuple[Journal, ...]:
    """That of today, and the one that earlier versions kept among what may be removed."""
    earlier = Journal(home() / EARLIER_NAME, earlier=True)
    return Journal(state_folder() / NAME), earlier


def _counted(servers: Sequence[str], bindir: Path | None) -> tuple[huge_pages.Count, ...]:
    return tuple(huge_pages.count(server, bindir) for server in servers)


def _is_clear(advice: str | None) -> TypeGuard[str]:
    """One word is a value; more are words for people."""
    return advice is not None and " " not in advice
