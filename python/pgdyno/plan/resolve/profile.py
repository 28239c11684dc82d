"""Computes the sizes of a profile for a machine; formulas and reasons stand in the catalogue."""

from __future__ import annotations

from collections.abc import Mapping

from pgdyno.catalog import Profile, ProfileSetting
from pgdyno.model.settings import HostFacts, Origin, OriginKind, ServerFacts, ServerKnob, Setting
from pgdyno.model.units import bytes_text
from pgdyno.model.wording import plural
from pgdyno.plan.estimate.needs import huge_pages_needed
from pgdyno.plan.settings.configured import Configured
from pgdyno.plan.settings.values import base_units, show

_OF_THE_MOMENT = "free_disk"  # memory does not change from one run to the next


def size_profile(
    profile: Profile,
    own: Mapping[str, str],
    before: Mapping[str, str],
    server: ServerFacts,
    host: HostFacts,
) -> tuple[list[Setting], list[str]]:
    """Settings of a profile for this machine and server, and notes on what was left out.

    Args:
        profile: From the catalogue.
        own: What the stage itself sets, already checked: not computed, but reckoned with.
        before: What the stage has from the stages before it: reckoned with where the profile
            does not replace it.
        server: Version and settings of the server.
        host: Memory and huge pages of the machine, and its disks: sized by is the smallest folder
            that clusters lie in, so that stages that compare storage have the same settings.
    """
    result: dict[str, Setting] = {}
    notes = []
    # How many huge pages are needed depends on all the others.
    for name, setting in sorted(profile.setting.items(), key=lambda item: bool(item[1].huge_pages)):
        knob = server.knobs.get(name)
        if name in own:
            continue
        if knob is None:
            notes.append(
                f"profile {profile.name} leaves out {name}, which PostgreSQL {server.major} lacks"
            )
            continue
        if not setting.meant_for(server.major):
            continue
        if knob.enum_values and setting.value and setting.value not in knob.enum_values:
            notes.append(
                f"profile {profile.name} leaves out {name} = {setting.value}, which this"
                f" installation was built without"
            )
            continue
        values = {**before, **{one.name: one.value for one in result.values()}, **own}
        value, why = _value(knob, setting, Configured(server, values), host)
        reason = " ".join(setting.why.split())
        origin = Origin(OriginKind.PROFILE, why or f"profile {profile.name}", reason)
        result[name] = Setting(name, value, origin)
        if setting.of == _OF_THE_MOMENT:
            notes.append(
                f"profile {profile.name} sizes {name} = {value} by the free disk of this moment,"
                " and another run may get another value: a setting of the stage pins it"
            )
    return list(result.values()), notes


def _value(
    knob: ServerKnob, setting: ProfileSetting, config: Configured, host: HostFacts
) -> tuple[str, str]:
    """The value, and how it was computed; no words for one that was not."""
    if setting.value is not None:
        return setting.value, ""
    if setting.huge_pages:
        return _huge_pages(config, host)
    return _sized(knob, setting, config, host)


def _sized(
    knob: ServerKnob, setting: ProfileSetting, config: Configured, host: HostFacts
) -> tuple[str, str]:
    assert setting.of is not None
    assert setting.share is not None
    assert setting.at_least is not None
    amounts = {"memory": host.memory_bytes, "free_disk": host.least_free_bytes}
    amount = amounts[setting.of] if setting.of in amounts else config.size(setting.of)
    assert amount is not None, f"{setting.of} stands before {knob.name} in the profile"
    of = setting.of
    if of == _OF_THE_MOMENT and (folder := host.least_free_elsewhere):
        of = f"{bytes_text(amount)} free in {folder}"
    elif of in amounts:
        of = f"{bytes_text(amount)} of {of.replace('_', ' ')}"
    words = setting.share_text(of)
    size = _stepped(int(amount * setting.share), knob, setting)
    least = base_units(knob, setting.at_least)
    if size < least:
        size, words = least, f"{words}, at least {setting.at_least}"
    most = base_units(knob, setting.at_most) if setting.at_most else None
    if most is not None and size > most:
        size, words = most, f"{words}, at most {setting.at_most}"
    if setting.of not in amounts and size > amount:
        size, words = amount, f"as {setting.of}"
    unit = base_units(knob, "1")
    return show(knob, str(size // unit)), words


def _stepped(size: int, knob: ServerKnob, setting: ProfileSetting) -> int:
    assert setting.step is not None
    if setting.by_powers_of_two:
        return 1 << (size.bit_length() - 1) if size else 0
    return size - size % base_units(knob, setting.step)


def _huge_pages(config: Configured, host: HostFacts) -> tuple[str, str]:
    needed = huge_pages_needed(config, host)
    size = bytes_text(host.huge_page_bytes)
    words = plural(host.huge_pages_free, f"page of {size} is free", f"pages of {size} are free")
    if needed <= host.huge_pages_free:
        return "on", f"{words}, {needed} are needed"
    return "off", f"{words}, {needed} would be needed"
