r"""What do crashes and power cuts take from each rung, over versions, checksums and workloads?

    python benches/drills.py --folder /var/tmp/drills --cuts 4     # 576 cuts, about two hours
    python benches/drills.py --folder /var/tmp/drills --cuts 1 --only tpcb-18-on    # does it work?
    python benches/drills.py --folder /var/tmp/guarded --cuts 14 --stages guarded    # 504 cuts

It is run in the folder of the sources, where the mix of schema changes lies.

Method. Every cell (workload, version, checksums) is a plan of five stages: as it comes (D0),
asynchronous commit, no page images on small buffers, the same with a guard, no fsync. A guarded
disk is repaired from a standby of its own, which has all WAL, lags, or lacks what it needs. Each
stage's load is recorded once; crashes and power cuts of both sector sizes are made of the record,
and of each disk a server of the same version recovers and is held against ledger, conditions,
pg_amcheck, pg_dump, checksums. Cells that are there already are not made again.

Limits. One load of each stage and cell, so that its cuts share it: intervals are of instants and
disks within it. WAL and data lie on one disk.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pgdyno
from pgdyno.model.progress import Event, StepBegun
from pgdyno.stats.shares import share

DEBIAN = "/usr/lib/postgresql/15/bin"
LOADS: dict[str, dict[str, object]] = {
    "tpcb": {"kind": "tpcb", "scale": 2},
    "tpcc": {"kind": "tpcc", "warehouses": 1, "delivery": "inline"},
    "ddl": {"kind": "mix", "file": "plans/mixes/ddl.toml", "setup": "plans/mixes/ddl.sql"},
}
TORN = {"full_page_writes": "off", "shared_buffers": "2MB"}
STAGES: dict[str, dict[str, object]] = {
    "stock": {},
    "asynchronous": {"settings": {"synchronous_commit": "off", "wal_writer_delay": "1s"}},
    "no-page-images": {"settings": TORN},
    "guarded": {"settings": TORN, "guard": True},
    "no-fsync": {"settings": {"fsync": "off"}},
}
DISASTERS = ("crash", "power", "power-4k")


@dataclass(frozen=True)
class Cell:
    """A workload on a version, with page checksums or without."""

    load: str
    version: int
    checksums: bool

    @property
    def name(self) -> str:
        """E.g. tpcb-18-on."""
        return f"{self.load}-{self.version}-{'on' if self.checksums else 'off'}"

    def plan(self) -> pgdyno.Plan:
        """Its five stages."""
        target: dict[str, object] = {"kind": "embedded"}
        if self.version == 15:
            target = {"kind": "installed", "bindir": DEBIAN}
        # 18 has them unless told otherwise, 15 the other way round.
        if self.checksums != (self.version == 18):
            target["initdb"] = ["--data-checksums" if self.checksums else "--no-data-checksums"]
        return pgdyno.load_plan({
            "name": self.name,
            "question": "What do disasters take from each rung?",
            "target": target,
            "workload": LOADS[self.load] | {"connections": 4, "terminals": 4},
            "protocol": {"rounds": 1, "warmup_s": 1, "window_s": 5, "lowest_rung": "D6"},
            "stage": [
                {"name": name, "why": "Drilled.", "afresh": True, **keys}
                for name, keys in STAGES.items()
            ],
        })  # fmt: skip


def cells(only: str | None) -> Iterator[Cell]:
    """All, or those whose names hold a word."""
    for load in LOADS:
        for version in (18, 15):
            for checksums in (True, False):
                cell = Cell(load, version, checksums)
                if only is None or only in cell.name:
                    yield cell


def drilled(cell: Cell, folder: Path, design: pgdyno.DrillDesign, stages: list[str]) -> pgdyno.Run:
    """The cell's run: made now, or resumed."""
    out = folder / f"{cell.name}.sqlite"
    if not out.exists():
        return pgdyno.drill(cell.plan(), stages, design=design, out=out, on_event=told)
    run = pgdyno.Run(out)
    return run if run.is_whole else pgdyno.resume(out)


def told(event: Event) -> None:
    """How far it is."""
    if isinstance(event, StepBegun):
        print(f"  {event.what}", file=sys.stderr)


def summed(runs: list[pgdyno.Run], words: str) -> None:
    """A line for each stage and disaster, over all cells."""
    rows = defaultdict(list)
    for run in runs:
        for cut in run.drilled.cuts:
            rows[cut.stage, cut.disaster].append(cut)
    print(f"\n{words}: " + ", ".join(run.drilled.asked.plan.name for run in runs))
    print("| stage | disaster | cuts | dead | damaged | lost | harmed | 95% | commits | worst |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for (stage, disaster), cuts in rows.items():
        states = [cut.state for cut in cuts]
        harmed = share(len(cuts) - states.count("whole"), len(cuts))
        worst = max(cuts, key=lambda cut: cut.lost_s)
        print(
            f"| {stage} | {disaster} | {len(cuts)} | {states.count('dead')} |"
            f" {states.count('damaged')} | {states.count('lost')} |"
            f" {harmed.of / harmed.n:.1%} | {harmed.low:.1%} to {harmed.high:.1%} |"
            f" {sum(cut.acknowledged for cut in cuts):,} | {worst.lost} in {worst.lost_s:.2f} s |"
        )


def repairs(runs: list[pgdyno.Run]) -> None:
    """What it took to repair the disks of guarded stages."""
    told = [cut.repair for run in runs for cut in run.drilled.cuts if cut.repair is not None]
    if not told:
        return
    written = sorted(one.blocks_written for one in told)
    seconds = sorted(one.took_s for one in told)
    print(
        f"\nRepairs: {len(told)}, {sum(one.outcome == 'repaired' for one in told)} of them wrote;"
        f" blocks needed {sum(one.blocks_needed for one in told):,}, written {sum(written):,}"
        f" (median {written[len(written) // 2]}, most {written[-1]}), zeroed"
        f" {sum(one.blocks_zeroed for one in told):,}; seconds, median"
        f" {seconds[len(seconds) // 2]:.2f}"
    )


def main() -> None:
    """Drill every cell, and print what disasters took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True, help="of the run files")
    parser.add_argument("--cuts", type=int, default=4, help="of each disaster, stage and cell")
    parser.add_argument("--load", type=float, default=5.0, help="seconds of each load")
    parser.add_argument("--stages", default="", help="those alone, by comma")
    parser.add_argument("--disasters", default=",".join(DISASTERS), help="by comma")
    parser.add_argument("--only", help="cells whose names hold this")
    parser.add_argument("--recorder", choices=["mount", "library"], help="default: what works here")
    asked = parser.parse_args()
    asked.folder.mkdir(exist_ok=True)
    design = pgdyno.DrillDesign(
        tuple(asked.disasters.split(",")),
        asked.cuts,
        asked.load,
        record_max_gib=4,
        recorder=asked.recorder,
    )
    stages = [name for name in asked.stages.split(",") if name]
    runs = []
    for cell in cells(asked.only):
        begun = time.monotonic()
        runs.append(drilled(cell, asked.folder, design, stages))
        cuts = runs[-1].drilled.cuts
        print(f"{cell.name}: {len(cuts)} cuts in {time.monotonic() - begun:.0f} s", flush=True)
        for doubt in runs[-1].drill.doubts:
            print(f"  {doubt}", flush=True)
    summed(runs, "All")
    for word in ("on", "off"):
        if chosen := [run for run in runs if run.drilled.asked.plan.name.endswith(f"-{word}")]:
            summed(chosen, f"Checksums {word}")
    repairs(runs)


if __name__ == "__main__":
    main()
