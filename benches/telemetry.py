r"""What does watching cost? Telemetry is switched on and off while one load runs.

    python benches/telemetry.py --trials 4 --pairs 9 --out telemetry.json
    python benches/telemetry.py --trials 1 --pairs 2 --warehouses 1 --block 4    # does it work?

Method. A plan of one stage is run with full telemetry; each trial is on a fresh copy of the same
data, after a CHECKPOINT. Within its window the recorder, which is the run's own, is told block by
block what to read: nothing, the default set, or all of it. `watched` is the default, and the run's
page and metrics are served, too, and asked once a second, as a dashboard in a hurry would; else the
process that serves them is stopped (SIGSTOP). A pair is two blocks side by side, in random order:
default and none, full and none, watched and default. The begin of a block is not counted. Printed
is the ratio of committed transactions a second: the Hodges-Lehmann estimate over all pairs with
its 95% interval; and what the recorder's thread took of a CPU by its own account.

synchronous_commit is off, so that both CPUs are busy and each microsecond of watching is missing
elsewhere: where commits wait for a disk, watching costs less. Snapshots, which are read at both
ends of a window, are not in the ratios: what they take is printed for one window.

Limits. The recorder's session stays connected in blocks without telemetry, and the events of the
run are told to the server of the page, stopped or not. Blocks of seconds on one machine.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from measure import Failure, exit_code, table, write_json

import pgdyno
from pgdyno import api
from pgdyno.model.progress import DriveProgress, Event
from pgdyno.model.run import Series, TelemetryReport
from pgdyno.sample.recorder import Readable, Recorder
from pgdyno.sample.sampler import Snapshot
from pgdyno.stats.interval import estimate
from pgdyno.store import RunFile
from pgdyno.trial import window

WAYS = ("none", "default", "full", "watched")
PAIRS = (("default", "none"), ("full", "none"), ("watched", "default"))
DROPPED_S = 1.0
_TICK_S = 0.05
_SCRAPED_S = 1.0


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a window that was watched one way."""

    pair: int  # number of the pair within its trial
    of: int  # index of PAIRS
    way: str
    begin_ns: int
    end_ns: int


@dataclass(slots=True)
class Switch:
    """Says what is to be read now; follows the window of each trial."""

    block_s: float
    pairs: int
    seed: int
    metrics: str = ""
    way: str = "none"
    blocks: list[list[Block]] = field(default_factory=list)
    on_s: dict[str, float] = field(default_factory=lambda: dict.fromkeys(WAYS, 0.0))
    _phase: str = ""

    @property
    def sets(self) -> tuple[str, ...]:
        """Of telemetry, that are read now."""
        return {"none": (), "full": ("default", "full")}.get(self.way, ("default",))

    @property
    def window_s(self) -> float:
        """Seconds that all blocks take."""
        return self.block_s * self.pairs * len(PAIRS) * 2

    def hear(self, event: Event) -> None:
        """A window that begins is divided into blocks by a thread of its own."""
        if not isinstance(event, DriveProgress):
            return
        if event.phase == "window" and self._phase != "window":
            threading.Thread(target=self._divide, daemon=True).start()
        self._phase = event.phase

    def _divide(self) -> None:
        mine: list[Block] = []
        self.blocks.append(mine)
        random = np.random.default_rng([self.seed, len(self.blocks)])
        for number in range(self.pairs):
            for index in random.permutation(len(PAIRS)):
                for place in random.permutation(2):
                    way = PAIRS[index][place]
                    begin_ns = time.time_ns()
                    self._while(way)
                    mine.append(Block(number, int(index), way, begin_ns, time.time_ns()))
        self.way = "none"

    def _while(self, way: str) -> None:
        self.way = way
        self.on_s[way] += self.block_s
        ended = threading.Event()
        asking = threading.Thread(target=self._ask, args=(ended,))
        serving = list(_serving())
        if way == "watched":
            for one in serving:
                one.send_signal(signal.SIGCONT)
            asking.start()
        time.sleep(self.block_s)
        if way == "watched":
            ended.set()
            asking.join()
            for one in serving:
                one.send_signal(signal.SIGSTOP)

    def _ask(self, ended: threading.Event) -> None:
        while not ended.wait(_SCRAPED_S):
            with suppress(OSError):
                urllib.request.urlopen(self.metrics, timeout=2).read()  # noqa: S310  loopback


def _serving() -> Iterator[psutil.Process]:
    """The process that serves the page."""
    for one in psutil.Process(os.getpid()).children():
        with suppress(psutil.NoSuchProcess):
            if "pgdyno.live.worker" in one.cmdline():
                yield one


def switched(switch: Switch) -> type[Recorder]:
    """The recorder, which reads what the switch says."""

    class Switched(Recorder):
        def _take(self, one: Readable, at: Any = "begin") -> bool:  # noqa: ANN401  as its base has
            outside = threading.current_thread() is threading.main_thread()  # of the window
            if outside or isinstance(one, Snapshot) or one.telemetry in switch.sets:
                return super()._take(one, at)
            return False

        def _next_word(self) -> Any:  # noqa: ANN401  as its base has
            while switch.blocks and not switch.sets and self._words.empty():
                time.sleep(_TICK_S)
            return super()._next_word()

    return Switched


