"""What is said of a driven window: its rates, what it cost the client, and what its end left open.

Nothing that is not known is said as a zero.
"""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.drive.driver import Driven
from pgdyno.model.run import PgbenchSummary
from pgdyno.model.units import count_text, ns_text
from pgdyno.model.wording import plural
from pgdyno.model.workload import Workload
from pgdyno.stats.finding import Answer, Clear, Finding, Unknown
from pgdyno.stats.window_end import answer_of, stuck_reason, window_end


def figures_said(driven: Driven, workload: Workload) -> Iterator[str]:
    """A sentence or line for the rates, for the client's cost, and of pgbench itself."""
    yield rates_line(driven, workload)
    yield _cost_line(driven, workload)
    if driven.pgbench is not None:
        yield _pgbench_line(driven.pgbench)


def open_ends(driven: Driven) -> Iterator[str]:
    """Requests without an answer, in numbers; nothing where all have one."""
    end = window_end([kind.window for kind in driven.kinds], driven.given_up_s, driven.unlogged)
    answer = answer_of(end)
    if isinstance(answer, Finding):
        yield answer.fact
    if stuck := stuck_reason(end):
        yield stuck


def rates_line(driven: Driven, workload: Workload) -> str:
    """What was reached, or that the window says nothing of it."""
    over = f"{driven.window_s:.1f} s"
    if driven.transactions == 0:
        return (
            f"No transaction ended in the window of {over}, so no rate is known.{_wait(workload)}"
        )
    if workload.headline != "NOPM":
        return f"{count_text(driven.tps)} tps over {over}"
    total = f"{count_text(driven.tpm_total)} tpmTotal over {over}"
    label = " (TPC-C-like, not a TPC result)"
    if workload.tpcc is not None and not workload.tpcc.mix.get("new_order"):
        return f"{total}{label}; the mix has no New-Orders"
    if driven.nopm == 0:
        none = "; no New-Order was committed in it, so NOPM is not known"
        return f"{total}{label}{none}.{_wait(workload)}"
    return f"{count_text(driven.nopm)} NOPM, {total}{label}"


def client_sentence(answer: Answer, reached: str = "") -> str:
    """Whether the client was the limit, as a sentence with its reason.

    Args:
        answer: What was found.
        reached: A clause more.
    """
    match answer:
        case Finding():
            return f"The client was the limit: {answer.fact}{reached}. {answer.advice}"
        case Clear():
            return f"The client was not the limit: {answer.fact}{reached}."
        case Unknown():
            return f"Whether the client was the limit is not known: {answer.fact}{reached}."


def _wait(workload: Workload) -> str:
    """How to measure more where terminals mostly wait."""
    tpcc = workload.tpcc
    if tpcc is None or not (tpcc.keying_multiplier or tpcc.think_multiplier):
        return " A longer window (--seconds) shows more."
    return (
        " With TPC-C's keying and think times (factor 1) a terminal asks about three times a"
        " minute:"
        " take a longer window (--seconds), or smaller factors (--keying, --think)."
    )


def _cost_line(driven: Driven, workload: Workload) -> str:
    client, transactions = driven.client, driven.transactions
    if transactions == 0:
        return f"seed {workload.seed}"
    trips = driven.round_trips_per_transaction
    said = "" if trips is None else f"{trips:.2f} round trips a transaction, "
    sleeps, share, cpu_s = client.voluntary_switches, client.share_of_host, client.cpu_s
    if sleeps is None or share is None or cpu_s is None:
        return f"{said}what the client took of CPUs is not known; seed {workload.seed}"
    return (
        f"{said}client {ns_text(cpu_s / transactions * 1e9)} of CPU and"
        f" {sleeps / transactions:.2f} sleeps a transaction, {share:.1%} of the host; seed"
        f" {workload.seed}"
    )


def _pgbench_line(said: PgbenchSummary) -> str:
    """The summary of pgbench itself."""
    parts = [
        plural(said.transactions, "transaction", thousands=True),
        f"{count_text(said.tps)} tps",
    ]
    for what, seconds in (
        ("latency average", said.latency_mean_s),
        ("stddev", said.latency_sd_s),
        ("initial connection time", said.connect_s),
    ):
        if seconds is not None:
            parts.append(f"{what} {ns_text(seconds * 1e9)}")
    return f"{said.version} itself, warm-up included: {', '.join(parts)}"
