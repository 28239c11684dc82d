"""A made-up drill: what each stage lost is known."""

from __future__ import annotations

from pgdyno.drills.disasters import named
from pgdyno.model.drill import (
    Control,
    Cut,
    DrillAsked,
    DrillDesign,
    Drilled,
    Gain,
    Gains,
    Made,
    NamedBlock,
    RecordedLoad,
    Shrunk,
    State,
)
from pgdyno.model.manifest import HostManifest, Installation
from pgdyno.model.plan import Plan
from pgdyno.model.run import RunInfo

INFO = RunInfo("20261126-120000-drill-demo", 1, "0.1.0", "pgdyno drill demo", None,
               HostManifest(), Installation(), None, experiment="drill")  # fmt: skip
DESIGN = DrillDesign(disasters=("crash", "power"), cuts=4, load_s=10)
_FATAL = "The server did not come back: FATAL:  invalid page in block 7 of relation 16401."


def gains(stage: str, base: str) -> Gains:
    """What the second stage brought."""
    return Gains(
        "20261126-110000-demo", "NOPM", (Gain(stage, base, 1.37, 1.21, 1.55, 5, "better"),)
    )


def cut(stage: str, disaster: str, number: int, state: State, *, lost: int = 0) -> Cut:
    """One of them; a power cut leaves something to chance, a crash nothing."""
    power = disaster == "power"
    made = Made(3, 1, 1_200, 480, 17) if power else Made(0, 0, 0, 0, 0)
    reasons = {
        "whole": (), "lost": (f"{lost} acknowledged commits are gone.",), "dead": (_FATAL,),
        "damaged": ("Condition 2 does not hold: 3 rows contradict it.",),
    }[state]  # fmt: skip
    recovery_s = None if state == "dead" else 0.5 + number / 10
    return Cut(stage, disaster, number, 1000 + number, number * 1.25, made, state, 5_000, 8, lost,
               lost / 4_000, recovery_s, reasons)  # fmt: skip


def drill(plan: Plan, states: dict[tuple[str, str], tuple[State, ...]] | None = None) -> Drilled:
    """Of the first two stages of a plan; the second loses much.

    Args:
        plan: Whose stages are named.
        states: What came back, by stage and disaster; None: as a second stage without `fsync`.
    """
    first, second = (stage.name for stage in plan.stages[:2])
    told = states or {
        (first, "crash"): ("whole",) * 4,
        (first, "power"): ("whole",) * 4,
        (second, "crash"): ("whole", "whole", "lost", "lost"),
        (second, "power"): ("dead", "damaged", "lost", "whole"),
    }
    cuts = [
        cut(stage, disaster, number, state, lost=40 * number if state == "lost" else 0)
        for (stage, disaster), all_ in told.items()
        for number, state in enumerate(all_, 1)
    ]
    return Drilled(
        DrillAsked(plan, (first, second), named(DESIGN.disasters), DESIGN, gains(second, first)),
        tuple(RecordedLoad(stage, "PostgreSQL 18.6", 41_234, 9.97, 412 << 20)
              for stage in (first, second)),
        tuple(cuts),
        (
            Control(first, "The ledger has a commit that was never made.",
                    "A commit more is gone."),
            Control(second, "A page of a table is damaged.", "pg_checksums ended with code 1."),
        ),
        (
            Shrunk(second, "power", 1, 23, False, (NamedBlock("base/5/16401", 7, 16, 9),), 412,
                   "dead", (_FATAL,)),
        ),
    )  # fmt: skip
