"""Climb: from a plan's first stage, move by move, until nothing that is allowed helps.

    first stage -> [ diagnose -> moves against its limit -> race -> keep the best ]* -> without each
    move -> first, best, `tuned` and pgtune beside each other, on fresh rounds -> article

A step is a run of its own in a folder beside the climb's run file. What is believed of a move is
in the plan of its step, before that is measured; what is said at the end rests on the last runs
alone, because the best of many tries looks better than it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pgdyno.analysis.facts import Comparison, StageFacts
from pgdyno.analysis.judged import plan_in
from pgdyno.analysis.plain import plain
from pgdyno.api.climb_plans import (
    climbed,
    foretold,
    last_plan,
    plan_file,
    require_time,
    start_plan,
    without,
)
from pgdyno.api.climb_seen import effects, left, seen
from pgdyno.api.experiments import plan as of_plan
from pgdyno.api.notebook_line import with_line
from pgdyno.api.plan_disks import require_plan_disks_free
from pgdyno.api.planning import Plan, load_follow_up
from pgdyno.api.proposing import Proposal, proposal, require_settings, stage_of
from pgdyno.api.runs import Experiment, Run
from pgdyno.api.stage_machine import require_allowed
from pgdyno.api.storing import Begun, begun, going_on, stored
from pgdyno.catalog.contract import require_release
from pgdyno.folders import Folder
from pgdyno.model.climb import (
    FUTILE_MAX,
    ClimbAsked,
    Climbed,
    ClimbLimits,
    Found,
    Judged,
    Step,
    Tried,
)
from pgdyno.model.errors import PlanError
from pgdyno.model.manifest import Installation
from pgdyno.model.progress import Noted
from pgdyno.model.proposal import NotTried
from pgdyno.model.settings import Rung
from pgdyno.model.units import seconds_text
from pgdyno.model.wording import listed, plural
from pgdyno.plan.follow_up import follow_up
from pgdyno.report import climb as report
from pgdyno.store.run_file import require_new
from pgdyno.trial.progress import Listener

_LIMITS = ClimbLimits()
PLAN_FILE = "climbed.toml"
"""In the folder of the steps: where the climb began and what it reached, as a plan."""
Keep = Callable[[Climbed], None]


@with_line
def climb(
    plan: Plan,
    *,
    limits: ClimbLimits = _LIMITS,
    out: str | Path | None = None,
    command: str = "pgdyno.climb(plan), from Python",
    on_event: Listener = lambda _: None,
) -> Run:
    """Tune a plan's first stage, move by move: diagnose it, try what is against its limit, go on.

    Args:
        plan: Its first stage is where the climb begins; others are not looked at.
        limits: The rung of durability that is allowed, what stays as it is, and how long it may
            take.
        out: The run file, a page goes beside it; the runs of its steps go into a folder of the same
            name. None: `runs/<time>-climb-<plan>.sqlite`.
        command: How to repeat it, as the run file keeps it.
        on_event: Told how it goes.

    Returns:
        The run; see `Run.climbed`.

    Raises:
        PlanError: A running server is not ours to climb on, a pinned setting is none of the
            server's, the minutes are too few for a step, or the plan cannot be carried out.
        PgdynoError: See `run`; steps that ended are kept.
        Interrupted: Ctrl-C; the same.
    """
    asked = _asked(plan, limits)
    build = Installation(version=plan.server.version)
    new = begun("climb", f"climb-{plan.name}", command, out, build=build)
    _require_no_folder(new.path)
    return _carried_out(new, Climbed(asked), on_event)


def climb_preview(
    plan: Plan, limits: ClimbLimits = _LIMITS, *, out: str | Path | None = None
) -> str:
    """What a climb would do, in lines; nothing is touched.

    Args:
        plan: See `climb`.
        limits: The same.
        out: The same; None: which one is not looked for.

    Raises:
        PlanError: See `climb`.
        StoreError: There is such a run file, or it has the name of a page.
        TargetError: Another pgdyno measures on a disk of the plan now: who, and where.
    """
    asked = _asked(plan, limits)
    if out is not None:
        require_new(Path(out))
        _require_no_folder(Path(out))
    require_plan_disks_free(plan.record)
    return foretold(asked)


def _asked(plan: Plan, limits: ClimbLimits) -> ClimbAsked:
    """What is asked for, where it can be done.

    Raises:
        PlanError: See `climb`.
    """
    require_release()
    if plan.record.target.kind == "running":
        raise PlanError(
            "a climb restarts the server and tries settings, and this one is not pgdyno's own",
            'Climb on a copy: a plan with kind = "installed" and that server\'s `bindir`.',
        )
    require_allowed(plan.stages[:1], allowed=limits.host)
    require_settings(limits.pinned, plan)
    asked = ClimbAsked(plan.record, limits)
    require_time(asked)
    return asked


def _require_no_folder(path: Path) -> None:
    if _folder(path).exists():
        raise PlanError(f"folder {_folder(path)} exists, steps would be put into it",
                        "Name another run file with --out.")  # fmt: skip


def resume(run: Run, _again: bool, on_event: Listener) -> Run:
    """Resume a climb, in the step where it was broken off; see `api.resume`."""
    return _carried_out(going_on(run), run.climbed, on_event)


def _folder(path: Path) -> Path:
    return path.with_suffix("")


def _carried_out(new: Begun, so_far: Climbed, on_event: Listener) -> Run:
    with stored(new, announced=False) as keep:
        _Climb(_folder(new.path), so_far, keep, on_event).to_the_end()
    return new.reported()


class _Climb:
    """A climb under way."""

    def __init__(self, folder: Path, so_far: Climbed, keep: Keep, on_event: Listener) -> None:
        self._folder = folder
        self._now = so_far
        self._keep = keep
        self._on_event = on_event
        self._runs: dict[str, Run] = {}  # by their files' names, opened and analysed once

    def to_the_end(self) -> None:
        """All that is left."""
        if self._now.start is None:
            self._keep(self._now)  # trials of the first step are resumed by it
            self._begin()
        while self._now.stopped is None:
            self._step()
        if self._now.without is None and len(self._now.accepted) > 1:
            self._strip()
        if self._now.final is None:
            self._judge()

    def _put(self, now: Climbed) -> None:
        self._now = now
        self._keep(now)

    def _measured(self, name: str, plan: Plan | None) -> tuple[Run, float]:
        """The run of this name, begun or resumed, and the seconds that it took now."""
        path, began = self._folder / name, time.monotonic()
        if plan is not None and not path.exists():
            run = of_plan.carried_out(
                plan, plan.record, "plan", plan.command, path, self._on_event, host=True
            )  # a stage of it asks for the machine only where the climb may
        else:
            run = Run(path)
            if not run.is_whole:
                run = of_plan.resume(run, False, self._on_event)
        self._runs[name] = run
        return run, time.monotonic() - began

    # -- steps --------------------------------------------------------------------------------

    def _begin(self) -> None:
        asked = self._now.asked
        first = asked.plan.stages[0].name
        self._on_event(Noted(f"Where it begins: stage {first}."))
        run, seconds = self._measured("start.sqlite", start_plan(asked))
        trials = run.facts.trials_finished
        start = Step("start.sqlite", run.info.ident, first, "", (), (), None, seconds, trials)
        self._put(replace(self._now, start=start))

    def _step(self) -> None:
        now = self._now
        begun = now.steps[-1] if now.steps and now.steps[-1].seconds is None else None
        if begun is not None and (self._folder / begun.run_file).exists():
            self._race(begun, None)
            return
        if begun is not None:  # broken off before anything was measured: asked again
            now = self._now = replace(now, steps=now.steps[:-1])
        proposed = self._proposed()
        if isinstance(proposed, str):
            self._put(replace(self._now, stopped=proposed))
            return
        step, plan = proposed
        self._put(replace(self._now, steps=(*now.steps, step)))
        moves = listed([one.move for one in step.tried])
        self._on_event(Noted(f"Step {len(now.steps) + 1}: {step.seen} Tried: {moves}."))
        self._race(step, plan)

    def _race(self, step: Step, plan: Plan | None) -> None:
        run, seconds = self._measured(step.run_file, plan)
        self._put(replace(self._now, steps=(*self._now.steps[:-1], _outcome(step, run, seconds))))
        if why := _futile(self._now):
            self._put(replace(self._now, stopped=why))

    def _last(self) -> tuple[Run, str]:
        """The run in which the best stage was measured last, and its name there."""
        now = self._now
        step = now.steps[-1] if now.steps else now.start
        assert step is not None
        run = self._runs.get(step.run_file) or Run(self._folder / step.run_file)
        kept = next((one.stage for one in step.tried if one.move == step.accepted), step.base)
        return run, kept

    def _proposal(self, lowest: Rung) -> Proposal:
        run, stage = self._last()
        return proposal(run, stage, self._now.asked.limits.allowed(lowest))

    def _proposed(self) -> tuple[Step, Plan] | str:
        """The next step, with as many moves as the minutes allow, and its plan; or why none is."""
        limits = self._now.asked.limits
        found = self._proposal(limits.lowest)
        facts = found.facts
        refused = _refused_since(self._now)
        chosen = [one for one in facts.tries if one.move not in refused][: limits.at_once]
        tried = tuple(
            Tried(one.move, stage_of(one.move, facts.stage), one.why, one.against, one.rung,
                  one.changes, one.predicted)
            for one in chosen
        )  # fmt: skip
        why = _nothing_left(found, refused, limits.lowest)
        for count in range(len(tried), 0, -1):
            plan = found.plan(*(one.move for one in tried[:count]))
            over = _over(plan, self._now)
            if over is None:
                file = f"step-{len(self._now.steps) + 1}.sqlite"
                step = Step(file, "", facts.stage, facts.sentence, tried[:count], facts.not_tried,
                            behind=seen(*self._last()))  # fmt: skip
                return step, plan
            why = over
        return why

    # -- the end ------------------------------------------------------------------------------

    def _strip(self) -> None:
        """Each accepted move is left out once; those that are not missed go."""
        run, name = self._last()
        record, limits = plan_in(run.info), self._now.asked.limits
        best = record.stage(name)
        stages = [without(one) for one in self._now.accepted]
        plan = load_follow_up(record, follow_up(record, best, stages, limits.lowest))
        self._on_event(Noted(f"Without each of {listed([o.move for o in self._now.accepted])}."))
        run, seconds = self._measured("without.sqlite", plan)
        judged = _judged("without.sqlite", run, (), seconds)
        gone = {
            stage.name
            for stage, found in zip(stages, judged.found, strict=True)
            if found.verdict in ("equivalent", "better")
        }
        kept = tuple(one.move for one in self._now.accepted if f"without-{one.move}" not in gone)
        self._put(replace(self._now, without=judged, kept=kept))

    def _judge(self) -> None:
        """The first stage, the best one and those that people would take, on fresh rounds.

        Where nothing helped, whether these do is asked all the same.
        """
        asked, limits = self._now.asked, self._now.asked.limits
        if self._now.without is None:
            self._put(replace(self._now, kept=tuple(one.move for one in self._now.accepted)))
        kept = [one for one in self._now.accepted if one.move in self._now.kept]
        reached = [climbed(kept)] if self._now.accepted else []
        plan, left_out = last_plan(asked, reached)
        if reached:
            with Folder.made(self._folder) as folder:
                folder.write(PLAN_FILE, plan_file(asked, reached))
        if len(plan.stages) == 1:
            final = Judged("", "", (plan.stages[0].name,), (), tuple(left_out))
            self._put(replace(self._now, final=final, left=left(*self._last())))
            return
        self._on_event(Noted("The end: what was reached, beside where it began, on fresh rounds."))
        run, seconds = self._measured("final.sqlite", plan)
        beyond = [one for one in self._proposal(Rung.D6).facts.tries if one.rung > limits.lowest]
        final, best = _judged("final.sqlite", run, tuple(left_out), seconds), run.facts.stages[0]
        if reached:
            first, best, *rivals = run.facts.stages
            beside = tuple(_as_found(run.compare(best.name, one.name)) for one in rivals)
            final = replace(final, plain=plain((first, best)), beside=beside)
        self._put(replace(self._now, final=final, beyond=tuple(beyond), left=left(run, best.name)))


def _over(plan: Plan, now: Climbed) -> str | None:
    """Why the next step is not begun: it would take more than what is left."""
    minutes = now.asked.limits.minutes
    used = sum(one.seconds or 0.0 for one in now.steps)
    needed = plan.estimate.measuring_s + plan.estimate.other_s
    if used + needed <= minutes * 60:
        return None
    return (
        f"The next step may take {seconds_text(needed)}, and {seconds_text(used)} of"
        f" {minutes:g} minutes are used."
    )


def _nothing_left(found: Proposal, refused: set[str], lowest: Rung) -> str:
    """Why there is nothing to try, after what limits it then."""
    facts = found.facts
    tried = sorted(one.move for one in facts.tries if one.move in refused)
    if tried:
        shown = "is not shown to help" if len(tried) == 1 else "are not shown to help"
        return f"{facts.sentence} What is against it was tried: {listed(tried)} {shown}."
    return f"{facts.sentence} No move on rung {lowest} or above is proposed."


def _refused_since(now: Climbed) -> set[str]:
    """Moves that did not help since the last one that did: limits move, so earlier ones may."""
    refused: set[str] = set()
    for step in now.steps:
        if step.accepted is not None:
            refused = set()
        refused |= {one.move for one in step.tried if one.move != step.accepted}
    return refused


def _outcome(step: Step, run: Run, seconds: float) -> Step:
    """The step with what its run found, and the move that is kept."""
    stages = {one.name: one for one in run.facts.stages}
    tried = tuple(
        replace(one, found=_found(stages[one.stage]),
                effects=effects(stages[step.base], stages[one.stage]))
        for one in step.tried
    )  # fmt: skip
    better = [
        one
        for one in tried
        if one.found and one.found.verdict == "better" and not _slower(stages[one.stage])
    ]
    best = max(better, key=lambda one: one.found.ratio or 0.0 if one.found else 0.0, default=None)
    return replace(
        step, run=run.info.ident, tried=tried, accepted=best.move if best else None,
        seconds=seconds + (step.seconds or 0.0), trials=run.facts.trials_finished,
    )  # fmt: skip


def _slower(stage: StageFacts) -> bool:
    """Whether its slowest requests are shown to take longer by a fifth or more."""
    return any(one.low is not None and one.low > 1.2 for one in stage.tails)


def _found(stage: StageFacts) -> Found:
    one = stage.to_first
    if one is None:
        return Found("", None, None, None, "not judged", "it is not compared", 0)
    found = _as_found(one)
    if one.verdict == "better" and _slower(stage):
        reason = f"{one.reason}; its slowest requests take longer by a fifth or more"
        return replace(found, reason=reason)
    return found


def _as_found(one: Comparison) -> Found:
    return Found(one.base, one.ratio, one.low, one.high, one.verdict, one.reason, one.rounds)


def _judged(name: str, run: Run, left_out: tuple[NotTried, ...], seconds: float) -> Judged:
    stages = run.facts.stages
    return Judged(
        name, run.info.ident, tuple(one.name for one in stages),
        tuple(_found(one) for one in stages[1:]), left_out, seconds=seconds,
        trials=run.facts.trials_finished,
    )  # fmt: skip


def _futile(now: Climbed) -> str | None:
    last = now.steps[-FUTILE_MAX:]
    if len(last) < FUTILE_MAX or any(one.accepted for one in last):
        return None
    return f"{plural(FUTILE_MAX, 'step')} one after the other brought nothing."


def _made(run: Run) -> report.Made:
    return report.Made(run.info.ident, run.info.pgdyno, run.info.build.version or "")


EXPERIMENT = Experiment(
    lambda run: run.climbed.stopped is not None and run.climbed.final is not None,
    {
        "html": lambda run: report.render_html(run.climbed, _made(run)),
        "md": lambda run: report.render_md(run.climbed, _made(run)),
        "json": lambda run: report.render_json(run.climbed, _made(run)),
    },
    lambda run: report.summary(run.climbed),
    resume,
)
