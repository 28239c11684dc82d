"""The metrics of a run: which there are, and their values at a moment.

Counters grow while the worker lives, over all trials of it. Histograms and events are of finished
trials, those that were measured again included, so that they never fall; ratios are the report's.
What begins with `trial_` is of the trial that runs: between two windows there is none of it. Where
something was not measured, there is no sample.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from operator import lt

from pgdyno.analysis.answer_facts import TailFacts
from pgdyno.analysis.facts import Comparison
from pgdyno.live.buckets import BOUNDS_NS, cumulative
from pgdyno.live.run_progress import PHASES, STARTING, Moment
from pgdyno.live.running import Running
from pgdyno.live.so_far import SoFar
from pgdyno.live.telemetry import Device
from pgdyno.model.openmetrics import Family, Kind, Sample, histogram
from pgdyno.model.progress import DriveProgress
from pgdyno.model.run import KindResult, TrialRecord, TrialState
from pgdyno.store.histogram import Quantiles

_NS = 1e9
_MINUTE_S = 60.0


def _family(name: str, kind: Kind, unit: str, text: str, *labels: str) -> Family:
    return Family(f"pgdyno_{name}", kind, unit, text, labels)


RUN = _family("run", "info", "", "The run that is shown.", "run", "plan", "version")
PHASE = _family("phase", "stateset", "", "What is done now.", "pgdyno_phase")
TRIALS = _family("trials", "gauge", "", "Trials of the plan by their state.", "state")
TRIAL = _family("trial_number", "gauge", "", "The trial that is measured, by its number.")
ROUND = _family("round_number", "gauge", "", "The round of that trial.")
STAGE = _family("stage", "stateset", "", "The stage of that trial.", "pgdyno_stage")
LEFT = _family("time_left_seconds", "gauge", "seconds", "About what the whole plan still takes.")
COMMITTED = _family(
    "transactions_committed", "counter", "",
    "Transactions committed, warm-ups included; pgbench counts all kinds together, as all.",
    "stage", "kind",
)  # fmt: skip
ROLLED_BACK = _family(
    "transactions_rolled_back", "counter", "",
    "Transactions that ended in the rollback that the workload asks for.", "stage",
)  # fmt: skip
FAILED = _family("transactions_failed", "counter", "", "Transactions that failed.", "stage")
RETRIES = _family("retries", "counter", "", "Transactions that were tried again.", "stage")
RECONNECTS = _family("reconnects", "counter", "", "Connections that were opened anew.", "stage")
CONNECTIONS = _family("connections", "gauge", "", "Connections of the driver at this moment.")
LATENCY = _family(
    "trial_response_mean_seconds", "gauge", "seconds",
    "Mean of the last second of the trial that runs, where the driver tells it: pgbench does.",
)  # fmt: skip
ROUNDS = _family("stage_rounds", "gauge", "", "Finished rounds of a stage.", "stage")
THROUGHPUT = _family(
    "stage_throughput_per_second", "gauge", "",
    "Median of a stage's finished rounds, a second: New-Orders where the metric is NOPM, else"
    " transactions.", "stage", "metric",
)  # fmt: skip
RATIO = _family(
    "stage_ratio", "gauge", "ratio",
    "Throughput of a stage to that of the first of its load: estimate, and the interval's ends.",
    "stage", "base", "bound",
)  # fmt: skip
RESPONSE = _family(
    "response_seconds", "histogram", "seconds",
    "Response times in the windows of finished trials, from when a request was due; values to"
    " three digits.", "stage", "kind",
)  # fmt: skip
ACTIVE = _family(
    "stage_active_sessions", "gauge", "",
    "Active sessions on average in a stage's finished windows, by what they do or wait for.",
    "stage", "class",
)  # fmt: skip
TAIL = _family(
    "stage_response_ratio", "gauge", "ratio",
    "The slowest requests of a stage to those of the first of its load: estimate, and the"
    " interval's ends; above 1 they take longer.",
    "stage", "base", "kind", "percentile", "bound",
)  # fmt: skip
EVENTS = _family(
    "events", "counter", "",
    "Checkpoints, autovacuums and the like in finished trials, as the server's log has them.",
    "stage", "kind",
)  # fmt: skip
LOGGED = _family(
    "logged_events", "counter", "",
    "The same as the log tells them, of the trial that runs, too; of servers that pgdyno started.",
    "stage", "kind",
)  # fmt: skip
NOW_ACTIVE = _family(
    "trial_active_sessions", "gauge", "",
    "Active sessions of the trial that runs in its last second, by what they do or wait for.",
    "class",
)  # fmt: skip
NOW_CPU = _family(
    "trial_cpu_ratio", "gauge", "ratio",
    "Share of the time of all CPUs of this host in the last second of the trial that runs.",
    "state",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _OfDevices:
    """What is served of devices, of the trial that runs, or of the last that has ended."""

    busy: Family
    moved: Family
    requests: Family
    each: Family

    @property
    def families(self) -> tuple[Family, ...]:
        return (self.busy, self.moved, self.requests, self.each)


def _of(prefix: str, when: str) -> _OfDevices:
    return _OfDevices(
        _family(f"{prefix}device_busy_ratio", "gauge", "ratio",
                f"Share of {when} in which a device had requests.", "device"),
        _family(f"{prefix}device_bytes_per_second", "gauge", "",
                f"Bytes a second to and from a device in {when}.", "device", "direction"),
        _family(f"{prefix}device_requests_per_second", "gauge", "",
                f"Reads, writes and flushes of a device a second in {when}.", "device", "request"),
        _family(f"{prefix}device_request_seconds", "gauge", "seconds",
                f"What each of these took on average in {when}.", "device", "request"),
    )  # fmt: skip


DEVICES = _of("", "the last finished window")
NOW_DEVICES = _of("trial_", "the last second of the trial that runs")
CPU = _family("live_cpu_seconds", "counter", "seconds", "CPU of the process that serves this.")
VIEWERS = _family("live_viewers", "gauge", "", "Who looks at the page now.")

FAMILIES = (
    RUN, PHASE, TRIALS, TRIAL, ROUND, STAGE, LEFT, COMMITTED, ROLLED_BACK, FAILED, RETRIES,
    RECONNECTS, CONNECTIONS, ROUNDS, THROUGHPUT, RATIO, TAIL, RESPONSE, ACTIVE,
    *DEVICES.families, EVENTS, LATENCY, NOW_ACTIVE, NOW_CPU, *NOW_DEVICES.families, LOGGED,
    CPU, VIEWERS,
)  # fmt: skip
_BOUNDS = ("low", "estimate", "high")


@dataclass(slots=True)
class Counted:
    """What the driver counted since the worker began, over all trials, by stage."""

    committed: Counter[tuple[str, str]] = field(default_factory=Counter)  # stage, kind
    others: dict[Family, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    _trial: tuple[int | None, str] | None = None
    _last: DriveProgress | None = None

    def hear(self, moment: Moment) -> None:
        """Take in what is new; a driver counts from zero in every trial."""
        if moment.drive is None or moment.stage is None:
            return
        now, trial = moment.drive, (moment.number, moment.stage)
        before = self._last if self._trial == trial else None
        if before is not None and _began_anew(before, now):
            before = None  # the same trial, measured again
        self._trial, self._last = trial, now
        for kind, count in now.committed.items():
            since = before.committed.get(kind, 0) if before else 0
            self.committed[moment.stage, kind] += count - since
        for family, name in _COUNTS.items():
            since = getattr(before, name) if before else 0
            self.others[family][moment.stage] += getattr(now, name) - since


def _began_anew(before: DriveProgress, now: DriveProgress) -> bool:
    counts = (*now.committed.values(), *(getattr(now, name) for name in _COUNTS.values()))
    then = (before.committed.get(kind, 0) for kind in now.committed)
    were = (*then, *(getattr(before, name) for name in _COUNTS.values()))
    return now.elapsed_s < before.elapsed_s or any(map(lt, counts, were))


_COUNTS = {
    ROLLED_BACK: "rolled_back", FAILED: "failed", RETRIES: "retries", RECONNECTS: "reconnects",
}  # fmt: skip


_Buckets = tuple[tuple[int, ...], int, float]  # at most each bound; all of them; their sum, s


class Responses:
    """Response times of finished trials as histograms; each trial is looked at once."""

    def __init__(self, quantiles: Quantiles, recorded: Callable[[str], int]) -> None:
        self._quantiles, self._recorded = quantiles, recorded
        self._known: dict[str, _Buckets] = {}  # by the histogram itself

    def samples(self, trials: Sequence[TrialRecord]) -> Iterator[Sample]:
        """Histograms by stage and kind."""
        together: dict[tuple[str, str], list[_Buckets]] = defaultdict(list)
        for trial in trials:
            if trial.state is not TrialState.FINISHED or trial.result is None:
                continue
            for kind in trial.result.kinds:
                if (one := self._of(kind))[1]:
                    together[trial.stage, kind.kind].append(one)
        for labels, several in together.items():
            counts = [sum(column) for column in zip(*(one[0] for one in several), strict=True)]
            bounds = [ns / _NS for ns in BOUNDS_NS]
            buckets = dict(zip(bounds, counts, strict=True)) | {inf: sum(one[1] for one in several)}
            yield from histogram(RESPONSE, labels, buckets, sum(one[2] for one in several))

    def _of(self, kind: KindResult) -> _Buckets:
        if kind.response not in self._known:
            count = self._recorded(kind.response)
            buckets = cumulative(kind.response, count, self._quantiles)
            mean_s = kind.response_ns.get("mean", 0) / _NS
            self._known[kind.response] = (buckets, count, mean_s * count)
        return self._known[kind.response]


def of_moment(moment: Moment) -> Iterator[Sample]:
    """What is so at a moment."""
    for phase in dict.fromkeys((STARTING, *PHASES, moment.phase)):
        yield Sample(PHASE, (phase,), phase == moment.phase)
    yield Sample(LEFT, (), moment.left_s)
    if moment.number is not None and moment.round is not None:
        yield Sample(TRIAL, (), moment.number)
        yield Sample(ROUND, (), moment.round)
    if moment.drive is not None:
        yield Sample(CONNECTIONS, (), moment.drive.connected)
        if moment.latency_s is not None:
            yield Sample(LATENCY, (), moment.latency_s)


def of_counted(counted: Counted) -> Iterator[Sample]:
    """What was counted since the worker began."""
    for labels, value in counted.committed.items():
        yield Sample(COMMITTED, labels, value)
    for family, by_stage in counted.others.items():
        for stage, value in by_stage.items():
            yield Sample(family, (stage,), value)


def of_run(found: SoFar, stage_now: str | None) -> Iterator[Sample]:
    """What the run file holds."""
    facts = found.facts
    yield Sample(RUN, (facts.ident, facts.plan, facts.pgdyno), 1)
    for state, count in Counter(one.state.value for one in found.trials).items():
        yield Sample(TRIALS, (state,), count)
    for stage in facts.stages:
        yield Sample(STAGE, (stage.name,), stage.name == stage_now)
        yield Sample(ROUNDS, (stage.name,), len(stage.rounds))
        if stage.throughput is not None:
            a_second = stage.throughput.median / (_MINUTE_S if facts.headline == "NOPM" else 1)
            yield Sample(THROUGHPUT, (stage.name, facts.headline), a_second)
        if (one := stage.to_first) is not None:
            yield from _bounds(RATIO, (stage.name, one.base), one)
        for tail in stage.tails:
            labels = (stage.name, tail.base, tail.kind, tail.percentile)
            yield from _bounds(TAIL, labels, tail)
    for sessions in facts.sessions:
        for share in sessions.by["class"]:
            yield Sample(ACTIVE, (sessions.stage, share.name), share.average)
    if found.telemetry is not None:
        yield from _of_devices(DEVICES, found.telemetry.devices)
    yield from _of_events(found)


def _bounds(
    family: Family, labels: tuple[str, ...], one: Comparison | TailFacts
) -> Iterator[Sample]:
    for bound, value in zip(_BOUNDS, (one.low, one.ratio, one.high), strict=True):
        if value is not None:
            yield Sample(family, (*labels, bound), value)


def of_running(running: Running) -> Iterator[Sample]:
    """What is sampled of the trial that runs; of what was logged, all since the worker began."""
    for labels, count in running.happened.items():
        yield Sample(LOGGED, labels, count)
    if not running.is_shown:
        return
    for name, average in running.sessions.items():
        yield Sample(NOW_ACTIVE, (name,), average)
    for state, share in running.cpus.items():
        yield Sample(NOW_CPU, (state,), share)
    yield from _of_devices(NOW_DEVICES, running.devices)


def _of_devices(of: _OfDevices, devices: Sequence[Device]) -> Iterator[Sample]:
    for one in devices:
        told = (
            (of.busy, (), one.busy_share),
            (of.moved, ("read",), one.read_bytes_per_s),
            (of.moved, ("write",), one.write_bytes_per_s),
            (of.requests, ("read",), one.reads_per_s),
            (of.requests, ("write",), one.writes_per_s),
            (of.requests, ("flush",), one.flushes_per_s),
            (of.each, ("read",), one.read_s),
            (of.each, ("write",), one.write_s),
            (of.each, ("flush",), one.flush_s),
        )
        for family, labels, value in told:
            if value is not None:
                yield Sample(family, (one.name, *labels), value)


def _of_events(found: SoFar) -> Iterator[Sample]:
    counts = Counter(
        (trial.stage, event.kind)
        for trial in found.ever
        if trial.result is not None
        for event in trial.result.events
    )
    for labels, count in counts.items():
        yield Sample(EVENTS, labels, count)
