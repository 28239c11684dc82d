"""Settings of each stage as a difference to the stage before, with their origin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pgdyno.analysis.setting_facts import ServerSetting, SettingChange
from pgdyno.model.plan import Stage
from pgdyno.model.run import TrialRecord
from pgdyno.model.server_result import of_server
from pgdyno.model.settings import OriginKind, Setting


def effective_of(stage: str, trials: Iterable[TrialRecord]) -> dict[str, str]:
    """Settings as read back in the first measured trial of a stage, valid or not, by name."""
    for trial in trials:
        if trial.stage == stage and trial.result is not None:
            return {line.name: line.value for line in trial.result.settings}
    return {}


def found_configuration(trials: Iterable[TrialRecord]) -> tuple[ServerSetting, ...]:
    """What a server that is not ours had set already, by its first measured trial.

    Settings with their defaults are among them where they decide much, see `target.readback`.
    """
    for trial in trials:
        if trial.result is not None:
            return tuple(
                ServerSetting(one.name, one.value, one.detail)
                for one in trial.result.settings
                if one.origin == OriginKind.SERVER
            )
    return ()


def further_configurations(trials: Iterable[TrialRecord]) -> dict[str, str]:
    """The same of further servers of a run, by server and name."""
    for trial in trials:
        if trial.result is not None:
            return {
                of_server(server.name, name): value
                for server in trial.result.servers[1:]
                for name, value in server.configured.items()
            }
    return {}


def _of_machine(before: Stage | None, stage: Stage) -> Iterator[SettingChange]:
    """What it changes of the machine, which each trial read back before its server was started."""
    old = {one.name: one for one in before.host} if before else {}
    new = {one.name: one for one in stage.host}
    for name in sorted(old.keys() | new.keys()):
        then, now = old.get(name), new.get(name)
        if then is not None and now is not None and then.value == now.value:
            continue
        yield SettingChange(
            name=name,
            before=then.value if then else _default(now),
            after=now.value if now else None,
            effective=now.value if now else _default(then),
            origin=now.origin.kind.value if now else None,
            origin_detail=now.origin.detail if now else None,
        )


def _default(setting: Setting | None) -> str | None:
    return setting.default if setting else None


def changes(
    before: Stage | None,
    stage: Stage,
    effective_before: dict[str, str],
    effective: dict[str, str],
) -> tuple[SettingChange, ...]:
    """What a stage sets, changes or drops.

    Args:
        before: The stage before; None for the first, which differs from the defaults.
        stage: The stage.
        effective_before: Settings read back from the server under the stage before.
        effective: Settings read back under this stage.
    """
    old = {setting.name: setting for setting in before.settings} if before else {}
    new = {setting.name: setting for setting in stage.settings}
    lines = list(_of_machine(before, stage))
    for name in sorted(old.keys() | new.keys()):
        then, now = old.get(name), new.get(name)
        if then is not None and now is not None and then.value == now.value:
            continue
        lines.append(
            SettingChange(
                name=name,
                before=then.value if then else effective_before.get(name, _default(now)),
                after=now.value if now else None,
                effective=effective.get(name),
                origin=now.origin.kind.value if now else None,
                origin_detail=now.origin.detail if now else None,
            )
        )
    return tuple(lines)
