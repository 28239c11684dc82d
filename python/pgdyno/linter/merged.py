"""What files say together: the machine's settings, and those of one server over its defaults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pgdyno.catalog import known_settings, machine_knobs
from pgdyno.linter.single import server_knob
from pgdyno.linter.source import Assignment, Source
from pgdyno.linter.system import System
from pgdyno.model.units import bytes_text
from pgdyno.plan.settings.values import BadValue, as_server_reads, base_units, canonical, number_of

_SERVER = ("postgresql", "plan")
_MANY = ("fstab", "commands")  # each line is about another thing: all of them count


@dataclass(frozen=True, slots=True)
class MergedSettings:
    """Settings by name; of several assignments the last one counts."""

    named: Mapping[str, Assignment]
    system: System

    def word(self, name: str) -> str | None:
        """A value in one spelling: what was set, else the default; None where neither is known."""
        text = self._text(name)
        knob = server_knob(name, self.system.postgres)
        if text is None or knob is None:
            return text
        with suppress(BadValue):
            return canonical(knob, as_server_reads(knob, text))
        return None

    def number(self, name: str) -> float | None:
        """A size in bytes, a time in microseconds, or a plain number."""
        text = self._text(name)
        return None if text is None else self.number_of(name, text)

    def number_of(self, name: str, text: str) -> float | None:
        """A text as a value of this setting, in the same units."""
        knob = server_knob(name, self.system.postgres)
        if knob is None:
            with suppress(ValueError):
                return float(text)
            return None
        with suppress(BadValue):
            if knob.vartype == "real" and knob.unit is None:
                return float(number_of(knob, text))
            return float(base_units(knob, as_server_reads(knob, text)))
        return None

    def shown(self, name: str) -> str:
        """The value as the file has it, or the default; a bare number with its unit."""
        text, knob = self._text(name), server_knob(name, self.system.postgres)
        if not text or knob is None or not knob.unit or not text.lstrip("-").isdigit():
            return text or "not known"
        if knob.unit[0].isdigit():  # of blocks
            return bytes_text(self.number(name) or 0)
        return f"{text}{knob.unit}"

    def _text(self, name: str) -> str | None:
        if name in self.named:
            return self.named[name].value
        known = known_settings().get(name)
        if known is not None:
            return known.default_in(self.system.postgres) if known.default is not None else ""
        knob = machine_knobs().get(name)
        return knob.default if knob else None


def is_by_alter_system(source: Source) -> bool:
    """Whether it is the file that ALTER SYSTEM writes."""
    return source.kind == "postgresql" and Path(source.path).name == "postgresql.auto.conf"


def server_of(source: Source, sources: Sequence[Source]) -> str:
    """The file that a server's settings begin with: of ALTER SYSTEM's that beside it, or alone."""
    if not is_by_alter_system(source):
        return source.path
    others = [
        one.path for one in sources if one.kind == "postgresql" and not is_by_alter_system(one)
    ]
    beside = [one for one in others if Path(one).parent == Path(source.path).parent]
    found = beside or others
    return found[0] if len(found) == 1 else source.path


def merged_settings(sources: Sequence[Source], system: System) -> Iterator[MergedSettings]:
    """One for each server that the files tell of, over what they say of the machine."""
    machine = {
        at.name: at for source in sources if source.kind not in _SERVER for at in source.assignments
    }
    servers: dict[tuple[str, str], dict[str, Assignment]] = {}
    for source in sorted(sources, key=is_by_alter_system):  # that one is read last
        if source.kind in _SERVER:
            for at in source.assignments:
                servers.setdefault((server_of(source, sources), at.scope), {})[at.name] = at
    if not servers:
        yield MergedSettings(machine, system)
    for source in sources:
        if source.kind in _MANY:
            yield from (
                MergedSettings(machine | {at.name: at}, system) for at in source.assignments
            )
    for server in servers.values():
        yield MergedSettings(machine | server, system)
