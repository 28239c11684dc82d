"""The options that repeat a plan's run from a shell, as somebody typed them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgdyno.plan.schema.override import Override, parse_override

_NAMED_BY = {"running": "conninfo", "installed": "bindir"}


def option_words(overrides: Sequence[str]) -> Iterator[str]:
    """Words of a command line for what changes a plan.

    What names a target sets two keys at once, and has an option of its own; it comes first.
    """
    read = [one for text in overrides if isinstance(one := parse_override(text), Override)]
    last = {".".join(map(str, one.path)): one for one in read}
    kind = last.get("target.kind")
    option = _NAMED_BY.get(kind.value) if kind is not None else None
    named = last.get(f"target.{option}")
    told = {kind.text, named.text} if kind is not None and named is not None else set()
    if named is not None and told:
        yield from (f"--{option}", str(named.value))
    for text in overrides:
        if text not in told:
            yield from ("--set", text)
