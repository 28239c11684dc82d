"""13: dead rows: a transaction takes more and more pages, since vacuum does not keep up."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pgdyno.analysis.account_facts import RUNNING, WANTS_CPU, drawn_anew, quantiles
from pgdyno.analysis.diagnosis_facts import Figure
from pgdyno.analysis.window_facts import WindowFacts
from pgdyno.diagnosis import needs
from pgdyno.diagnosis.host import host_use
from pgdyno.diagnosis.rule import (
    Cleared,
    Found,
    Knob,
    NotKnown,
    Rule,
    Seen,
    Threshold,
    caps_of,
    evidence,
    figure,
)
from pgdyno.model.units import share_text
from pgdyno.model.wording import plural

_PAGES = "database.blocks_hit"
_SEED = 20_261_127


def answer(seen: Seen, rule: Rule) -> Found | Cleared | NotKnown:
    """Pages of a transaction at the window's end against its begin, beside dead rows."""
    window = seen.window
    pages, ended = window.costs[_PAGES], window.ended
    if ended.size < rule.limit("seconds"):
        return NotKnown(f"the window has {plural(ended.size, 'whole second')},"
                        f" {rule.limit('seconds'):.0f} are needed for a slope")  # fmt: skip
    growth = _growth(pages, ended)
    low, value, high = quantiles(growth)
    table, dead = max(
        ((name, end) for name, (_, end) in window.dead_share.items()),
        key=lambda one: one[1],
        default=("", 0.0),
    )
    oldest = window.highest.get("transactions.oldest_s")
    figures = evidence(
        Figure("pages of a transaction in the last third, of the first", value, "times", low, high,
               rule.limit("growth")),
        Figure(f"dead rows of {table}" if table else "dead rows", dead, "share",
               limit=rule.limit("dead")),
        figure("oldest transaction", oldest, "s"),
    )  # fmt: skip
    if low < rule.limit("growth"):
        return Cleared(
            f"a transaction takes {value:.2f} times the pages at the window's end that it took at"
            f" its beginning ({low:.2f} to {high:.2f}), limit {rule.limit('growth'):g}",
            figures,
        )
    if dead < rule.limit("dead"):
        return NotKnown(
            f"a transaction takes {value:.2f} times the pages at the window's end, but at most"
            f" {share_text(dead)} of the rows of any table are dead: the data may have grown",
            figures,
        )
    # More pages cost the time that sessions run, read, or want a CPU that others of us use for
    # theirs; not the time that they wait for anything else.
    use = host_use(window)
    own = use.own_part if use else 1.0
    pages_share = seen.share(RUNNING, "read") + seen.share(WANTS_CPU) * own
    saved = np.clip(1 - 1 / growth, 0.0, 0.9)
    fact = (
        f"a transaction takes {value:.2f} times the pages at the window's end that it took at its"
        f" beginning, and {share_text(dead)} of the rows of {table} are dead"
    )
    return Found(fact, pages_share * saved, figures, caps_of(window, server=1 - float(saved[0])))


def _growth(
    pages: npt.NDArray[np.float64], ended: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Pages a transaction in the last third over those in the first, then of seconds drawn anew."""
    third = ended.size // 3
    rng = np.random.default_rng(_SEED)
    first = _each(pages[:third], ended[:third], drawn_anew(rng, third))
    last = _each(pages[-third:], ended[-third:], drawn_anew(rng, third))
    return np.asarray(last / np.maximum(first, 1e-9), dtype=np.float64)


def _each(
    pages: npt.NDArray[np.float64], ended: npt.NDArray[np.float64], at: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    found = pages[at].sum(axis=1) / np.maximum(1.0, ended[at].sum(axis=1))
    return np.asarray(found, dtype=np.float64)


def _followed(window: WindowFacts) -> str | None:
    if _PAGES not in window.costs or not window.second.size:
        return "pages that transactions take were not followed over the window"
    return None if window.dead_share else "dead rows of tables were not counted"


RULE = Rule(
    number=13,
    title="dead rows that vacuum leaves",
    needs=(needs.sessions, needs.cpu_by_process, _followed),
    thresholds={
        "growth": Threshold(1.10, "times the pages of a transaction, over the window"),
        "dead": Threshold(0.20, "of a table's rows, that are dead at its end"),
        "seconds": Threshold(18, "of the window, at least"),
    },
    confounders=("Tables that grow by themselves take more pages as well, as TPC-C's do.",),
    knobs=(
        Knob("autovacuum_vacuum_scale_factor"),
        Knob("autovacuum_vacuum_cost_delay"),
        Knob("autovacuum_vacuum_cost_limit"),
        Knob("autovacuum_naptime"),
        Knob("no old transactions", "What they might still see is kept."),
    ),
    answer=answer,
    before_cpus=True,
    may_save="what rows cost that were dead before the window began",
)
