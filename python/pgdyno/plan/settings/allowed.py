"""Whether one setting may stand in a stage: it exists, may be set there, and can have the value."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from pgdyno.catalog import knobs, known_settings
from pgdyno.model.plan import TargetKind
from pgdyno.model.settings import ServerFacts, ServerKnob
from pgdyno.model.wording import listed
from pgdyno.plan.schema.complaint import shown
from pgdyno.plan.schema.workload_table import CONTROL
from pgdyno.plan.settings.values import BadValue, allowed, canonical

SESSION_CONTEXTS = ("user", "superuser")
"""Settings that a session may set on a server that others run."""


_NAME = re.compile(r"[A-Za-z_][\w$]*(\.[A-Za-z_][\w$]*)*", re.ASCII)


def setting_text(name: str, given: str | bool, server: ServerFacts) -> tuple[str, str | None]:
    """A value of the plan as text, and what is wrong with a true or false that is none here."""
    if not isinstance(given, bool):
        return given, None
    knob = server.knobs.get(name)
    if knob is not None and knob.vartype not in ("bool", "enum"):
        return "", f"{shown(given)} is neither on nor off here; allowed: {allowed(knob)}"
    return ("on" if given else "off"), None


def setting_problem(name: str, value: str, server: ServerFacts, kind: TargetKind) -> str | None:
    """What is wrong with a setting, or None; in lower case, with what is allowed."""
    known = knobs().get(name)
    if known is not None and known.owned is not None:
        instead = f"; say it with {known.instead}" if known.instead else ""
        return f"{shown(value)} belongs to pgdyno: {known.owned}{instead}"
    if not _NAME.fullmatch(name):
        return f"{shown(value)}: is not the name of a setting"
    knob = server.knobs.get(name)
    if knob is None and CONTROL.search(value):
        return f"{shown(value)} holds control characters; allowed: text of one line"
    if knob is None:
        # Whether an extension's library is loaded is seen later: libraries_problem.
        of_extension = "." in name and kind != "running"
        return None if of_extension else f"{shown(value)}: {unknown_setting(name, server)}"
    return _context_problem(knob, value, kind) or _value_problem(knob, value)


def _context_problem(knob: ServerKnob, value: str, kind: TargetKind) -> str | None:
    if knob.context == "internal":
        return f"{shown(value)} cannot be set at all: context internal"
    if kind == "running" and knob.context not in SESSION_CONTEXTS:
        return (
            f"{shown(value)} cannot be set on a running server: context {knob.context};"
            f" allowed: settings of context {' or '.join(SESSION_CONTEXTS)}"
        )
    return None


MEASURED_ELSEWHERE = (
    "What a running server cannot be set to is measured on a cluster that pgdyno makes"
    " (`--bindir` with that server's programs), or there before and after the change, by"
    " `pgdyno compare` of both runs."
)


def out_of_reach(names: Iterable[str], server: ServerFacts) -> list[str]:
    """Those settings that cannot be set on a running server, and can be by its administrator."""
    found = []
    for name in names:
        knob, known = server.knobs.get(name), knobs().get(name)
        owned = known is not None and known.owned is not None
        if knob is not None and not owned and knob.context not in (*SESSION_CONTEXTS, "internal"):
            found.append(name)
    return found


def taken_by(names: list[str], server: ServerFacts) -> tuple[str, ...]:
    """What a change of settings out of reach takes, as a sentence for each way."""
    restarted = [name for name in names if _restarts(name, server)]
    reloaded = [name for name in names if name not in restarted]
    ways = ((restarted, "a restart"), (reloaded, "a reload of the configuration"))
    return tuple(f"A change of {listed(those)} takes {way}." for those, way in ways if those)


def set_there(name: str, server: ServerFacts) -> str:
    """What an administrator does to a setting of a running server; a sentence without its stop."""
    way = "restart it" if _restarts(name, server) else "reload its configuration"
    return f"Change {name} on the server and {way}"


def _restarts(name: str, server: ServerFacts) -> bool:
    knob = server.knobs.get(name)
    return knob is not None and knob.context == "postmaster"


def _value_problem(knob: ServerKnob, value: str) -> str | None:
    try:
        canonical(knob, value)
    except BadValue as error:
        return f"{shown(value)} {_verb(error.fact)}; allowed: {error.allowed}"
    return None


def libraries_problem(name: str, libraries: str) -> str | None:
    """Whether an extension's setting stands without its library being loaded at the start."""
    extension = name.partition(".")[0]
    if extension in [one.strip(" \"'") for one in libraries.split(",")]:
        return None
    return (
        f"belongs to the library {extension}, which is not loaded; allowed: with it in"
        " shared_preload_libraries"
    )


def unknown_setting(name: str, server: ServerFacts) -> str:
    """That a server does not have a setting: which version had it, or what may be meant."""
    version = f"PostgreSQL {server.major} has no such setting"
    known = known_settings().get(name)
    if known is not None:
        if known.since is not None and server.major < known.since:
            return f"{version}; it came with PostgreSQL {known.since}"
        if known.until is not None and server.major > known.until:
            last = f"{version}; it is gone since PostgreSQL {known.gone_since}"
            return f"{last}; use {known.instead}" if known.instead else last
    by_lower = {one.lower(): one for one in server.knobs}
    if found := by_lower.get(name.lower()):
        return f"{version}; it is spelt {found}"
    close = difflib.get_close_matches(name.lower(), list(by_lower), n=3, cutoff=0.7)
    meant = f"; did you mean {', '.join(by_lower[one] for one in close)}" if close else ""
    return version + meant


def of_running(names: list[str], server: ServerFacts) -> tuple[list[ServerKnob], list[ServerKnob]]:
    """Settings that a session may set, and those that it may not."""
    found = [server.knobs[name] for name in names]
    may = [knob for knob in found if knob.context in SESSION_CONTEXTS]
    return may, [knob for knob in found if knob not in may]


def _verb(fact: str) -> str:
    return fact if fact.startswith(("is ", "takes ", "holds ", "has ")) else f"is {fact}"
