"""The reference page of all knobs, as Markdown: `python -m pgdyno.catalog.reference`."""

from __future__ import annotations

from pgdyno.catalog.entries import Entry, entries
from pgdyno.catalog.machine import layers

HEAD = """# Knobs

Every setting that pgdyno knows, layer by layer, lowest first. Made from the catalogue by
`make reference`; `pgdyno knobs NAME` tells all of one, sources included.

Risk: *recent commits* may be lost after a crash, without damage; *corruption*: a crash may damage
data; *availability*: recovery, space or service suffer; *security*. The rung is the lowest one of
the durability ladder that a value of the knob stands on (D0: nothing is lost).
"""


def render() -> str:
    """The page."""
    parts = [HEAD]
    for name, layer in layers().items():
        found = [entry for entry in entries().values() if entry.layer == name]
        parts.append(
            f"## {layer.title} (`{name}`)\n\n"
            f"Applied: {layer.how} ({layer.apply}). Read back: {layer.verify}. Undone: "
            f"{layer.undo}.\n"
        )
        for group in dict.fromkeys(entry.group for entry in found):
            if group != name:
                parts.append(f"### {group}\n")
            rows = [_row(entry) for entry in found if entry.group == group]
            parts.append("\n".join([_line(_HEADS), _line(["---"] * len(_HEADS)), *rows]) + "\n")
    return "\n".join(parts)


_HEADS = ["knob", "type and range", "default", "takes effect by", "risk, rung", "why"]


def _row(entry: Entry) -> str:
    kind = "; ".join(part for part in (entry.kind, entry.allowed) if part)
    why = [entry.why]
    if entry.gone:
        why.insert(0, f"**Gone**: {entry.gone}.")
    if entry.instead:
        why.append(f"Instead: `{entry.instead}`.")
    if entry.useless:
        why.append(f"Without effect: {entry.useless}.")
    if entry.advise:
        why.append(f"Advised: {entry.advise}.")
    if entry.search:
        why.append(f"Worth trying: {entry.search}.")
    risk = entry.risk if entry.rung == "D0" else f"{entry.risk}, {entry.rung}"
    return _line([f"`{entry.name}`", kind, entry.default, entry.apply, risk, " ".join(why)])


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    print(render(), end="")