def plan_of(wanted: argparse.Namespace, switch: Switch) -> pgdyno.Plan:
    """One stage, as many rounds as trials."""
    return pgdyno.load_plan({
        "name": "telemetry", "question": "What does watching cost?",
        "workload": {"kind": "tpcc", "warehouses": wanted.warehouses, "face": "pipeline",
                     "connections": wanted.connections, "home": "random"},
        "protocol": {"rounds": wanted.trials, "warmup_s": wanted.warmup, "checked_rounds": 1,
                     "window_s": switch.window_s + 1, "checkpoints": "ignore",
                     "telemetry": "full", "lowest_rung": "D2"},
        "stage": [{
            "name": "one", "why": "Memory for the data, no checkpoint in the window, busy CPUs.",
            "settings": {"shared_buffers": "2GB", "max_wal_size": "24GB",
                         "checkpoint_timeout": "1h", "synchronous_commit": "off"},
        }],
    })  # fmt: skip


def log_ratios(blocks: Sequence[Block], series: Sequence[Series], of: int) -> list[float]:
    """Of the pairs of a kind, each block by its whole seconds."""
    found: dict[int, dict[str, float]] = {}
    for one in blocks:
        if one.of == of:
            found.setdefault(one.pair, {})[one.way] = _per_s(one, series)
    way, base = PAIRS[of]
    return [float(np.log(one[way] / one[base])) for one in found.values() if len(one) == 2]


def _per_s(block: Block, series: Sequence[Series]) -> float:
    first_ns, last_ns = block.begin_ns + int(DROPPED_S * 1e9), block.end_ns - 1_000_000_000
    total, seconds = 0.0, 0
    for one in series:
        within = (one.unix_ns >= first_ns) & (one.unix_ns <= last_ns)
        total += float(one.values[within].sum())
        seconds = int(within.sum())
    return total / seconds


def measured(wanted: argparse.Namespace, switch: Switch) -> dict[str, Any]:
    """Run all trials; the ratios and what telemetry says of its own cost."""
    path = wanted.out.with_suffix(".sqlite")
    window.Recorder = switched(switch)  # type: ignore[attr-defined]
    here = api.Address("127.0.0.1", 0)
    with api.Audience(switch.hear, here, here) as audience:
        switch.metrics = audience.metrics_url or ""
        for one in _serving():
            one.send_signal(signal.SIGSTOP)
        try:
            pgdyno.run(plan_of(wanted, switch), out=path, on_event=audience)
        finally:
            for one in _serving():
                one.send_signal(signal.SIGCONT)
    ratios: list[list[float]] = [[] for _ in PAIRS]
    costs: list[TelemetryReport] = []
    with RunFile.read(path) as file:
        if len(file.finished()) != wanted.trials:
            raise Failure("a trial did not finish", f"See what pgdyno report {path} says.")
        for trial, blocks in zip(file.finished(), switch.blocks, strict=True):
            series = [one for name, one in file.series(trial.number).items()
                      if name.startswith("driver.committed.")]  # fmt: skip
            for of in range(len(PAIRS)):
                ratios[of] += log_ratios(blocks, series, of)
            if trial.result and trial.result.telemetry:
                costs.append(trial.result.telemetry)
    return {"ratios": ratios, "cpu": _cpu(costs, switch)}


def _cpu(costs: Sequence[TelemetryReport], switch: Switch) -> dict[str, float]:
    """Of one CPU, in per cent, for each set; and of the snapshots, milliseconds for one window."""
    default_s = sum(s.cpu_s for one in costs for s in one.samplers if s.kind != "snapshot")
    snapshots_s = sum(s.cpu_s for one in costs for s in one.samplers if s.kind == "snapshot")
    on_s = sum(switch.on_s[way] for way in ("default", "full", "watched"))
    return {"of_a_cpu_percent": 100 * default_s / on_s,
            "snapshots_ms_a_window": 1e3 * snapshots_s / max(1, len(costs))}  # fmt: skip


def compare(wanted: argparse.Namespace) -> None:
    """Measure and print."""
    switch = Switch(wanted.block, wanted.pairs, wanted.seed)
    found = measured(wanted, switch)
    rows = []
    for (way, base), logs in zip(PAIRS, found["ratios"], strict=True):
        one = estimate(np.array([logs]), 0.95)
        ratio, low, high = (float(np.exp(v[0])) for v in (one.centre, one.low, one.high))
        rows.append([f"{way} / {base}", f"{ratio:.4f}", f"{low:.4f} to {high:.4f}", f"{len(logs)}"])
    print(table(("ways", "ratio", "95% interval", "pairs"), rows))
    said = "{of_a_cpu_percent:.2f}% of a CPU while it reads, {snapshots_ms_a_window:.0f} ms for"
    print(f"\n{said} the snapshots of a window".format(**found["cpu"]))
    blocks = [[asdict(one) for one in trial] for trial in switch.blocks]
    write_json(wanted.out, {**found, "blocks": blocks})


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line and compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=4)
    parser.add_argument("--pairs", type=int, default=9, help="of each kind in a trial")
    parser.add_argument("--block", type=float, default=7.0, help="seconds of a block")
    parser.add_argument("--warehouses", type=int, default=5)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--warmup", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1, help="of the order of blocks")
    parser.add_argument("--out", type=Path, required=True, help="JSON of ratios and blocks")
    wanted = parser.parse_args(arguments)
    return exit_code(lambda: compare(wanted))


if __name__ == "__main__":
    sys.exit(main())
