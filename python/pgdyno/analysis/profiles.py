"""What profiles say: where the CPU time of a transaction goes, by role and function.

Values are CPU microseconds a transaction, never shares of samples: a stage that does less work for
a transaction shows less everywhere, and what differs between two stages is then told by function.
Of those who wait, the mean number of processes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pgdyno.analysis.profile_facts import (
    Changed,
    Heavy,
    Named,
    ProfileFacts,
    ProfileStage,
    RoleShare,
    Share,
)
from pgdyno.analysis.profile_tree import CommonTree, Counts, Function, drawn, with_called
from pgdyno.model.profile import Lack, Profile, Quality
from pgdyno.stats.profile import differs, quantile

_US = 1e6
_ROLE_LEAST = 0.01  # of all; roles below are told in the graph alone
_OWN_LEAST = 0.005  # of all; functions below are told in the graph alone
_HEAVY_MAX = 6  # functions of a role
_CHANGED_MAX = 8  # functions of a pair of stages
_UNNAMED_MAX = 3
_NOTHING_ENDED = Lack("No transaction ended in a profile, so that it tells no cost of one.")


def profile_facts(
    stages: Sequence[str], profiles: Sequence[tuple[str, Profile]], bases: Mapping[str, str]
) -> ProfileFacts | None:
    """What is said of the profiles of a run.

    Args:
        stages: All of the plan, in order.
        profiles: Of finished trials, each with its stage.
        bases: Of the stages that are compared: with which one.

    Returns:
        None where no profile was taken.
    """
    if not profiles:
        return None
    lacks = list(dict.fromkeys(lack for _, profile in profiles for lack in profile.lacks))
    cpu, waiting = CommonTree(tuple(stages)), CommonTree(tuple(stages))
    for stage, profile in profiles:
        if profile.cpu is not None and sum(profile.transactions) > 0:
            divisor = tuple(n * profile.cpu.hz / _US for n in profile.transactions)
            cpu.add(stage, profile.cpu, divisor)
        elif profile.cpu is not None:
            lacks.append(_NOTHING_ENDED)
        if profile.waiting is not None:
            waiting.add(stage, profile.waiting, (profile.waiting.hz,) * profile.seconds)
    functions, waits = _Functions.of(cpu), _Functions.of(waiting)
    tools = dict.fromkeys(profile.tool for _, profile in profiles if profile.tool)
    return ProfileFacts(
        stages=tuple(_stage(name, profiles) for name in cpu.measured() or waiting.measured()),
        tool=", ".join(tools),
        unwinding=tuple(dict.fromkeys(profile.unwinding for _, profile in profiles)),
        cpu=drawn(cpu, "µs of CPU a transaction"),
        cpu_roles=functions.roles(),
        heavy=functions.heavy(),
        changed=tuple(
            one for stage, base in bases.items() for one in functions.changed(stage, base)
        ),
        waiting=drawn(waiting, "processes"),
        waits=waits.heavy(),
        named=tuple(_named(stages, profiles)),
        lacks=tuple(dict.fromkeys(lacks)),
    )


def _stage(name: str, profiles: Sequence[tuple[str, Profile]]) -> ProfileStage:
    own = [profile for stage, profile in profiles if stage == name]
    ended = sum(sum(one.transactions) for one in own)
    divisor = sum(sum(one.transactions) * one.cpu.hz for one in own if one.cpu is not None)
    return ProfileStage(
        name, len(own), sum(one.seconds for one in own), round(ended, 1),
        _US / divisor if divisor else None,
    )  # fmt: skip


@dataclass(slots=True)
class _Functions:
    """Functions of roles: columns of a matrix by stage."""

    stages: tuple[str, ...]
    keys: list[tuple[str, Function]]  # role, function
    counts: dict[str, Counts]
    own: dict[str, npt.NDArray[np.float64]]  # by stage: (seconds, keys)
    total: dict[str, npt.NDArray[np.float64]]  # by stage: (keys,), with what was called

    @classmethod
    def of(cls, tree: CommonTree) -> _Functions:
        roles, names = tree.role_of(), list(tree.functions)
        place: dict[tuple[str, Function], int] = {}
        column = [
            place.setdefault((role, names[name]), len(place))
            for role, (_, name) in zip(roles, tree.nodes, strict=True)
        ]
        counts = {stage: tree.counts(stage) for stage in tree.measured()}
        own, total = {}, {}
        for stage, found in counts.items():
            matrix = np.zeros((found.matrix.shape[0], len(place)))
            np.add.at(matrix.T, column, found.matrix.T)
            own[stage] = matrix
            total[stage] = cls._called(tree, found, roles, place)
        return cls(tuple(counts), list(place), counts, own, total)

    @staticmethod
    def _called(
        tree: CommonTree, counts: Counts, roles: list[str], place: dict[tuple[str, Function], int]
    ) -> npt.NDArray[np.float64]:
        """Counts of each function with what it called; one that calls itself counts once."""
        names, keys = list(tree.functions), list(tree.nodes)
        above: list[frozenset[int]] = []  # functions on the way to each node, itself included
        sums = with_called(tree, counts.matrix).sum(axis=0)
        total = np.zeros(len(place))
        for node, (parent, name) in enumerate(keys):
            before = above[parent] if parent >= 0 else frozenset()
            if name not in before:
                total[place[roles[node], names[name]]] += sums[node]
            above.append(before | {name})
        return total

    def _role_totals(self, stage: str) -> dict[str, float]:
        values = self.counts[stage].values(self.own[stage])
        totals: dict[str, float] = {}
        for (role, _), value in zip(self.keys, values, strict=True):
            totals[role] = totals.get(role, 0.0) + float(value)
        return totals

    def roles(self) -> tuple[RoleShare, ...]:
        """What each role had, the heaviest first."""
        totals = [self._role_totals(stage) for stage in self.stages]
        found = [
            RoleShare(role, tuple(one.get(role, 0.0) for one in totals))
            for role in dict.fromkeys(role for role, _ in self.keys)
        ]
        return tuple(sorted(found, key=lambda one: -max(one.values)))

    def heavy(self) -> tuple[Heavy, ...]:
        """The heaviest functions of each role that counts."""
        roles = self.roles()
        if not roles:
            return ()
        wholes = [sum(one.values[i] for one in roles) for i in range(len(self.stages))]
        rows: list[Heavy] = []
        for role in roles:
            shares = [v / w for v, w in zip(role.values, wholes, strict=True) if w > 0]
            if max(shares, default=0.0) >= _ROLE_LEAST:
                found = self._of_role(role)
                weights = {one: _weight(one, wholes) for one in found}
                heavy = [one for one in found if weights[one] >= _OWN_LEAST]
                rows += sorted(heavy, key=lambda one: -weights[one])[:_HEAVY_MAX]
        return tuple(rows)

    def _of_role(self, role: RoleShare) -> list[Heavy]:
        places = [n for n, (name, _) in enumerate(self.keys) if name == role.role]
        by_stage = []
        for stage, whole in zip(self.stages, role.values, strict=True):
            counts = self.counts[stage]
            values = counts.values(self.own[stage][:, places])
            totals = self.total[stage][places] / counts.divisor.sum()
            by_stage.append(
                [
                    Share(float(value), float(value) / whole if whole else 0.0, float(total))
                    for value, total in zip(values, totals, strict=True)
                ]
            )
        return [
            Heavy(role.role, *self.keys[place][1], tuple(one[n] for one in by_stage))
            for n, place in enumerate(places)
        ]

    def changed(self, stage: str, base: str) -> list[Changed]:
        """Functions whose own time differs between two stages by more than chance."""
        if stage not in self.counts or base not in self.counts:
            return []
        mine, theirs = (self.counts[one].rates(self.own[one]) for one in (stage, base))
        needed = quantile(min(self.counts[one].trial.size for one in (stage, base)))
        found = []
        for place, (role, function) in enumerate(self.keys):
            one, other = ((float(v[place]), float(e[place])) for v, e in (mine, theirs))
            delta, half, is_one = differs(one, other, needed)
            if is_one:
                found.append(
                    Changed(stage, base, role, *function, other[0], one[0], delta - half,
                            delta + half)
                )  # fmt: skip
        found.sort(key=lambda one: -abs(one.value - one.base_value))
        return found[:_CHANGED_MAX]


def _weight(one: Heavy, wholes: Sequence[float]) -> float:
    """The largest share of all that a stage had."""
    return max(s.own / whole for s, whole in zip(one.shares, wholes, strict=True) if whole > 0)


def _named(stages: Sequence[str], profiles: Sequence[tuple[str, Profile]]) -> list[Named]:
    found = []
    for stage in stages:
        own = [profile for name, profile in profiles if name == stage]
        for who in dict.fromkeys(one.who for profile in own for one in profile.quality):
            pairs = [
                (one, profile.cpu.hz)
                for profile in own
                if profile.cpu is not None
                for one in profile.quality
                if one.who == who
            ]
            found.append(_merged(stage, who, pairs))
    return found


def _merged(stage: str, who: str, pairs: Sequence[tuple[Quality, float]]) -> Named:
    parts = [one for one, _ in pairs]
    frames, stacks = sum(one.frames for one in parts), sum(one.user_stacks for one in parts)
    unnamed: dict[str, int] = {}
    for one in parts:
        for module, count in one.unnamed:
            unnamed[module] = unnamed.get(module, 0) + count
    worst = sorted(unnamed.items(), key=lambda item: -item[1])[:_UNNAMED_MAX]
    used = [one.cpu_s for one in parts if one.cpu_s is not None]
    sampled = sum(one.samples / hz for one, hz in pairs)
    return Named(
        stage=stage,
        who=who,
        samples=sum(one.samples for one in parts),
        lost=sum(one.lost for one in parts),
        frames_named=sum(one.frames_named for one in parts) / frames if frames else None,
        whole=sum(one.user_stacks_whole for one in parts) / stacks if stacks else None,
        seen=sampled / sum(used) if len(used) == len(parts) and sum(used) > 0 else None,
        unnamed=tuple((module, count / frames) for module, count in worst),
    )
