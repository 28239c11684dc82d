r"""What does watching cost? Telemetry is switched on and off while one load runs.

    python benches/telemetry.py --trials 3 --pairs 60 --load select-only --telemetry default \
      --watched page --out page.json    # half an hour; then --watched metrics
    python benches/telemetry.py --trials 2 --pairs 60 --telemetry full --out full.json
    python benches/telemetry.py --trials 1 --pairs 2 --out one.json     # does it work?

Method. A plan of one stage is run with the default telemetry, then one with full telemetry; each
trial is on a fresh copy of the same data, after a CHECKPOINT. Within its window the recorder, which
is the run's own, is told block by block whether to read or not. `watched` is the default, and the
run's page is served, too, to one who has it open, or its metrics, asked once a second, as a
dashboard in a hurry would; else no glance is taken for it, and the process that serves them is
stopped (SIGSTOP) and told nothing: what had waited for it would be read when it goes on. A pair is
two blocks side by side, in random order: default and none, watched and default; full and none.
Blocks begin and end with the seconds that the driver counts by, and are short, since this noise is
of seconds: of 7 s each, and four times as long, intervals were twice as wide. Printed is the ratio
of committed transactions a second: the Hodges-Lehmann estimate over all pairs with its 95%
interval; and what the recorder's thread took of a CPU by its own account, what the server's process
that answers it did, and the process that serves: where both CPUs are busy, their share of all CPUs
is what is missing elsewhere, and is known far better than the ratio.

synchronous_commit is off, so that both CPUs are busy and each microsecond of watching is missing
elsewhere: where commits wait for a disk, watching costs less. Snapshots, which are read at both
ends of a window, are not in the ratios: what they take is printed for one window.

Limits. The recorder's session stays connected in blocks without telemetry. Who has the page open
reads its events here, as a browser on another host would; drawing them is not counted. Of each
block the first 50 ms may be those of the one before, and a glance is of all seconds since the last.
Blocks of seconds on one machine.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from http.client import HTTPResponse
from math import ceil
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import numpy as np
import psutil
from measure import Failure, cpu_s, table, write_json
from package import package_exit_code

import pgdyno
from pgdyno import api
from pgdyno.model.glance import Glance
from pgdyno.model.plan import Telemetry
from pgdyno.model.progress import DriveProgress, Event
from pgdyno.model.run import Series, TallySeries, TelemetryReport
from pgdyno.sample.process_files import parse_schedstat
from pgdyno.sample.recorder import Readable, Recorder
from pgdyno.sample.sampler import Snapshot
from pgdyno.stats.interval import estimate
from pgdyno.store import RunFile
from pgdyno.trial import looking_on, servers, window

# By the telemetry that a plan asks for.
PAIRS: dict[Telemetry, tuple[tuple[str, str], ...]] = {
    "default": (("default", "none"), ("watched", "default")),
    "full": (("full", "none"),),
}
LOADS: dict[str, dict[str, Any]] = {
    "tpcc": {"warehouses": 5, "face": "pipeline", "home": "random"},
    "select-only": {"scale": 50},
}
_TICK_S = 0.05
_SCRAPED_S = 1.0
_SAID = (
    "{telemetry}: {of_a_cpu_percent:.2f}% of a CPU while it reads and {backend_percent:.2f}% in the"
    " server, {snapshots_ms_a_window:.0f} ms for the snapshots of a window"
)
_SERVING = (
    "serving the {watched}: {serving_percent:.2f}% of a CPU, and {telling_percent:.2f}% in this"
    " process, what reads it here included; {served_bytes_per_s:,.0f} bytes a second"
)


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a window that was watched one way."""

    pair: int  # number of the pair within its trial
    of: int  # index of those that the plan's telemetry allows
    way: str
    begin_ns: int
    end_ns: int


@dataclass(slots=True)
class Viewer:
    """Looks at a run, while it is let: has its page open, or asks for its metrics."""

    metrics: str = ""  # address; empty: it has the page open
    got_bytes: int = 0

    def open_page(self, url: str) -> None:
        """Follow the page's events for as long as they are served."""
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with opener.open(url, timeout=10) as page:
            events = opener.open(urljoin(page.url, "events"), timeout=3600)
        threading.Thread(target=self._follow, args=(events,), daemon=True).start()

    def _follow(self, events: HTTPResponse) -> None:
        with suppress(OSError), events:
            while told := events.read1():
                self.got_bytes += len(told)

    def look(self, ended: threading.Event) -> None:
        """Until then."""
        while not ended.is_set():
            if self.metrics:
                with suppress(OSError):
                    answer = urllib.request.urlopen(self.metrics, timeout=2)  # noqa: S310  loopback
                    self.got_bytes += len(answer.read())
            ended.wait(_SCRAPED_S)


