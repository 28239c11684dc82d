"""Settings of a role, or of a connection, that come before what pgdyno sets on its database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgdyno.model.plan import Stage
from pgdyno.model.settings import ServerFacts, Setting
from pgdyno.plan.settings.values import same_value, show


def overruled(server: ServerFacts, stages: Sequence[Stage]) -> Iterator[tuple[str, Setting, str]]:
    """What stages set in vain on a server that is not ours: stage, setting, and why.

    Each setting with its value is told once, of the first stage that has it.
    """
    role = server.role
    if role is None:
        return
    seen = set()
    for stage in stages:
        for one in stage.settings:
            found = role.stronger.get(one.name)
            if found is None or (one.name, one.value) in seen:
                continue
            seen.add((one.name, one.value))
            setting, source = found
            knob = server.knobs[one.name]
            if same_value(knob, one.value, setting):
                continue
            shown, by_role = show(knob, setting), source == "user"
            who = f"role {role.name} has {shown}" if by_role else (
                f"the connection's options say {shown}"
            )  # fmt: skip
            reset = f"`ALTER ROLE {role.name} RESET {one.name}`"
            how = reset if by_role else "leaving them out"
            yield stage.name, one, (
                f"{one.name} = {one.value}: {who}, which comes before what a database has; {how}"
                " leaves room for the stage's"
            )  # fmt: skip
