"""How to repeat the run, and on what it was made."""

from __future__ import annotations

from pgdyno.analysis.facts import Facts
from pgdyno.model.units import moment_text
from pgdyno.model.wording import plural
from pgdyno.report.document import Block, Cell, Column, Command, Section, Table, Text

_FIXTURE = "The fixture: the loaded database that trials start from."


def section(facts: Facts) -> Section:
    """One command, and the manifests."""
    blocks: list[Block] = [
        Command(facts.command),
        Text(
            f"Run {facts.ident}, begun {moment_text(facts.started_ns)}, pgdyno {facts.pgdyno},"
            f" {facts.trials_finished} of {plural(facts.trials_planned, 'trial')} finished."
            " The run file holds everything that this report says."
        ),
    ]
    for caption, lines in (
        ("Figures of others, as the plan gives them; not measured here.", facts.reference),
        ("The target's own installation.", facts.build),
        *((f"The build {name}.", lines) for name, lines in facts.builds.items()),
        ("The server, which is not pgdyno's, as it was found.", facts.server),
        ("The host." if not facts.server else "The host of the client.", facts.host),
        (_FIXTURE, facts.fixture),
        *(("Another fixture, for builds that store otherwise.", one)
          for one in facts.further_fixtures),
    ):  # fmt: skip
        if lines:
            blocks.append(_manifest(caption, lines))
    return Section("repeat", "Repeat it", tuple(blocks))


def _manifest(caption: str, lines: dict[str, str]) -> Table:
    return Table(
        caption,
        (Column("what", align="left"), Column("value", align="left")),
        tuple((Cell(name.replace("_", " ")), Cell(value)) for name, value in lines.items()),
        folded=True,
    )
