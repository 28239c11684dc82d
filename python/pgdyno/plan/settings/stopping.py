"""Plans that stop when they are decided: what they need, and how a dry run tells of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from pgdyno.model.looks import ALPHA, LOOKS, OPEN_MAX
from pgdyno.model.plan import Protocol, Stage
from pgdyno.model.wording import listed, plural
from pgdyno.plan.schema.complaint import Complaint


def stop_complaints(protocol: Protocol, stages: Sequence[Stage]) -> Iterator[Complaint]:
    """What keeps a plan from being looked at while it is measured."""
    if protocol.stop == "rounds":
        return
    if protocol.rounds not in LOOKS:
        allowed = listed([str(rounds) for rounds in LOOKS], "or")
        text = f'is {protocol.rounds}; with protocol.stop = "decided" it is {allowed}'
        yield Complaint("protocol.rounds", text)
    if protocol.confidence != 1 - ALPHA:
        text = f'is {protocol.confidence:g}; with protocol.stop = "decided" it is {1 - ALPHA:g}'
        yield Complaint("protocol.confidence", text)
    if protocol.checkpoints == "anchors":
        text = 'is "anchors", whose estimate has no looks; allowed with stop = "decided": '
        yield Complaint("protocol.checkpoints", f"{text}ignore, cycles")
    alike = Counter(stage.workload.load for stage in stages)
    for stage in stages:
        if alike[stage.workload.load] == 1:
            text = 'is "decided", but no other stage asks for the same load; allowed: rounds'
            yield Complaint(f"stage {stage.name}: protocol.stop", text)
    if (compared := len(stages) - len(alike)) > OPEN_MAX:
        text = f'is "decided" with {plural(compared, "stage")} to compare; allowed: {OPEN_MAX}'
        yield Complaint("protocol.stop", text)


def rounds_text(protocol: Protocol) -> str:
    """How many rounds there are, and when is looked."""
    if protocol.stop == "rounds":
        return plural(protocol.rounds, "round")
    looks = listed([str(look) for look in protocol.looks], "or")
    rounds = plural(protocol.rounds, "round")
    return (
        f"up to {rounds}; a look at the results after {looks} may decide on a stage, which is then"
        " measured no further"
    )
