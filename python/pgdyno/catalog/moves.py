"""Moves: what may be tried next against a limit, told as data in `data/moves`, a file each.

A move is a bundle of settings, or keys of the client, that is tried as one; sizes are computed from
the machine as those of profiles are. It names the limits that it is against, and how much of such a
limit it is believed to take away, before anything was measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import Field

from pgdyno.catalog.profiles import Profile, ProfileSetting
from pgdyno.catalog.tables import Table, read_tables

NEEDED_PAGES = "needed"
"""Of `vm.nr_hugepages`: as many as the stage's shared memory fills."""


class HostSetting(Table):
    """A setting of the machine, of a move."""

    value: str  # NEEDED_PAGES: the huge pages that the stage's shared memory fills
    why: str


class Move(Profile):
    """Keys of a profile, and those described at the head of `data/moves/larger-buffers.toml`."""

    takes: dict[str, Annotated[float, Field(gt=0, le=1)]] = Field(min_length=1)
    direction: Literal["up", "down"] | None = None
    setting: dict[str, ProfileSetting] = Field({})
    client: dict[str, str | int | float | bool] = Field({})
    host: dict[str, HostSetting] = Field({})
    left_alone: dict[str, str] = Field({})


@cache
def moves() -> Mapping[str, Move]:
    """All moves by name."""
    found = {
        name: Move.model_validate({"name": name, **table})
        for name, table in read_tables("moves").items()
    }
    return MappingProxyType(found)
