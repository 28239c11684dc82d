"""Facts of an hour of six stages with everything sampled, stretched from those of the miniature."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from pgdyno import core
from pgdyno.analysis.extremes import LAYER_PARTS_MAX, PARTS_MAX, extremes
from pgdyno.analysis.facts import Facts, TrialFacts
from pgdyno.analysis.process_line_facts import ProcessLine
from pgdyno.analysis.profile_facts import Branch, ProfileFacts, ProfileStage, Tree
from pgdyno.analysis.profile_tree import NODES_MAX
from pgdyno.analysis.run import analyse
from pgdyno.analysis.session_facts import GROUPS, SessionLine
from pgdyno.analysis.signal_facts import ResponseMap, Signal, SignalLine
from pgdyno.analysis.timeline_facts import Checkpoint, Extremes, Mark, Timeline
from pgdyno.analysis.trials import MARKS_MAX, POINTS_MAX
from pgdyno.sample.process_roles import ROLES
from pgdyno.store import RunFile
from tests.data.looked_at import looked_at
from tests.data.miniature import CHARACTERS, write_miniature
from tests.data.pages import filled

STAGES, ROUNDS, SIGNALS = 6, 3, 25
ROWS = 10  # times the two statements and tables of a made-up page
WINDOW_S = 200.0  # six stages, three rounds: an hour
_SECONDS = tuple(float(one) + 0.5 for one in range(int(WINDOW_S)))


def an_hour(folder: Path) -> Facts:
    """What is found in a made-up run, with as much of everything as may be shown."""
    rng = np.random.default_rng(5)
    characters = tuple(
        replace(one, stage=replace(one.stage, name=f"stage-{number}"))
        for number, one in enumerate((*CHARACTERS, *CHARACTERS), 1)
    )
    assert len(characters) == STAGES
    path = write_miniature(
        folder / "hour.sqlite", rounds=ROUNDS, invalid=(), characters=characters
    )  # fmt: skip
    with RunFile.read(path) as run:
        facts = filled(analyse(run))
    trials = tuple(replace(one, timeline=_timeline(rng)) for one in facts.trials)
    sessions = tuple(
        replace(one, lines=tuple(_line(rng, line) for line in one.lines)) for one in facts.sessions
    )
    first = [next(one for one in trials if one.stage == stage.name) for stage in facts.stages]
    signals = tuple(
        Signal(f"device number {n}: time of a flush", "s", tuple(
            SignalLine(one.number, one.stage, _points(rng), _values(rng, 2 * PARTS_MAX))
            for one in first
        ))
        for n in range(SIGNALS)
    )  # fmt: skip
    profiles = _profiles(rng, [one.name for one in facts.stages])
    return replace(
        facts, trials=trials, sessions=sessions, signals=signals, profiles=profiles,
        statements=facts.statements * ROWS, tables=facts.tables * ROWS,
        process_lines=tuple(_processes(rng, one) for one in first),
        telemetry=looked_at([one.name for one in facts.stages], "", "full"),
        response_maps=tuple(_map(rng, one) for one in first),
    )  # fmt: skip


def _processes(rng: np.random.Generator, trial: TrialFacts) -> ProcessLine:
    """All roles that a server can have."""
    second = tuple(float(f"{one:.3f}") for one in np.linspace(1.0, WINDOW_S - 1, POINTS_MAX))
    roles = (*ROLES, "unseen")
    return ProcessLine(
        trial.number, trial.stage, WINDOW_S / POINTS_MAX, second,
        {role: _values(rng, POINTS_MAX) for role in roles}, _values(rng, POINTS_MAX),
        _values(rng, POINTS_MAX), {role: _extremes(rng) for role in roles},
    )  # fmt: skip


def _extremes(rng: np.random.Generator) -> Extremes:
    count = 2 * LAYER_PARTS_MAX
    second = np.sort(rng.uniform(0, WINDOW_S, count))
    return extremes(second, rng.lognormal(0, 1, count))


def _profiles(rng: np.random.Generator, stages: list[str]) -> ProfileFacts:
    """As large a flame graph of each kind as is drawn, with every node another function."""
    functions = tuple((f"a_function_of_postgres_number_{n}", "postgres") for n in range(NODES_MAX))
    trees = [
        Tree(
            unit, functions, tuple(int(rng.integers(n)) if n else -1 for n in range(NODES_MAX)),
            tuple(range(NODES_MAX)),
            tuple(
                Branch(stage, _values(rng, NODES_MAX), _values(rng, NODES_MAX), 2000.0)
                for stage in stages
            ),
            2.6,
        )
        for unit in ("µs of CPU a transaction", "processes")
    ]  # fmt: skip
    return ProfileFacts(
        tuple(ProfileStage(one, ROUNDS, 60 * ROUNDS, 1e5, 1.0) for one in stages), "perf", ("fp",),
        trees[0], (), (), (), trees[1], (), (), (),
    )  # fmt: skip


def _points(rng: np.random.Generator) -> tuple[float, ...]:
    return tuple(float(f"{one:.3f}") for one in np.sort(rng.uniform(0, WINDOW_S, 2 * PARTS_MAX)))


def _values(rng: np.random.Generator, count: int) -> tuple[float, ...]:
    return tuple(float(f"{one:.6g}") for one in rng.lognormal(0, 1, count))


def _timeline(rng: np.random.Generator) -> Timeline:
    starts = np.sort(rng.uniform(0, WINDOW_S - 1, MARKS_MAX))
    marks = tuple(
        Mark("lock_wait", float(one), float(one) + 0.4, "ShareLock on transaction 4711")
        for one in starts
    )
    checkpoints = tuple(
        Checkpoint(at, at + 15, "time", at + 12, at + 14.5) for at in (10.0, 70.0, 130.0)
    )
    assert len(_SECONDS) <= POINTS_MAX
    tpm = tuple(one * 1e5 for one in _values(rng, len(_SECONDS)))
    least, greatest = (tuple(by * one for one in tpm) for by in (0.9, 1.1))  # of a longer one
    return Timeline(
        WINDOW_S, 1.0, _SECONDS, tpm, checkpoints, (), marks, least=least, greatest=greatest
    )


def _map(rng: np.random.Generator, trial: TrialFacts) -> ResponseMap:
    """As many columns as are drawn, and the rows of 8 µs to 8 s, all with requests."""
    edges_s = tuple(round(WINDOW_S * one / PARTS_MAX, 3) for one in range(PARTS_MAX + 1))
    edges_ns = tuple(edge for edge in core.time_edges_ns() if 1 << 13 <= edge <= 1 << 33)
    rows = rng.integers(1, 10_000, (len(edges_ns) - 1, PARTS_MAX)).tolist()
    counts = tuple(map(tuple, rows))
    return ResponseMap(trial.number, trial.round, trial.stage, edges_s, edges_ns, counts)


def _line(rng: np.random.Generator, like: SessionLine) -> SessionLine:
    groups = {group: _values(rng, len(_SECONDS)) for group in GROUPS}
    least, greatest = (_values(rng, len(_SECONDS)) for _ in range(2))  # of a longer one
    return replace(like, step_s=1.0, second=_SECONDS, groups=groups, least=least,
                   greatest=greatest,
                   apart={group: _extremes(rng) for group in GROUPS})  # fmt: skip
