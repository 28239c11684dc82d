"""What a run recommends to configure, as text; for `diff`, a server is asked what it has."""

from __future__ import annotations

from typing import Literal

from pgdyno.analysis.facts import Facts
from pgdyno.analysis.recommended import recommended
from pgdyno.analysis.setting_facts import Recommended, ServerSetting
from pgdyno.model.durability import rung_named
from pgdyno.model.errors import PlanError
from pgdyno.plan.settings.values import default_text, same_value
from pgdyno.report.configuration import FORMS, diff
from pgdyno.store.run_file import RunFile
from pgdyno.target.readback import read_back
from pgdyno.target.running_target import ask_server

Form = Literal["conf", "sql", "sysctl", "diff"]


def configuration(
    file: RunFile, facts: Facts, form: Form, lowest: str, stage: str | None, database: str | None
) -> str:
    """See `Run.configuration`."""
    if form != "diff" and database is not None:
        raise PlanError(
            f"a server is named, the format is {form}", "Only the format `diff` asks a server."
        )
    if form == "diff" and database is None:
        raise PlanError(
            "the format is diff, and no server is named",
            "Give --conninfo, e.g. 'host=/run/postgresql dbname=postgres'.",
        )
    found = recommended(file, facts, rung_named(lowest), stage)
    return FORMS[form](found) if database is None else diff(found, _running(database, found))


def _running(database: str, found: Recommended) -> dict[str, ServerSetting]:
    """What a server has for each setting; in the spelling of the recommended where they agree."""
    server = ask_server(database)
    known = {one.name: one for one in read_back(server.connection, (), ours=False)}
    running = {}
    for one in found.settings:
        knob = server.facts.knobs.get(one.name)
        if knob is None or knob.default is None:
            continue
        shown = default_text(knob) or ""
        value = one.value if same_value(knob, one.value, knob.default) else shown
        source = known[one.name].detail if one.name in known else "default"
        running[one.name] = ServerSetting(one.name, value, source)
    return running
