"""Made-up climbs: three steps, of which one brings nothing, and rounds that judge the end."""

from __future__ import annotations

from dataclasses import replace

from pgdyno.model.climb import (
    ClimbAsked,
    Climbed,
    ClimbLimits,
    Effect,
    Found,
    Judged,
    Left,
    Seen,
    Step,
    Tried,
)
from pgdyno.model.proposal import Changed, NotTried, Prediction, Try
from pgdyno.model.settings import Rung
from pgdyno.report.climb import Made
from tests.data.miniature import CHARACTERS, a_plan

MADE = Made("20261126-120000-climb-demo", "0.1.0", "PostgreSQL 18.6")
SEEN = (
    "The limit is the flush of WAL at commit: commits wait until their WAL is on storage, 41% of"
    " session time."
)


def found(base: str, ratio: float, verdict: str, rounds: int = 4) -> Found:
    """A ratio, two per cent to each side."""
    return Found(base, ratio, ratio * 0.98, ratio * 1.02, verdict, "", rounds)


def tried(move: str, name: str, value: str, believed: float, got: Found | None) -> Tried:
    """A move of one setting."""
    return Tried(
        move, move, f"Why {move} may help.", "the flush of WAL at commit", Rung.D0,
        (Changed(name, "default", value),), Prediction(believed, 1.0, 1.7, "flush"), got,
        () if got is None else EFFECTS,
    )  # fmt: skip


EFFECTS = (Effect("server_cpu_us", 312.4, 290.1), Effect("wal_bytes", 5 << 10, 4 << 10),
           Effect("p99_ns", 25_600_000, 19_800_000, "new_order"))  # fmt: skip
BEHIND = Seen(("the flush of WAL at commit: in flushes of WAL 41% (39% to 43%, limit 25%)",),
              ("the client", "reading pages"), ("dead rows that vacuum leaves",))  # fmt: skip
LEFT = (Left("the flush of WAL at commit", "about ×1.14 (1.10 to 1.18), or more",
             ("more connections", "WAL on a device of its own")),
        Left("dead rows that vacuum leaves", "at most ×1.05 (1.01 to 1.09)", ()))  # fmt: skip


def a_step(number: int, base: str, *moves: Tried, accepted: str | None) -> Step:
    """A step of ten minutes."""
    return Step(f"step-{number}.sqlite", f"20261126-12{number}000-demo-next", base, SEEN, moves,
                (NotTried("async-commit", "it stands on rung D2, D0 is allowed"),), accepted,
                600.0, 12, BEHIND)  # fmt: skip


STEPS = (
    a_step(
        1, "initdb",
        tried("flush-by-write", "wal_sync_method", "open_datasync", 1.07,
              found("initdb", 1.12, "better")),
        tried("group-commit", "commit_delay", "200", 1.07, found("initdb", 0.96, "worse")),
        accepted="flush-by-write",
    ),
    a_step(
        2, "flush-by-write",
        tried("larger-buffers", "shared_buffers", "6GB", 1.2,
              found("flush-by-write", 1.15, "better")),
        accepted="larger-buffers",
    ),
    a_step(
        3, "larger-buffers",
        tried("group-commit", "commit_delay", "200", 1.04,
              found("larger-buffers", 1.001, "equivalent")),
        accepted=None,
    ),
)  # fmt: skip
BEYOND = Try("async-commit", "Commits do not wait for the disk.", "the flush of WAL at commit",
             Rung.D2, (Changed("synchronous_commit", "on", "off"),),
             Prediction(1.41, 1.0, 1.62, "flush"), 300.0, "")  # fmt: skip


def a_climb(beyond: str = "async-commit") -> Climbed:
    """One that came to its end; `beyond` is what a lower rung would try."""
    plan = a_plan(CHARACTERS, 3)
    start = Step("start.sqlite", "20261126-120000-demo-next", "initdb", "", (), (), None, 90.0, 3)
    without = Judged(
        "without.sqlite", "20261126-130000-demo-next",
        ("larger-buffers", "without-flush-by-write", "without-larger-buffers"),
        (found("larger-buffers", 0.999, "equivalent"), found("larger-buffers", 0.88, "worse")), (),
    )  # fmt: skip
    final = Judged(
        "final.sqlite", "20261126-140000-demo-next", ("initdb", "climbed", "tuned"),
        (found("initdb", 1.21, "better", 8), found("initdb", 1.14, "better", 8)),
        (NotTried("pgtune", "the disk has not enough room"),),
        ("`climbed` is 21% faster than `initdb`, and nothing is lost.",),
        (found("tuned", 1.061, "better", 8),), 1200.0, 24,
    )  # fmt: skip
    return Climbed(
        ClimbAsked(plan, ClimbLimits(minutes=60.0)), start, STEPS,
        f"{SEEN} What is against it was tried: group-commit is not shown to help.",
        ("larger-buffers",), without, final, (replace(BEYOND, move=beyond),), LEFT,
    )  # fmt: skip


def broken_off() -> Climbed:
    """One that was stopped in its second step."""
    whole = a_climb()
    under_way = replace(STEPS[1], run="", tried=tuple(replace(one, found=None)
                        for one in STEPS[1].tried), accepted=None, seconds=None)  # fmt: skip
    return replace(whole, steps=(STEPS[0], under_way), stopped=None, kept=(), without=None,
                   final=None, beyond=(), left=())  # fmt: skip
