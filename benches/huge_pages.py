r"""Interleaved comparison of a plan's one stage with huge pages and without.

    python benches/huge_pages.py plans/huge-pages.toml --pages 6400 --rounds 5 --out huge-pages.json

Method. A cache of half the memory fits once: while so many pages are reserved, small pages have no
room for another one. So each trial is a run of its own, `off` and `on` in turn within each round,
the other one first in every second round. Before each trial, whichever it is, cached files are
dropped and memory is put together, else the kernel finds few pages. Before `on`, `pgdyno host
apply` reserves --pages; after it, `pgdyno host restore` gives them back. A first run, thrown away,
loads the fixture.

Reported: throughput (of TPC-C NOPM, else transactions a second), CPU of the server for each
transaction, the longest p95 of its kinds, and the ratios on / off within a round; the extremes of n
independent rounds enclose the median ratio with probability 1 - 2^(1-n).

Limits. It needs root. Changes that `host apply` made before would be put back after the first
trial, so none may stand. The plan names one stage, which sets shared_buffers; whether the pages
really were huge the server decides: with huge_pages = on it does not start otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from measure import Command, Failure, Spread, confidence, exit_code, rotated, table, write_json

from pgdyno.host.journal import NAME, Journal
from pgdyno.target.home import home

WAYS = ("off", "on")
FIGURES = (("throughput", "throughput", 0), ("cpu_us", "server CPU us/txn", 1),
           ("p95_ms", "p95, ms", 2))  # fmt: skip
PATIENCE_S = 3600


def pgdyno(arguments: Sequence[str], log: Path) -> str:
    """Run it to its end; what it printed.

    Raises:
        Failure: It takes too long, or fails.
    """
    with Command([sys.executable, "-m", "pgdyno", *arguments], log, os.environ) as command:
        if command.wait(PATIENCE_S) != 0:
            raise command.failure("it failed")
        return command.text()


def make_room() -> None:
    """Drop what is cached of files and put free memory together."""
    os.sync()
    for name, value in (("drop_caches", "3"), ("compact_memory", "1")):
        Path("/proc/sys/vm", name).write_text(value)


def trial(way: str, wanted: argparse.Namespace, folder: Path, name: str) -> dict[str, float]:
    """One run of the plan's stage; pages are reserved for it and given back."""
    log, run = folder / f"{name}.log", folder / f"{name}.sqlite"
    make_room()
    try:
        if way == "on":
            pgdyno(["host", "apply", f"vm.nr_hugepages={wanted.pages}"], log)
        settings = [f"stage.{wanted.stage}.settings.huge_pages={way}", "protocol.rounds=1"]
        sets = [part for one in (*settings, *wanted.set) for part in ("--set", one)]
        pgdyno(["run", str(wanted.plan), *sets, "--out", str(run)], log)
    finally:
        pgdyno(["host", "restore"], folder / "restore.log")
    report = json.loads(pgdyno(["report", str(run), "--format", "json", "--out", "-"], log))
    return figures(report)


def figures(report: dict[str, Any]) -> dict[str, float]:
    """Of the report of one trial.

    Raises:
        Failure: The trial is not valid.
    """
    (stage,) = report["stages"]
    if not stage["throughput"] or len(stage["throughput"]["rounds"]) != 1:
        raise Failure("the trial is not valid", "Its report, beside --out, says why.")
    return {
        "throughput": stage["throughput"]["median"],
        "cpu_us": stage["per_transaction"]["server_cpu_us"]["median"],
        "p95_ms": max(kind["p95_ns"] for kind in stage["latency"]) / 1e6,
    }


def markdown(runs: Sequence[dict[str, Any]]) -> str:
    """Both ways and their ratio, as a table."""
    of = {(run["way"], run["round"]): run for run in runs}
    rounds = sorted(
        {run["round"] for run in runs if {(way, run["round"]) for way in WAYS} <= set(of)}
    )
    rows = [
        [f"huge_pages = {way}", *(
            Spread.of([of[way, n][name] for n in rounds]).text(digits)
            for name, _, digits in FIGURES
        )]
        for way in WAYS
    ]  # fmt: skip
    ratios = [Spread.of([of["on", n][name] / of["off", n][name] for n in rounds]).text(3)
              for name, *_ in FIGURES]  # fmt: skip
    head = ["", *(title for _, title, _ in FIGURES)]
    return (
        f"{table(head, [*rows, ['on / off', *ratios]])}\n\nMedian (lowest-highest) of {len(rounds)}"
        f" rounds; the extremes enclose the median with {confidence(len(rounds)):.0%} confidence."
    )


def compare(wanted: argparse.Namespace) -> None:
    """Load, then run all trials; each is stored as soon as it ends."""
    if Journal(home() / NAME).standing():
        raise Failure("changes of this machine stand", "Put them back: pgdyno host restore.")
    folder = wanted.out.with_suffix("")
    folder.mkdir(parents=True)
    short = ["protocol.warmup_s=1", "protocol.window_s=1"]
    trial("off", argparse.Namespace(**{**vars(wanted), "set": short}), folder, "load")
    runs: list[dict[str, Any]] = []
    for number in range(1, wanted.rounds + 1):
        for way in rotated(WAYS, number - 1):
            found = trial(way, wanted, folder, f"{number}-{way}")
            runs.append({"round": number, "way": way, **found})
            print(f"round {number} {way:3} throughput {found['throughput']:,.0f}", flush=True)
            write_json(wanted.out, {"plan": str(wanted.plan), "runs": runs})
    print(f"\n{markdown(runs)}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line and compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("plan", type=Path)
    parser.add_argument("--pages", type=int, required=True, help="huge pages for the stage `on`")
    parser.add_argument("--stage", default="cache", help="name of the plan's stage")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--set", action="append", default=[], help="as of pgdyno run")
    parser.add_argument("--out", type=Path, required=True, help="file of results, not there yet")
    wanted = parser.parse_args(arguments)
    return exit_code(lambda: compare(wanted))


if __name__ == "__main__":
    sys.exit(main())