@dataclass(slots=True)
class Switch:
    """Says what is to be read now; follows the window of each trial."""

    telemetry: Telemetry
    block_s: int
    pairs: int
    seed: int
    viewer: Viewer
    way: str = "none"
    may_look: threading.Event = field(default_factory=threading.Event)
    serving: list[psutil.Process] = field(default_factory=list)  # to be found once: it costs
    blocks: list[list[Block]] = field(default_factory=list)
    on_s: Counter[str] = field(default_factory=Counter)
    own_s: dict[str, float] = field(default_factory=lambda: defaultdict(float))  # of CPU, by us
    serving_s: float = 0.0  # of CPU, that the process which serves took while it was asked
    backends: list[int] = field(default_factory=list)  # that answer the samplers
    backends_s: float = 0.0  # of CPU, that these took while they were asked
    _phase: str = ""

    @property
    def window_s(self) -> float:
        """Seconds that all blocks take."""
        return float(self.block_s * self.pairs * len(PAIRS[self.telemetry]) * 2)

    def hear(self, event: Event) -> None:
        """A window that begins is divided into blocks by a thread of its own."""
        if not isinstance(event, DriveProgress):
            return
        if event.phase == "window" and self._phase != "window":
            begun_s = time.monotonic() - event.elapsed_s
            threading.Thread(target=self._divide, args=(begun_s,), daemon=True).start()
        self._phase = event.phase

    def _divide(self, begun_s: float) -> None:
        """The driver counts by whole seconds since it began: so do these."""
        mine: list[Block] = []
        self.blocks.append(mine)
        self._rest()
        random = np.random.default_rng([self.seed, len(self.blocks)])
        second = ceil(time.monotonic() - begun_s)
        _sleep_until(begun_s + second)
        pairs = PAIRS[self.telemetry]
        for number in range(self.pairs):
            for index in random.permutation(len(pairs)):
                for place in random.permutation(2):
                    way = pairs[index][place]
                    begin_ns = time.time_ns()
                    second += self.block_s
                    self._while(way, begun_s + second)
                    mine.append(Block(number, int(index), way, begin_ns, time.time_ns()))
        self.way = "none"
        self.go_on()

    def _while(self, way: str, end_s: float) -> None:
        self.way = way
        self.on_s[way] += self.block_s
        ended = threading.Event()
        asking = threading.Thread(target=self.viewer.look, args=(ended,))
        before_s = (sum(map(cpu_s, self.serving)), _ran_s(self.backends), time.process_time())
        if way == "watched":
            self.go_on()
            asking.start()
        _sleep_until(end_s)
        if way != "none":
            self.backends_s += _ran_s(self.backends) - before_s[1]
        if way == "watched":
            ended.set()
            asking.join()
            self._rest()
            self.serving_s += sum(map(cpu_s, self.serving)) - before_s[0]
        self.own_s[way] += time.process_time() - before_s[2]

    def _rest(self) -> None:
        self.may_look.clear()
        for one in self.serving:
            one.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it serve: blocks that are watched, and all that is no window."""
        for one in self.serving:
            one.send_signal(signal.SIGCONT)
        self.may_look.set()


def _sleep_until(at_s: float) -> None:
    time.sleep(max(0.0, at_s - time.monotonic()))


def _ran_s(pids: Sequence[int]) -> float:
    return sum(parse_schedstat(Path(f"/proc/{pid}/schedstat").read_bytes())[0] for pid in pids)


def _serving() -> Iterator[psutil.Process]:
    """The process that serves the page."""
    for one in psutil.Process(os.getpid()).children():
        with suppress(psutil.NoSuchProcess):
            if "pgdyno.live.worker" in one.cmdline():
                yield one


def switched(switch: Switch) -> type[Recorder]:
    """The recorder, which reads what the switch says."""

    class Switched(Recorder):
        def __enter__(self) -> Recorder:
            if self._link is not None:
                switch.backends = [one.info.backend_pid for one in self._link.sessions]
            return super().__enter__()

        def _take(self, one: Readable, at: Any = "begin") -> bool:  # noqa: ANN401  as its base has
            outside = threading.current_thread() is threading.main_thread()  # of the window
            if outside or isinstance(one, Snapshot) or switch.way != "none":
                return super()._take(one, at)
            return False

        def _next_word(self) -> Any:  # noqa: ANN401  as its base has
            while switch.blocks and switch.way == "none" and self._words.empty():
                time.sleep(_TICK_S)
            return super()._next_word()

    return Switched


def told_while_watched(switch: Switch, here: api.Address) -> api.Audience:
    """The audience; of a window it is told, and glances are taken, while somebody looks alone."""
    switch.may_look.set()

    class Told(api.Audience):
        def _due(self) -> Any:  # noqa: ANN401  as its base has
            switch.may_look.wait()
            return super()._due()

    class Glancing(looking_on.Glances):
        def next(self) -> Glance:
            switch.may_look.wait()
            return super().next()

    looking_on.Glances = Glancing  # type: ignore[misc]
    return Told(switch.hear, here, here)


def plan_of(wanted: argparse.Namespace, switch: Switch) -> pgdyno.Plan:
    """One stage, as many rounds as trials."""
    return pgdyno.load_plan({
        "name": "telemetry", "question": "What does watching cost?",
        "workload": {"kind": wanted.load, "connections": wanted.connections, **LOADS[wanted.load]},
        "protocol": {"rounds": wanted.trials, "warmup_s": wanted.warmup, "checked_rounds": 1,
                     "window_s": switch.window_s + 3, "checkpoints": "ignore",
                     "telemetry": switch.telemetry, "lowest_rung": "D2"},
        "stage": [{
            "name": "one", "why": "Memory for the data, no checkpoint in the window, busy CPUs.",
            "settings": {"shared_buffers": "2GB", "max_wal_size": "24GB",
                         "checkpoint_timeout": "1h", "synchronous_commit": "off"},
        }],
    })  # fmt: skip


def log_ratios(
    blocks: Sequence[Block], series: Sequence[Series], of: int, ways: Sequence[str]
) -> list[float]:
    """Of the pairs of a kind, each block by its seconds."""
    found: dict[int, dict[str, float]] = {}
    for one in blocks:
        if one.of == of:
            found.setdefault(one.pair, {})[one.way] = _per_s(one, series)
    way, base = ways
    return [float(np.log(one[way] / one[base])) for one in found.values() if len(one) == 2]


def _per_s(block: Block, series: Sequence[Series]) -> float:
    """Seconds are those whose middle lies in the block: both were begun at the same moments."""
    middles = series[0].unix_ns + 500_000_000
    within = (middles >= block.begin_ns) & (middles < block.end_ns)
    return float(sum(one.values[within].mean() for one in series))


def require_switched(blocks: Sequence[Block], tally: TallySeries) -> None:
    """Whoever watches in a block without telemetry would make all ratios 1.

    Raises:
        Failure: The sessions of the server were looked at in one, or were not in another.
    """
    for one in blocks:
        # Whole seconds of the calendar in it, but for what it begins with.
        within = (tally.tick_seconds >= ceil(one.begin_ns / 1e9 + _TICK_S)) & (
            tally.tick_seconds + 1 <= one.end_ns / 1e9
        )
        looks = int(tally.ticks[within].sum())
        if (one.way == "none") == (looks > 0):
            raise Failure(
                f"sessions were looked at {looks} times in a block of {one.way}",
                "The recorder was not switched: none of these ratios counts.",
            )


def measured(wanted: argparse.Namespace, telemetry: Telemetry) -> dict[str, Any]:
    """Run all trials with it; the ratios and what telemetry says of its own cost."""
    viewer = Viewer()
    switch = Switch(telemetry, wanted.block, wanted.pairs, wanted.seed, viewer)
    path = wanted.out.with_name(f"{wanted.out.stem}-{telemetry}.sqlite")
    # One records this host, the others a server each.
    window.Recorder = servers.Recorder = switched(switch)  # type: ignore[attr-defined]
    with told_while_watched(switch, api.Address("127.0.0.1", 0)) as audience:
        switch.serving = list(_serving())
        if wanted.watched == "page":
            viewer.open_page(audience.page_url or "")
        else:
            viewer.metrics = audience.metrics_url or ""
        try:
            pgdyno.run(plan_of(wanted, switch), out=path, on_event=audience)
        finally:
            switch.go_on()
    ratios: dict[str, list[float]] = {f"{way} / {base}": [] for way, base in PAIRS[telemetry]}
    costs: list[TelemetryReport] = []
    with RunFile.read(path) as file:
        if len(file.finished()) != wanted.trials:
            raise Failure("a trial did not finish", f"See what pgdyno report {path} says.")
        for trial, blocks in zip(file.finished(), switch.blocks, strict=True):
            series = [one for name, one in file.series(trial.number).items()
                      if name.startswith("driver.committed.")]  # fmt: skip
            require_switched(blocks, file.tallies(trial.number)["sessions"])
            for of, (ways, logs) in enumerate(zip(PAIRS[telemetry], ratios.values(), strict=True)):
                logs.extend(log_ratios(blocks, series, of, ways))
            if trial.result and trial.result.telemetry:
                costs.append(trial.result.telemetry)
    return {"ratios": ratios, "blocks": [[asdict(one) for one in trial] for trial in switch.blocks],
            "cpu": _cpu(costs, switch)}  # fmt: skip


def _cpu(costs: Sequence[TelemetryReport], switch: Switch) -> dict[str, float]:
    """Of one CPU, in per cent; and of the snapshots, milliseconds for one window."""
    read_s = sum(s.cpu_s for one in costs for s in one.samplers if s.kind != "snapshot")
    snapshots_s = sum(s.cpu_s for one in costs for s in one.samplers if s.kind == "snapshot")
    on_s = switch.on_s.total() - switch.on_s["none"]
    watched_s = max(1, switch.on_s["watched"])
    if switch.on_s["watched"] and not switch.viewer.got_bytes:
        raise Failure("the viewer got nothing", "Nobody looked: `watched` does not count.")
    return {"of_a_cpu_percent": 100 * read_s / on_s,
            "backend_percent": 100 * switch.backends_s / on_s,
            "serving_percent": 100 * switch.serving_s / watched_s,
            "telling_percent": 100 * (switch.own_s["watched"] / watched_s - _usual(switch)),
            "served_bytes_per_s": switch.viewer.got_bytes / watched_s,
            "snapshots_ms_a_window": 1e3 * snapshots_s / max(1, len(costs))}  # fmt: skip


def _usual(switch: Switch) -> float:
    """What the run's own process takes of a CPU while it samples and nobody looks."""
    return switch.own_s["default"] / max(1, switch.on_s["default"])


