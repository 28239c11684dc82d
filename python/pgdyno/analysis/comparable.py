"""What all trials share, and what differs between them besides the settings of their stages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

from pgdyno.analysis import words
from pgdyno.analysis.facts import Difference
from pgdyno.model.plan import Plan, Stage, Target
from pgdyno.model.run import Effective, TrialRecord, TrialResult
from pgdyno.model.server_result import of_server
from pgdyno.model.settings import OriginKind
from pgdyno.model.units import digits_text, seconds_text
from pgdyno.model.wording import listed, often, plural
from pgdyno.model.workload import Arrivals, Tpcc, Workload
from pgdyno.plan.describe import arrivals_text, build_text, size_text
from pgdyno.plan.settings.checkpoints import protocol_text

WINDOW_TOLERANCE = 0.01  # of the planned window; less is how a driver stops
_VERSION = "what the server calls itself"
_BY_BUILD = "the plan gives these stages other builds"
_BY_CLIENT = "the plan gives these stages other clients"
_BETWEEN_ROUNDS = "it lies between two rounds, and stages are compared within each"
PAUSE_S = 600.0  # between two trials; a resumed run, or a machine that slept

# Settings that the server computes from others when nobody sets them (PostgreSQL documentation,
# chapter "Server Configuration").
DERIVED = {
    "wal_buffers": "the server derives it from shared_buffers",
    "transaction_buffers": "the server derives it from shared_buffers",
    "subtransaction_buffers": "the server derives it from shared_buffers",
    "commit_timestamp_buffers": "the server derives it from shared_buffers",
    "shared_memory_size": "the server derives it from shared_buffers and other settings",
    "shared_memory_size_in_huge_pages": "the server derives it from shared_memory_size",
    "huge_pages_status": "the server says whether it got huge pages",
}


def differences(plan: Plan, trials: Sequence[TrialRecord]) -> tuple[Difference, ...]:
    """Find what differs between finished trials and is not a setting of their stages.

    Args:
        plan: The resolved plan.
        trials: Finished trials, in the order of execution.
    """
    return (
        *_builds(plan, trials),
        *_settings(plan, trials),
        *_measured(plan, trials),
        *_orders(plan, trials),
        *_pauses(trials),
    )


def shared(plan: Plan, trials: Sequence[TrialRecord]) -> dict[str, str]:
    """What all trials have in common, as far as the plan fixes it and the trials confirm it."""
    protocol = plan.protocol
    loads = [_load(stage.workload) for stage in plan.stages]
    lines = {
        **_transport(plan.target),
        **{key: one for key, one in loads[0].items() if all(o.get(key) == one for o in loads)},
        "warm-up, window": f"{protocol.warmup_s:g} s, {protocol.window_s:g} s",
        **({"checkpoints": text} if (text := protocol_text(protocol)) else {}),
        "prewarm": "yes" if protocol.prewarm else "no",
        "CHECKPOINT before the load": "yes" if protocol.checkpoint_before else "no",
        **({"telemetry": protocol.telemetry} if protocol.telemetry != "default" else {}),
    }
    threads = {trial.result.client.threads for trial in trials if trial.result}
    if len(threads) == 1:
        lines["driver threads"] = str(threads.pop())
    engines = {trial.result.engine for trial in trials if trial.result}
    if len(engines) == 1:
        lines["engine"] = engines.pop()
    return lines


def _transport(target: Target) -> dict[str, str]:
    """How a load gets to a server of ours; another one says itself how it was reached."""
    if target.kind == "running":
        return {}
    return {"transport": "Unix socket" if target.transport == "socket" else "TCP"}


def _load(load: Workload) -> dict[str, str]:
    return {
        "connections": str(load.connections),
        "terminals": str(load.terminals),
        "size": size_text(load),
        "seed": str(load.seed),
        "isolation": load.isolation,
        "face": load.face,
        "arrivals": arrivals_text(load.arrivals),
        **(_tpcc(load.tpcc) if load.tpcc else {}),
    }


def asked_of(load: Workload) -> str:
    """What decides the inputs of a workload, in one text: equal where the audits may be added."""
    alike = replace(
        load, face="statement", isolation="read committed", connections=1, terminals=1,
        threads=None, arrivals=Arrivals(), steps=(), requests_max=None,
    )  # fmt: skip
    return repr(alike)


def _tpcc(tpcc: Tpcc) -> dict[str, str]:
    total = sum(tpcc.mix.values())
    mix = ", ".join(
        f"{words.kind(k)} {digits_text(w / total * 100, 4)}%" for k, w in tpcc.mix.items()
    )
    return {
        "transaction mix": mix,
        "schema": tpcc.schema + (", with foreign keys" if tpcc.foreign_keys else ""),
        "keying and think time": _pace(tpcc.keying_multiplier, tpcc.think_multiplier),
        "delivery": tpcc.delivery,
    }


def _pace(keying: float, think: float) -> str:
    if keying == think == 0:
        return "none: terminals ask as fast as they are answered"
    return f"×{keying:g} and ×{think:g} of the text's"


def _builds(plan: Plan, trials: Sequence[TrialRecord]) -> list[Difference]:
    """Which trials ran on which build, where stages name some."""
    of_trial = {trial.number: plan.stage(trial.stage).build for trial in trials}
    values = {
        number: build_text(build) if build else "the target's own installation"
        for number, build in of_trial.items()
    }
    if len(set(values.values())) < 2:
        return []
    return [Difference("build", _grouped(values), _BY_BUILD)]


def _settings(plan: Plan, trials: Sequence[TrialRecord]) -> list[Difference]:
    read = {trial.number: _read_in(trial.result) for trial in trials if trial.result}
    stage_of = {trial.number: trial.stage for trial in trials}
    chosen = {setting.name for stage in plan.stages for setting in stage.settings}
    found = []
    for name in sorted({name for lines in read.values() for name in lines}):
        values = {
            number: lines[name].value if name in lines else "not read"
            for number, lines in read.items()
        }
        if len(set(values.values())) < 2:
            continue
        per_stage: dict[str, set[str]] = {}
        for number, value in values.items():
            per_stage.setdefault(stage_of[number], set()).add(value)
        setting = name.rpartition(": ")[2]  # of whichever server
        if setting in chosen and all(len(seen) == 1 for seen in per_stage.values()):
            continue
        by_build = _BY_BUILD if _as_planned(plan, trials, values, _build_of) else None
        explanation = DERIVED.get(setting, by_build)
        origins = {lines[name].origin for lines in read.values() if name in lines}
        if origins == {"target"}:
            explanation = "pgdyno needs it to run the cluster"
        groups = _grouped(values)
        if len(groups) == len(values) > 2:
            groups = (f"another value in each of {plural(len(values), 'trial')}, e.g. {groups[0]}",)
        found.append(Difference(f"setting {name}", groups, explanation))
    return found


def _read_in(result: TrialResult) -> dict[str, Effective]:
    """Settings as read back in a trial, by name; those of further servers by server and name.

    What a stage sets is the same on all of them.
    """
    found = {line.name: line for line in result.settings}
    for server in result.servers[1:]:
        for setting, value in server.configured.items():
            name = of_server(server.name, setting)
            found[name] = Effective(name, value, OriginKind.SERVER.value, "")
    return found


def _calls_itself(server: str, result: TrialResult) -> str:
    return next((one.server for one in result.servers if one.name == server), "")


def _measured(plan: Plan, trials: Sequence[TrialRecord]) -> list[Difference]:
    """Things that the driver tells of each trial and that should be the same."""
    further = dict.fromkeys(
        one.name for trial in trials if trial.result for one in trial.result.servers[1:]
    )
    facts: tuple[tuple[str, Callable[[TrialResult], str], Callable[[Stage], str], str], ...] = (
        (_VERSION, lambda result: result.server, _build_of, _BY_BUILD),
        *(
            (of_server(name, _VERSION), partial(_calls_itself, name), _build_of, _BY_BUILD)
            for name in further
        ),
        ("engine", lambda result: result.engine, _load_of, _BY_CLIENT),
        ("driver threads", lambda result: str(result.client.threads), _load_of, _BY_CLIENT),
        ("CPUs of the driver's host", lambda result: str(result.client.cpus), _load_of, _BY_CLIENT),
        ("kinds of transactions", lambda result: ", ".join(kind.kind for kind in result.kinds),
         _load_of, _BY_CLIENT),
    )  # fmt: skip
    found = []
    for what, fact, aspect, explanation in facts:
        facts_by_trial = {trial.number: fact(trial.result) for trial in trials if trial.result}
        values = {number: text for number, text in facts_by_trial.items() if text}  # "": not asked
        if len(set(values.values())) > 1:
            explained = _as_planned(plan, trials, values, aspect)
            found.append(Difference(what, _grouped(values), explanation if explained else None))
    window = plan.protocol.window_s
    off = {
        trial.number: f"{trial.result.window_s:.1f} s"
        for trial in trials
        if trial.result and not is_of_length(trial.result, window)
    }
    if off:
        found.append(Difference(f"length of the window, planned {window:g} s", _grouped(off), None))
    return found


def is_of_length(result: TrialResult, planned_s: float) -> bool:
    """Whether a window lasted as planned: at least so long where checkpoints end it, else exactly.

    Within `WINDOW_TOLERANCE`.
    """
    beyond_s = result.window_s - planned_s
    if result.followed is not None:
        beyond_s = min(beyond_s, 0.0)
    return abs(beyond_s) <= WINDOW_TOLERANCE * planned_s


def _as_planned(
    plan: Plan,
    trials: Sequence[TrialRecord],
    values: Mapping[int, str],
    aspect: Callable[[Stage], str],
) -> bool:
    """Whether a fact differs only between stages that differ in this aspect."""
    seen: dict[str, set[str]] = {}
    for trial in trials:
        if trial.number in values:
            of_stage = aspect(plan.stage(trial.stage))
            seen.setdefault(of_stage, set()).add(values[trial.number])
    return all(len(some) == 1 for some in seen.values())


def _build_of(stage: Stage) -> str:
    return stage.build.ident if stage.build else ""


def _load_of(stage: Stage) -> str:
    return repr(stage.workload)


def _orders(plan: Plan, trials: Sequence[TrialRecord]) -> list[Difference]:
    """Whether each stage stood at each place of a round about equally often."""
    position_counts: dict[int, int] = {}
    seen: dict[int, int] = {}
    for trial in plan.trials:
        seen[trial.round] = seen.get(trial.round, 0) + 1
        position_counts[trial.number] = seen[trial.round]
    counts: dict[str, list[int]] = {stage.name: [0] * len(plan.stages) for stage in plan.stages}
    for record in trials:
        counts[record.stage][position_counts[record.number] - 1] += 1
    if all(max(count) - min(count) <= 1 for count in counts.values()):
        return []
    values = tuple(
        f"{name}: "
        + ", ".join(f"{often(n)} place {position}" for position, n in enumerate(count, 1) if n)
        for name, count in counts.items()
    )
    return [Difference("place in the round", values, None)]


def _pauses(trials: Sequence[TrialRecord]) -> list[Difference]:
    found = []
    for before, after in pairwise(trials):
        if before.ended_ns is None or after.started_ns is None:
            continue
        pause_s = (after.started_ns - before.ended_ns) / 1e9
        if pause_s > PAUSE_S:
            pause = f"{seconds_text(pause_s)} between trials {before.number} and {after.number}"
            cuts_a_round = before.round == after.round
            found.append(Difference("pause", (pause,), None if cuts_a_round else _BETWEEN_ROUNDS))
    return found


def _grouped(values: Mapping[int, str]) -> tuple[str, ...]:
    """`4MB in trials 1, 6 and 8`, one text for each value."""
    groups: dict[str, list[str]] = {}
    for number, value in values.items():
        groups.setdefault(value, []).append(str(number))
    return tuple(
        f"{value} in {'trial' if len(numbers) == 1 else 'trials'} {listed(numbers)}"
        for value, numbers in groups.items()
    )
