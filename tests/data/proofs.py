"""A made-up proof: blocks of probes whose effect is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pgdyno.intervention.probes import PROBES
from pgdyno.model.manifest import HostManifest, Installation
from pgdyno.model.plan import Plan
from pgdyno.model.proof import Block, Design, Dose, LeftOut, ProofAsked, Proved, Sitting
from pgdyno.model.run import RunInfo
from pgdyno.stats.switchback import turns

INFO = RunInfo("20261126-120000-prove-tuned", 1, "0.1.0", "pgdyno prove runs/demo.sqlite", None,
               HostManifest(), Installation(), None, experiment="prove")  # fmt: skip
DESIGN = Design(block_s=4, dropped_s=1, pairs=4, sittings=3)
BASE_PER_S = 1000.0
SPENT_NS = 1e6  # of a flush, a read
BUSY = {  # probe: throughput with it / without it
    "nothing": 1.0, "cpu": 0.86, "wal-flush": 0.98, "read": 1.0, "wal-flush-free": 1.09,
    "commit-free": 1.12, "page-images-free": 1.01,
}  # fmt: skip
_NOISE = (1.004, 0.997, 0.999, 1.003, 1.001, 0.996, 0.998, 1.002, 1.0, 1.005, 0.995, 1.0)


def sitting(number: int, ratios: Mapping[str, float], design: Design = DESIGN) -> Sitting:
    """One sitting in which each probe has its ratio, and each pair a little noise."""
    names = [one.name for one in PROBES if one.name in ratios]
    blocks = []
    free = [one.name for one in PROBES if one.name in ratios and one.means == "free"]
    order = turns(names, design, number, free if design.prices else ())
    for at, turn in enumerate(order):
        per_s = BASE_PER_S
        for name in turn.on:
            noise = _NOISE[(number * design.pairs + turn.pair + len(name)) % len(_NOISE)]
            per_s *= ratios[name] * noise
        from_s, to_s = at * design.block_s + design.dropped_s, (at + 1) * design.block_s
        ended = round(per_s * (to_s - from_s))
        blocks.append(
            Block(
                turn.probe,
                turn.on,
                turn.pair,
                from_s,
                to_s,
                ended,
                _dose(turn.probe, bool(turn.on)),
            )
        )
    return Sitting(number, "PostgreSQL 18.0 on x86_64", tuple(blocks), "complete", checkpoints=1)


def _dose(probe: str, on: bool) -> Dose | None:
    if probe == "cpu":
        return Dose(0.0, 5e9 if on else 6e9, 1e9 if on else 0.0)
    if probe == "read":
        return Dose(0.0, 0.0, 0.0)
    if probe in ("wal-flush", "wal-flush-free"):
        added = 0.2 * SPENT_NS * 900 if on and probe == "wal-flush" else 0.0
        return Dose(900.0, 900 * SPENT_NS, added)
    return None


def proof(plan: Plan, ratios: Mapping[str, float] = BUSY, **changes: object) -> Proved:
    """All sittings of a proof of the plan's last stage; fields of what is asked may be changed."""
    probes = tuple(one for one in PROBES if one.name in ratios)
    asked = ProofAsked(
        plan, plan.stages[-1].name, "20261126-100000-demo", "the flush of WAL limits it", probes,
        (LeftOut("data-flush-free", "fsync is off: nothing is flushed."),), DESIGN,
    )  # fmt: skip
    asked = replace(asked, **changes)  # type: ignore[arg-type]
    sittings = range(1, asked.design.sittings + 1)
    return Proved(asked, tuple(sitting(n, ratios, asked.design) for n in sittings))
