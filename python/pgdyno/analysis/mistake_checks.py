"""A check for each class of mistake: what of this run it finds, or nothing.

Each takes what is known of a run and returns a sentence, with the stages or trials it is about.
Nothing here changes a number; what a finding means for the answer is told in `mistakes`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from pgdyno.analysis import words
from pgdyno.analysis.comparable import is_of_length
from pgdyno.analysis.credit import changed_client, changed_settings
from pgdyno.analysis.facts import Difference, StageFacts
from pgdyno.catalog import knobs
from pgdyno.model.plan import Plan, Stage
from pgdyno.model.run import TrialRecord, TrialResult
from pgdyno.model.wording import listed, plural
from pgdyno.plan.resolve.figure_checks import misplaced, mistyped

TRANSACTIONS_MIN = 1_000  # of a window; in fewer the mix has not settled
_PAYMENT_SHARE, _OTHER_SHARE = 0.43, 0.04  # clause 5.2.3: at least
_PER_RUN = ("port", "unix_socket_directories")  # chosen anew for each trial
_COMPANIONS = {"max_wal_senders"}  # that wal_level = minimal forces to change with it
_OFF = ("off", "false", "no", "0")
_PACE = ("keying_multiplier", "think_multiplier")


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of a run when its mistakes are looked for."""

    plan: Plan
    finished: Sequence[TrialRecord]  # trials whose numbers may be used
    stages: Sequence[StageFacts]
    differences: Sequence[Difference]

    def results(self) -> Iterator[tuple[TrialRecord, TrialResult]]:
        """The finished trials with what they measured."""
        return ((trial, trial.result) for trial in self.finished if trial.result)


def mistyped_metric(seen: Seen) -> str | None:
    """New-Orders and all transactions must stand to each other as the mix has them."""
    found = []
    for trial, result in seen.results():
        tpcc = seen.plan.stage(trial.stage).workload.tpcc
        ended = result.tpm_total * result.window_s / 60
        if tpcc is None or result.nopm is None or ended < TRANSACTIONS_MIN:
            continue
        share = tpcc.mix["new_order"] / sum(tpcc.mix.values())
        if problem := mistyped(result.nopm, result.tpm_total, share):
            found.append(f"trial {trial.number}: {problem}")
    return "; ".join(found) or None


def not_the_text(seen: Seen) -> str | None:
    """A load without the text's mix, keying or think times is not TPC-C's."""
    found: dict[str, None] = {}  # as an ordered set
    for stage in seen.plan.stages:
        tpcc = stage.workload.tpcc
        if tpcc is None:
            continue
        shares = {kind: weight / sum(tpcc.mix.values()) for kind, weight in tpcc.mix.items()}
        least = {kind: _OTHER_SHARE for kind in shares if kind not in ("new_order", "payment")}
        least["payment"] = _PAYMENT_SHARE
        if any(shares[kind] < share - 1e-9 for kind, share in least.items()):
            found["the mix is " + "/".join(f"{one * 100:g}" for one in shares.values())] = None
        if any(getattr(tpcc, name) < 1 for name in _PACE):
            found["keying and think times are shortened or none"] = None
    return "; ".join(found) or None


def several_factors(seen: Seen) -> str | None:
    """What a stage gains has a name only if one thing changed."""
    found = []
    for before, stage in _steps(seen.plan):
        layers = {
            "settings": changed_settings(before, stage),
            "the client": changed_client(before, stage),
            "the build": {"build"} if before.build != stage.build else set(),
            "the folder": {"folder"} if before.folder != stage.folder else set(),
        }
        names = [layer for layer, changed in layers.items() if changed]
        client = layers["the client"]
        if len(names) > 1:
            found.append(f"{stage.name} changes {listed(names)} at once")
        elif len(client) > 1:
            found.append(f"{stage.name} changes {listed(sorted(client))} at once")
    return "; ".join(found) or None


def no_checkpoint(seen: Seen) -> str | None:
    """A window must hold whole checkpoint cycles, or its cost is not in the number."""
    names = [
        stage.name
        for stage in seen.stages
        if stage.checkpoint_cycle and stage.checkpoint_cycle.verdict == "finding"
    ]
    return f"no whole checkpoint cycle in windows of {listed(names)}" if names else None


def unequal_beginning(seen: Seen) -> str | None:
    """Warm-up is the protocol's, alike for all; so must be the number of sessions."""
    sessions = {stage.name: stage.workload.sessions for stage in seen.plan.stages}
    if len(set(sessions.values())) > 1:
        counts = ", ".join(f"{name} {count}" for name, count in sessions.items())
        return f"sessions differ between stages: {counts}"
    return None


def measured_once(seen: Seen) -> str | None:
    """One round has no spread, and so no interval."""
    names = [stage.name for stage in seen.stages if len(stage.rounds) == 1]
    return f"measured once, so that no interval can be given: {listed(names)}" if names else None


def settings_hash(result: TrialResult) -> str:
    """A name for the effective settings of a trial, without what is chosen anew for each."""
    lines = sorted(f"{s.name}={s.value}" for s in result.settings if s.name not in _PER_RUN)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]


def other_settings(seen: Seen) -> str | None:
    """What the server said of its settings must be the same in all rounds of a stage."""
    hashes: dict[str, set[str]] = {}
    for trial, result in seen.results():
        hashes.setdefault(trial.stage, set()).add(settings_hash(result))
    names = [stage for stage, found in hashes.items() if len(found) > 1]
    return f"effective settings differ between rounds of {listed(names)}" if names else None


