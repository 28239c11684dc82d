"""Mistakes that published tuning reports make, and the check that stands against each.

The classes are those found in the four field reports behind `plans/`. Some cannot be made here,
because numbers are computed from the run file alone; a check is kept against each all the same.
`python -m pgdyno.analysis.mistakes` prints the page `docs/reference/mistakes.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pgdyno.analysis import mistake_checks as checks
from pgdyno.analysis.facts import MistakeFacts
from pgdyno.analysis.mistake_checks import Seen

_HEAD = """\
# Mistakes that a report cannot make unnoticed

<!-- Made from the checks by `python -m pgdyno.analysis.mistakes`; do not edit. -->

Each class of mistake stands in one of the four field reports that `plans/` repeats. The checks run
on every run file; the report lists what they find under "Mistakes looked for". Their tests run on
the field reports' own figures.

| class | in a field report | check | where it fires |
|---|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class Mistake:
    """A class of mistake."""

    ident: str
    what: str  # as a field report made it
    rule: str  # what is checked
    fires: str  # where, beside the section of the report
    check: Callable[[Seen], str | None]
    grave: bool = True  # False: true of many honest runs; told, so that nobody overlooks it


MISTAKES = (
    Mistake(
        "E1", "606,466 transactions a minute were called TPmC; 242,641 were New-Orders",
        "NOPM and tpmTotal stand to each other as the mix has New-Orders; `earlier` has typed keys",
        "plan: `earlier`; report", checks.mistyped_metric,
    ),
    Mistake(
        "E2", "a mix of 40/36/8/8/8 without keying and think times was called TPC-C",
        "mix and pacing against clause 5.2.3; results are called NOPM alone",
        "report: label, deviations", checks.not_the_text, grave=False,
    ),
    Mistake(
        "E3", "client host, data size, connections and statement cache changed in one stage",
        "between consecutive stages one layer changes: settings, client, build or folder",
        "report", checks.several_factors,
    ),
    Mistake(
        "E4", "ten minutes were measured with checkpoints 35 to 55 min apart",
        "each window holds whole checkpoint cycles", "report: over time, answer",
        checks.no_checkpoint,
    ),
    Mistake(
        "E5", "one stage was read into memory first, and had fewer terminals",
        "warm-up and prewarm are the plan's, for all stages; sessions are equal",
        "plan: no such key of a stage; report", checks.unequal_beginning,
    ),
    Mistake(
        "E6", "gains of 1.2 % and 3.7 % from one run each",
        "no verdict without two paired rounds; better only with an interval above 1",
        "report: verdicts", checks.measured_once,
    ),
    Mistake(
        "E7", "the file says runMins=1, the log shows ten minutes",
        "settings are read back from the server; their hash is equal in all rounds of a stage",
        "run file; report", checks.other_settings,
    ),
    Mistake(
        "E8", "the script says 60 s, three outputs say 30 s",
        "the window that the driver counted is the one that was planned",
        "report: comparability", checks.other_duration,
    ),
    Mistake(
        "E9", "columns of the summary were rotated: the slowest storage was printed as the fastest",
        "tables are made from trials; each median is that of its own stage",
        "report", checks.other_column,
    ),
    Mistake(
        "E10", "two hosts loaded in 1058.21 s, to the digit",
        "no two trials and no two figures of `earlier` agree to the digit",
        "plan: `earlier`; report; verdicts (equal ratios)", checks.copied,
    ),
    Mistake(
        "E11", "128, 52 and 32 clients and other memory on the storages compared",
        "everything that differs between trials besides the stage is named, explained or not",
        "report: comparability, answer", checks.not_comparable,
    ),
    Mistake(
        "E12", "flush latency was compared with synchronous_commit = off",
        "a setting that changes has something to act on", "report", checks.off_the_path,
    ),
    Mistake(
        "E13", "full pages on came first, off second, on the same growing data, once",
        "rounds take turns in balanced order; every trial begins from the same copy",
        "plan: order; report", checks.order_or_cache,
    ),
    Mistake(
        "E14", "the configuration recommended at the end was never measured",
        "only stages with finished trials have numbers", "report", checks.not_measured,
    ),
    Mistake(
        "E15", "barriers, full pages and waiting commits were given up before the first stage",
        "the first stage loses nothing; each lower rung has a pair that shows its price alone",
        "plan: lowest_rung; report", checks.price_hidden,
    ),
)  # fmt: skip


def mistake_facts(seen: Seen) -> tuple[MistakeFacts, ...]:
    """What each check finds in a run."""
    return tuple(
        MistakeFacts(
            ident=one.ident,
            rule=one.rule,
            verdict=("finding" if one.grave else "told") if fact else "clear",
            fact=fact,
        )
        for one, fact in ((one, one.check(seen)) for one in MISTAKES)
    )


def page() -> str:
    """The reference page."""
    rows = (f"| {m.ident} | {m.what} | {m.rule} | {m.fires} |" for m in MISTAKES)
    return _HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    print(page(), end="")
