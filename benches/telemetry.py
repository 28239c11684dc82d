r"""What does watching cost? Runs without telemetry, with the default, with all of it, and watched.

    python benches/telemetry.py --rounds 10 --out telemetry.json
    python benches/telemetry.py --rounds 2 --warehouses 1 --window 3      # does it work at all?

Method. The same stage is measured once in every round with each way of watching, each time on a
fresh copy of the same loaded data, in an order that turns by one from round to round. Printed is
the throughput of each way and its ratio to none: the Hodges-Lehmann estimate over the paired
rounds with its 95% interval. `watched` is the default, served by `--live` and `--metrics`, which
are asked once a second here, as a dashboard that is in a hurry would.

Limits. Windows of seconds on one machine; the copies differ in where their files lie. What costs
less than the interval is wide is not told from nothing.
"""

from __future__ import annotations

import argparse
import json
import socket
import sys
import tempfile
import threading
import urllib.request
from contextlib import suppress
from pathlib import Path

import numpy as np

from pgdyno.shell import run
from pgdyno.stats.interval import estimate
from pgdyno.store import RunFile

WAYS = ("none", "default", "full", "watched")
_PATIENCE_S = 3600.0
_SCRAPED_S = 1.0
PLAN = """
name = "telemetry"
question = "What does watching cost?"

[workload]
kind = "tpcc"
warehouses = {warehouses}
connections = {connections}
face = "pipeline"
home = "random"

[protocol]
rounds = 1
warmup_s = {warmup_s}
window_s = {window_s}
checkpoints = "ignore"
checked_rounds = 1

[[stage]]
name = "one"
why = "Memory for the data, and no checkpoint in the window."
settings = {{ shared_buffers = "2GB", max_wal_size = "16GB", checkpoint_timeout = "1h" }}
"""


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; a run that fails ends everything."""
    args = _arguments().parse_args(arguments)
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory(prefix="pgdyno-telemetry-") as folder:
        plan = Path(folder) / "telemetry.toml"
        plan.write_text(PLAN.format(
            warehouses=args.warehouses, connections=args.connections, warmup_s=args.warmup,
            window_s=args.window,
        ))  # fmt: skip
        for number in range(args.rounds):
            turned = [WAYS[(number + at) % len(WAYS)] for at in range(len(WAYS))]
            for way in turned:
                throughput = measured(plan, way, Path(folder) / f"{number}-{way}.sqlite")
                found[way].append(throughput)
                print(f"round {number + 1}: {way} {throughput:,.0f}", file=sys.stderr)
    table = [row(way, found) for way in WAYS]
    print(json.dumps({"rounds": found, "table": table}, indent=1) if args.json else _lines(table))
    if args.out is not None:
        args.out.write_text(json.dumps({"rounds": found, "table": table}, indent=1) + "\n")
    return 0


def measured(plan: Path, way: str, out: Path) -> float:
    """NOPM of one run."""
    level = way if way != "watched" else "default"
    words: list[str | Path] = [
        sys.executable, "-m", "pgdyno", "run", plan, "--out", out,
        "--set", f"protocol.telemetry={level}",
    ]  # fmt: skip
    ended = threading.Event()
    asking: threading.Thread | None = None
    if way == "watched":
        port = _free_port()
        words += ["--live", "--metrics", f"127.0.0.1:{port}"]
        asking = threading.Thread(target=_scrape, args=(port, ended))
        asking.start()
    try:
        run(words, timeout_s=_PATIENCE_S, folder=Path.cwd())
    finally:
        ended.set()
        if asking is not None:
            asking.join()
    with RunFile.read(out) as file:
        (trial,) = file.finished()
    assert trial.result is not None
    return trial.result.throughput


def _scrape(port: int, ended: threading.Event) -> None:
    while not ended.wait(_SCRAPED_S):
        with suppress(OSError):  # before it listens, and after its end
            urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).read()


def row(way: str, found: dict[str, list[float]]) -> dict[str, float | str]:
    """Median throughput, and the ratio to none with its interval."""
    pairs = np.log(np.array(found[way]) / np.array(found["none"]))[np.newaxis, :]
    said: dict[str, float | str] = {"way": way, "median": float(np.median(found[way]))}
    if way != "none" and pairs.size > 1:
        one = estimate(pairs, 0.95)
        said |= {
            name: float(np.exp(value[0]))
            for name, value in (("ratio", one.centre), ("low", one.low), ("high", one.high))
        }
    return said


def _lines(table: list[dict[str, float | str]]) -> str:
    lines = ["| way | NOPM | ratio to none | 95% interval |", "|---|---:|---:|---:|"]
    for one in table:
        ratio = f"{one['ratio']:.3f}" if "ratio" in one else "–"
        interval = f"{one['low']:.3f} to {one['high']:.3f}" if "low" in one else "–"
        lines.append(f"| {one['way']} | {one['median']:,.0f} | {ratio} | {interval} |")
    return "\n".join(lines)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="What watching costs, way by way.")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--warehouses", type=int, default=5)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--warmup", type=float, default=4.0)
    parser.add_argument("--window", type=float, default=15.0)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--out", type=Path, help="a file for the rounds and the table")
    return parser


if __name__ == "__main__":
    sys.exit(main())
