"""The page `docs/reference/traps.md`: `python -m pgdyno.imports.reference` prints it."""

from __future__ import annotations

from pgdyno.imports.traps import traps

_HEAD = """\
# Traps in the results of others

<!-- Made from the checks by `python -m pgdyno.imports.reference`; do not edit. -->

`pgdyno import` looks for each of these. A check fires, is silent, or is unknown, and then says what
it would have to know. T: set by a tool. E: made in one of the field reports that `plans/` repeats.

| trap | tools | what is read wrong | when it fires |
|---|---|---|---|
"""


def page() -> str:
    """The reference page."""
    rows = (
        f"| {t.ident} | {', '.join(t.tools) or 'all'} | {t.what} | {t.fires} |" for t in traps()
    )
    return _HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    print(page(), end="")
