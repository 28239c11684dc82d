"""Stages by what they ask the server for: only those of one load are compared with each other."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.analysis.facts import Facts, StageFacts

Load = tuple[StageFacts, ...]
"""Stages of one load in plan order: the first is what the others are compared with."""


def loads(facts: Facts) -> tuple[Load, ...]:
    """All stages, by their load."""
    found: dict[str, list[StageFacts]] = {}
    for stage in facts.stages:
        found.setdefault(facts.base_of(stage).name, []).append(stage)
    return tuple(map(tuple, found.values()))


def main_kinds(facts: Facts) -> dict[str, Load]:
    """The kinds of transaction whose latency stands first, each with the stages of its loads."""
    found: dict[str, list[StageFacts]] = {}
    for load in loads(facts):
        found.setdefault(_first_kind(load) or facts.main_kind, []).extend(load)
    return {kind: tuple(stages) for kind, stages in found.items()}


def _first_kind(stages: Sequence[StageFacts]) -> str | None:
    return next((line.kind for stage in stages for line in stage.latency), None)
