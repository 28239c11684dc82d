"""Probes toggled while a stage's load runs on one server: a sitting of a proof.

    restore -> apply, with the library -> prewarm -> CHECKPOINT -> drive || toggle

The driver never stops; transactions belong to the block in whose counted seconds they ended. The
server and its data are thrown away: what a probe did to them can hurt nobody.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from pgdyno.drive.driver import Driven
from pgdyno.intervention.intervention import Intervention
from pgdyno.intervention.probes import Bench
from pgdyno.intervention.shim import Shim
from pgdyno.model.errors import DriveError
from pgdyno.model.plan import Protocol, Stage
from pgdyno.model.progress import DriveProgress, StepBegun
from pgdyno.model.proof import ROUND_TRIP_NS, Block, Design, Dose, Sitting, Slowdown
from pgdyno.model.run import Fixture
from pgdyno.model.wording import plural
from pgdyno.sample.server_log import read_log
from pgdyno.session import own_session
from pgdyno.stats.switchback import Turn
from pgdyno.target.interface import Ready, Target, ending, explained
from pgdyno.trial.preparing import started, warmed
from pgdyno.trial.profiling import ended_by_second
from pgdyno.trial.progress import Listener
from pgdyno.trial.window import Watch, drive_by_engine

_NS = 1_000_000_000
_END_S = 10.0
_TOLD = {"restore": "copying the data", "start": "starting the server"}  # the others are short


@dataclass(frozen=True, slots=True)
class SittingBed:
    """What a sitting is held on."""

    target: Target
    fixture: Fixture
    shim: Shim | None
    spin_ns: int  # for each exchange, where the client's CPU time is made dearer
    listener: Listener


@dataclass(slots=True)
class _Toggler:
    """Follows the timetable in a thread of its own, from the moment the window begins."""

    turns: Sequence[Turn]
    design: Design
    interventions: Mapping[str, Intervention]
    doses: list[Dose | None] = field(default_factory=list)  # of each block that ended
    late_ns: int = 0
    failure: BaseException | None = None
    _thread: threading.Thread | None = None
    _ended: threading.Event = field(default_factory=threading.Event)

    def heard(self, state: DriveProgress, window_s: float) -> None:
        """The driver says where it is; in its window the timetable begins.

        Raises:
            BaseException: What went wrong with a toggle, so that the driver is stopped.
        """
        if self.failure is not None:
            raise self.failure
        if state.phase == "window" and self._thread is None:
            begun_ns = time.monotonic_ns() - round((window_s - state.phase_left_s) * _NS)
            self._thread = threading.Thread(
                target=self._run, args=(begun_ns,), name="pgdyno toggler", daemon=True
            )
            self._thread.start()

    def end(self, *, now: bool) -> None:
        """Wait for the last toggle, or break off now; what is on is turned off.

        Raises:
            BaseException: See `heard`.
        """
        if now:
            self._ended.set()
        if self._thread is not None:
            self._thread.join(_END_S)
        if self.failure is not None:
            raise self.failure

    def _run(self, begun_ns: int) -> None:
        try:
            for number, turn in enumerate(self.turns):
                at_ns = begun_ns + number * self.design.block_s * _NS
                if not self._block(turn, at_ns):
                    return
        except BaseException as failure:  # told by whoever listens to the driver
            self.failure = failure

    def _block(self, turn: Turn, at_ns: int) -> bool:
        """One block; tells whether it was carried out to its end."""
        if self._wait(at_ns):
            return False
        begun: list[Intervention] = []
        try:
            for name in turn.on:
                begun.append(self.interventions[name])
                begun[-1].turn(True)
            return self._counted(turn, at_ns)
        finally:
            for one in begun:
                one.turn(False)

    def _counted(self, turn: Turn, at_ns: int) -> bool:
        self.late_ns = max(self.late_ns, time.monotonic_ns() - at_ns)
        one = self.interventions.get(turn.probe)
        if self._wait(at_ns + self.design.dropped_s * _NS):
            return False
        before = one.dose() if one is not None else None
        if self._wait(at_ns + self.design.block_s * _NS):
            return False
        self.doses.append(_between(before, one.dose()) if one is not None else None)
        return True

    def _wait(self, until_ns: int) -> bool:
        """Sleep until then; tells whether the sitting is broken off."""
        return self._ended.wait(max(until_ns - time.monotonic_ns(), 0) / _NS)


def sit(
    stage: Stage,
    protocol: Protocol,
    design: Design,
    turns: Sequence[Turn],
    number: int,
    bed: SittingBed,
) -> Sitting:
    """Hold one sitting.

    Args:
        stage: What is driven, with which settings.
        protocol: Seconds of warm-up and drain, and what is done before.
        design: Seconds of blocks.
        turns: The blocks, in their order.
        number: Of the sitting, from 1; its requests have a seed of their own.
        bed: What it is held on.

    Raises:
        DriveError: The driver failed, or did not come to the end.
        PgdynoError: A step failed, or a probe could not be toggled.
        KeyboardInterrupt: Ctrl-C; the server is stopped, its data are removed.
    """

    def step(text: str) -> None:
        bed.listener(StepBegun(f"sitting {number} of {design.sittings}: {text}"))

    @contextmanager
    def phase(name: str) -> Iterator[None]:
        if name in _TOLD:
            step(_TOLD[name])
        yield

    target = bed.target
    with ending(target.stop), explained(target), ExitStack() as held:
        ready, databases = started(stage, target, bed.fixture, phase, bed.shim)
        warmed(ready, databases, protocol, phase)
        bench = Bench(held, bed.shim, held.enter_context(own_session(ready.connection)))
        names = dict.fromkeys(name for turn in turns for name in turn.on)
        interventions = {name: bench.intervention(name) for name in names}
        toggler = _Toggler(turns, design, interventions)
        end = time.localtime(time.time() + protocol.warmup_s + len(turns) * design.block_s)
        step(f"driving {plural(len(turns), 'block')} until {time.strftime('%H:%M:%S', end)}")
        driven = _driven(stage, protocol, toggler, number, ready, bed)
        blocks = with_client_doses(_blocks(turns, design, toggler.doses, driven), driven,
                                   bed.spin_ns)  # fmt: skip
        return Sitting(
            number, ready.server, blocks, driven.outcome,
            failed=sum(kind.window.failed for kind in driven.kinds),
            checkpoints=_checkpoints(target),
            late_ns=toggler.late_ns,
        )  # fmt: skip


def _driven(
    stage: Stage, protocol: Protocol, toggler: _Toggler, number: int, ready: Ready, bed: SittingBed
) -> Driven:
    window_s = float(len(toggler.turns) * toggler.design.block_s)
    load = replace(
        stage.workload, seed=stage.workload.seed + number - 1, steps=(), requests_max=None
    )

    def heard(state: DriveProgress) -> None:
        toggler.heard(state, window_s)
        bed.listener(state)

    c_load = bed.fixture.loaded.c_load if bed.fixture.loaded else None
    try:
        driven = drive_by_engine(
            ready, load, replace(protocol, window_s=window_s), c_load, Watch(heard),
            slowdowns=slowdowns(toggler.turns, toggler.design, bed.spin_ns),
        )  # fmt: skip
    except BaseException:
        toggler.end(now=True)
        raise
    toggler.end(now=driven.outcome not in ("complete", "unanswered"))
    if driven.error:
        raise DriveError(driven.error)
    if len(toggler.doses) < len(toggler.turns):
        raise DriveError(
            f"the load ended after {len(toggler.doses)} of"
            f" {plural(len(toggler.turns), 'block')}: {driven.outcome}"
        )
    return driven


def _checkpoints(target: Target) -> int:
    """That the server's log tells of."""
    lines = target.log_lines()
    events = read_log(lines).events if lines is not None else ()
    return sum(one.kind == "checkpoint" for one in events)


