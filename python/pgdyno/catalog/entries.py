"""The whole catalogue in one shape: knobs of the machine and of the server, as they are told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from pgdyno.catalog.knobs import Fall, Knob, knobs
from pgdyno.catalog.machine import SERVER, MachineKnob, layers, machine_knobs
from pgdyno.catalog.postgres import KnownSetting, known_settings
from pgdyno.model.durability import LADDER
from pgdyno.model.units import bytes_text

_CONTEXTS = {  # of pg_settings: what a change costs
    "internal": "initdb or rebuild",
    "postmaster": "restart",
    "sighup": "reload",
    "superuser-backend": "new sessions",
    "backend": "new sessions",
    "superuser": "session, by a superuser",
    "user": "session",
}
OLDEST_MAJOR = 12


@dataclass(frozen=True, slots=True)
class Entry:
    """One knob, every field a text for people; an empty one says nothing."""

    name: str
    layer: str
    title: str  # of the layer
    group: str  # file of the catalogue
    versions: str
    kind: str
    allowed: str
    default: str
    apply: str
    how: str
    verify: str
    undo: str
    risk: str
    falls: tuple[Fall, ...]
    notes: tuple[str, ...]
    why: str
    advise: str
    search: str
    gone: str
    instead: str
    useless: str
    reports: tuple[str, ...]
    sources: tuple[str, ...]

    @property
    def rung(self) -> str:
        """The lowest rung that a value of it stands on."""
        return max((fall.rung.value for fall in self.falls), default="D0")

    def lines(self) -> list[tuple[str, str]]:
        """What is known of a knob, as (head, text); nothing is left empty."""
        lines = [
            ("knob", self.name),
            ("layer", f"{self.layer}: {self.title}"),
            ("why", self.why),
            ("gone", self.gone),
            ("instead", self.instead),
            ("without effect", self.useless),
            ("versions", self.versions),
            ("type", self.kind),
            ("allowed", self.allowed),
            ("default", self.default),
            ("advised", _with_unit(self.advise, self.kind)),
            ("worth trying", self.search),
            ("takes effect by", "being set, at once" if self.apply == "runtime" else self.apply),
            ("applied", self.how),
            ("read back", self.verify),
            ("undone", self.undo),
            ("risk", self.risk),
            ("rung", f"{self.rung}: {LADDER[self.rung]}"),
            *(
                ("falls", f"{', '.join(one.values) or 'others'}: {one.rung.value}, {one.loses}")
                for one in self.falls
            ),
            *(("note", note) for note in self.notes),
            ("field reports", ", ".join(_with_unit(one, self.kind) for one in self.reports)),
            *(("source", source) for source in self.sources),
        ]
        return [(head, text) for head, text in lines if text]


@cache
def entries() -> Mapping[str, Entry]:
    """Every knob of the catalogue by name, layer by layer."""
    found = {name: _of_machine(name, knob) for name, knob in machine_knobs().items()}
    for name, knob in sorted(knobs().items(), key=lambda item: (item[1].family, item[0])):
        assert name not in found, f"{name} is a knob of the machine and of the server"
        found[name] = _of_server(name, knob, known_settings().get(name))
    order = list(layers())
    return MappingProxyType(
        dict(sorted(found.items(), key=lambda item: order.index(item[1].layer)))
    )


def _of_machine(name: str, knob: MachineKnob) -> Entry:
    layer = layers()[knob.layer]
    gone = knob.never or (f"since {layer.of} {_after(knob.until)}" if knob.until else "")
    return Entry(
        name=name,
        layer=knob.layer,
        title=layer.title,
        group=knob.layer,
        versions=_versions(layer.of, knob.since, knob.until),
        kind=f"{knob.type}, {knob.unit}" if knob.unit else knob.type,
        allowed=_allowed(knob.values, knob.min, knob.max, knob.special),
        default=knob.default if knob.default is not None else "",
        apply=knob.apply or layer.apply,
        how=layer.how,
        verify=knob.where or layer.verify,
        undo=layer.undo,
        risk=knob.risk,
        falls=knob.fall,
        notes=(f"only with the module {knob.module}",) if knob.module else (),
        why=_line(knob.why),
        advise=knob.advise or "",
        search=knob.search or "",
        gone=gone,
        instead=knob.instead or "",
        useless=knob.useless or "",
        reports=knob.reports,
        sources=knob.sources,
    )


def _of_server(name: str, knob: Knob, known: KnownSetting | None) -> Entry:
    layer = layers()[SERVER]
    until = known.until if known else None
    note = tuple(f"{_values(one.values, one.excepted)}: {one.text}" for one in knob.note)
    return Entry(
        name=name,
        layer=SERVER,
        title=layer.title,
        group=knob.family,
        versions=f"{layer.of} before {known.gone}"
        if known and known.gone
        else _versions(layer.of, known.since if known else None, until),
        kind=", ".join(part for part in (knob.type, known.unit if known else None) if part),
        allowed=_allowed(known.enum if known else (), knob.min, knob.max, {}),
        default=(known.default if known else None) or "",
        apply=_CONTEXTS.get(knob.context or "", ""),
        how=layer.how,
        verify=layer.verify,
        undo=layer.undo,
        risk=knob.risk,
        falls=knob.fall,
        notes=(*note, *((f"pgdyno sets it itself: {knob.owned}",) if knob.owned else ())),
        why=_line(knob.why),
        advise=knob.advise or "",
        search=knob.search or "",
        gone=f"since PostgreSQL {known.gone_since}" if known and until else "",
        instead=(known.instead if known else None) or knob.instead or "",
        useless="",
        reports=knob.reports,
        sources=knob.sources,
    )


def _versions(of: str, since: str | int | None, until: str | int | None) -> str:
    if since is None and until is None:
        return f"{of}, all" if of == "kernel" else f"{of} {OLDEST_MAJOR} and later"
    if until is None:
        return f"{of} {since} and later"
    return f"{of} {since} to {until}" if since else f"{of} up to {until}"


def _after(version: str) -> str:
    *most, last = version.split(".")
    if most == ["4"] and last == "20":  # the last of its series
        return "5.0"
    return ".".join([*most, str(int(last) + 1)])


def _allowed(
    values: tuple[str, ...], low: float | None, high: float | None, special: Mapping[str, str]
) -> str:
    parts = []
    if values:
        parts.append(", ".join(values))
    if low is not None or high is not None:
        parts.append(" to ".join(f"{one:,.10g}" for one in (low, high) if one is not None))
        if high is None:
            parts[-1] += " and more"
    parts += [f"{value}: {meaning}" for value, meaning in special.items()]
    return "; ".join(parts)


def _values(values: tuple[str, ...], excepted: tuple[str, ...]) -> str:
    return ", ".join(values) if values else f"all but {', '.join(excepted)}"


def _with_unit(value: str, kind: str) -> str:
    """A plain number of bytes also as people say it."""
    if kind != "size, bytes" or not value.isdecimal() or not int(value):
        return value
    return f"{value} ({bytes_text(int(value))})"


def _line(text: str) -> str:
    return " ".join(text.split())
