"""Profiles: bundles of settings whose sizes are computed from the machine, told as data."""

from __future__ import annotations

from functools import cache
from typing import Literal

from pydantic import model_validator

from pgdyno.catalog.tables import Table, read_tables
from pgdyno.model.settings import Rung

_POWER_OF_TWO = "power of two"


class ProfileSetting(Table):
    """One setting of a profile; keys as described at the head of `data/profiles/tuned.toml`."""

    why: str
    value: str | None = None
    huge_pages: Literal[True] | None = None
    of: str | None = None
    share: float | None = None
    at_least: str | None = None
    at_most: str | None = None
    step: str | None = None
    since: int | None = None
    until: int | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> ProfileSetting:
        sized = (self.of, self.share, self.at_least, self.step)
        kinds = (self.value is not None, self.huge_pages is not None, None not in sized)
        if sum(kinds) != 1 or (not kinds[2] and any(sized)):
            raise ValueError("either value, or huge_pages, or of with share, at_least and step")
        return self

    @property
    def by_powers_of_two(self) -> bool:
        """Whether it is rounded that far down: up to half of its share, unlike by other steps."""
        return self.step == _POWER_OF_TWO

    def share_text(self, amount: str) -> str:
        """The share in words.

        Args:
            amount: What it is a share of, e.g. `23.5 GiB of memory`.
        """
        rounded = ", down to a power of two" if self.by_powers_of_two else ""
        return f"{(self.share or 0) * 100:g}% of {amount}{rounded}"

    def meant_for(self, major: int) -> bool:
        """Whether it is meant for this major version."""
        return (self.since or 0) <= major <= (self.until or major)


class Profile(Table):
    """A named bundle of settings, in the order of their computation."""

    name: str
    rung: Rung
    why: str
    setting: dict[str, ProfileSetting]
    left_alone: dict[str, str]  # setting -> why it is not here


@cache
def _profiles() -> dict[str, Profile]:
    return {name: Profile.model_validate(table) for name, table in read_tables("profiles").items()}


def profile_names() -> tuple[str, ...]:
    """Names of all profiles."""
    return tuple(_profiles())


def profile(name: str) -> Profile:
    """The profile of this name; a missing one is a bug, see `profile_names`."""
    return _profiles()[name]