def slowdowns(turns: Sequence[Turn], design: Design, spin_ns: int) -> tuple[Slowdown, ...]:
    """When the driver makes its exchanges slower: in whole blocks."""
    costs = {"client": (spin_ns, 0), "round-trip": (0, ROUND_TRIP_NS)}
    return tuple(
        Slowdown(number * design.block_s, (number + 1) * design.block_s, spin_ns=own, delay_ns=sent)
        for number, turn in enumerate(turns)
        for name in turn.on
        if name in costs
        for own, sent in (costs[name],)
    )


def with_client_doses(blocks: Sequence[Block], driven: Driven, spin_ns: int) -> tuple[Block, ...]:
    """The same, with what was added to the driver's CPU time where it was made dearer.

    The driver's account is of its whole window, the dropped seconds included; what an exchange
    costs without the probe is what is left of it once all that was added is taken away.
    """
    exchanges = driven.round_trips_per_transaction
    cpu_s = driven.client.cpu_s
    if exchanges is None or cpu_s is None or not any(one.probe == "client" for one in blocks):
        return tuple(blocks)
    dear = [block for block in blocks if "client" in block.on]
    counted = sum(block.to_s - block.from_s for block in blocks) or 1
    whole = driven.window_s / counted  # blocks are shortened alike
    added_ns = sum(block.ended for block in dear) * whole * exchanges * spin_ns
    each_ns = max(cpu_s * _NS - added_ns, 0.0) / max(driven.transactions, 1)

    def dosed(block: Block) -> Block:
        units = block.ended * exchanges
        added = units * spin_ns if block.on else 0.0
        return replace(block, dose=Dose(units, block.ended * each_ns, added))

    return tuple(dosed(block) if block.probe == "client" else block for block in blocks)


def _between(before: Dose | None, after: Dose | None) -> Dose | None:
    if before is None or after is None:
        return None
    return Dose(
        after.units - before.units,
        after.spent_ns - before.spent_ns,
        after.added_ns - before.added_ns,
    )


def _blocks(
    turns: Sequence[Turn], design: Design, doses: Sequence[Dose | None], driven: Driven
) -> tuple[Block, ...]:
    ended = ended_by_second(driven)
    found = []
    for number, (turn, dose) in enumerate(zip(turns, doses, strict=True)):
        begin = number * design.block_s
        from_s, to_s = begin + design.dropped_s, begin + design.block_s
        done = sum(ended[from_s:to_s])
        found.append(Block(turn.probe, turn.on, turn.pair, from_s, to_s, done, dose))
    return tuple(found)
