"""What of a run goes into a configuration: the best stage of an allowed rung, setting by setting.

A stage's gain is that of all its settings together. What one of them brings alone is known only
where two stages differ in nothing else; all others are said to be not measured alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

from pgdyno.analysis import words
from pgdyno.analysis.credit import changed_around, changed_settings
from pgdyno.analysis.facts import Facts, StageFacts
from pgdyno.analysis.judged import plan_in
from pgdyno.analysis.run import compare_stages
from pgdyno.analysis.setting_facts import Recommended, RecommendedSetting
from pgdyno.catalog import machine_knobs
from pgdyno.catalog.entries import entries
from pgdyno.model.durability import NOT_KNOWN
from pgdyno.model.errors import PgdynoError, PlanError
from pgdyno.model.plan import Plan, Stage
from pgdyno.model.settings import Rung, Setting
from pgdyno.model.wording import listed
from pgdyno.store import RunFile

_FULL_PAGES = "full_page_writes"
_SYSCTL = "sysctl"  # the layer
_IN_PAIRS = (
    "vm/dirty_bytes", "vm/dirty_ratio", "vm/dirty_background_bytes", "vm/dirty_background_ratio",
)  # fmt: skip


def recommended(
    run: RunFile, facts: Facts, lowest: Rung = Rung.D1, stage: str | None = None
) -> Recommended:
    """Choose a stage of a run, and say what is known of each of its settings.

    Args:
        run: The run file.
        facts: What a report says of it.
        lowest: The lowest rung that the stage may stand on.
        stage: Its name; None: the one with the largest ratio among those shown to be better.

    Raises:
        PlanError: No stage is called so, or it stands on a lower rung.
    """
    info = run.info()
    plan = plan_in(info)
    if stage is None:
        chosen = best_stage(facts, lowest)
    else:
        chosen = _allowed_one(facts, lowest, plan.named(stage).name)
    record = plan.stage(chosen.name)
    kernel = info.host.sysctl
    if plan.target.kind == "running" and not info.server.get("host", "").startswith("this one"):
        kernel = {}
    sysctl = {
        name.replace("/", "."): value for name, value in kernel.items() if _counts(name, value)
    }
    sysctl |= {
        one.name: one.value
        for one in record.host
        if one.name in machine_knobs() and machine_knobs()[one.name].layer == _SYSCTL
    }
    return Recommended(
        info.ident, info.pgdyno, facts.versions[0], chosen.name,
        (*_sentences(facts, chosen, lowest), *_beside_settings(record)),
        tuple(
            _setting(one, record, plan, run)
            for one in record.settings
            if not (record.guard and one.name == _FULL_PAGES)  # that line is the guard's
        ),
        sysctl,
        record.pooler.shown if record.pooler else None,
        record.pooler.settings(record.workload.sessions) if record.pooler else {},
    )  # fmt: skip


def _beside_settings(stage: Stage) -> Iterator[str]:
    """What else the stage had, so that its settings alone do not give what it gave."""
    if stage.host:
        asked = listed([f"{one.name} = {one.value}" for one in stage.host])
        yield f"While it was measured, the machine had {asked}, put back after each trial."
    if stage.unlogged:
        yield (
            "Its tables were unlogged, which no setting makes them: ALTER TABLE … SET UNLOGGED"
            " does, and any crash of the server empties them."
        )
    if stage.lying_disk:
        yield "Its disk acknowledged flushes that it had not made, which no setting asks of it."
    if stage.guard:
        yield (
            "A guard turned its full pages off, and repairs torn ones from a standby: without it"
            f" {_FULL_PAGES} = off stands on rung {Rung.D4}, so it is left out here."
            " `pgdyno guard arm` turns them off, and on again when the standby is lost."
        )
    if stage.synchronous:
        yield (
            "Its commits waited for a standby: synchronous_standby_names has to name yours, and"
            " while none of them answers no commit ends."
        )


def _counts(name: str, value: object) -> bool:
    """Whether it was in force: of the kernel's limits in bytes and in shares, 0 is the other's."""
    return value not in ("", None) and not (name.startswith(_IN_PAIRS) and str(value) == "0")


def _allowed(stage: StageFacts, lowest: Rung) -> bool:
    """Whether it is known to stand no lower; what could not be read may be anywhere."""
    return lowest is Rung.D6 if stage.rung == NOT_KNOWN else stage.rung <= lowest


def best_stage(facts: Facts, lowest: Rung) -> StageFacts:
    """The stage with the largest ratio of those shown to be better; of none, the first."""
    better = [
        one
        for one in facts.stages
        if _allowed(one, lowest) and one.to_first and one.to_first.verdict == "better"
    ]
    return max(better, key=_ratio, default=facts.first)


def _allowed_one(facts: Facts, lowest: Rung, name: str) -> StageFacts:
    found = next(one for one in facts.stages if one.name == name)
    if not _allowed(found, lowest):
        raise PlanError(
            f"stage {name} stands on rung {found.rung}, the lowest allowed is {lowest}",
            f"`--rung {found.rung if found.rung != NOT_KNOWN else Rung.D6}` allows it;"
            f" {words.risks(found)}.",
        )
    return found


def _ratio(stage: StageFacts) -> float:
    return stage.to_first.ratio or 0.0 if stage.to_first else 0.0


def _sentences(facts: Facts, stage: StageFacts, lowest: Rung) -> Iterator[str]:
    best = best_stage(facts, lowest)
    if stage is facts.first and best is stage:
        is_better_below = best_stage(facts, Rung.D6) is not stage
        how = "`--rung` allows others" if is_better_below else "`--stage` takes another"
        yield (
            f"No stage that rung {lowest} allows ({words.RUNGS[lowest]}) is shown to be better than"
            f" {stage.name}, which is therefore what this holds; {how}."
        )
    elif stage is facts.first:
        yield f"Stage {best.name} is shown to be better than {stage.name}."
    elif stage.to_first is None or stage.to_first.verdict != "better":
        yield f"Stage {stage.name} is not shown to be better than {facts.first.name}."
    if stage.to_first is not None and stage.to_first.ratio is not None:
        share = words.confidence(stage.to_first.confidence)
        yield (
            f"Stage {stage.name} gave {words.ratio(stage.to_first)} the {facts.headline} of"
            f" {stage.to_first.base}, all its settings together"
            f" ({share} interval {words.interval(stage.to_first)})."
        )
    yield words.stands(stage)
    yield facts.answer.limits
    for sentence in stage.credit:
        yield f"{sentence}."


def _setting(setting: Setting, stage: Stage, plan: Plan, run: RunFile) -> RecommendedSetting:
    entry = entries().get(setting.name)
    return RecommendedSetting(
        setting.name,
        setting.value,
        setting.origin.detail,
        setting.origin.why,
        _alone(setting, plan.stages, run) or "not measured alone",
        entry.apply if entry else "",
    )


def _alone(setting: Setting, stages: Sequence[Stage], run: RunFile) -> str | None:
    """What the value brings where two stages differ in nothing else."""
    for with_it, without in permutations(stages, 2):
        if _value(with_it, setting.name) != setting.value or not _alike_but(
            setting.name, with_it, without
        ):
            continue
        try:
            found = compare_stages(run, with_it.name, without.name)
        except PgdynoError:
            continue  # they have no round together
        if found.ratio is None or found.low is None:
            continue
        return (
            f"alone {words.ratio(found)} ({found.verdict}),"
            f" {words.confidence(found.confidence)} interval {words.interval(found)}:"
            f" {with_it.name} against {without.name}"
        )
    return None


def _alike_but(name: str, one: Stage, other: Stage) -> bool:
    return (
        changed_settings(other, one) == {name}
        and one.workload == other.workload
        and not changed_around(other, one)
    )


def _value(stage: Stage, name: str) -> str | None:
    return next((one.value for one in stage.settings if one.name == name), None)
