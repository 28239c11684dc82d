"""What the catalogue alone tells of a setting: gone, impossible, without effect, unsafe."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path

from pgdyno.catalog import KnownSetting, entries, knobs, known_settings, layers, machine_knobs
from pgdyno.catalog.knobs import Fall
from pgdyno.catalog.machine import MachineKnob
from pgdyno.linter.finding import Finding, Severity
from pgdyno.linter.source import Assignment
from pgdyno.linter.system import System
from pgdyno.model.settings import Rung, ServerKnob
from pgdyno.plan.settings.values import BadValue, as_server_reads, canonical

_LAYERS = {"sysctl": "sysctl", "limits": "limits", "fstab": "mount", "boot": "boot"}
_OPEN = ("sysctl", "boot", "commands")  # kinds with thousands of names that are no matter here
_SLIP = 0.9  # how alike two names are of which one is taken for the other
_COMMON_MOUNT = frozenset(  # of every file system; no matter of databases
    ("defaults", "auto", "noauto", "rw", "ro", "exec", "noexec", "suid", "nosuid", "dev", "nodev",
     "user", "nouser", "users", "nofail", "sync", "async", "relatime", "lazytime", "errors", "acl",
     "user_xattr", "quota", "usrquota", "grpquota", "prjquota", "uquota", "gquota", "_netdev",
     "strictatime", "attr2", "size", "mode", "uid", "gid", "umask", "subvol", "compress", "on")
)  # fmt: skip


def server_knob(name: str, major: int) -> ServerKnob | None:
    """A server's setting as the catalogue has it; None where it does not tell its type."""
    knob, known = knobs().get(name), known_settings().get(name)
    kind = knob.type if knob and knob.type else (known.type if known else None)
    if kind is None or (known is not None and not known.exists_in(major)):
        return None
    low = knob.min if knob else (known.min if known else None)
    high = knob.max if knob else (known.max if known else None)
    return ServerKnob(
        name=name, vartype=kind, unit=known.unit if known else None,
        context=(knob.context if knob else None) or "", minimum=low, maximum=high,
        enum_values=known.enum if known else (),
        default=known.default_in(major) if known else None,
    )  # fmt: skip


def from_catalogue(at: Assignment, system: System) -> Iterator[Finding]:
    """What is the matter with one setting by itself."""
    if at.kind in ("postgresql", "plan"):
        yield from _server(at, system)
    else:
        yield from _machine(at, system)


def _server(at: Assignment, system: System) -> Iterator[Finding]:
    if "." in at.name:  # of an extension
        return
    known = known_settings().get(at.name)
    if known is None and at.name not in knobs():
        near = get_close_matches(at.name, [*known_settings(), *knobs()], 1)
        hint = f"Did you mean {near[0]}?" if near else ""
        yield Finding(at, Severity.UNKNOWN, "no version of PostgreSQL has it", hint)
        return
    if known is not None and not known.exists_in(system.postgres):
        yield _not_in_server(at, known, system)
        return
    yield from _value(at, system)
    knob = knobs().get(at.name)
    for fall in knob.fall if knob else ():
        if fall.holds(_spelled(at, system)):
            yield _falls(at, fall)
    for note in knob.note if knob else ():
        if note.holds(_spelled(at, system)):
            yield Finding(at, Severity.NOTE, note.text)


def _not_in_server(at: Assignment, known: KnownSetting, system: System) -> Finding:
    if known.until is not None and system.postgres > known.until:
        text = f"gone since PostgreSQL {known.gone_since}: the server does not start with it"
    else:
        text = f"new in PostgreSQL {known.since}: version {system.postgres} does not start with it"
    return Finding(at, Severity.GONE, text, f"Instead: {known.instead}." if known.instead else "")


def _value(at: Assignment, system: System) -> Iterator[Finding]:
    knob = server_knob(at.name, system.postgres)
    if knob is None:
        return
    taken = as_server_reads(knob, at.value)
    try:
        canonical(knob, taken)
    except BadValue as error:
        yield Finding(
            at, Severity.INVALID, f"{at.value!r} {_verb(error.fact)}", f"Allowed: {error.allowed}."
        )
        return
    if taken != at.value:
        unit = knob.unit if knob.vartype == "integer" and knob.unit else ""
        text = f"is taken as {taken}{f' of {unit}' if unit[:1].isdigit() else unit}"
        yield Finding(at, Severity.NOTE, text, "Write what you mean.")


