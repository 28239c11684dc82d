"""Whose a gain is: the client's or the server's, where stages change both; or that nobody knows.

A stage that asks in fewer round trips and has other settings as well is faster by both. Its ratio
is a fact; what part of it the settings brought is one only if a third stage changes one alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations

from pgdyno.analysis import words
from pgdyno.analysis.facts import StageFacts
from pgdyno.model.plan import Plan, Stage
from pgdyno.model.wording import listed, plural
from pgdyno.plan.describe import workload_values
from pgdyno.stats.compare import PlanComparison, ratio_between
from pgdyno.stats.table import Table

NO_SETTING = "no setting has a part in it"

Change = tuple[tuple[str, str, str], ...]
"""Keys of the client with their values before and after."""


def changed_settings(before: Stage, stage: Stage) -> set[str]:
    """Names of the settings that differ, of the server and of the machine."""
    return {name for name, _ in before.values.items() ^ stage.values.items()}


def changed_around(before: Stage, stage: Stage) -> list[str]:
    """What else differs of what the server runs with, as a sentence names it."""
    pairs = {
        "the build": (before.build, stage.build),
        "the folder of its data": (before.folder, stage.folder),
        "the guard": (before.guard, stage.guard),
        "unlogged tables": (before.unlogged, stage.unlogged),
        "the pooler": (before.pooler, stage.pooler),
        "a disk that lies": (before.lying_disk, stage.lying_disk),
        "commits that wait for a standby": (before.synchronous, stage.synchronous),
    }
    return [name for name, (old, new) in pairs.items() if old != new]


def changed_client(before: Stage, stage: Stage) -> set[str]:
    """Keys of the workload that differ."""
    old, new = workload_values(before.workload), workload_values(stage.workload)
    changed = {key for key in new if old.get(key) != new[key]}
    # The same sessions dealt out to more databases are one change.
    if "databases" in changed and before.workload.sessions == stage.workload.sessions:
        changed -= {"connections", "terminals"}
    return changed


@dataclass(frozen=True, slots=True)
class _Among:
    """Where ratios of further pairs come from."""

    plan: Plan
    table: Table
    confidence: float

    def ratio(self, stage: Stage, base: Stage) -> str | None:
        """The ratio of two stages with its interval; None: they have no two rounds together."""
        found = ratio_between(
            self.table, stage.name, base.name, self.confidence, self.plan.protocol.rounds_max
        )
        if found is None:
            return None
        share = words.confidence(self.confidence)
        return (
            f"×{found.ratio:.3f} ({share} interval {found.low:.3f} to {found.high:.3f};"
            f" `{stage.name}` against `{base.name}`)"
        )


def with_credit(
    stages: Sequence[StageFacts], plan: Plan, table: Table, compared: PlanComparison
) -> tuple[StageFacts, ...]:
    """The same stages, each with a sentence for every comparison in which its client changed."""
    among = _Among(plan, table, compared.confidence)
    pairs = [(one.stage, one.base) for one in (*compared.against_first, *compared.against_before)]
    sentences: dict[str, list[str]] = {}
    for name, base in dict.fromkeys(pairs):
        if (sentence := _credit(plan.stage(name), plan.stage(base), among)) is not None:
            sentences.setdefault(name, []).append(sentence)
    return tuple(replace(one, credit=tuple(sentences.get(one.name, ()))) for one in stages)


def credit_against(stage: StageFacts, base: str) -> list[str]:
    """Whose its gain over a base is, where its client is another."""
    return [one for one in stage.credit if f"differs from `{base}`" in one]


def _credit(stage: Stage, base: Stage, among: _Among) -> str | None:
    client, server = _client(base, stage), _server(base, stage)
    if not client:
        return None
    from_client = f"the client ({_listed(client)})"
    if not server:
        return f"`{stage.name}` differs from `{base.name}` in {from_client} alone: {NO_SETTING}"
    both = (
        f"`{stage.name}` differs from `{base.name}` in {from_client} and in the server"
        f" ({listed(server)}) at once"
    )
    if (parts := _parts(stage, base, among)) is not None:
        return f"{both}: {parts}"
    unknown = f"{both}; which part is whose is not known, as no stage changes one of them alone"
    elsewhere = _elsewhere(client, among)
    return f"{unknown}; {elsewhere}" if elsewhere else unknown


def _parts(stage: Stage, base: Stage, among: _Among) -> str | None:
    """Both parts, by a stage that has the client of one and the server of the other."""
    for third in among.plan.stages:
        if third.workload.load != stage.workload.load:
            continue
        if not _client(third, stage) and not _server(third, base):
            client, server = among.ratio(third, base), among.ratio(stage, third)
        elif not _client(third, base) and not _server(third, stage):
            client, server = among.ratio(stage, third), among.ratio(third, base)
        else:
            continue
        if client and server:
            return f"the client gives {client}, the server {server}"
    return None


def _elsewhere(client: Change, among: _Among) -> str | None:
    """The same change of the client between two stages that differ in nothing else."""
    for base, stage in permutations(among.plan.stages, 2):
        alike = base.workload.load == stage.workload.load and not _server(base, stage)
        if alike and _client(base, stage) == client and (ratio := among.ratio(stage, base)):
            return f"under other settings the same change of the client alone gives {ratio}"
    return None


def _client(before: Stage, stage: Stage) -> Change:
    old, new = workload_values(before.workload), workload_values(stage.workload)
    names = sorted(changed_client(before, stage))
    return tuple((name, old.get(name, words.NOTHING), new[name]) for name in names)


def _server(before: Stage, stage: Stage) -> list[str]:
    settings = len(changed_settings(before, stage))
    parts = [plural(settings, "setting")] if settings else []
    return parts + changed_around(before, stage)


def _listed(client: Change) -> str:
    return listed([f"{name} = {new} instead of {old}" for name, old, new in client])
