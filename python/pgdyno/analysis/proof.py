"""What the blocks of a proof amount to, as the facts of its report."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.analysis.proof_facts import ProbeFacts, ProofFacts, State, Sum, Whole
from pgdyno.model.errors import PgdynoError
from pgdyno.model.proof import Effect, Elasticity, Prices, Probe, Proved
from pgdyno.model.run import RunInfo
from pgdyno.model.units import ns_text, share_text, times_text
from pgdyno.model.wording import capital, listed, plural
from pgdyno.stats.switchback import effect, elasticity, prices, total

BINDS = 0.10
"""Throughput that follows a price by less than a tenth of it is not limited by it."""
BRINGS = 1.02
"""A resource whose absence brings less than 2% brings nothing that a tuner would look for."""
WIDE = 0.5
"""A sum whose interval is wider says nothing of what is missing."""
_SAID = 0.10  # dearer, in sentences
_LATE_NS = 500_000_000  # half of the second that is dropped


def proof_facts(proved: Proved, info: RunInfo) -> ProofFacts:
    """Judge every probe, and say what limits the stage.

    Raises:
        PgdynoError: No sitting was held to its end.
    """
    asked = proved.asked
    if not proved.sittings:
        raise PgdynoError(
            f"proof {info.ident} was broken off in its first sitting",
            "Resume it: `pgdyno resume` and its run file.",
        )
    probes = tuple(_probe(one, proved) for one in asked.probes)
    found, cost = _sum(probes), prices(proved.sittings, asked.combined)
    return ProofFacts(
        info.ident, info.pgdyno, asked.run, asked.stage, asked.believed,
        proved.sittings[0].server, asked.design, len(proved.sittings), probes, asked.left_out,
        found, cost,
        (_limit(asked.stage, probes), *_free(probes), *_together(cost, asked.probes),
         *_added(probes),
         *_said_of(found), *_noise(probes)),
        tuple(_doubts(proved, probes)),
    )  # fmt: skip


def _probe(probe: Probe, proved: Proved) -> ProbeFacts:
    found = effect(proved.sittings, probe.name)
    if found is None:
        return ProbeFacts(probe, "unknown", None, None)
    if probe.means == "dearer":
        follows = elasticity(found)
        return ProbeFacts(probe, _bound(follows) if follows else "unused", found, follows)
    if probe.means == "free" and found.units_per_s == 0:
        return ProbeFacts(probe, "unused", found, None)
    states = {"nothing": lambda _: "noise", "free": _gain, "added": _cost}
    return ProbeFacts(probe, states[probe.means](found), found, None)


def _gain(found: Effect) -> State:
    if found.low > 1:
        return "gains"
    return "nothing" if found.high < BRINGS else "unsettled"


def _cost(found: Effect) -> State:
    if found.high < 1:
        return "costs"
    return "nothing" if found.low > 1 / BRINGS else "unsettled"


def _bound(follows: Elasticity) -> State:
    if follows.low > BINDS:
        return "limits"
    return "cleared" if follows.high < BINDS else "unsettled"


def _sum(probes: Sequence[ProbeFacts]) -> Sum | None:
    """Of what is time; a resource that the load does not use has none, and adds nothing."""
    known = [
        (one.probe.resource, one.elasticity)
        for one in probes
        if one.probe.counts and one.elasticity is not None
    ]
    if not known:
        return None
    found = total([one for _, one in known])
    state: Whole = "whole" if found.high - found.low <= WIDE else "wide"
    if found.high < 1:
        state = "missing"
    elif found.low > 1:
        state = "above"
    return Sum(tuple(name for name, _ in known), found, state)


def _limit(stage: str, probes: Sequence[ProbeFacts]) -> str:
    """The sentence that a person would write after looking at all of it."""
    dearer = [one for one in probes if one.probe.means == "dearer"]
    limits = sorted(
        (
            (one.probe.resource, one.elasticity)
            for one in dearer
            if one.state == "limits" and one.elasticity is not None
        ),
        key=lambda one: -one[1].value,
    )
    open_ = [one.probe.resource for one in dearer if one.state in ("unsettled", "unknown")]
    if not limits:
        return _not_limited(stage, dearer, open_)
    strongest = limits[0][1]
    first = [one for one in limits if one[1].high >= strongest.low]
    named = listed([resource for resource, _ in first])
    falls = " and ".join(_falls(follows) for _, follows in first)
    many = len(first) > 1 or named.endswith("s")
    verb, where = ("limit", "they are") if many else ("limits", "it is")
    text = (
        f"{capital(named)} {verb} stage {stage}: where {where} {_SAID:.0%} dearer, throughput falls"
        f" by {falls}"
    )
    rest = [one for one in limits if one not in first]
    if rest:
        others = [f"for {resource} by {_falls(follows)}" for resource, follows in rest]
        text += f"; {listed(others)}"
    cleared = [one.probe.resource for one in dearer if one.state == "cleared"]
    text += f". It does not follow the price of {listed(cleared, 'or')}." if cleared else "."
    return text


def _not_limited(stage: str, dearer: Sequence[ProbeFacts], open_: list[str]) -> str:
    cleared = [one.probe.resource for one in dearer if one.state == "cleared"]
    if open_:
        return f"What limits stage {stage} is not settled: too few pairs for {listed(open_)}."
    if not cleared:
        return f"What limits stage {stage} is not known: nothing that it uses was made dearer."
    return f"Throughput of stage {stage} does not follow the price of {listed(cleared, 'or')}."


def _free(probes: Sequence[ProbeFacts]) -> list[str]:
    """What each resource costs, dearest first."""
    known = [
        (one.effect, one.probe.resource)
        for one in probes
        if one.probe.means == "free" and one.effect is not None and one.state != "unused"
    ]
    ordered = sorted(known, key=lambda pair: -pair[0].ratio)
    parts = [
        f"{resource} {times_text(found.ratio, found.low, found.high)}"
        for found, resource in ordered
    ]
    return [f"Throughput if one of these were free: {listed(parts)}."] if parts else []


def _added(probes: Sequence[ProbeFacts]) -> list[str]:
    """What it costs where each round trip takes longer."""
    return [
        f"{one.probe.how[:-1]}: throughput"
        f" {times_text(one.effect.ratio, one.effect.low, one.effect.high)}."
        for one in probes
        if one.probe.means == "added" and one.effect is not None and one.state != "unknown"
    ]


def _said_of(found: Sum | None) -> list[str]:
    if found is None:
        return []
    text = f"The elasticities of {listed(found.of)} add up to {_figure(found.total)}"
    if found.state == "whole":
        return [f"{text}: no other resource that takes time is needed to explain the throughput."]
    if found.state == "missing":
        return [
            f"{text}, where all that takes time adds up to 1: something that no probe touched takes"
            " the rest, e.g. the network, pauses of the load, timers, or a paced rate."
        ]
    if found.state == "wide":
        return [f"{text}: too wide to say whether something else takes time. More pairs tell."]
    return [f"{text}, above 1: resources tie, and each dear step counts both."]


def _together(cost: Prices | None, probes: Sequence[Probe]) -> list[str]:
    """What all of them cost, how it is shared out, and what each removal brings to light."""
    if cost is None:
        return []
    named = {one.name: one.resource for one in probes}
    shares = [f"×{one.share.value:.2f} for {named[one.probe]}" for one in cost.each]
    together = times_text(cost.together.value, cost.together.low, cost.together.high)
    text = [f"All of them free: {together}, which is {listed(shares)}."]
    for one in cost.each:
        if one.last.low > one.first.high:
            text.append(
                f"{capital(named[one.probe])} hide behind the others: alone ×{one.first.value:.2f},"
                f" once these are free ×{one.last.value:.2f}."
            )
    return text


def _noise(probes: Sequence[ProbeFacts]) -> list[str]:
    for one in probes:
        if one.state == "noise" and one.effect is not None:
            width = (one.effect.high - one.effect.low) / 2
            if width > WIDE:
                return ["How much blocks differ with nothing changed is not known: too few pairs."]
            return [
                f"With nothing changed, blocks differ by {share_text(abs(one.effect.ratio - 1))}"
                f" (±{share_text(width)}, {plural(one.effect.pairs, 'pair')}): nothing finer is"
                " told."
            ]
    return []


def _doubts(proved: Proved, probes: Sequence[ProbeFacts]) -> list[str]:
    found = []
    design, held = proved.asked.design, proved.sittings
    if len(held) < design.sittings:
        found.append(f"Only {len(held)} of {plural(design.sittings, 'sitting')} took place.")
    if failed := sum(one.failed for one in held):
        found.append(f"{plural(failed, 'transaction')} failed while probes were toggled.")
    if (late := max(one.late_ns for one in held)) > _LATE_NS:
        found.append(
            f"A probe was toggled {ns_text(late)} after its block began: the host is too busy for"
            " blocks this short."
        )
    pairs = [(one.probe.name, one.effect.pairs) for one in probes if one.effect is not None]
    full = design.pairs * len(held)
    if short := [f"{name} ({n})" for name, n in pairs if n < full]:
        found.append(f"Pairs in which nothing ended are left out, of {full} each: {listed(short)}.")
    for one in probes:
        if one.state == "noise" and one.effect and not one.effect.low <= 1 <= one.effect.high:
            found.append(
                "With nothing changed, blocks differ beyond their interval: one time in twenty that"
                " is chance; else the host was not quiet, or blocks are too short for this load."
            )
    return found


def _falls(one: Elasticity) -> str:
    """By how much throughput falls where a resource gets dearer by `_SAID`."""
    share = 1 - (1 + _SAID) ** -one.value
    return f"{share_text(share)} (elasticity {_figure(one)})"


def _figure(one: Elasticity) -> str:
    return f"{one.value:.2f} ({one.low:.2f} to {one.high:.2f})"
