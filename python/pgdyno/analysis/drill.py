"""What the cuts of a drill amount to, as the facts of its report."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from pgdyno.analysis.drill_facts import DisasterFacts, DrillFacts, Price, Took, Worst
from pgdyno.model.drill import Cut, Disaster, Drilled
from pgdyno.model.errors import PgdynoError
from pgdyno.model.plan import Stage
from pgdyno.model.run import RunInfo
from pgdyno.model.settings import Rung
from pgdyno.model.units import ns_text, share_text
from pgdyno.model.wording import listed, plural
from pgdyno.stats.shares import share

_WORST: tuple[Worst, ...] = ("whole", "down", "lost", "broken")


def drill_facts(drilled: Drilled, info: RunInfo) -> DrillFacts:
    """Count what came back, and say what that means for each stage.

    Raises:
        PgdynoError: No cut was made to its end.
    """
    asked, design = drilled.asked, drilled.asked.design
    if not drilled.cuts:
        raise PgdynoError(
            f"drill {info.ident} was broken off before its first cut ended",
            "Resume it: `pgdyno resume` and its run file.",
        )
    rows = tuple(_rows(drilled))
    return DrillFacts(
        info.ident, info.pgdyno, asked.plan.name, design.load_s,
        design.recorder or "mount", design.seed, drilled.loads,
        asked.disasters, rows, drilled.cuts, drilled.controls, drilled.shrunk, asked.gains,
        tuple(_prices(drilled, rows)) if asked.gains else (),
        tuple(_answers(rows)), tuple(_sentence(one) for one in rows),
        tuple(_doubts(drilled, rows)),
        tuple(name for name in asked.stages if asked.plan.stage(name).lying_disk),
        tuple((name, _gives_up(asked.plan.stage(name))) for name in asked.stages),
    )  # fmt: skip


def _gives_up(stage: Stage) -> str:
    """All that a stage gives up of durability, as its plan tells beforehand."""
    found = [] if stage.durability is None else [loss.what for loss in stage.durability.losses]
    return "; ".join(dict.fromkeys(found)) or stage.rung_reason


def _rows(drilled: Drilled) -> Sequence[DisasterFacts]:
    found = []
    for name in drilled.asked.stages:
        for disaster in drilled.asked.disasters:
            cuts = [one for one in drilled.cuts
                    if (one.stage, one.disaster) == (name, disaster.name)]  # fmt: skip
            if cuts:
                stage = drilled.asked.plan.stage(name)
                found.append(row_of(name, stage.rung_known, disaster.name, cuts))
    return found


def row_of(stage: str, rung: str, disaster: str, cuts: Sequence[Cut]) -> DisasterFacts:
    """What one disaster did to what was struck.

    Args:
        stage: Its name.
        rung: On which it stands.
        disaster: Its name.
        cuts: All of these, one at least.
    """
    states = [one.state for one in cuts]
    harmed = [one for one in cuts if one.state != "whole"]
    seconds = [one.recovery_s for one in cuts if one.recovery_s is not None]
    outages = [one.outage for one in cuts if one.outage is not None]
    repairs = [one.repair for one in cuts if one.repair is not None]
    return DisasterFacts(
        stage, rung, disaster, len(cuts), states.count("dead"),
        states.count("damaged"), states.count("lost"), share(len(harmed), len(cuts)),
        max(one.lost for one in cuts), max(one.lost_s for one in cuts),
        sum(one.acknowledged for one in cuts), median(seconds) if seconds else None,
        sum(one.made.sectors_open + one.made.names_open > 0 for one in cuts),
        next((one.reasons[0] for one in harmed if one.reasons), None),
        sum(one.needs_somebody for one in outages),
        max((one.seconds for one in outages), default=None), sum(one.met == 0 for one in cuts),
        len(repairs), median(one.blocks_written for one in repairs) if repairs else None,
        median(one.took_s for one in repairs) if repairs else None,
        sum(one.down == "hangs" for one in outages),
        sum(one.down == "recovers" for one in outages),
        max((one.waited_s for one in outages if one.waited_s is not None), default=None),
        sum(one.down == "waits" for one in outages), sum(one.emptied > 0 for one in cuts),
    )  # fmt: skip


def _answers(rows: Sequence[DisasterFacts]) -> Sequence[str]:
    """A sentence for each stage: which disasters took nothing, and what the others took."""
    found = []
    for stage in dict.fromkeys(row.stage for row in rows):
        mine = [(row, took_of(row)) for row in rows if row.stage == stage]
        parts = []
        if whole := [row for row, took in mine if took.worst == "whole"]:
            names = listed([row.disaster for row in whole])
            cuts = sum(row.cuts for row in whole)
            at_most = share_text(share(0, cuts).high)
            parts.append(
                f"{names} took nothing in {plural(cuts, 'cut')}, so that at 95% at most {at_most}"
                " of such do harm"
            )
        parts += [
            f"{row.disaster} took {took.words}" for row, took in mine if took.worst != "whole"
        ]
        found.append(f"Stage {stage} ({mine[0][0].rung}): {'; '.join(parts)}.")
    return found


def _prices(drilled: Drilled, rows: Sequence[DisasterFacts]) -> Sequence[Price]:
    gains = {one.stage: one for one in drilled.asked.gains.each} if drilled.asked.gains else {}
    found = []
    for name in drilled.asked.stages:
        of_stage = {one.disaster: one for one in rows if one.stage == name}
        if not of_stage:
            continue
        took = [took_of(of_stage[one.name]) if one.name in of_stage else None
                for one in drilled.asked.disasters]  # fmt: skip
        rung = next(iter(of_stage.values())).rung
        own = [one for one, disaster in zip(took, drilled.asked.disasters, strict=True)
               if disaster.device.forgets_s == 0]  # fmt: skip
        # What a disk takes that lies is none of the stage's, unless nothing else was drilled.
        known = [one.worst for one in (own if any(own) else took) if one is not None]
        worst = max(known, key=_WORST.index)
        found.append(Price(name, rung, gains.get(name), tuple(took), worst))
    return found


def took_of(row: DisasterFacts) -> Took:
    """For a manager: how often, and what at most."""
    parts = []
    if row.stayed_down:
        parts.append(f"the service in {row.stayed_down} of {row.cuts}, until somebody came")
    if not row.harmed.of:
        words = ", ".join(parts) or f"nothing in {plural(row.cuts, 'cut')}"
        return Took(words, "down" if parts else "whole")
    if broken := row.dead + row.damaged:
        parts.append(f"the database in {broken} of {row.cuts}")
    if row.emptied:
        parts.append(f"all rows of its tables in {row.emptied} of {row.cuts}")
    elif row.lost:
        parts.append(f"up to {ns_text(row.lost_s * 1e9)} of commits in {row.lost} of {row.cuts}")
    return Took(", ".join(parts), "broken" if broken or row.emptied else "lost")


def _repairs(row: DisasterFacts) -> str:
    """What a guard did before the servers were started."""
    if not row.repairs or row.repaired_blocks is None or row.repair_s is None:
        return ""
    return (
        f" {plural(row.repairs, 'disk was', 'disks were')} repaired from a standby before, in the"
        f" median {row.repaired_blocks:.0f} blocks in {row.repair_s:.2f} s."
    )


def _sentence(row: DisasterFacts) -> str:
    where = f"Stage {row.stage} ({row.rung}), {row.disaster}"
    cuts = plural(row.cuts, "cut")
    if not row.harmed.of:
        return (
            f"{where}: everything came back from {cuts}; each commit that had been acknowledged was"
            f" there ({plural(row.acknowledged, 'look', thousands=True)}, one for each commit and"
            f" cut). At 95% at most {share_text(row.harmed.high)} of such cuts do"
            f" harm.{_outage(row)}{_repairs(row)}"
        )
    parts = []
    if row.dead:
        parts.append(f"{plural(row.dead, 'server')} did not come back")
    if row.damaged:
        parts.append(f"{plural(row.damaged, 'server')} came back damaged")
    if row.emptied:
        parts.append(
            f"{plural(row.emptied, 'server')} lost all rows of its tables, those that were loaded"
            " as well"
        )
    elif row.lost:
        parts.append(
            f"{plural(row.lost, 'server')} lost acknowledged commits, at most {row.commits_lost},"
            " the first of them"
            f" from {row.lost_s:.3f} s before"
        )
    return (
        f"{where}: of {cuts}, {'; '.join(parts)}. That is {share_text(row.harmed.of / row.cuts)} of"
        f" the cuts ({share_text(row.harmed.low)} to {share_text(row.harmed.high)}).{_outage(row)}"
    )


def _outage(row: DisasterFacts) -> str:
    """What it did to the service; nothing where no load was struck."""
    if row.outage_s is None:
        return ""
    longest = f"without a commit for {row.outage_s:.2f} s at most"
    if not row.stayed_down:
        return f" The server came back by itself each time, {longest}."
    told = []
    if ended := row.stayed_down - row.hung - row.recovering - row.waiting:
        told.append((ended, "the server stayed down until somebody started it"))
    after = f"{row.waited_s or 0:.0f} s after the load"
    if row.hung:
        hung = (
            f"the server had neither come back nor ended {after}: somebody has to end its"
            " postmaster before it can be started"
        )
        told.append((row.hung, hung))
    if row.recovering:
        told.append((row.recovering, f"the server was still recovering {after}"))
    if row.waiting:
        told.append((row.waiting, "commits waited for a standby that is gone"))
    cuts = plural(row.cuts, "cut")
    words = "; ".join(f"in {number} of {cuts} {what}" for number, what in told)
    return f" {words[0].upper()}{words[1:]}; the load was {longest}, until its end."


def _takes_from_d0(disaster: Disaster) -> bool:
    """A disk that lies; a standby that commits do not wait for."""
    behind = disaster.standby is not None and not disaster.standby.synchronous
    return disaster.device.forgets_s > 0 or behind


def _doubts(drilled: Drilled, rows: Sequence[DisasterFacts]) -> Sequence[str]:
    found = [
        f"Control of stage {one.stage} failed: {one.what} The checks found nothing, so that what"
        " they find whole proves nothing."
        for one in drilled.controls
        if one.found is None
    ]
    excused = {one.name for one in drilled.asked.disasters if _takes_from_d0(one)}
    chancy = {one.name for one in drilled.asked.disasters if one.device.written_back_s is None}
    for row in rows:
        if row.rung == Rung.D0.value and row.harmed.of and row.disaster not in excused:
            found.append(
                f"Stage {row.stage} is on rung {row.rung}, which loses nothing, and"
                f" {plural(row.harmed.of, 'cut')} of {row.disaster} did harm: {row.example}"
            )
        if not row.open_cuts and row.disaster in chancy:
            found.append(
                f"In no cut of {row.disaster} of stage {row.stage} was anything left to chance:"
                " nothing had been written that was not synced, so that these cuts prove nothing."
            )
        if row.unmet:
            found.append(
                f"In {row.unmet} of {plural(row.cuts, 'cut')} of {row.disaster} of stage"
                f" {row.stage} no call met the fault: they prove nothing."
            )
    return [*found, *_left_out(drilled)]


def _left_out(drilled: Drilled) -> Sequence[str]:
    """That cuts are missing which were asked for; nothing where none is."""
    asked = drilled.asked
    whole = len(asked.stages) * len(asked.disasters) * asked.design.cuts
    if len(drilled.cuts) == whole:
        return ()
    why = "it was broken off"
    if drilled.out_of_time:
        why = f"the {asked.design.minutes:g} min that it had were over"
    made = {one.stage for one in drilled.cuts}
    struck = {one.disaster for one in drilled.cuts}
    none = [
        *(f"stage {name}" for name in asked.stages if name not in made),
        *(one.name for one in asked.disasters if one.name not in struck),
    ]
    without = f" There is none of {listed(none)}." if none else ""
    return (
        f"The drill made {len(drilled.cuts)} of {plural(whole, 'cut')}: {why}.{without}"
        " `pgdyno resume`, given the run file, makes the others.",
    )
