"""Settings of the machine that stages ask for, as far as they can be judged without looking at it.

Whether this machine has them, and takes their values, is looked at where they are made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pgdyno.catalog import RUNTIME_LAYERS, machine_knobs, meant_by
from pgdyno.model.durability import Loss
from pgdyno.model.settings import HostFacts, Rung, Setting
from pgdyno.plan.resolve.lowest_rung import too_low
from pgdyno.plan.schema.complaint import shown
from pgdyno.plan.schema.plan_file import StageTable
from pgdyno.plan.schema.read import PlanDraft

Problem = tuple[str, str, str | None]  # name, text, hint

_HUGE_PAGES = "vm.nr_hugepages"
_OF_SERVER = "It is a setting of the server: it belongs into `settings`."


def machine_settings(table: StageTable, draft: PlanDraft) -> dict[str, Setting]:
    """What a stage itself asks of the machine, by name."""
    found = {}
    for name, given in table.host.items():
        origin = draft.origin_of(table.name, "host", name)
        value = {True: "1", False: "0"}[given] if isinstance(given, bool) else given
        found[name] = Setting(name, " ".join(value.split()), origin)
    return found


def machine_problems(own: Mapping[str, Setting], kind: str, lowest: Rung) -> Iterator[Problem]:
    """What is wrong with them on any machine, or for the lowest rung that stages may stand on."""
    for name, one in own.items():
        if kind == "running":
            text = f"{shown(one.value)}, and the server runs already: its machine is left as it is"
            yield name, text, "Change it by hand, or measure a cluster that pgdyno makes."
            continue
        knob = machine_knobs().get(name.partition("@")[0])
        if knob is None:
            text = f"{shown(one.value)} is no setting of a machine that is known"
            yield name, text, meant_by(name, _OF_SERVER)
        elif knob.layer not in RUNTIME_LAYERS:
            text = f"{shown(one.value)} is of layer {knob.layer}, and not of a machine that runs"
            yield name, text, f"`pgdyno knobs {name!r}` says how it is applied."
        elif not one.value or not one.value.isprintable():
            yield name, f"{shown(one.value)} cannot be written", None
        for loss in machine_losses({name: one}):
            if loss.rung > lowest:
                text, hint = too_low(shown(one.value), loss.rung, lowest)
                yield name, text, hint


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


def as_asked(host: HostFacts, asked: Mapping[str, Setting]) -> HostFacts:
    """The machine as it is while the stage runs, as far as it shapes the settings of servers."""
    pages = asked.get(_HUGE_PAGES)
    if pages is None or not pages.value.isdecimal():
        return host
    return replace(host, huge_pages_free=int(pages.value))
