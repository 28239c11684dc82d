"""What it takes to follow a server's checkpoints, and which stages are not judged without it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil

from pgdyno.model.cycle import (
    ANCHOR_CYCLES,
    SHORT_CYCLE_S,
    WARM_CYCLES,
    Checkpoints,
    Spacing,
)
from pgdyno.model.plan import Protocol, Stage, Trial
from pgdyno.model.units import seconds_text
from pgdyno.model.wording import listed, plural
from pgdyno.plan.schema.complaint import Complaint
from pgdyno.plan.settings.configured import Configured

_NAMES = ("max_wal_size", "min_wal_size", "full_page_writes", "wal_compression")
_PREFIXES = ("checkpoint_", "bgwriter_", "vm.dirty_")
_OF_VACUUM = ("autovacuum", "vacuum_cost")
_HARMLESS = ("checkpoint_warning",)  # a line in the log
_MICROSECONDS = 1e6
_FRESH_S = 15.0  # of a cycle, in which full page images make most of the WAL
_FRESH_BYTES_PER_S = 24 << 20  # of WAL, by a CPU; measured with 10 warehouses
_LATER_BYTES_PER_S = 9 << 20
_TIMEOUT_S, _WAL_BYTES, _TARGET = 300.0, float(1 << 30), 0.9  # where a server's are not known


def shapes_cycle(name: str) -> bool:
    """Whether a setting, of server or machine, decides when checkpoints come or what they cost.

    What such a setting moves in time, or spares until later, shows in whole cycles only.
    """
    if name in _HARMLESS:
        return False
    return name in _NAMES or name.startswith(_PREFIXES)


def changed_in_cycle(one: Mapping[str, str], other: Mapping[str, str]) -> tuple[str, ...]:
    """Settings of this kind that two stages have otherwise; values as the server spells them."""
    return _changed(shapes_cycle, one, other)


def changed_in_vacuum(one: Mapping[str, str], other: Mapping[str, str]) -> tuple[str, ...]:
    """The same of settings that pace autovacuum."""
    return _changed(lambda name: name.startswith(_OF_VACUUM), one, other)


def _changed(
    of_kind: Callable[[str], bool], one: Mapping[str, str], other: Mapping[str, str]
) -> tuple[str, ...]:
    names = sorted(filter(of_kind, {*one, *other}))
    return tuple(name for name in names if one.get(name) != other.get(name))


def expected_cycle_s(config: Configured, cpus: int) -> float:
    """How long a checkpoint cycle of a stage lasts, by an assumed rate of WAL.

    A load like TPC-C with all CPUs busy writes much WAL while most pages that it touches are
    touched for the first time in the cycle, and less afterwards. Most other loads write less, so
    that their cycles last longer, up to `longest_cycle_s`.
    """
    spacing = _spacing(config)
    by_wal = spacing.max_wal_bytes / (1 + spacing.completion_target) / cpus
    fresh = _FRESH_S * _FRESH_BYTES_PER_S
    seconds = by_wal / _FRESH_BYTES_PER_S
    if by_wal > fresh:
        seconds = _FRESH_S + (by_wal - fresh) / _LATER_BYTES_PER_S
    return min(spacing.timeout_s, seconds)


def longest_cycle_s(config: Configured) -> float:
    """How long a checkpoint cycle of a stage lasts where WAL comes too slowly to end it before."""
    return _spacing(config).timeout_s


def _spacing(config: Configured) -> Spacing:
    timeout_us, wal = config.size("checkpoint_timeout"), config.size("max_wal_size")
    return Spacing(
        _TIMEOUT_S if timeout_us is None else timeout_us / _MICROSECONDS,
        _WAL_BYTES if wal is None else float(wal),
        config.number("checkpoint_completion_target") or _TARGET,
    )


def following(protocol: Protocol, cycle: float) -> Checkpoints:
    """How a stage whose cycles last so long follows checkpoints: anchors are for long ones."""
    if protocol.checkpoints == "anchors" and cycle <= SHORT_CYCLE_S:
        return "cycles"
    return protocol.checkpoints


def driven_s(protocol: Protocol, cycle: float, round_number: int = 1) -> float:
    """Seconds of warm-up and window of a trial whose cycles last so long."""
    planned = protocol.warmup_s + protocol.window_s
    how = following(protocol, cycle)
    if how == "cycles":
        warm = max(WARM_CYCLES, ceil(protocol.warmup_s / cycle)) * cycle
        return warm + max(protocol.cycles, ceil(protocol.window_s / cycle)) * cycle
    if how == "anchors" and round_number <= protocol.anchors:
        return max(planned, ANCHOR_CYCLES * cycle)
    return planned


def longest_driven_s(
    protocol: Protocol, cycle: float, longest: float, round_number: int = 1
) -> float:
    """The same where cycles last longer than was expected when it was decided how to follow them.

    Args:
        protocol: How stages are measured.
        cycle: As `expected_cycle_s`.
        longest: As `longest_cycle_s`.
        round_number: Of the trial.
    """
    decided = replace(protocol, checkpoints=following(protocol, cycle))
    return driven_s(decided, longest, round_number)


def longer_s(
    protocol: Protocol,
    trials: Sequence[Trial],
    cycles: Mapping[str, float],
    longest: Mapping[str, float],
) -> float:
    """By how much all trials together last longer where WAL is too slow to end any cycle.

    Args:
        protocol: How stages are measured.
        trials: All of them.
        cycles: As `expected_cycle_s`, by the names of stages.
        longest: The same as `longest_cycle_s`.
    """
    return sum(
        longest_driven_s(protocol, cycles[one.stage], longest[one.stage], one.round)
        - driven_s(protocol, cycles[one.stage], one.round)
        for one in trials
    )


def protocol_text(protocol: Protocol) -> str:
    """How the protocol follows checkpoints; empty where it does not."""
    if protocol.checkpoints == "cycles":
        return f"windows of {protocol.cycles} or more whole checkpoint cycles"
    if protocol.checkpoints == "anchors":
        anchors = plural(protocol.anchors, "anchor")
        return (
            f"{anchors} of {ANCHOR_CYCLES:g} checkpoint cycles a stage; where they"
            f" are short, {protocol.cycles} or more whole ones in each window"
        )
    return ""


def cycle_lines(
    protocol: Protocol, cycles: Mapping[str, float], longest: Mapping[str, float]
) -> Iterator[str]:
    """The length of each stage's cycle and trials: as assumed, and where little WAL is written.

    Args:
        protocol: How stages are measured.
        cycles: As `expected_cycle_s`, by the names of stages.
        longest: The same as `longest_cycle_s`.
    """
    if protocol.checkpoints == "ignore":
        return
    for stage, cycle in cycles.items():
        anchors = following(protocol, cycle) == "anchors"
        what = plural(protocol.anchors, "anchor") if anchors else "trials"
        text = f"{stage}: checkpoints every {seconds_text(cycle)} or so, {what} of"
        text += f" {seconds_text(driven_s(protocol, cycle))}"
        late = longest[stage]
        if cycle >= late:
            yield text
            continue
        yield f"{text}, if all CPUs write WAL as TPC-C does;"
        most = seconds_text(longest_driven_s(protocol, cycle, late))
        yield f"  if they write less, up to every {seconds_text(late)}, {what} of up to {most}"


def cycle_complaints(protocol: Protocol, stages: Sequence[Stage]) -> Iterator[Complaint]:
    """Loads that cannot follow the checkpoints of their server."""
    if protocol.checkpoints == "ignore":
        return
    if protocol.checkpoints == "anchors" and protocol.anchors > protocol.rounds:
        rounds = plural(protocol.rounds, "round")
        text = f"is {protocol.anchors}, of {rounds} in all; anchors are the first"
        yield Complaint("protocol.anchors", text)
    if protocol.checkpoints == "anchors" and not protocol.checkpoint_before:
        text = "is false, but anchors begin with a cycle; allowed with anchors: true"
        yield Complaint("protocol.checkpoint_before", text)
    for stage in stages:
        if stage.workload.engine != "pgdyno":
            text = f"is {protocol.checkpoints}, but pgbench runs for a time that is given before"
        elif stage.workload.steps:
            text = f"is {protocol.checkpoints}, but steps fill a window of a length given before"
        else:
            continue
        yield Complaint(f"stage {stage.name}: protocol.checkpoints", f"{text}; allowed: ignore")


def cycle_notes(
    protocol: Protocol, stages: Sequence[Stage], configs: Sequence[Configured], *, shortened: bool
) -> Iterator[str]:
    """Stages that will get no verdict, because their windows ignore checkpoints.

    Args:
        protocol: Of the plan.
        stages: All of them.
        configs: Their configurations, in the same order.
        shortened: Whether it is `--quick` that has them ignored, and the whole plan follows them.
    """
    if protocol.checkpoints == "anchors" and protocol.anchors >= 2:
        return
    if protocol.checkpoints == "cycles" or len(stages) < 2:
        return
    if all(
        stage.workload.kind == "select-only" for stage in stages
    ):  # no checkpoint is due from it
        return
    words = [_words(stage, config) for stage, config in zip(stages, configs, strict=True)]
    alike: dict[str, list[str]] = {}
    for stage, mine in zip(stages[1:], words[1:], strict=True):
        if names := changed_in_cycle(mine, words[0]):
            shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
            alike.setdefault(shown, []).append(stage.name)
    remedy = _remedy(stages, shortened=shortened)
    for shown, those in alike.items():
        one = len(those) == 1
        yield (
            f"{'stage' if one else 'stages'} {listed(those)} will not be judged against"
            f" {stages[0].name}: {'it changes' if one else 'they change'} {shown}, and with"
            f' protocol.checkpoints = "{protocol.checkpoints}" there are too few whole checkpoint'
            f" cycles{remedy}"
        )


def _remedy(stages: Sequence[Stage], *, shortened: bool) -> str:
    """What has windows hold whole cycles; empty where nothing does."""
    if shortened:
        return "; that is of --quick: without it, windows follow checkpoints"
    if any(one.workload.engine != "pgdyno" or one.workload.steps for one in stages):
        return ""
    return "; `--set protocol.checkpoints=cycles` has windows follow them, and take as long"


def _words(stage: Stage, config: Configured) -> dict[str, str]:
    names = [one for one in config.server.knobs if shapes_cycle(one)]
    found = {name: config.word(name) for name in names}
    found |= {one.name: one.value for one in stage.host if shapes_cycle(one.name)}
    return {name: word for name, word in found.items() if word is not None}
