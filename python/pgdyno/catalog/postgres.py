"""Which settings PostgreSQL 12 to 18 have, where the server itself does not tell enough."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from pydantic import Field

from pgdyno.catalog.tables import Table, read_tables


class KnownSetting(Table):
    """What is known of one setting; keys as described in `data/postgres/settings.toml`."""

    since: int | None = None
    until: int | None = None
    gone: str | None = None
    instead: str | None = None
    unit: str | None = None
    enum: tuple[str, ...] = ()
    alias: Mapping[str, str] = Field(default_factory=dict)
    default: str | None = None
    default_since: int | None = None
    automatic: str | None = None
    type: str | None = None  # only of hidden ones, as are the next three
    context: str | None = None
    min: float | None = None
    max: float | None = None

    @property
    def hidden(self) -> bool:
        """Whether `postgres --describe-config` keeps it to itself."""
        return self.type is not None

    def exists_in(self, major: int) -> bool:
        """Whether this major version has it."""
        return (self.since or 0) <= major <= (self.until or major)

    @property
    def gone_since(self) -> str:
        """The first version without it, e.g. `9.5` or `13`; empty where the newest has it."""
        return self.gone or (str(self.until + 1) if self.until is not None else "")

    def default_in(self, major: int) -> str | None:
        """Its default in this major version, where known."""
        return self.default if major >= (self.default_since or 0) else None


@cache
def known_settings() -> Mapping[str, KnownSetting]:
    """All known settings by name, from `data/postgres`."""
    result: dict[str, KnownSetting] = {}
    for table in read_tables("postgres").values():
        for name, content in table.items():
            assert name not in result, f"setting {name} stands in two files"
            result[name] = KnownSetting.model_validate(content)
    return MappingProxyType(result)
