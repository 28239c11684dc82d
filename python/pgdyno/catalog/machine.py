"""Knobs of the machine: what stands outside of the server's own settings; and the layers."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from types import MappingProxyType
from typing import Literal, TypeAlias

from pydantic import Field

from pgdyno.catalog.knobs import Fall, knobs
from pgdyno.catalog.tables import Table, read_table, read_tables

Apply: TypeAlias = Literal[
    "runtime", "reload", "session", "restart", "login", "remount", "mkfs", "initdb", "rebuild",
    "reboot", "client", "read only",
]  # fmt: skip
Risk: TypeAlias = Literal["none", "recent commits", "corruption", "availability", "security"]
Type: TypeAlias = Literal[
    "bool", "integer", "float", "size", "time", "enum", "string", "list", "mask", "flag"
]
SERVER = "server"  # the layer of the knobs in `data/knobs`
RUNTIME_LAYERS = ("sysctl", "memory", "clock", "cpu", "block", "interrupts", "network")
"""Of what a running machine has in files."""


class Layer(Table):
    """A layer of the catalogue; keys as described in `data/layers.toml`."""

    title: str
    of: Literal["kernel", "PostgreSQL"]
    apply: Apply
    how: str
    verify: str
    undo: str


class MachineKnob(Table):
    """One setting of the machine; keys as described in `data/machine/boot.toml`."""

    layer: str
    type: Type
    why: str
    sources: tuple[str, ...]
    unit: str | None = None
    values: tuple[str, ...] = ()
    min: float | None = None
    max: float | None = None
    special: Mapping[str, str] = Field(default_factory=dict)
    default: str | None = None  # None: it is gone
    advise: str | None = None
    advise_by: Mapping[str, str] = Field(default_factory=dict)  # beginning of a device's name
    search: str | None = None
    since: str | None = None
    until: str | None = None
    never: str | None = None
    module: str | None = None
    instead: str | None = None
    useless: str | None = None
    where: str | None = None
    apply: Apply | None = None
    if_less: str | None = None
    also: tuple[str, ...] = ()  # knobs that a change of it moves, too
    risk: Risk = "none"
    fall: tuple[Fall, ...] = ()
    reports: tuple[str, ...] = ()
    fs: str | None = None  # layers mkfs and mount
    option: str | None = None  # what is written, where the name says more; a short option

    def advised_for(self, device: str) -> str | None:
        """The advice for one device, where it depends on what that is."""
        if not self.advise_by:
            return self.advise
        return next((it for head, it in self.advise_by.items() if device.startswith(head)), None)

    def exists_in(self, version: tuple[int, ...]) -> bool:
        """Whether this version has it: of the kernel, or of PostgreSQL, as its layer says."""
        if self.never is not None:
            return False
        since = _parts(self.since) if self.since else ()
        until = _parts(self.until) if self.until else None
        # Until 5.12 means all of 5.12, so it is compared as far as it is told.
        return since <= version and (until is None or version[: len(until)] <= until)


def meant_by(name: str, of_server: str) -> str:
    """A hint for a name that no knob of the machine has.

    Args:
        name: As somebody wrote it.
        of_server: The hint where it is a setting of the server.
    """
    if name in knobs():
        return of_server
    near = get_close_matches(name, machine_knobs(), 1)
    return f"Did you mean {near[0]}?" if near else "See `pgdyno knobs`."


def file_of(name: str, knob: MachineKnob) -> str | None:
    """The file that a knob stands in, with `{...}` for devices; None where it stands in none."""
    if knob.where is not None:
        return knob.where if knob.where.startswith("/") else None
    folders = {
        "sysctl": f"/proc/sys/{name.replace('.', '/')}",
        "memory": f"/sys/kernel/mm/{name}",
        "block": f"/sys/block/{{device}}/{name}",
    }
    return folders.get(knob.layer)


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


@cache
def layers() -> Mapping[str, Layer]:
    """All layers, lowest first."""
    return MappingProxyType(
        {name: Layer.model_validate(content) for name, content in read_table("layers").items()}
    )


@cache
def machine_knobs() -> Mapping[str, MachineKnob]:
    """All knobs of the machine by name, in the order of layers and files."""
    tables = read_tables("machine")
    found: dict[str, MachineKnob] = {}
    for layer in layers():
        for name, content in tables.pop(layer, {}).items():
            assert name not in found, f"{name} stands in {layer} and in {found[name].layer}"
            found[name] = MachineKnob.model_validate({"layer": layer, **content})
    assert not tables, f"files of no layer: {sorted(tables)}"
    return MappingProxyType(found)