def other_duration(seen: Seen) -> str | None:
    """The time that the driver itself counted must be the time that was asked for."""
    planned = seen.plan.protocol.window_s
    found = [
        f"trial {trial.number} {result.window_s:.4g} s"
        for trial, result in seen.results()
        if not is_of_length(result, planned)
    ]
    return f"a window of {planned:g} s was asked for: {', '.join(found)}" if found else None


def other_column(seen: Seen) -> str | None:
    """A stage's median must be that of its own trials."""
    measured: dict[str, list[float]] = {}
    for trial, result in seen.results():
        measured.setdefault(trial.stage, []).append(result.throughput)
    printed = {stage.name: stage.throughput.median for stage in seen.stages if stage.throughput}
    found = misplaced(printed, {name: median(values) for name, values in measured.items()})
    mixed_up = [f"{name} is printed with what {owner} measured" for name, owner in found.items()]
    return "; ".join(mixed_up) or None


def copied(seen: Seen) -> str | None:
    """Two trials that agree to the digit are one that was copied."""
    first: dict[object, int] = {}
    found = []
    for trial, result in seen.results():
        print_of = tuple(
            (kind.kind, kind.window, tuple(kind.response_ns.items())) for kind in result.kinds
        )
        if print_of in first:
            found.append(f"trials {first[print_of]} and {trial.number} agree to the digit")
        first.setdefault(print_of, trial.number)
    return "; ".join(found) or None


def not_comparable(seen: Seen) -> str | None:
    """Whatever differs between trials besides their stage is named."""
    found = [
        f"{one.what} ({'; '.join(one.values)})" for one in seen.differences if not one.explanation
    ]
    return f"unexplained: {', '.join(found)}" if found else None


def off_the_path(seen: Seen) -> str | None:
    """A factor shows only where the load waits for it."""
    found = []
    for before, stage in _steps(seen.plan):
        values = {one.name: one.value.lower() for one in stage.settings}
        idle = {
            name: why
            for name in changed_settings(before, stage)
            if (why := _idle(name, values, stage.workload.sessions))
        }
        if before.folder != stage.folder and (why := _no_flush(values)):
            idle["the flush of another disk"] = why
        found += [f"{stage.name}: {name} cannot show while {why}" for name, why in idle.items()]
    return "; ".join(found) or None


def _idle(name: str, values: dict[str, str], sessions: int) -> str | None:
    """Why a setting has nothing to act on; None if it may have."""
    group = ("commit_delay", "commit_siblings")
    if name in (*group, "wal_sync_method") and (why := _no_flush(values)):
        return why
    siblings = int(values.get("commit_siblings", "5"))
    if name in group and sessions <= siblings:
        others = plural(siblings, "other that is open", "others that are open")
        return f"one of {plural(sessions, 'session')} never has {others}"
    if name == "wal_compression" and values.get("full_page_writes", "on") in _OFF:
        return "full_page_writes = off"
    return None


def _no_flush(values: dict[str, str]) -> str | None:
    """Why no commit waits for the disk; None if it does."""
    for switch in ("fsync", "synchronous_commit"):
        if values.get(switch, "on") in _OFF:
            return f"{switch} = off"
    return None


def order_or_cache(seen: Seen) -> str | None:
    """Stages must take turns, and begin with the same caches."""
    found = []
    if seen.plan.protocol.rounds == 1 and len(seen.plan.stages) > 1:
        found.append("one round: the order of stages was never another")
    if not seen.plan.protocol.prewarm and seen.plan.protocol.warmup_s == 0:
        found.append("neither prewarm nor warm-up")
    if not seen.plan.protocol.checkpoint_before:
        found.append("no CHECKPOINT before the load: what a trial left to write, the next one paid")
    found += [
        f"{one.what}: {'; '.join(one.values)}"
        for one in seen.differences
        if one.what == "place in the round"
    ]
    return "; ".join(found) or None


def not_measured(seen: Seen) -> str | None:
    """A configuration without a finished trial has no number here, and no praise."""
    names = [stage.name for stage in seen.stages if not stage.rounds]
    return f"planned, but not measured: {listed(names)}" if names else None


def price_hidden(seen: Seen) -> str | None:
    """Where durability is given up, two stages must differ in nothing else."""
    found = []
    if seen.plan.stages[0].rung not in words.SAFE:
        found.append(f"the first stage stands on {seen.plan.stages[0].rung} already")
    for rung in dict.fromkeys(stage.rung for stage in seen.plan.stages):
        if rung not in words.SAFE and not _priced(seen.plan, rung):
            found.append(f"no two stages differ in nothing but what leads to {rung}")
    return "; ".join(found) or None


def _priced(plan: Plan, rung: str) -> bool:
    durability = {name for name, knob in knobs().items() if knob.fall} | _COMPANIONS
    return any(
        safe.rung in words.SAFE
        and fallen.rung == rung
        and safe.build == fallen.build
        and safe.folder == fallen.folder
        and safe.workload == fallen.workload
        and changed_settings(safe, fallen) <= durability
        for safe in plan.stages
        for fallen in plan.stages
    )


def _steps(plan: Plan) -> Iterator[tuple[Stage, Stage]]:
    """Each stage after the one that it is compared with as a step."""
    return pairwise(stage for stage in plan.stages if stage.twin_of is None)
