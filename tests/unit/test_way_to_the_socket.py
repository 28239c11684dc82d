"""The way from a run to the socket is as the driver's first comment tells it, each name once."""

from __future__ import annotations

import re
from pathlib import Path

CRATES = Path(__file__).parents[2] / "crates"
TABLE = (CRATES / "drive" / "src" / "lib.rs").read_text(encoding="utf-8")
TRAITS = ("perform", "exchange")
_DEFINED = r"\b(?:fn|struct|trait) {}\b"


def source() -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in CRATES.glob("*/src/**/*.rs")}


def named() -> list[str]:
    """The paths of the table's second column."""
    rows = [line.split("|") for line in TABLE.splitlines() if line.startswith("//! | ")]
    return [path for row in rows[2:] for path in re.findall(r"`(\w+(?:::\w+)+)`", row[2])]


def test_every_step_of_the_way_is_there() -> None:
    texts = source()
    assert len(named()) > 8
    for path in named():
        *_, module, name = path.split("::")
        there = [
            text
            for file, text in texts.items()
            if re.search(_DEFINED.format(name), text)
            and (file.stem == module.lower() or re.search(_DEFINED.format(module), text))
        ]
        assert there, f"{path} is nowhere"


def test_no_two_steps_have_one_name() -> None:
    names = [path.split("::")[-1] for path in named()]
    assert len(set(names)) == len(names)


def test_only_methods_of_the_two_traits_are_called_as_they_are() -> None:
    own = [
        f"{file.relative_to(CRATES)}: {line.strip()}"
        for file, text in source().items()
        for line in text.splitlines()
        if re.search(rf"\bpub\b.*\bfn (?:{'|'.join(TRAITS)})\b", line)
    ]
    assert own == []
