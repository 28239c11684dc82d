"""What a run recommends, as PostgreSQL and the kernel read it: every line with its reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from textwrap import wrap

from pgdyno.analysis.setting_facts import Recommended, RecommendedSetting, ServerSetting
from pgdyno.model.errors import PlanError
from pgdyno.model.text import one_line
from pgdyno.model.wording import plural
from pgdyno.plan.settings.values import list_items

_COLUMNS = 98


def conf(found: Recommended) -> str:
    """Lines for postgresql.conf."""
    lines = []
    for one in found.settings:
        lines += [f"# {line}" for line in _wrapped(one.why)]
        lines.append(f"{one.name} = {_quoted(one.value)}  # {_why(one)}")
    return _text("#", f"postgresql.conf of {found.version}", found, lines or ["# sets nothing"])


def sql(found: Recommended) -> str:
    """ALTER SYSTEM, for psql; what needs a restart is named at the end."""
    lines = [
        f"ALTER SYSTEM SET {one.name} = {_listed(one)};  -- {_why(one)}" for one in found.settings
    ]
    restarts = [one.name for one in found.settings if one.apply == "restart"]
    after = ["SELECT pg_reload_conf();"] if lines else ["-- sets nothing"]
    if restarts:
        after += [f"-- {line}" for line in _wrapped(f"Needs a restart: {', '.join(restarts)}.")]
    return _text("--", f"ALTER SYSTEM of {found.version}", found, [*lines, *after])


def sysctl(found: Recommended) -> str:
    """Settings of the kernel, for /etc/sysctl.d.

    Raises:
        PlanError: The host of the server is not known.
    """
    if not found.sysctl:
        raise PlanError(
            "the run does not know the host of its server",
            "It was measured from another one; `pgdyno host show` describes the host it runs on.",
        )
    note = (
        "The kernel's settings while the run was measured. None was changed between its stages, so"
        " that what each of them brings is not measured."
    )
    lines = [f"# {line}" for line in _wrapped(note)]
    lines += [f"{name} = {value}" for name, value in found.sysctl.items()]
    return _text("#", "sysctl.d", found, lines)


def diff(found: Recommended, running: Mapping[str, ServerSetting]) -> str:
    """What would change on a server: its lines with `-`, the recommended ones with `+`.

    Args:
        found: What is recommended.
        running: Settings of the server by name, in the spelling of the recommended ones where they
            are the same.
    """
    lines = []
    same = 0
    for one in found.settings:
        now = running.get(one.name)
        if now is not None and now.value == one.value:
            same += 1
            continue
        if now is not None:
            lines.append(f"-{one.name} = {_quoted(now.value)}  # {one_line(now.source)}")
        lines.append(f"+{one.name} = {_quoted(one.value)}  # {_why(one)}")
    if found.settings:
        lines.append(f"# already so: {same} of {plural(len(found.settings), 'setting')}")
    return _text("#", "what would change on the server", found, lines or ["# sets nothing"])


FORMS: dict[str, Callable[[Recommended], str]] = {"conf": conf, "sql": sql, "sysctl": sysctl}
"""Those that need nothing but the run file."""


def _why(one: RecommendedSetting) -> str:
    restart = "; restart" if one.apply == "restart" else ""
    return one_line(f"{one.gain}; {one.chosen_by}{restart}")


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _listed(one: RecommendedSetting) -> str:
    return ", ".join(map(_quoted, list_items(one.name, one.value)))


def _wrapped(text: str) -> list[str]:
    return wrap(one_line(text), _COLUMNS - 3, break_long_words=False, break_on_hyphens=False)


def _text(mark: str, what: str, found: Recommended, lines: list[str]) -> str:
    head = [f"{mark} {line}" for line in _head(what, found)]
    made = f"{mark} Made by pgdyno {one_line(found.pgdyno)} from run {one_line(found.ident)}."
    return "\n".join([*head, "", *lines, "", made]) + "\n"


def _head(what: str, found: Recommended) -> Iterator[str]:
    yield one_line(f"Stage {found.stage}: {what}")
    for sentence in found.sentences:
        yield from _wrapped(sentence.replace("`", ""))
    if found.pooler is not None:
        text = (
            f"The load went through PgBouncer ({found.pooler}), which is no setting of the server:"
            " its part of what the stage gave is in none of these lines. Its pgbouncer.ini had"
        )
        yield from _wrapped(text)
        for name, value in found.pooler_ini.items():
            yield one_line(f"  {name} = {value}")
