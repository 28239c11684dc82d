"""All that was sampled: every series, tally and table of the windows, stage by stage.

Other parts of the report choose what tells most; this one chooses nothing, so that what is kept in
the run file is not hidden there. Of members of which a host may have hundreds, those that did most
are told one by one, and what the others counted is added up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from pgdyno.analysis.resource_measures import DEVICE, INTERFACE
from pgdyno.analysis.resource_parts import CPUS_MAX
from pgdyno.analysis.resources import members, shown
from pgdyno.analysis.seen import Seen, SeriesByTrial, TalliesByTrial, seen_by_stage
from pgdyno.analysis.telemetry_facts import (
    Sampled,
    SampledGroup,
    SampledLevel,
    SampledSeries,
    SampledTable,
)
from pgdyno.model.counters import growth
from pgdyno.model.resets import RESETS, began_anew
from pgdyno.model.run import Series, SnapshotRows, TrialRecord
from pgdyno.model.wording import plural

OTHERS = "other series"
"""Those that no group has, such as those of a sampler that is new."""
GROUPS: Mapping[str, tuple[str, ...]] = {
    "clock and temperature of the CPUs": ("cpu.frequency_", "cpu.thermal_", "temperature."),
    "CPUs of the host": ("cpu.", "host."),
    "memory of the host": ("memory.", "vm."),
    "pressure: seconds in which tasks waited": ("psi.",),
    "block devices": ("device.", "disk."),
    "network": ("net.", "tcp."),
    "control groups": ("cgroup.", "client.cgroup."),
    "processes of the server": ("server.", "process."),
    "the load, as its driver told": ("driver.",),
    "what pgdyno took itself": ("pgdyno.", "live."),
    "pooler": ("pooler.",),
    "WAL": ("wal.",),
    "checkpoints and the background writer": ("checkpoints.", "bgwriter.", "backend."),
    "driven databases": ("database.",),
    "I/O of the server by process, object and context": ("io.", "pg_stat_io."),
    "caches of transaction states": ("slru.",),
    "replication, slots and the archive": (
        "replication.", "slots.", "archive.", "replica.", "restartpoints.",
    ),
    "old transactions": ("transactions.", "freeze."),
    "progress of commands": ("progress.",),
}  # fmt: skip
SHOWN_MAX = 1000  # series of a group: pg_stat_io has some 500
_BETWEEN = ": "  # of the name of one of several servers and that of its series
_OF_CPU = re.compile(r"cpu\.(\d+)\.")
_MEMBERS = {DEVICE: "further device", INTERFACE: "further interface"}


@dataclass(frozen=True, slots=True)
class _Window:
    """One window, with the counters that began anew in it."""

    seen: Seen
    anew: dict[str, frozenset[str]] = field(default_factory=dict)  # by server

    def level(self, name: str) -> SampledLevel | None:
        """A series in it; None: not known."""
        if (one := self.seen.series.get(name)) is None:
            return None
        if one.kind == "counter":
            grown, window_s = self._grown(one), self.seen.result.window_s
            return None if grown is None else SampledLevel(grown / window_s, None)
        inside = self.seen.inside(name)
        return SampledLevel(float(inside.mean()), float(inside.max())) if inside.size else None

    def _grown(self, one: Series) -> float | None:
        """Those of one of several servers are in no sum of the trial."""
        server, between, own = one.name.rpartition(_BETWEEN)
        if not between:
            return self.seen.grown(one.name)
        if server not in self.anew:
            name = f"{server}{_BETWEEN}{RESETS}"
            looks = (_renamed(look) for look in self.seen.snapshots if look.name == name)
            self.anew[server] = began_anew(looks)
        named = Series(own, one.unit, one.kind, one.unix_ns, one.values)
        return growth(named, self.seen.result.window_ns, self.anew[server])


def _renamed(look: SnapshotRows) -> SnapshotRows:
    return SnapshotRows(RESETS, look.at, look.unix_ns, look.columns, look.rows)


def sampled(
    stages: Sequence[str],
    trials: Sequence[TrialRecord],
    series: SeriesByTrial,
    tallies: TalliesByTrial,
    snapshots: Mapping[int, Sequence[SnapshotRows]],
) -> Sampled:
    """Every series in its group, and every tally and table.

    Args:
        stages: Their names, in the order of the plan.
        trials: Those whose numbers may be used.
        series: Of each trial, by its number and their names.
        tallies: Likewise.
        snapshots: Likewise.
    """
    seen = seen_by_stage(stages, trials, series, tallies, snapshots)
    windows = {stage: [_Window(one) for one in each] for stage, each in seen.items()}
    every = [one for each in seen.values() for one in each]
    kinds = {name: one for each in every for name, one in each.series.items()}
    further = _further(every, trials, sorted(kinds))
    found = [*_told_apart(kinds, further, windows), *_added_up(kinds, further, windows)]
    return Sampled(tuple(_groups(found)), (*_tallies(seen), *_snapshots(seen)))


def group_of(name: str) -> str:
    """The title of the group that a series is in."""
    own = name.rpartition(_BETWEEN)[2]
    return next((title for title, begins in GROUPS.items() if own.startswith(begins)), OTHERS)


# -- series ---------------------------------------------------------------------------------------

_Windows = Mapping[str, Sequence[_Window]]


def _told_apart(
    kinds: Mapping[str, Series], further: Mapping[str, Sequence[str]], windows: _Windows
) -> Iterator[SampledSeries]:
    added = {name for names in further.values() for name in names}
    for name, like in kinds.items():
        if name not in added:
            levels = (_level(each, name) for each in windows.values())
            yield SampledSeries(name, like.unit, like.kind, tuple(levels))


def _level(windows: Sequence[_Window], name: str) -> SampledLevel | None:
    found = [one for one in (each.level(name) for each in windows) if one is not None]
    if not found:
        return None
    greatest = [one.greatest for one in found if one.greatest is not None]
    return SampledLevel(median(one.mean for one in found), max(greatest, default=None))


def _further(
    every: Sequence[Seen], trials: Sequence[TrialRecord], names: Sequence[str]
) -> dict[str, list[str]]:
    """Which of the series are of members that are not told one by one, by what these are."""
    found: dict[str, list[str]] = {}
    for prefix, word in _MEMBERS.items():
        there = members(names, prefix)
        rest = set(there) - set(shown(trials, there, prefix))
        if rest:
            found[f"{prefix}<{plural(len(rest), word)}>"] = [
                name for name in names
                if name.startswith(prefix) and name.removeprefix(prefix).rpartition(".")[0] in rest
            ]  # fmt: skip
    cpus = [name for name in names if _OF_CPU.match(name)]
    cpus.sort(key=lambda name: max(one.result.deltas.get(name, 0.0) for one in every), reverse=True)
    if rest_of_cpus := cpus[CPUS_MAX:]:
        found[f"cpu.<{plural(len(rest_of_cpus), 'further CPU')}>"] = rest_of_cpus
    return found


def _added_up(
    kinds: Mapping[str, Series], further: Mapping[str, Sequence[str]], windows: _Windows
) -> Iterator[SampledSeries]:
    """What counters of the others come to; levels of many have no sum that means something."""
    for who, names in further.items():
        by_column: dict[str, list[str]] = {}
        for name in names:
            if kinds[name].kind == "counter":
                by_column.setdefault(name.rpartition(".")[2], []).append(name)
        for column, of in by_column.items():
            unit = kinds[of[0]].unit
            levels = tuple(_sum(each, of) for each in windows.values())
            yield SampledSeries(f"{who}.{column}", unit, "counter", levels)


def _sum(windows: Sequence[_Window], names: Sequence[str]) -> SampledLevel | None:
    sums = []
    for one in windows:
        each = [level.mean for name in names if (level := one.level(name)) is not None]
        if len(each) == len(names):
            sums.append(sum(each))
    return SampledLevel(median(sums), None) if sums else None


def _groups(found: Iterable[SampledSeries]) -> Iterator[SampledGroup]:
    by_title: dict[str, list[SampledSeries]] = {title: [] for title in (*GROUPS, OTHERS)}
    for one in found:
        by_title[group_of(one.name)].append(one)
    for title, series in by_title.items():
        if series:
            series.sort(key=lambda one: _by_number(one.name))
            moved = [one for one in series if not _is(one, _zero) and not _is(one, _unknown)]
            yield SampledGroup(
                title, tuple(moved[:SHOWN_MAX]),
                tuple(one.name for one in series if _is(one, _zero) and not _is(one, _unknown)),
                tuple(one.name for one in series if _is(one, _unknown)),
                max(0, len(moved) - SHOWN_MAX),
            )  # fmt: skip


def _by_number(name: str) -> tuple[str, ...]:
    """As a person counts: the second CPU before the tenth."""
    return tuple(part.zfill(6) if part.isdigit() else part for part in name.split("."))


def _is(one: SampledSeries, what: Callable[[SampledLevel | None], bool]) -> bool:
    return all(map(what, one.stages))


def _unknown(level: SampledLevel | None) -> bool:
    return level is None


def _zero(level: SampledLevel | None) -> bool:
    return level is None or (level.mean == 0 and not level.greatest)


# -- tallies and tables ---------------------------------------------------------------------------

_SeenByStage = Mapping[str, Sequence[Seen]]


def _tallies(seen: _SeenByStage) -> Iterator[SampledTable]:
    met = {stage: [one.tallies for one in each] for stage, each in seen.items()}
    columns = {
        name: one.dimensions
        for each in met.values() for of in each for name, one in of.items()
    }  # fmt: skip
    for name, dimensions in columns.items():
        keys = (_most(len(of[name].keys) for of in each if name in of) for each in met.values())
        yield SampledTable(name, "tally", dimensions, tuple(keys))


def _snapshots(seen: _SeenByStage) -> Iterator[SampledTable]:
    read = {
        stage: [look for one in each for look in one.snapshots if look.at == "end"]
        for stage, each in seen.items()
    }
    columns = {
        look.name: tuple(column.name for column in look.columns)
        for looks in read.values() for look in looks
    }  # fmt: skip
    for name, told in columns.items():
        rows = (
            _most(len(look.rows) for look in looks if look.name == name) for looks in read.values()
        )
        yield SampledTable(name, "snapshot", told, tuple(rows))


def _most(counts: Iterable[int]) -> int | None:
    return max(counts, default=None)
