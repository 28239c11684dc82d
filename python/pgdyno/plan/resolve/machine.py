"""Settings of the machine that stages ask for, as far as they can be judged without looking at it.

Whether this machine has them, and takes their values, is looked at where they are made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches

from pgdyno.catalog import RUNTIME_LAYERS, knobs, machine_knobs
from pgdyno.model.durability import Loss
from pgdyno.model.settings import HostFacts, Origin, OriginKind, Rung, Setting
from pgdyno.plan.schema.complaint import shown
from pgdyno.plan.schema.plan_file import StageTable
from pgdyno.plan.schema.read import PlanDraft

Problem = tuple[str, str, str | None]  # name, text, hint

_HUGE_PAGES = "vm.nr_hugepages"


def machine_settings(table: StageTable, draft: PlanDraft) -> dict[str, Setting]:
    """What a stage itself asks of the machine, by name."""
    found = {}
    for name, given in table.host.items():
        overridden = (table.name, name) in draft.set_host
        origin = (
            Origin(OriginKind.OVERRIDE, f"--set stage.{table.name}.host.{name}")
            if overridden
            else Origin(OriginKind.PLAN, f"{draft.source}: stage {table.name}")
        )
        value = {True: "1", False: "0"}[given] if isinstance(given, bool) else given
        found[name] = Setting(name, " ".join(value.split()), origin)
    return found


def machine_problems(own: Mapping[str, Setting], kind: str, lowest: Rung) -> Iterator[Problem]:
    """What is wrong with them on any machine, or for the lowest rung that stages may stand on."""
    for name, one in own.items():
        if kind == "running":
            text = f"{shown(one.value)}, and the server is not ours: its machine is left as it is"
            yield name, text, "Change it by hand, or measure a cluster of ours."
            continue
        knob = machine_knobs().get(name.partition("@")[0])
        if knob is None:
            yield name, f"{shown(one.value)} is no setting of a machine that is known", _meant(name)
        elif knob.layer not in RUNTIME_LAYERS:
            text = f"{shown(one.value)} is of layer {knob.layer}, and not of a machine that runs"
            yield name, text, f"`pgdyno knobs {name!r}` says how it is applied."
        elif not one.value or not one.value.isprintable():
            yield name, f"{shown(one.value)} cannot be written", None
        for loss in machine_losses({name: one}):
            if loss.rung > lowest:
                text = f"{shown(one.value)} puts it on rung {loss.rung}, below protocol.lowest_rung"
                hint = f'If that is meant, write lowest_rung = "{loss.rung}" below [protocol].'
                yield name, f"{text} = {lowest}", hint


def machine_losses(asked: Mapping[str, Setting]) -> tuple[Loss, ...]:
    """What settings of the machine give up of durability."""
    return tuple(
        Loss(
            fall.rung,
            f"{name} = {one.value}",
            fall.loses,
            "device" if knob.layer == "block" else "kernel",
            one.origin.detail,
        )
        for name, one in asked.items()
        if (knob := machine_knobs().get(name.partition("@")[0])) is not None
        for fall in knob.fall
        if fall.holds(one.value)
    )


def _meant(name: str) -> str:
    if name in knobs():
        return "It is a setting of the server: it belongs into `settings`."
    near = get_close_matches(name, machine_knobs(), 1)
    return f"Did you mean {near[0]}?" if near else "See `pgdyno knobs`."


def as_asked(host: HostFacts, asked: Mapping[str, Setting]) -> HostFacts:
    """The machine as it is while the stage runs, as far as it shapes the settings of servers."""
    pages = asked.get(_HUGE_PAGES)
    if pages is None or not pages.value.isdecimal():
        return host
    return replace(host, huge_pages_free=int(pages.value))
