"""Windows of a run file as the rules of diagnosis read them; from the file alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from pgdyno.analysis.ceiling import ceiling_of_trial, rate
from pgdyno.analysis.judged import plan_in, server_is_here
from pgdyno.analysis.session_account import account_of
from pgdyno.analysis.stopping import still_needed
from pgdyno.analysis.stored import Stored
from pgdyno.analysis.trials import per_second
from pgdyno.analysis.window_facts import (
    CheckpointSpan,
    Driver,
    Load,
    StageWindows,
    WindowFacts,
)
from pgdyno.model.counters import levels
from pgdyno.model.errors import PlanError
from pgdyno.model.plan import Plan, Stage
from pgdyno.model.resets import began_anew
from pgdyno.model.run import (
    RunInfo,
    Series,
    SnapshotRows,
    TallySeries,
    TrialRecord,
    TrialResult,
    TrialState,
)
from pgdyno.model.sampler_gaps import in_time
from pgdyno.model.server_host import BY_SOCKET
from pgdyno.model.wording import listed

NS = 1e9
_COSTS = ("database.blocks_hit", "process.backend.cpu_s")
"""Counters that are followed over the window, by what a transaction takes of them."""
_ROWS_MIN = 10.0  # tables with fewer rows are not asked for their dead ones


def stage_windows(stored: Stored, stage: str | None = None) -> tuple[StageWindows, ...]:
    """The windows of each stage, in the order of the plan.

    Args:
        stored: The run file.
        stage: One stage alone; None: all.

    Raises:
        PlanError: No plan was run, or there is no such stage.
        StoreError: The file cannot be read.
    """
    run = stored.run
    info = run.info()
    plan = plan_in(info)
    names = [one.name for one in plan.stages]
    if stage is not None and stage not in names:
        raise PlanError(f"no stage is called {stage!r}, there are {listed(names)}")
    trials = still_needed(plan, info.host, run.trials(), run.replaced())
    found = []
    for one in plan.stages:
        if stage not in (None, one.name):
            continue
        windows = []
        for trial in trials:
            if trial.stage != one.name or trial.state is not TrialState.FINISHED:
                continue
            assert trial.result is not None, f"trial {trial.number} is finished without a result"
            ceiling_per_s = ceiling_of_trial(info, one.workload, trial.result)
            known = window_facts(
                trial, plan, one, stored.series(trial.number), stored.tallies(trial.number),
                stored.snapshots(trial.number), ceiling_per_s,
                server_on_host=server_is_here(info),
            )  # fmt: skip
            windows.append(replace(known, client=_client(info, plan, one)))
        found.append(StageWindows(one.name, tuple(windows)))
    return tuple(found)


def window_facts(
    trial: TrialRecord,
    plan: Plan,
    stage: Stage,
    series: Mapping[str, Series],
    tallies: Mapping[str, TallySeries],
    snapshots: Sequence[SnapshotRows] = (),
    ceiling_per_s: float | None = None,
    *,
    server_on_host: bool = True,
) -> WindowFacts:
    """What is known of a finished trial's window.

    Args:
        trial: The trial.
        plan: It is of.
        stage: That it measured.
        series: Of the trial, by their names.
        tallies: The same.
        snapshots: Read at the window's ends.
        ceiling_per_s: What the driver reaches on its machine; None: not calibrated.
        server_on_host: Whether driver and server share a machine.
    """
    result = trial.result
    assert result is not None, f"trial {trial.number} has no result"
    second, ended = _seconds(result, series)
    gauges = {name: inside for name, one in series.items()
              if one.kind == "gauge" and (inside := _inside(result, one)).size}  # fmt: skip
    told = result.telemetry
    lacking = told.missing if told else ()
    return WindowFacts(
        trial=trial.number,
        round=trial.round,
        stage=trial.stage,
        window_s=result.window_s,
        telemetry=told.set if told else plan.protocol.telemetry,
        missing=tuple(f"{one.name}: {one.reason}" for one in lacking),
        remedies={one.name: one.remedy for one in lacking if one.remedy},
        account=account_of(
            trial,
            tallies,
            beside_server=server_on_host,
            hidden=_hidden(stage),
        ),
        load=_load(result, stage),
        driver=_driver(result, ceiling_per_s, server_on_host=server_on_host),
        grown=result.deltas,
        gauges={name: float(values.mean()) for name, values in gauges.items()},
        highest={name: float(values.max()) for name, values in gauges.items()},
        settings={one.name: one.value for one in result.settings},
        checkpoints=_checkpoints(result),
        second=second,
        ended=ended,
        costs=_costs(result, series, second, began_anew(snapshots)),
        dead_share=_dead_shares(in_time(snapshots, result.window_ns)),
        shortened=plan.origins.get("protocol.window_s") == "quick",
    )


def _client(info: RunInfo, plan: Plan, stage: Stage) -> frozenset[str]:
    """How the client works: what it does already is no advice."""
    transport: str = plan.target.transport
    if plan.target.kind == "running":
        transport = "socket" if info.server.get("reached by") == BY_SOCKET else "tcp"
    return frozenset({f"transport = {transport}", f"face = {stage.workload.face}"})


def _hidden(stage: Stage) -> str | None:
    """Why a terminal may wait while no session of the server is there that would show it."""
    if stage.workload.replica_connections:
        return "a replica answered a part of the load, whose sessions were not sampled"
    if stage.pooler is not None:
        return "clients shared the sessions of a pooler, and have none while they wait"
    return None


def _inside(result: TrialResult, one: Series) -> npt.NDArray[np.float64]:
    begin, end = result.window_ns
    return one.values[(one.unix_ns >= begin) & (one.unix_ns <= end)]


def _seconds(
    result: TrialResult, series: Mapping[str, Series]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    unix_ns, counts = per_second(series)
    begin, end = result.window_ns
    inside = (unix_ns >= begin) & (unix_ns + NS <= end)
    return (unix_ns[inside] - begin) / NS + 0.5, counts[inside]


def _load(result: TrialResult, stage: Stage) -> Load:
    counts = [kind.window for kind in result.kinds]
    ended = sum(one.ended for one in counts)
    return Load(
        arrivals=stage.workload.arrivals.kind,
        connections=stage.workload.sessions,
        due=sum(one.due for one in counts),
        ended=ended,
        failed=sum(one.failed for one in counts),
        skipped=sum(one.skipped for one in counts),
        unanswered=sum(one.unanswered for one in counts) + result.unlogged,
        waits_share=_waits_share(result),
        round_trips=result.round_trips_per_transaction,
        per_s=ended / result.window_s if result.window_s > 0 else 0.0,
    )


def _waits_share(result: TrialResult) -> float:
    """Of a terminal's time, that it keys and thinks."""
    waits = asks = 0.0
    for kind in result.kinds:
        timed = kind.window.timed
        waits += timed * ((kind.keying_mean_s or 0.0) + (kind.think_mean_s or 0.0))
        asks += timed * kind.response_ns.get("mean", 0) / NS
    return waits / (waits + asks) if waits > 0 else 0.0


