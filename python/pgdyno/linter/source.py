"""Configuration files as settings with lines.

postgresql.conf, sysctl.conf, fstab, limits.conf, the kernel's command line, commands, plans.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from pgdyno.catalog import knobs, known_settings
from pgdyno.linter.commands import settings
from pgdyno.model.errors import PlanError
from pgdyno.plan.schema.files import BadFile, did_you_mean, standard_input, text_file
from pgdyno.plan.schema.toml import BadToml, parse_toml, toml_value

Kind: TypeAlias = Literal["postgresql", "sysctl", "fstab", "limits", "boot", "commands", "plan"]
KINDS: tuple[Kind, ...] = get_args(Kind)
STANDARD_INPUT = "-"
"""The path that stands for standard input; a file of this name is `./-`."""
_STANDARD_INPUT_SHOWN = "standard input"
_NAMES: tuple[tuple[str, Kind], ...] = (
    (r"postgresql.*\.conf$", "postgresql"),
    (r"sysctl|^\d\d-.*\.conf$", "sysctl"),
    (r"fstab", "fstab"),
    (r"limits", "limits"),
    (r"grub|cmdline", "boot"),
    (r"\.sh$|^rc\.local$", "commands"),
    (r"\.toml$", "plan"),
)
_NAME_KIND = f"Name it: --kind {', '.join(KINDS)}."
_FOLDERS: dict[str, Kind] = {"sysctl.d": "sysctl", "limits.d": "limits", "conf.d": "postgresql"}
_POSTGRESQL = re.compile(r"([A-Za-z_][\w.$]*)\s*(?:=\s*|\s)('(?:[^']|'')*'|[^\s#']+)\s*(?:#.*)?$")
_INCLUDES = ("include", "include_if_exists", "include_dir")
_FSTAB_FIELDS = 4  # device, place, kind, options; two more may follow
_LIMIT_FIELDS = 4


@dataclass(frozen=True, slots=True)
class Assignment:
    """One setting of a file."""

    path: str
    line: int  # 0: of a plan, whose lines are not told
    kind: Kind
    scope: str  # fstab: kind of file system; plan: stage; else empty
    name: str
    value: str  # flags of fstab: "on"

    @property
    def where(self) -> str:
        """For people: `file:line`."""
        where = f"{self.path}:{self.line}" if self.line else self.path
        return f"{where} ({self.scope})" if self.scope else where

    @property
    def shown(self) -> str:
        """For people: `name = value`; of a flag its name."""
        mounts = self.kind == "fstab" or (self.kind == "commands" and self.scope)
        flag = self.value == "on" and (mounts or " -" in f" {self.name}")
        return self.name if flag or not self.value else f"{self.name} = {self.value}"


@dataclass(frozen=True, slots=True)
class Source:
    """A file that was read; of several assignments of one name the last one counts."""

    path: str
    kind: Kind
    assignments: tuple[Assignment, ...]
    unread: tuple[tuple[int, str], ...]  # lines that make no sense
    includes: tuple[tuple[int, str], ...] = ()  # lines that name further files, which are not read


def read_source(path: str, kind: Kind | None = None) -> Source:
    """Read a file.

    Args:
        path: As given; `-`: standard input, which has no name to tell its kind by.
        kind: None: by its name.

    Raises:
        PlanError: It cannot be read, or its name does not tell of which kind it is.
    """
    if path == STANDARD_INPUT:
        return _read_standard_input(kind)
    try:
        text = text_file(path)
    except BadFile as error:
        raise PlanError(f"{path} {error}", did_you_mean(path)) from error
    return parse(path, kind or kind_of(path), text)


def _read_standard_input(kind: Kind | None) -> Source:
    shown = _STANDARD_INPUT_SHOWN
    if kind is None:  # before it is read, which may wait
        raise PlanError(f"{shown}: it has no name that says what it is", _NAME_KIND)
    try:
        text = standard_input()
    except BadFile as error:
        raise PlanError(f"{shown} {error}") from error
    return parse(shown, kind, text)


def kind_of(path: str) -> Kind:
    """The kind that a file's name tells, or that of the folder it lies in.

    Raises:
        PlanError: It does not tell.
    """
    name, folder = Path(path).name, Path(path).absolute().parent.name
    if folder in _FOLDERS:
        return _FOLDERS[folder]
    for pattern, kind in _NAMES:
        if re.search(pattern, name):
            return kind
    raise PlanError(f"{path}: its name does not say what it is", _NAME_KIND)


def parse(path: str, kind: Kind, text: str) -> Source:
    """Cut a file's text into settings.

    Raises:
        PlanError: A plan that is not TOML.
    """
    if kind == "plan":
        return Source(path, kind, tuple(_plan(path, text)), ())
    assignments: list[Assignment] = []
    unread, includes = [], []
    reader = _READERS[kind]
    for number, raw in _lines(text, joined=kind == "commands"):
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        found = reader(line)
        if found is None:
            unread.append((number, line))
            continue
        if kind == "postgresql" and not found:
            includes.append((number, line))
        assignments += [
            Assignment(path, number, kind, scope, name, value) for scope, name, value in found
        ]
    return Source(path, kind, tuple(assignments), tuple(unread), tuple(includes))


def _lines(text: str, *, joined: bool) -> Iterator[tuple[int, str]]:
    """Lines with their numbers; `joined`: one that ends in a backslash goes on in the next."""
    begun: list[tuple[int, str]] = []
    for number, line in enumerate(re.split("\r?\n", text), start=1):
        begun.append((number, line.removesuffix("\\") if joined else line))
        if not joined or not line.endswith("\\"):
            yield begun[0][0], " ".join(part for _, part in begun)
            begun.clear()


_Found: TypeAlias = list[tuple[str, str, str]]  # scope, name, value


def _postgresql(line: str) -> _Found | None:
    match = _POSTGRESQL.match(line)
    if match is None:
        return None
    name, value = match.groups()
    if name in _INCLUDES:
        return []
    if value.startswith("'"):
        value = value[1:-1].replace("''", "'")
    return [("", _server_names().get(name.lower(), name.lower()), value)]


@cache
def _server_names() -> dict[str, str]:
    """The server's settings by their names in small letters: it does not tell them apart."""
    return {name.lower(): name for name in (*known_settings(), *knobs())}


