"""Mistakes that published tuning reports make, and the check that stands against each.

The classes are those found in the four field reports behind `plans/`. Some cannot be made here,
because numbers are computed from the run file alone; a check is kept against each all the same. A
check takes what is known of a run and returns a sentence with the stages or trials it is about, or
nothing; it changes no number. `python -m pgdyno.analysis.mistakes` prints the page
`docs/reference/mistakes.md`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from pgdyno.analysis import words
from pgdyno.analysis.comparable import is_of_length
from pgdyno.analysis.credit import changed_around, changed_client, changed_settings
from pgdyno.analysis.facts import Difference, MistakeFacts, StageFacts
from pgdyno.catalog import knobs
from pgdyno.model.plan import Plan, Stage
from pgdyno.model.run import TrialRecord, TrialResult
from pgdyno.model.units import digits_text
from pgdyno.model.wording import listed, plural
from pgdyno.plan.resolve.figure_checks import misplaced, mistyped

_HEAD = """\
# Mistakes that a report cannot make unnoticed

<!-- Made from the checks by `python -m pgdyno.analysis.mistakes`; do not edit. -->

Each class of mistake stands in one of the four field reports that `plans/` repeats. The checks run
on every run file; the report lists what they find under "Mistakes looked for". Their tests run on
the field reports' own figures.

| class | in a field report | check | where it fires |
|---|---|---|---|
"""


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


@dataclass(frozen=True, slots=True)
class NotKnown:
    """A check that cannot be made of this run."""

    why: str


Check = Callable[[Seen], str | NotKnown | None]


@dataclass(frozen=True, slots=True)
class Mistake:
    """A class of mistake."""

    ident: str
    what: str  # as a field report made it
    rule: str  # what is checked
    fires: str  # where, beside the section of the report
    check: Check
    grave: bool = True  # False: true of many honest runs; noted, so that nobody overlooks it
    simply: str = ""  # what it comes to without a term; empty: the first screen says it elsewhere
    of_plan: bool = False  # the plan alone may show it; else it is not known without a measurement


MISTAKES: list[Mistake] = []
"""In the order of their checks below."""


def _stands_against(
    ident: str,
    what: str,
    *,
    rule: str,
    fires: str,
    grave: bool = True,
    simply: str = "",
    of_plan: bool = False,
) -> Callable[[Check], Check]:
    """Make a check one of `MISTAKES`; for the arguments see there."""

    def note(check: Check) -> Check:
        MISTAKES.append(Mistake(ident, what, rule, fires, check, grave, simply, of_plan))
        return check

    return note


@_stands_against(
    "E1",
    "606,466 transactions a minute were called TPmC; 242,641 were New-Orders",
    rule="NOPM and all transactions stand to each other as the mix of TPC-C has New-Orders",
    fires="plan: `earlier`; report",
    simply="two figures of it that belong together do not fit each other",
)
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


@_stands_against(
    "E2",
    "a mix of 40/36/8/8/8 without keying and think times was called TPC-C",
    rule="mix and pacing against clause 5.2.3; results are called NOPM alone",
    fires="report: label, deviations",
    grave=False,
    of_plan=True,
)
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


@_stands_against(
    "E3",
    "client host, data size, connections and statement cache changed in one stage",
    rule="from stage to stage one layer changes: settings, client, build, folder, guard, unlogged"
    " tables, a disk that lies or pooler; one that begins afresh is a step from the one most"
    " like it",
    fires="report",
    simply="a stage changed several things at once, so that its gain has no single cause",
    of_plan=True,
)
def several_factors(seen: Seen) -> str | None:
    """What a stage gains has a name only if one thing changed."""
    found = []
    for before, stage in _steps(seen.plan):
        layers = _layers_changed(before, stage)
        client = layers.get("the client", ())
        if len(layers) > 1:
            found.append(f"{stage.name} changes {listed(list(layers))} at once")
        elif len(client) > 1:
            found.append(f"{stage.name} changes {listed(sorted(client))} at once")
    return "; ".join(found) or None


def _layers_changed(before: Stage, stage: Stage) -> dict[str, set[str]]:
    """What changed of each layer, of those that did."""
    layers = {
        "settings": changed_settings(before, stage),
        "the client": changed_client(before, stage),
        **{name: {name} for name in changed_around(before, stage)},
    }
    return {layer: changed for layer, changed in layers.items() if changed}


@_stands_against(
    "E4",
    "ten minutes were measured with checkpoints 35 to 55 min apart",
    rule="each window holds whole checkpoint cycles, where the load makes checkpoints due",
    fires="report: over time, answer",
)
def no_checkpoint(seen: Seen) -> str | NotKnown | None:
    """A window must hold whole checkpoint cycles, or its cost is not in the number."""
    names: dict[str, list[str]] = {}
    for stage in seen.stages:
        if stage.checkpoint_cycle:
            names.setdefault(stage.checkpoint_cycle.verdict, []).append(stage.name)
    if found := names.get("finding"):
        return f"no whole checkpoint cycle in windows of {listed(found)}"
    if unknown := names.get("unknown"):
        return NotKnown(f"it is not known whether checkpoint cycles of {listed(unknown)} are whole")
    return None


@_stands_against(
    "E5",
    "one stage was read into memory first, and had fewer terminals",
    rule="warm-up and prewarm are the plan's, for all stages; sessions are equal",
    fires="plan: no such key of a stage; report",
    simply="the stages did not have the same number of connections",
    of_plan=True,
)
def unequal_beginning(seen: Seen) -> str | None:
    """Warm-up is the protocol's, alike for all; so must be the number of sessions."""
    sessions = {stage.name: stage.workload.sessions for stage in seen.plan.stages}
    if len(set(sessions.values())) > 1:
        counts = ", ".join(f"{name} {count}" for name, count in sessions.items())
        return f"sessions differ between stages: {counts}"
    return None


