"""Profiles a stage's server, the kernel and the driver, on a load of its own after the window.

Copying stacks costs the server some per cent, so that no measured number may lie near. A profile in
the warm-up would meet caches that still fill, and change what the window begins with; one within
the window would be in the numbers. After it, the same server under the same load is as warm as it
gets, and nothing that comes is a measured time: plans that kill the server after their windows, and
time its recovery, cannot have a profile as well.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pgdyno.drive.driver import Driven
from pgdyno.model.plan import Protocol, Stage
from pgdyno.model.profile import PROFILE_WARMUP_S, Profile, Unwinding
from pgdyno.model.progress import DriveProgress
from pgdyno.model.run import Fixture
from pgdyno.profiler.capture import Capture, Subject
from pgdyno.target.interface import Ready
from pgdyno.trial.window import Watch, drive_by_engine

_FRAME_POINTERS = "-fno-omit-frame-pointer"
_ENDED = ("driver.committed.", "driver.rolled_back")
_NS = 1_000_000_000


def take_profile(protocol: Protocol, stage: Stage, ready: Ready, fixture: Fixture) -> Profile:
    """Drive the stage's load once more, and look where its time goes.

    Args:
        protocol: Seconds of the profile.
        stage: Whose load is driven, with requests of another seed.
        ready: The server, warm.
        fixture: What it was loaded with.

    Raises:
        PgdynoError: The load could not be driven. What cannot be seen is in the profile instead.
    """
    short = replace(protocol, warmup_s=PROFILE_WARMUP_S, window_s=protocol.profile_s)
    # Other requests than the window's: some loads insert keys that their seed decides.
    load = replace(stage.workload, seed=stage.workload.seed + 1, steps=(), requests_max=None)
    subject = Subject(ready.postmaster_pid, ready.user, _unwinding(stage))
    with Capture(subject, int(protocol.profile_s)) as capture:
        # Whoever follows the run is not told of this load: it is no window.
        def heard(state: DriveProgress) -> None:
            if state.phase in ("warmup", "window") and not capture.has_begun:
                capture.begin(next(iter(watch.pids), None))

        watch = Watch(heard)
        c_load = fixture.loaded.c_load if fixture.loaded else None
        driven = drive_by_engine(ready, load, short, c_load, watch)
        return capture.end(driven.window_ns, ended_by_second(driven))


def _unwinding(stage: Stage) -> Unwinding:
    """How stacks of the server's program can be followed.

    Programs keep no pointers to their frames unless they are compiled so; without them the pieces
    of the stack are copied and followed afterwards, which costs more.
    """
    build = stage.build
    return "fp" if build is not None and _FRAME_POINTERS in build.recipe.flags.split() else "dwarf"


def ended_by_second(driven: Driven) -> tuple[float, ...]:
    """Transactions that ended in each whole second of the window.

    The driver counts by seconds of its own; these are cut where those of the window begin.
    """
    begin, end = driven.window_ns
    counted = [one for one in driven.series if one.name.startswith(_ENDED)]
    edges = begin + np.arange((end - begin) // _NS + 1, dtype=np.int64) * _NS
    total = np.zeros(edges.size)
    for one in counted:
        if not one.unix_ns.size:
            continue
        times = np.append(one.unix_ns, one.unix_ns[-1] + _NS) - begin
        sums = np.concatenate([[0.0], np.cumsum(one.values)])
        total += np.interp(edges - begin, times, sums)
    return tuple(round(float(value), 3) for value in np.diff(total))
