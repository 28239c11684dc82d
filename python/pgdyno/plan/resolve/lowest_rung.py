"""What stands on a lower rung of durability than a plan allows, in words."""

from __future__ import annotations

from pgdyno.model.durability import LADDER
from pgdyno.model.settings import Rung


def too_low(value: str, rung: Rung, lowest: Rung) -> tuple[str, str]:
    """What is wrong with a value that puts a stage on a rung below the lowest, and a hint."""
    text = f"{value} puts it on rung {rung}, below protocol.lowest_rung = {lowest}"
    meant = f"if that is meant: on {rung}, {LADDER[rung]}"
    return text, f'Write lowest_rung = "{rung}" below [protocol] {meant}.'
