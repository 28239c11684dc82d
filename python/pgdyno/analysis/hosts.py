"""The hosts that a load came from: what each did, which was the limit, which is unlike others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median
from types import MappingProxyType

from pgdyno.analysis.host_facts import DegradedRow, FleetFacts, FleetRow, HostRow
from pgdyno.analysis.judge import host_limit, most_doubtful
from pgdyno.model.fleet import FleetResult, HostResult, Machine, Surroundings
from pgdyno.model.run import TrialRecord, TrialResult, TrialState
from pgdyno.model.units import bytes_text, ns_text, share_text
from pgdyno.model.wording import plural
from pgdyno.stats.fleet import LATE_NS, UNLIKE_SHARE, unlike

_CARRIERS = {"ray": "Ray", "ssh": "SSH"}
_CARRIED_CPUS = 0.1  # what carries two lines a second and takes more does something else, too
_Driven = tuple[TrialResult, FleetResult, HostResult, float | None]


def fleet_facts(
    names: Sequence[str],
    trials: Sequence[TrialRecord],
    ceilings: Mapping[int, Mapping[str, float]] = MappingProxyType({}),
    *,
    server_on_host: bool,
) -> FleetFacts | None:
    """The hosts of all stages; None: the load came from one process.

    Args:
        names: Of the stages, in order.
        trials: All that are needed; numbers are those of the finished ones.
        ceilings: What the driver of a host could have reached, by trial and host.
        server_on_host: Whether the server is on the host that the head runs on.
    """
    stages: list[FleetRow] = []
    rows: list[HostRow] = []
    machines: dict[str, str] = {}
    finished = [one for one in trials if one.state is TrialState.FINISHED]
    degraded = tuple(_degraded(trials))
    for name in names:
        driven = [(one.number, one.result, one.result.fleet) for one in finished
                  if one.stage == name and one.result and one.result.fleet]  # fmt: skip
        if not driven:
            continue
        fleets = [fleet for _, _, fleet in driven]
        stages.append(FleetRow(name, len(fleets[0].hosts), min(one.overlap for one in fleets),
                               max(one.skew_ns for one in fleets)))  # fmt: skip
        by_host: dict[str, list[_Driven]] = {}
        for number, result, fleet in driven:
            for host in fleet.hosts:
                ceiling = ceilings.get(number, {}).get(host.name)
                by_host.setdefault(host.name, []).append((result, fleet, host, ceiling))
                machines.setdefault(host.name, machine_text(host.machine))
        rows += [
            _row(name, host, all_of_it, server_on_host=server_on_host)
            for host, all_of_it in by_host.items()
        ]
    if not stages and not degraded:
        return None
    return FleetFacts(tuple(stages), tuple(rows), tuple(machines.items()), degraded)


def _degraded(trials: Sequence[TrialRecord]) -> Iterator[DegradedRow]:
    for one in trials:
        if one.state is TrialState.DEGRADED and one.result and (fleet := one.result.fleet):
            yield DegradedRow(
                one.number, one.round, one.stage, fleet.lost, len(fleet.hosts),
                fleet.terminals_lost, fleet.connections_lost, one.result.throughput,
                one.result.tpm_total,
            )  # fmt: skip


def machine_text(machine: Machine) -> str:
    """What a host is, in a line."""
    return (
        f"{plural(machine.cpus, 'CPU')}, Linux {machine.kernel}, Python {machine.python},"
        f" pgdyno {machine.pgdyno}"
    )


def _row(stage: str, name: str, driven: Sequence[_Driven], *, server_on_host: bool) -> HostRow:
    hosts = [host for _, _, host, _ in driven]
    # Of hosts it is always known: their driver is ours, and tells it.
    used_s = [(host, host.client.cpu_s or 0.0) for host in hosts]
    limits = [host_limit(result, host, server_on_host=server_on_host, ceiling_per_s=ceiling)
              for result, _, host, ceiling in driven]  # fmt: skip
    reached = [(one.ended / one.client.window_s / ceiling, ceiling)
               for _, _, one, ceiling in driven if ceiling]  # fmt: skip
    around = [one.around for one in hosts if one.around is not None]
    differing = [found for _, fleet, host, _ in driven if (found := unlike(host, fleet.hosts))
                 is not None]  # fmt: skip
    limit = most_doubtful(limits) or limits[0]
    drifting = max(hosts, key=lambda one: abs(one.drift_ppm))
    row = HostRow(
        stage=stage,
        host=name,
        connections=hosts[0].connections,
        terminals=hosts[0].terminals,
        rounds=len(hosts),
        per_s=median(one.ended / one.client.window_s for one in hosts),
        share=median(
            one.ended / max(1, sum(each.ended for each in fleet.hosts))
            for _, fleet, one, _ in driven
        ),
        cpu_share=median(cpu_s / (one.client.window_s * one.client.cpus) for one, cpu_s in used_s),
        cpu_us=median(cpu_s * 1e6 / max(1, one.ended) for one, cpu_s in used_s),
        wanted=max(_wanted(one) for one in hosts),
        late_p999_ns=max(one.late_ns.get("p999", 0) for one in hosts),
        begun_late_ns=max(one.begun_late_ns for one in hosts),
        bound_ns=max(one.bound_ns for one in hosts),
        drift_ppm=drifting.drift_ppm,
        drift_bound_ppm=drifting.drift_bound_ppm,
        unlike=median(differing) if differing else None,
        ceiling_per_s=min((ceiling for _, ceiling in reached), default=None),
        ceiling_share=max((share for share, _ in reached), default=None),
        card=_card(around),
        beside=max((_beside(one) for one in around), default=None),
        carriers=_carriers(around),
        limit=limit.verdict,
        limit_fact=limit.fact,
        remarks=(),
    )
    return _remarked(row)


def _card(around: Sequence[Surroundings]) -> str:
    """The network card that carried most, in the round in which it carried most."""
    carried = [(max(card.received_bytes, card.sent_bytes) / one.seconds, one)
               for one in around if one.seconds > 0 for card in one.cards]  # fmt: skip
    if not carried:
        return ""
    per_s, most = max(carried, key=lambda one: one[0])
    share = f", {most.card_share:.1%} of its speed" if most.card_share is not None else ""
    return f"{most.cards[0].name} {bytes_text(per_s)}/s{share}"


def _beside(around: Surroundings) -> float:
    """The share of a host's CPUs that others than its driver used."""
    if around.cpu_total_s <= 0:
        return 0.0
    return max(0.0, around.cpu_busy_s - around.cpu_ours_s) / around.cpu_total_s


