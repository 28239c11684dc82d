"""What a server says of its settings, as records: pure functions on its words.

`postgres --describe-config` needs no cluster, but tells neither units, nor enum values, nor
defaults, nor every setting: the catalogue fills them in. `pg_settings` tells all, and exactly as
this build has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pgdyno.catalog import KnownSetting, known_settings
from pgdyno.model.errors import TargetError
from pgdyno.model.settings import DiskFormat, ServerFacts, ServerKnob
from pgdyno.model.wording import plural

SETTINGS_QUERY = """
SELECT name, vartype, unit, context, min_val, max_val, enumvals,
       CASE WHEN source = 'default' AND context <> 'internal' THEN boot_val ELSE reset_val END
FROM pg_settings ORDER BY name
"""
"""Rows for `knob_of_row`; the last column is what holds where a plan sets nothing.

A default by which the server chooses, such as -1, is told as such, not as what it chose.
"""

FORMAT_QUERY = "SELECT catalog_version_no, pg_control_version FROM pg_control_system()"
"""What the cluster's own control file says of its format."""

_COLUMNS = 9


def parse_describe_config(text: str, version_num: int, version: str) -> ServerFacts:
    """The settings of a version, from the output of `postgres --describe-config`.

    Args:
        text: Lines of tab-separated name, context, group, type, default, minimum, maximum, short
            and long description. The default is not used: numbers and booleans are told as 0.
        version_num: As `server_version_num`, e.g. 180006.
        version: For people, e.g. `PostgreSQL 18.6`.

    Raises:
        TargetError: A line has another shape.
    """
    major = version_num // 10000
    known = known_settings()
    result = {
        name: _hidden(name, setting, major)
        for name, setting in known.items()
        if setting.hidden and setting.exists_in(major)
    }
    for number, line in enumerate(text.splitlines(), start=1):
        fields = line.split("\t")
        if len(fields) != _COLUMNS:
            raise TargetError(
                f"line {number} of postgres --describe-config has {plural(len(fields), 'field')},"
                f" expected {_COLUMNS}: {line[:60]}",
                hint="Is this program PostgreSQL's own postgres?",
            )
        name, context, _group, vartype, _default, low, high = fields[:7]
        kind = {"BOOLEAN": "bool"}.get(vartype, vartype.lower())
        more = known.get(name, KnownSetting())
        result[name] = ServerKnob(
            name=name,
            vartype=kind,
            unit=more.unit,
            context=context,
            minimum=float(low) if low else None,
            maximum=float(high) if high else None,
            enum_values=more.enum if kind == "enum" else (),
            default=more.default_in(major) if kind != "string" else None,
        )
    return ServerFacts(version_num, version, dict(sorted(result.items())))


def facts_of_rows(
    rows: Iterable[Sequence[Any]],
    version_num: int,
    version: str,
    disk_format: Sequence[int] | None = None,
) -> ServerFacts:
    """The settings of a server, from rows of `SETTINGS_QUERY`, and the row of `FORMAT_QUERY`."""
    knobs = [knob_of_row(row) for row in rows]
    known = DiskFormat(*disk_format) if disk_format else None
    return ServerFacts(version_num, version, {knob.name: knob for knob in knobs}, known)


def knob_of_row(row: Sequence[Any]) -> ServerKnob:
    """A row of `pg_settings`: name, vartype, unit, context, min_val, max_val, enumvals, value."""
    name, vartype, unit, context, low, high, values, default = row
    return ServerKnob(
        name=name,
        vartype=vartype,
        unit=unit or None,
        context=context,
        minimum=float(low) if low not in (None, "") else None,
        maximum=float(high) if high not in (None, "") else None,
        enum_values=tuple(values or ()),
        default=default,
    )


def _hidden(name: str, setting: KnownSetting, major: int) -> ServerKnob:
    assert setting.type is not None
    assert setting.context is not None
    return ServerKnob(
        name=name,
        vartype=setting.type,
        unit=setting.unit,
        context=setting.context,
        minimum=setting.min,
        maximum=setting.max,
        enum_values=setting.enum,
        default=setting.default_in(major),
    )