def compare(wanted: argparse.Namespace) -> None:
    """Measure and print."""
    rows, found = [], dict[str, dict[str, Any]]()
    for telemetry in wanted.telemetry:
        found[telemetry] = one = measured(wanted, telemetry)
        for name, logs in one["ratios"].items():
            estimated = estimate(np.array([logs]), 0.95)
            values = (estimated.centre, estimated.low, estimated.high)
            ratio, low, high = (f"{float(np.exp(value[0])):.4f}" for value in values)
            rows.append([name, ratio, f"{low} to {high}", f"{len(logs)}"])
    write_json(wanted.out, found)
    print(table(("ways", "ratio", "95% interval", "pairs"), rows) + "\n")
    for asked, one in found.items():
        print(_SAID.format(telemetry=asked, **one["cpu"]))
        if one["cpu"]["serving_percent"]:
            print(_SERVING.format(watched=wanted.watched, **one["cpu"]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line and compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=4)
    parser.add_argument("--pairs", type=int, default=90, help="of each kind in a trial")
    parser.add_argument("--block", type=int, default=2, help="seconds of a block")
    parser.add_argument("--telemetry", choices=tuple(PAIRS), nargs="+", default=tuple(PAIRS))
    parser.add_argument("--watched", choices=("page", "metrics"), default="page")
    parser.add_argument("--load", choices=tuple(LOADS), default="tpcc")
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--warmup", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1, help="of the order of blocks")
    parser.add_argument("--out", type=Path, required=True, help="JSON of ratios and blocks")
    wanted = parser.parse_args(arguments)
    return package_exit_code(lambda: compare(wanted))


if __name__ == "__main__":
    sys.exit(main())
