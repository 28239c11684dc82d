"""Files of a crate use each other in one direction: no circles but a module and its own parts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CRATES = sorted(path for path in (ROOT / "crates").iterdir() if (path / "src").is_dir())
_USE = re.compile(r"\buse ((?:crate|super|self)::[^;]+);")
_PATH = re.compile(r"\b((?:crate|super)(?:::\w+)+)")


def modules(source: Path) -> dict[str, str]:
    """Path of each module within its crate -> its text, without comments and unit tests."""
    found = {}
    for path in source.rglob("*.rs"):
        parts = path.relative_to(source).with_suffix("").parts
        text = re.sub(r"//[^\n]*", "", path.read_text())
        found["::".join(parts if parts != ("lib",) else ())] = text.split("#[cfg(test)]")[0]
    return found


def spelled(tree: str) -> Iterator[str]:
    """`a::{b, c::{d, e}}` as `a::b`, `a::c::d`, `a::c::e`."""
    before, brace, rest = tree.partition("{")
    if not brace:
        yield tree
        return
    depth, begin = 0, 0
    inner = rest.removesuffix("}") + ","
    for at, character in enumerate(inner):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            if part := inner[begin:at]:
                yield from (before + one for one in spelled(part))
            begin = at + 1


def named(path: str, at: str, known: Mapping[str, str]) -> str | None:
    """The module that a path from the module `at` leads into."""
    words = path.split("::")
    here = at.split("::") if at else []
    while words and words[0] in ("crate", "super", "self"):
        here = {"crate": [], "super": here[:-1], "self": here}[words.pop(0)]
    found = None
    for word in words:
        here = [*here, word]
        if "::".join(here) not in known:
            break
        found = "::".join(here)
    return found


def uses(source: Path) -> dict[str, set[str]]:
    """Module -> the modules that it uses; a module's own parts may use it."""
    known = modules(source)
    graph: dict[str, set[str]] = {name: set() for name in known}
    for name, text in known.items():
        trees = [re.sub(r"\s+(as \w+)?", "", one) for one in _USE.findall(text)]
        paths = [path for tree in trees for path in spelled(tree)]
        paths += _PATH.findall(_USE.sub("", text))
        for path in paths:
            target = named(path, name, known)
            if target and target != name and not name.startswith(f"{target}::"):
                graph[name].add(target)
    return graph


@pytest.mark.parametrize("crate", CRATES, ids=lambda path: path.name)
def test_files_of_a_crate_are_in_no_circle(crate: Path) -> None:
    try:
        order = list(TopologicalSorter(uses(crate / "src")).static_order())
    except CycleError as error:
        raise AssertionError(f"a circle: {' -> '.join(error.args[1])}") from None
    assert len(order) == len(modules(crate / "src"))


def test_a_circle_is_found(tmp_path: Path) -> None:
    (tmp_path / "lib.rs").write_text("mod a;\nmod b;\n")
    (tmp_path / "a.rs").write_text("use crate::b::{\n    One, two as other,\n};\n")
    (tmp_path / "b.rs").write_text("fn f() { crate::a::g(); }\n")

    graph = uses(tmp_path)

    assert graph["a"] == {"b"}
    assert graph["b"] == {"a"}
    with pytest.raises(CycleError):
        TopologicalSorter(graph).prepare()