@_stands_against(
    "E6",
    "gains of 1.2% and 3.7% from one run each",
    rule="no verdict without two paired rounds; better only with an interval above 1",
    fires="report: verdicts",
)
def measured_once(seen: Seen) -> str | None:
    """One round has no spread, and so no interval."""
    names = [stage.name for stage in seen.stages if len(stage.rounds) == 1]
    return f"measured once, so that no interval can be given: {listed(names)}" if names else None


def settings_hash(result: TrialResult) -> str:
    """A name for the effective settings of a trial, without what is chosen anew for each."""
    lines = sorted(f"{s.name}={s.value}" for s in result.settings if s.name not in _PER_RUN)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]


@_stands_against(
    "E7",
    "the file says runMins=1, the log shows ten minutes",
    rule="settings are read back from the server; their hash is equal in all rounds of a stage",
    fires="run file; report",
    simply="the server's settings were not the same each time a stage was measured",
)
def other_settings(seen: Seen) -> str | None:
    """What the server said of its settings must be the same in all rounds of a stage."""
    hashes: dict[str, set[str]] = {}
    for trial, result in seen.results():
        hashes.setdefault(trial.stage, set()).add(settings_hash(result))
    names = [stage for stage, found in hashes.items() if len(found) > 1]
    return f"effective settings differ between rounds of {listed(names)}" if names else None


@_stands_against(
    "E8",
    "the script says 60 s, three outputs say 30 s",
    rule="the window that the driver counted is the one that was planned",
    fires="report: comparability",
    simply="it was measured for another time than planned",
)
def other_duration(seen: Seen) -> str | None:
    """The time that the driver itself counted must be the time that was asked for."""
    planned = seen.plan.protocol.window_s
    found = [
        f"trial {trial.number} {digits_text(result.window_s, 4)} s"
        for trial, result in seen.results()
        if not is_of_length(result, planned)
    ]
    return f"a window of {planned:g} s was asked for: {', '.join(found)}" if found else None


@_stands_against(
    "E9",
    "columns of the summary were rotated: the slowest storage was printed as the fastest",
    rule="tables are made from trials; each median is that of its own stage",
    fires="report",
    simply="a figure stands beside the wrong stage",
)
def other_column(seen: Seen) -> str | None:
    """A stage's median must be that of its own trials."""
    measured: dict[str, list[float]] = {}
    for trial, result in seen.results():
        measured.setdefault(trial.stage, []).append(result.throughput)
    printed = {stage.name: stage.throughput.median for stage in seen.stages if stage.throughput}
    found = misplaced(printed, {name: median(values) for name, values in measured.items()})
    mixed_up = [f"{name} is printed with what {owner} measured" for name, owner in found.items()]
    return "; ".join(mixed_up) or None


@_stands_against(
    "E10",
    "two hosts loaded in 1058.21 s, to the digit",
    rule="no two trials and no two figures of `earlier` agree to the digit",
    fires="plan: `earlier`; report; verdicts (equal ratios)",
    simply="two measurements agree to the last digit, as copies do",
)
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


@_stands_against(
    "E11",
    "128, 52 and 32 clients and other memory on the storages compared",
    rule="everything that differs between trials besides the stage is named, explained or not",
    fires="report: comparability, answer",
)
def not_comparable(seen: Seen) -> str | None:
    """Whatever differs between trials besides their stage is named."""
    found = [
        f"{one.what} ({'; '.join(one.values)})" for one in seen.differences if not one.explanation
    ]
    return f"unexplained: {', '.join(found)}" if found else None