def _sysctl(line: str) -> _Found | None:
    name, equals, value = line.partition("=")
    if not equals:
        return None
    name = name.strip().removeprefix("-")  # a minus: errors are ignored
    return [("", name.replace("/", "."), " ".join(value.split()))]


def _fstab(line: str) -> _Found | None:
    fields = line.split()
    if len(fields) < _FSTAB_FIELDS:
        return None
    fs, options = fields[2], fields[3]
    found = []
    for option in options.split(","):
        name, equals, value = option.partition("=")
        found.append((fs, name, value if equals else "on"))
    return found


def _limits(line: str) -> _Found | None:
    fields = line.partition("#")[0].split()
    if len(fields) != _LIMIT_FIELDS:
        return None
    _domain, _hard_or_soft, name, value = fields
    return [("", name, value)]


def _boot(line: str) -> _Found | None:
    """/proc/cmdline, a line of grub's menu, or GRUB_CMDLINE_LINUX of /etc/default/grub."""
    match = re.fullmatch(r"GRUB_CMDLINE_LINUX\w*=(['\"]?)(.*)\1", line)
    if match is None and line.startswith("GRUB_"):
        return []
    found = []
    for word in (match[2] if match else line).split():
        name, equals, value = word.partition("=")
        found.append(("", name, value if equals else "on"))
    return found


_READERS: dict[str, Callable[[str], _Found | None]] = {
    "postgresql": _postgresql,
    "sysctl": _sysctl,
    "fstab": _fstab,
    "limits": _limits,
    "boot": _boot,
    "commands": settings,
}


def _plan(path: str, text: str) -> Iterator[Assignment]:
    """Settings of each stage, over those of the stages that it adds to."""
    try:
        raw = parse_toml(text)
    except BadToml as error:
        raise PlanError(f"{path}: not TOML: {error}", error.hint) from error
    carried: dict[str, str] = {}
    for stage in _stages(path, raw.get("stage", [])):
        mine = {name: _word(value) for name, value in stage.get("settings", {}).items()}
        carried = mine if stage.get("afresh") else carried | mine
        for name, value in carried.items():
            yield Assignment(path, 0, "plan", f"stage {stage.get('name', '?')}", name, value)


def _stages(path: str, stages: object) -> list[dict[str, Any]]:
    tables: list[Any] = stages if isinstance(stages, list) else [stages]
    for stage in tables:
        if not isinstance(stage, dict) or not isinstance(stage.get("settings", {}), dict):
            raise PlanError(f"{path}: stage is {toml_value(stage)[:60]}, not a table with settings")
    return tables


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)
