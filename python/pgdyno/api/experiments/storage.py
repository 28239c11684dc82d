"""Storage: what it can do, what it claims, and what follows for commits."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

from pgdyno.analysis.storage import storage_facts
from pgdyno.api.experiments import Experiment
from pgdyno.api.notebook_line import with_line
from pgdyno.api.runs import Run
from pgdyno.api.storing import begun, going_on, stored
from pgdyno.experiment.progress import Listener
from pgdyno.experiment.storage import Cost, cost, probe_storage, require_possible
from pgdyno.model.errors import PlanError
from pgdyno.model.floor import ROUNDS_MAX, ROUNDS_MIN, Wish
from pgdyno.model.plan import Target
from pgdyno.model.text import visible
from pgdyno.model.units import bytes_text
from pgdyno.model.wording import plural
from pgdyno.plan.same_machine import require_same
from pgdyno.report import storage as report
from pgdyno.shell import postgres_user
from pgdyno.target.binaries import find_binaries

_SIZE_MIN = 64 << 20


def storage_cost(wish: Wish) -> Cost:
    """What probing takes of time and disk; nothing is touched.

    Raises:
        PlanError: A path is not a folder or has too little room, a size is too small.
        TargetError: fio is missing.
    """
    _check(wish)
    return replace(cost(wish), free_bytes=require_possible(wish).free_bytes)


@with_line
def storage(
    wish: Wish,
    *,
    bindir: str | Path | None = None,
    out: str | Path | None = None,
    command: str = "pgdyno.storage(wish), from Python",
    on_event: Listener = lambda _: None,
) -> Run:
    """Measure storage with pg_test_fsync, pg_test_timing and fio, several paths side by side.

    Flushes and commits are probed in rounds, on every path in turn, so that the figure of a path
    has a spread and paths are compared as stages of a plan are.

    Files are made in a folder of our own below each path, and always removed. Reads are harmless to
    others, writes as fast as they can be are not: do not run it beside a server that matters.

    Args:
        wish: Paths, and how long and deep they are measured.
        bindir: PostgreSQL's programs; None: the embedded ones.
        out: The run file, a page goes beside it; None: `runs/<time>-storage.sqlite`.
        command: How to repeat it, as the run file keeps it.
        on_event: Told what is done next.

    Raises:
        PgdynoError: See `storage_cost`; or a probe failed. What was measured until then is kept.
        Interrupted: Ctrl-C; the same.
    """
    storage_cost(wish)
    target = (
        Target("installed", bindir=str(Path(bindir).absolute())) if bindir else Target("embedded")
    )
    binaries = find_binaries(target, postgres_user())
    run = begun("storage", "storage", command, out, data=Path(wish.paths[0]),
                build=binaries.manifest())  # fmt: skip
    with stored(run) as keep:
        probe_storage(wish, run.info.ident, binaries, keep=keep, listener=on_event)
    return run.reported()


def resume(run: Run, _again: bool, on_event: Listener) -> Run:
    """Go on with the rounds and paths that were not measured; see `api.resume`.

    Raises:
        PlanError: PostgreSQL's programs are others than when it was begun.
    """
    so_far = run.probed
    found = going_on(run, Path(so_far.wish.paths[0]))
    origin = run.info.build.origin or ""
    installed = origin.startswith("/")
    target = Target("installed", bindir=origin) if installed else Target("embedded")
    binaries = find_binaries(target, postgres_user())
    require_same(
        {"PostgreSQL": asdict(run.info.build)}, {"PostgreSQL": asdict(binaries.manifest())}
    )
    with stored(found) as keep:
        probe_storage(
            so_far.wish, so_far.ident, binaries, so_far=so_far, keep=keep, listener=on_event
        )
    return found.reported()


def _check(wish: Wish) -> None:
    least = max(_SIZE_MIN, max(wish.jobs) << 20)  # each job has a part of its own
    if wish.size_bytes < least:
        raise PlanError(
            f"the size is {bytes_text(wish.size_bytes)}, at least {bytes_text(least)} are needed"
        )
    if wish.rounds is not None and not ROUNDS_MIN <= wish.rounds <= ROUNDS_MAX:
        raise PlanError(
            f"{plural(wish.rounds, 'round')} of probes, {ROUNDS_MIN} to {ROUNDS_MAX} are allowed",
            "One alone tells nothing of the spread.",
        )
    for path in wish.paths:
        try:
            path.encode()
        except UnicodeEncodeError:
            raise PlanError(
                f"path {visible(path)} is not text in UTF-8",
                "Run file and page could not hold it. Measure a folder beside it.",
            ) from None
    twice = [path for path in dict.fromkeys(wish.paths) if wish.paths.count(path) > 1]
    if twice:
        raise PlanError(f"{visible(twice[0])} is named twice", "Each is measured once.")


EXPERIMENT = Experiment(
    lambda run: run.probed.is_whole,
    {
        "html": lambda run: report.render_html(storage_facts(run.probed)),
        "md": lambda run: report.render_md(storage_facts(run.probed)),
        "json": lambda run: report.render_json(storage_facts(run.probed)),
    },
    lambda run: report.summary(storage_facts(run.probed)),
    resume,
)