@_stands_against(
    "E12",
    "flush latency was compared with synchronous_commit = off",
    rule="a setting that changes has something to act on",
    fires="report",
    simply="a stage changed something that this load cannot show",
    of_plan=True,
)
def off_the_path(seen: Seen) -> str | None:
    """A factor shows only where the load waits for it."""
    found = []
    for before, stage in _steps(seen.plan):
        values = {one.name: one.value.lower() for one in stage.settings}
        idle = {
            name: why
            for name in changed_settings(before, stage)
            if not _is_put_back(name, values)
            and (why := _idle(name, values, stage.workload.sessions))
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


def _is_put_back(name: str, values: dict[str, str]) -> bool:
    """Whether a stage turns off what one before it has tried: nobody waits for that to show."""
    rests = {"wal_compression": ("off", _OFF), "commit_delay": ("0", ("0", "0us"))}
    if name not in rests:
        return False
    default, off = rests[name]
    return values.get(name, default) in off


def _no_flush(values: dict[str, str]) -> str | None:
    """Why no commit waits for the disk; None if it does."""
    for switch in ("fsync", "synchronous_commit"):
        if values.get(switch, "on") in _OFF:
            return f"{switch} = off"
    return None


@_stands_against(
    "E13",
    "full pages on came first, off second, on the same growing data, once",
    rule="rounds take turns in balanced order; every trial begins from the same copy",
    fires="plan: order; report",
    simply="a stage may owe its figure to when it was measured",
    of_plan=True,
)
def order_or_cache(seen: Seen) -> str | None:
    """Stages must take turns, and begin with the same caches."""
    found = []
    if seen.plan.protocol.rounds == 1 and len(seen.plan.stages) > 1:
        found.append("one round: its stages had one order, whose effect cannot be told from theirs")
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


@_stands_against(
    "E14",
    "the configuration recommended at the end was never measured",
    rule="only stages with finished trials have numbers",
    fires="report",
    of_plan=True,
)
def not_measured(seen: Seen) -> str | None:
    """A configuration without a finished trial has no number here, and no praise."""
    names = [stage.name for stage in seen.stages if not stage.rounds]
    return f"planned, but not measured: {listed(names)}" if names else None


@_stands_against(
    "E15",
    "barriers, full pages and waiting commits were given up before the first stage",
    rule="the first stage loses nothing; each lower rung has a pair that shows its price alone",
    fires="plan: lowest_rung; report",
    simply="what more speed costs in safety was not measured by itself",
    of_plan=True,
)
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
    """Whether a pair shows its price: by settings of durability alone, or by the folder alone."""
    durability = {name for name, knob in knobs().items() if knob.fall} | _COMPANIONS
    return any(
        safe.rung in words.SAFE
        and fallen.rung == rung
        and (safe.build, safe.pooler) == (fallen.build, fallen.pooler)
        and safe.workload == fallen.workload
        and changed_settings(safe, fallen)
        <= (durability if safe.folder == fallen.folder else set())
        for safe in plan.stages
        for fallen in plan.stages
    )


def _steps(plan: Plan) -> Iterator[tuple[Stage, Stage]]:
    """Each stage after the one that it is a step from; other loads do not compare.

    One that begins afresh is a step from whichever it differs from in the fewest layers, of those
    the latest.
    """
    stages = [stage for stage in plan.stages if stage.twin_of is None]
    for at, stage in enumerate(stages[1:], start=1):
        alike = [one for one in stages[:at] if one.workload.load == stage.workload.load]
        if stage.afresh and alike:
            yield min(reversed(alike), key=lambda one: len(_layers_changed(one, stage))), stage
        elif stages[at - 1] in alike:
            yield stages[at - 1], stage


def mistake_facts(seen: Seen) -> tuple[MistakeFacts, ...]:
    """What each check finds in a run."""
    nothing = NotKnown("no trial finished")
    return tuple(
        _facts_of(one, one.check(seen) if one.of_plan or seen.finished else nothing)
        for one in MISTAKES
    )


def _facts_of(one: Mistake, fact: str | NotKnown | None) -> MistakeFacts:
    if isinstance(fact, NotKnown):
        return MistakeFacts(one.ident, one.rule, "unknown", fact.why)
    found = "finding" if one.grave else "noted"
    return MistakeFacts(one.ident, one.rule, found if fact else "clear", fact, one.simply)


def page() -> str:
    """The reference page."""
    rows = (f"| {m.ident} | {m.what} | {m.rule} | {m.fires} |" for m in MISTAKES)
    return _HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    print(page(), end="")
