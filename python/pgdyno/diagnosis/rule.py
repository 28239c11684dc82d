"""What a rule is: what it needs, its thresholds, what looks alike, what could be changed.

A rule is a module of `diagnosis.rules` with a `RULE`; it is found by its location. Its `answer` is
asked only where all that it needs is there: without it, the answer is Unknown, and says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pgdyno.analysis.account_facts import DRAWS, Account, Draws, quantiles
from pgdyno.analysis.diagnosis_facts import Figure
from pgdyno.analysis.window_facts import WindowFacts
from pgdyno.model.units import share_text

LEAST_GAIN = 0.05
"""Of throughput, that a limit must be able to bring."""
BLUR = 0.05
"""Of a share, how far off the account's own assumptions may put it: a standard deviation."""
_SEED = 20_261_128

Need = Callable[[WindowFacts], str | None]
"""Why something that is needed is not there; None: it is."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """A value that evidence is held against, and what it means."""

    value: float
    what: str


@dataclass(frozen=True, slots=True)
class Seen:
    """A window with an account, as rules ask it."""

    window: WindowFacts
    account: Account

    def share(self, *parts: str, root: bool = True) -> Draws:
        """Of session time; with `root`, waits stand where their holders were."""
        return self.account.share(*parts, root=root)

    def inside(self, part: str) -> Draws:
        """Of session time: running and wanting a CPU in the midst of this wait."""
        return self.account.inside_share(part)

    def figure(self, name: str, draws: Draws, limit: float | None = None) -> Figure:
        """A share of session time as evidence."""
        low, value, high = quantiles(draws)
        return Figure(name, value, "share", low, high, limit)


@dataclass(frozen=True, slots=True)
class Found:
    """The rule's resource takes time: how much, what that could bring, what proves it."""

    fact: str
    share: Draws  # of session time, that would go if the resource were free
    figures: tuple[Figure, ...]
    caps: Mapping[str, float] = field(default_factory=dict)  # utilisation of what is left, by name
    is_cpu_work: bool = False  # it is a part of what the CPUs do for the load, and needed
    behind: tuple[str, ...] = ()  # classes whose time this takes: it comes before them
    to_spare: bool = False  # most of it is idle: what sessions wait for comes before it


@dataclass(frozen=True, slots=True)
class Cleared:
    """Looked at, and not so."""

    fact: str
    figures: tuple[Figure, ...] = ()


@dataclass(frozen=True, slots=True)
class NotKnown:
    """Cannot be told from this window."""

    reason: str
    figures: tuple[Figure, ...] = ()


@dataclass(frozen=True, slots=True)
class Knob:
    """Something that could be changed: a setting of the catalogue, or what a client does."""

    name: str
    why: str = ""  # empty: the catalogue's


@dataclass(frozen=True, slots=True)
class Rule:
    """One class of limits."""

    number: int  # in the order of answers
    title: str  # ends a sentence: "the limit is ..."
    needs: Sequence[Need]
    thresholds: Mapping[str, Threshold]
    confounders: tuple[str, ...]
    knobs: tuple[Knob, ...]
    answer: Callable[[Seen, Rule], Found | Cleared | NotKnown]
    parts: tuple[str, ...] = ()  # of the account, that are this class's own
    before_cpus: bool = False  # what it takes is not the load's own work, which the CPUs do
    may_save: str = ""  # work that is not counted as its own, and that its absence saves

    def limit(self, name: str) -> float:
        """A threshold's value."""
        return self.thresholds[name].value


def evidence(*figures: Figure | None) -> tuple[Figure, ...]:
    """Those of them that are known."""
    return tuple(one for one in figures if one is not None)


def figure(name: str, value: float | None, unit: str, limit: float | None = None) -> Figure | None:
    """A number as evidence; None: it was not measured."""
    return None if value is None else Figure(name, value, unit, limit=limit)


def by_share(
    seen: Seen,
    rule: Rule,
    share: Draws,
    figures: tuple[Figure, ...],
    *,
    takes: str,
    found: str | None = None,
    server: float = 1.0,
) -> Found | Cleared:
    """The answer of a class by the session time that it takes, against `share` of its thresholds.

    Args:
        seen: The window.
        rule: The class.
        share: Of session time.
        figures: The evidence.
        takes: What is said of its share, e.g. `flushes of WAL take`.
        found: What is said instead where it is over the limit.
        server: See `caps_of`.
    """
    taken, limit = share_text(float(share[0])), rule.limit("share")
    if float(share[0]) < limit:
        return Cleared(f"{takes} {taken} of session time, limit {share_text(limit)}", figures)
    caps = caps_of(seen.window, server=server)
    return Found(f"{found or takes} {taken} of session time", share, figures, caps)


def waits_rule_answer(
    seen: Seen, rule: Rule, what: str, *more: Figure | None, parts: Sequence[str] = ()
) -> Found | Cleared:
    """The answer of a class that is nothing but waits, by their roots.

    Args:
        seen: The window.
        rule: The class.
        what: Ends before its share, e.g. `waits for the content of a page take`.
        *more: Further evidence.
        parts: Those of the account that are its waits in this window; (): `rule.parts`.
    """
    share = seen.share(*(parts or rule.parts))
    figures = (seen.figure(what, share, rule.limit("share")), *evidence(*more))
    return by_share(seen, rule, share, figures, takes=what)


def caps_of(window: WindowFacts, *, server: float = 1.0, client: bool = True) -> dict[str, float]:
    """How far what no rule makes free is used by us alone; others' use may be won back.

    Args:
        window: The window.
        server: Part of its CPU time that stays.
        client: Whether the driver's stays.
    """
    driver = window.driver
    caps: dict[str, float] = {}
    used = 0.0
    if server and (cpus := window.per_s("server.cpu_s")) is not None:
        used += cpus * server
    if client and driver.beside_server:
        used += (driver.cpu_s or 0.0) / window.window_s
    is_known = driver.cpu_s is not None or not client
    if (server or client) and is_known and driver.beside_server and driver.cpus:
        caps["CPUs"] = min(1.0, used / driver.cpus)
    if client and driver.busiest is not None:
        caps["driver thread"] = driver.busiest
    return caps


def gains(found: Found, number: int) -> tuple[Draws, str | None]:
    """Bound of the gain for each draw, as a ratio, and what caps the estimate.

    The bound is that of a closed network: without the resource, its share of the time goes, and
    nothing that stays is used for more than all of the time.

    Args:
        found: The finding.
        number: Of the rule, whose blur is its own.
    """
    rng = np.random.default_rng(_SEED + number)
    blur = np.concatenate([[1.0], np.exp(rng.normal(0.0, BLUR, DRAWS))])
    free = 1 / (1 - np.clip(found.share * blur, 0.0, 0.999))
    caps = {name: 1 / max(used, 1e-3) for name, used in found.caps.items()}
    if not caps:
        return np.asarray(free), None
    name, cap = min(caps.items(), key=lambda one: one[1])
    capped = np.maximum(1.0, np.minimum(free, cap))
    return np.asarray(capped), name if cap < float(free[0]) else None