def _verb(fact: str) -> str:
    return fact if fact.startswith(("is ", "has ", "takes ")) else f"is {fact}"


def _spelled(at: Assignment, system: System) -> str:
    knob = server_knob(at.name, system.postgres)
    try:
        return canonical(knob, as_server_reads(knob, at.value)) if knob else at.value
    except BadValue:
        return at.value


def _falls(at: Assignment, fall: Fall) -> Finding:
    harmless = fall.rung in (Rung.D0, Rung.D1)
    severity = Severity.NOTE if harmless else Severity.DANGEROUS
    hint = f"It needs the guard {fall.needs_guard!r}." if fall.needs_guard else ""
    return Finding(at, severity, f"rung {fall.rung.value}: {fall.loses}", hint)


def _machine(at: Assignment, system: System) -> Iterator[Finding]:
    named = _find(at)
    if named is None:
        if at.kind == "sysctl":
            yield from _nearly(at)
        if at.kind in _OPEN:
            return
        if at.kind == "fstab" and (at.name in _COMMON_MOUNT or at.scope not in _file_systems()):
            return
        if at.kind == "fstab" and at.name.startswith(("x-", "no" + "x")):
            return
        word = {"fstab": "option", "limits": "limit"}[at.kind]
        yield Finding(at, Severity.NOTE, f"the catalogue does not know this {word}")
        return
    name, knob = named
    yield from _of_knob(at, knob, system)
    if at.kind == "commands" or entries()[name].gone or at.value in knob.special:
        return  # sizes of commands have other spellings
    if knob.values and at.value not in knob.values:
        yield Finding(
            at, Severity.INVALID, f"{at.value!r} is none of its values",
            f"Allowed: {', '.join(knob.values)}.",
        )  # fmt: skip
    number = int(at.value) if at.value.removeprefix("-").isdigit() else None
    if number is not None and knob.min is not None and number < knob.min:
        yield Finding(at, Severity.INVALID, f"is less than {knob.min:.10g}: writing it fails")
    if number is not None and knob.max is not None and number > knob.max:
        yield Finding(at, Severity.INVALID, f"is more than {knob.max:.10g}: writing it fails")


def _nearly(at: Assignment) -> Iterator[Finding]:
    """A name of the kernel that we do not know is no matter, unless it looks like a slip."""
    if _kernel_has(at.name):
        return
    ours = [name for name, knob in machine_knobs().items() if knob.layer == "sysctl"]
    for name in get_close_matches(at.name, ours, 1, _SLIP):
        hint = f"Did you mean {name}?"
        yield Finding(at, Severity.NOTE, "the catalogue does not know this name", hint)


def _kernel_has(name: str) -> bool:
    try:
        return Path("/proc/sys", name.replace(".", "/")).exists()
    except OSError:  # longer than a name may be
        return False


def _file_systems() -> frozenset[str]:
    return frozenset(knob.fs for knob in machine_knobs().values() if knob.fs)


def _find(at: Assignment) -> tuple[str, MachineKnob] | None:
    if at.kind == "commands" and at.name in machine_knobs():
        return at.name, machine_knobs()[at.name]
    layer = _LAYERS.get(at.kind, "mount")  # of a command also the options of mount
    for name, knob in machine_knobs().items():
        if knob.layer != layer:
            continue
        if (knob.option or name) == at.name and knob.fs in (None, at.scope or None):
            return name, knob
    return None


def _of_knob(at: Assignment, knob: MachineKnob, system: System) -> Iterator[Finding]:
    of = layers()[knob.layer].of
    its = "Linux" if of == "kernel" else of
    hint = f"Instead: {knob.instead}." if knob.instead else ""
    if knob.never is not None:
        yield Finding(at, Severity.GONE, f"{knob.never}; writing it fails", hint)
        return
    if not knob.exists_in(system.version(of)):
        since = knob.since
        if since is not None and not knob.until:
            text = f"new in {its} {since}: {system.shown(of)} does not have it"
        else:
            text = f"{its} had it up to {knob.until}, {system.shown(of)} does not"
        yield Finding(at, Severity.GONE, text, hint)
        return
    if knob.module is not None:
        text = f"exists only while the module {knob.module} is loaded; else writing it fails"
        yield Finding(at, Severity.NOTE, text, hint)
    if knob.useless is not None:
        yield Finding(at, Severity.INEFFECTIVE, knob.useless)
    for fall in knob.fall:
        if fall.holds(at.value):
            yield _falls(at, fall)