def _driver(result: TrialResult, ceiling_per_s: float | None, *, server_on_host: bool) -> Driver:
    client = result.client
    window_s = client.window_s or result.window_s
    threads = client.thread_cpu_s
    wanted = None
    if threads and len(threads) == len(client.thread_wait_s):
        wanted = max(map(sum, zip(threads, client.thread_wait_s, strict=True))) / window_s
    return Driver(
        engine=result.engine,
        cpus=client.cpus,
        cpu_s=client.cpu_s,
        wanted=None if wanted is None else min(1.0, wanted),
        busiest=min(1.0, max(threads) / window_s) if threads else None,
        ceiling_share=rate(result) / ceiling_per_s if ceiling_per_s else None,
        beside_server=server_on_host,
    )


def _checkpoints(result: TrialResult) -> tuple[CheckpointSpan, ...] | None:
    if result.checkpoints is None:
        return None
    begin, end = result.window_ns
    return tuple(
        CheckpointSpan(
            (one.start_ns - begin) / NS,
            None if one.end_ns is None else (one.end_ns - begin) / NS,
            one.detail.sync_s,
        )
        for one in result.checkpoints
        if one.start_ns < end and (one.end_ns is None or one.end_ns > begin)
    )


def _costs(
    result: TrialResult,
    series: Mapping[str, Series],
    second: npt.NDArray[np.float64],
    anew: Collection[str],
) -> dict[str, npt.NDArray[np.float64]]:
    """Growth of some counters in each second of the window, of those of which it is known."""
    begin, _ = result.window_ns
    edges = np.rint(np.concatenate([second[:1] - 0.5, second + 0.5]) * NS).astype(np.int64) + begin
    known = {
        name: at for name in _COSTS
        if name in series and (at := levels(series[name], edges, anew)) is not None
    }  # fmt: skip
    return {name: np.diff(at) for name, at in known.items()}


def _dead_shares(snapshots: Sequence[SnapshotRows]) -> dict[str, tuple[float, float]]:
    """Dead rows among all, by table, at begin and end of the window."""
    shares: dict[str, dict[str, float]] = {}
    for one in snapshots:
        if one.name != "tables":
            continue
        for row in one.rows:
            dead, live = row.get("dead_rows"), row.get("live_rows")
            if isinstance(dead, int | float) and isinstance(live, int | float):
                known = shares.setdefault(str(row.get("relation")), {})
                known[one.at] = dead / (dead + live) if dead + live >= _ROWS_MIN else 0.0
    return {
        table: (known["begin"], known["end"]) for table, known in shares.items() if len(known) == 2
    }
