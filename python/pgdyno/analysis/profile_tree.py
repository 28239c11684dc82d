"""Stacks of several profiles in one tree, and how much of each function each stage had."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from pgdyno.analysis.profile_facts import Branch, Tree
from pgdyno.model.profile import Stacks
from pgdyno.stats.profile import quantile, rates

Function = tuple[str, str]  # name, module
_LEAST = 0.001  # of all that a stage had; smaller nodes are not drawn
NODES_MAX = 2000
"""Of a tree that is drawn."""
_DIGITS = 4


@dataclass(slots=True)
class Counted:
    """The stacks of one profile, in numbers of the common tree."""

    stage: str
    seconds: tuple[tuple[tuple[int, int], ...], ...]
    divisor: tuple[float, ...]  # of each second


@dataclass(slots=True)
class CommonTree:
    """All stages' stacks."""

    stages: tuple[str, ...]
    functions: dict[Function, int] = field(default_factory=dict)
    nodes: dict[tuple[int, int], int] = field(default_factory=dict)  # parent, function -> node
    profiles: list[Counted] = field(default_factory=list)

    def add(self, stage: str, stacks: Stacks, divisor: tuple[float, ...]) -> None:
        """Add a profile's stacks; `divisor` is what a second's counts are divided by, in sum."""
        names = [self.functions.setdefault(one, len(self.functions)) for one in stacks.functions]
        own: list[int] = []
        for parent, name in zip(stacks.parents, stacks.names, strict=True):
            key = (-1 if parent < 0 else own[parent], names[name])
            own.append(self.nodes.setdefault(key, len(self.nodes)))
        seconds = tuple(
            tuple((own[node], count) for node, count in second) for second in stacks.seconds
        )
        self.profiles.append(Counted(stage, seconds, divisor))

    def measured(self) -> tuple[str, ...]:
        """The stages that have a profile, in their order."""
        there = {one.stage for one in self.profiles}
        return tuple(stage for stage in self.stages if stage in there)

    def counts(self, stage: str) -> Counts:
        """What a stage had on top of its stacks, by seconds and nodes."""
        own = [one for one in self.profiles if one.stage == stage]
        rows = [second for one in own for second in one.seconds]
        matrix = np.zeros((len(rows), len(self.nodes)))
        for row, second in zip(matrix, rows, strict=True):
            for node, count in second:
                row[node] += count
        divisor = np.array([value for one in own for value in one.divisor])
        trial = np.repeat(np.arange(len(own)), [len(one.seconds) for one in own])
        return Counts(matrix, divisor, trial)

    def role_of(self) -> list[str]:
        """The role above each node."""
        names = list(self.functions)
        roles: list[str] = []
        for parent, name in self.nodes:
            roles.append(names[name][0] if parent < 0 else roles[parent])
        return roles

    def path(self, node: int) -> set[int]:
        """The functions from a node up to its role, that left out."""
        keys = list(self.nodes)
        found = set()
        while keys[node][0] >= 0:
            found.add(keys[node][1])
            node = keys[node][0]
        return found


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of one stage: `matrix` of shape `(seconds, nodes)`; by second divisor and trial."""

    matrix: npt.NDArray[np.float64]
    divisor: npt.NDArray[np.float64]
    trial: npt.NDArray[np.int64]

    def values(self, matrix: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Rates alone."""
        found: npt.NDArray[np.float64] = matrix.sum(axis=0) / self.divisor.sum()
        return found

    def rates(
        self, matrix: npt.NDArray[np.float64]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Rates and standard errors of such a matrix; the same draws for all of a stage."""
        return rates(matrix, self.divisor, self.trial, np.random.default_rng(self.trial.size))


def with_called(tree: CommonTree, matrix: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Counts of each node with all that it called; children come after their parents."""
    total = matrix.copy()
    for node, (parent, _) in reversed(list(enumerate(tree.nodes))):
        if parent >= 0:
            total[:, parent] += total[:, node]
    return total


def drawn(tree: CommonTree, unit: str) -> Tree | None:
    """The tree as a page draws it; None: nothing was counted."""
    stages = tree.measured()
    if not stages or not tree.nodes:
        return None
    found = {stage: tree.counts(stage) for stage in stages}
    totals = {stage: with_called(tree, counts.matrix) for stage, counts in found.items()}
    kept = _kept(tree, [total.sum(axis=0) for total in totals.values()])
    places = {node: place for place, node in enumerate(kept)}
    keys, functions = list(tree.nodes), list(tree.functions)
    used = {keys[node][1]: None for node in kept}
    renumbered = {function: number for number, function in enumerate(used)}
    branches = []
    for stage in stages:
        values, errors = found[stage].rates(totals[stage][:, kept])
        roots = [place for node, place in places.items() if keys[node][0] < 0]
        branches.append(
            Branch(stage, _rounded(values), _rounded(errors), float(values[roots].sum()))
        )
    return Tree(
        unit=unit,
        functions=tuple(functions[function] for function in used),
        parents=tuple(places.get(keys[node][0], -1) for node in kept),
        names=tuple(renumbered[keys[node][1]] for node in kept),
        branches=tuple(branches),
        quantile=quantile(min(one.trial.size for one in found.values())),
    )


def _kept(tree: CommonTree, sums: Sequence[npt.NDArray[np.float64]]) -> list[int]:
    """Nodes that are drawn; a node that is has its parent, since that had no less."""
    roots = np.array([parent < 0 for parent, _ in tree.nodes])
    shares = np.max([one / max(1.0, one[roots].sum()) for one in sums], axis=0)
    # Of equal shares the earlier node, which may be the parent.
    order = np.lexsort((np.arange(shares.size), -shares))[:NODES_MAX]
    return sorted(int(node) for node in order if roots[node] or shares[node] >= _LEAST)


def _rounded(values: npt.NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(float(f"{value:.{_DIGITS}g}") for value in values)