def _carriers(around: Sequence[Surroundings]) -> dict[str, float]:
    """How many CPUs the processes took that carry lines to the head, in the worst round."""
    found: dict[str, float] = {}
    for one in around:
        for name, cpu_s in one.carriers_cpu_s.items():
            found[name] = max(found.get(name, 0.0), cpu_s / one.seconds if one.seconds else 0.0)
    return found


def _wanted(host: HostResult) -> float:
    """The share of time that its busiest thread ran or waited for a CPU."""
    times = zip(host.client.thread_cpu_s, host.client.thread_wait_s, strict=True)
    return max((cpu + wait for cpu, wait in times), default=0.0) / host.client.window_s


def _remarked(row: HostRow) -> HostRow:
    return replace(row, remarks=tuple(_remarks(row)))


def _remarks(row: HostRow) -> Iterator[str]:
    if row.limit == "finding":
        yield f"it was the limit: {row.limit_fact}"
    if row.unlike is not None and abs(row.unlike) > UNLIKE_SHARE:
        time = "more" if row.unlike > 0 else "less"
        yield f"its requests took {share_text(abs(row.unlike))} {time} time than elsewhere"
    if row.ceiling_share is not None and row.ceiling_share > 1:
        yield f"it reached {share_text(row.ceiling_share)} of its ceiling: calibrate it again"
    for name, cpus in row.carriers.items():
        if cpus > _CARRIED_CPUS:
            yield f"{_CARRIERS[name]} took {cpus:.2f} CPUs there in the window"
    if row.late_p999_ns > LATE_NS:
        yield f"it noticed due times {ns_text(row.late_p999_ns)} late at p99.9"
