"""Trials of a dry run: which stage is measured when, and how long all of it takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import fill

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from pgdyno.model.plan import Plan
from pgdyno.model.settings import HostFacts, ServerFacts
from pgdyno.model.units import seconds_text
from pgdyno.model.wording import plural
from pgdyno.plan.resolve.builds import Builds
from pgdyno.plan.settings.checkpoints import (
    cycle_lines,
    expected_cycle_s,
    longer_s,
    longest_cycle_s,
)
from pgdyno.plan.settings.configured import Configured
from pgdyno.plan.settings.initdb import after_initdb

_KEPT = "\N{NO-BREAK SPACE}"
_ROUND_LETTERS_MAX = 88  # of a line of 100 columns; longer rounds are told as a sentence


def configured(plan: Plan, server: ServerFacts, builds: Builds) -> list[Configured]:
    """What the server of each stage has."""
    return [
        Configured(
            after_initdb(builds.server(stage.build, server), plan.target.initdb),
            {one.name: one.value for one in stage.settings},
        )
        for stage in plan.stages
    ]


def in_all_text(plan: Plan, server: ServerFacts, host: HostFacts, builds: Builds) -> str:
    """How long a plan takes in all, a clause."""
    cycles, longest = _cycles(plan, configured(plan, server, builds), host)
    more_s = longer_s(plan.protocol, plan.trials, cycles, longest)
    in_all = plan.estimate.measuring_s + plan.estimate.other_s
    return f"about {seconds_text(in_all)}{_up_to(in_all, more_s)}"


def _cycles(
    plan: Plan, configs: Sequence[Configured], host: HostFacts
) -> tuple[dict[str, float], dict[str, float]]:
    """How long a checkpoint cycle of each stage is expected to last, and how long it may."""
    by_stage = {one.name: config for one, config in zip(plan.stages, configs, strict=True)}
    return (
        {name: expected_cycle_s(config, host.cpus) for name, config in by_stage.items()},
        {name: longest_cycle_s(config) for name, config in by_stage.items()},
    )


def trials(plan: Plan, configs: Sequence[Configured], host: HostFacts) -> Iterator[RenderableType]:
    """The trials of each round, and how long they take together."""
    cycles, longest = _cycles(plan, configs, host)
    yield Text()
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    rows: dict[int, list[str]] = {}
    for trial in plan.trials:
        rows.setdefault(trial.round, []).append(f"{trial.number} {trial.stage}")
    long = sum(len(cell) + 2 for cell in max(rows.values(), key=_letters)) > _ROUND_LETTERS_MAX
    for number, row in rows.items():
        table.add_row(f"round {number}", *([_Sentence(row)] if long else map(Text, row)))
    for column in table.columns[1:]:
        column.no_wrap = not long
    yield table
    each = seconds_text(plan.protocol.warmup_s + plan.protocol.window_s)
    measuring, other = plan.estimate.measuring_s, plan.estimate.other_s
    yield Text()
    lines = list(cycle_lines(plan.protocol, cycles, longest))
    of = "" if lines else f" of {each}"
    most = ", if no look decides" if plan.protocol.stop == "decided" else ""
    count = plural(len(plan.trials), "trial")
    more_s = longer_s(plan.protocol, plan.trials, cycles, longest)
    yield Text(
        f"{count}{of}{most}: {seconds_text(measuring)} of measuring{_up_to(measuring, more_s)}"
    )
    for line in lines:
        yield Text(f"  {line}")
    yield Text(f"about {seconds_text(other)} for loading, restoring, starting, checking")
    in_all = measuring + other
    yield Text(f"about {seconds_text(in_all)} in all{most}{_up_to(in_all, more_s)}", style="bold")


def _up_to(seconds: float, more_s: float) -> str:
    if more_s <= 0:
        return ""
    return f", up to {seconds_text(seconds + more_s)} where little WAL is written"


class _Sentence:
    """Trials in lines that end behind one: its number stays with its stage."""

    def __init__(self, trials: Sequence[str]) -> None:
        self._kept = ", ".join(one.replace(" ", _KEPT) for one in trials)

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(fill(self._kept, options.max_width, break_on_hyphens=False).replace(_KEPT, " "))


def _letters(row: Sequence[str]) -> int:
    return sum(map(len, row))
