"""What people read, as it stands in the sources: numbers of nouns, spelling, subjects.

What lies in a string is judged, not what a run prints: each rule is of a class of texts, and a new
text of the class is found before anybody has read it. The sources are parsed once for all rules,
so these tests stay together.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("texts")
ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "pgdyno"

COUNTED = re.compile(
    r" (?:(?!and |of |to |is |in |at |by |it |between )[a-z-]+ ){0,2}?([a-z]{2,}s)\b"
    r"(?!/| a (?:second|minute))"
)
"""What follows a value: a noun of many, perhaps behind an adjective."""
UNITS = {"bytes", "tps", "kbps"}
NO_NOUNS = {
    "across", "allows", "as", "asks", "begins", "belongs", "changes", "claims", "counts",
    "disappears", "does", "ends", "excludes", "exists", "has", "holds", "is", "its", "keeps",
    "lacks", "leads", "leaves", "less", "lets", "lies", "loses", "makes", "mounts", "needs", "plus",
    "puts", "refuses", "says", "sets", "shares", "shows", "sizes", "stands", "stays", "survives",
    "takes", "tells", "this", "thus", "versus", "was",
}  # fmt: skip
AMERICAN = re.compile(
    r"\b(?:colors?|colored|behaviors?|favor(?:s|ed|ite)?|honors?|neighbors?|centers?|centered|gray"
    r"|dialogs?|analyz(?:es|ed|ing|er)|canceled|canceling|labeled|modeled|modeling|traveled"
    r"|fulfills?|judgment|artifacts?|defense"
    r"|(?:initial|optim|normal|organ|recogn|summar|minim|maxim|util|special|general|real|final"
    r"|standard|synchron|parallel|categor|emphas|character|memor|priorit|random|stabil)"
    r"iz(?:e|es|ed|ing|ation|er)s?)\b(?![:=_(])"
)


NO_SUBJECT = re.compile(
    r"\{\}[^{}]*, \{\}( or more)? needed"
    r"|^(too|not|steady|settled) (?!found)[a-z]+ (after|for|to|or)\b.*\{\}"
)


@dataclass(slots=True)
class Sources:
    """What the rules need of all modules; their trees would fill the memory of a small machine."""

    texts: list[tuple[str, int, str]] = field(default_factory=list)  # module, line
    counted: list[str] = field(default_factory=list)
    exponents: list[str] = field(default_factory=list)


@cache
def sources() -> Sources:
    found = Sources()
    for path in sorted(PACKAGE.rglob("*.py")):
        name, tree = str(path.relative_to(PACKAGE)), ast.parse(path.read_text())
        found.texts += [(name, line, text) for line, text in texts(tree)]
        found.counted += [f"{name}:{line}" for line in counted_by_hand(tree)]
        if name != "model/units.py":
            found.exponents += [f"{name}:{line}" for line in exponents(tree)]
    assert found.texts
    return found


def texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Strings of a module that are no docstrings, with their lines; values are `{}`."""
    said_of_code = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    parts = {
        id(one) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for one in node.values
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield (
                node.lineno,
                "".join(
                    str(one.value) if isinstance(one, ast.Constant) else "{}" for one in node.values
                ),
            )
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in said_of_code | parts
        ):
            yield node.lineno, node.value


def counted_by_hand(tree: ast.Module) -> Iterator[str]:
    """Values of f-strings that a noun of many follows, whatever their number is."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr):
            continue
        for value, after in zip(node.values, node.values[1:], strict=False):
            if not isinstance(value, ast.FormattedValue) or not isinstance(after, ast.Constant):
                continue
            if value.format_spec is not None:  # measured: 1.00 sleeps, 0.5 cycles
                continue
            found = COUNTED.match(str(after.value))
            if found and found[1] not in NO_NOUNS | UNITS and not _is_no_number(value.value):
                yield f"{node.lineno}: {{{ast.unparse(value.value)}}}{found[0]}"


def _is_no_number(value: ast.expr) -> bool:
    """Whether it is a text of a function that says its unit or its number."""
    return isinstance(value, ast.Call) and ast.unparse(value.func) in {
        "plural", "often", "seconds_text", "bytes_text", "ns_text", "digits_text", "shown",
        "listed", "words.kind", "words.confidence",
    }  # fmt: skip


def test_counted_nouns_have_the_number_of_their_count() -> None:
    """`1 checkpoints completed` and alike: `model.wording.plural` knows better."""
    found = sources().counted
    assert not found, "write {plural(count, 'noun')}:\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("source", "is_found"),
    [
        ('f"{n} warehouses"', True),
        ('f"{len(rows)} dead rows, and"', True),
        ('f"{count_text(n)} requests"', True),
        ("f\"{plural(n, 'warehouse')}\"", False),
        ('f"{n:.1f} cycles"', False),
        ('f"{name} is less"', False),
        ('f"{size} bytes"', False),
    ],
)
def test_the_rule_of_counted_nouns_finds_them(source: str, is_found: bool) -> None:
    assert bool(list(counted_by_hand(ast.parse(source)))) is is_found


def test_a_check_says_what_it_speaks_of() -> None:
    """`4.99956 s, 5 needed` reads like a failure, and says of nothing what it is."""
    found = [
        f"{name}:{line}: {text}" for name, line, text in sources().texts if NO_SUBJECT.search(text)
    ]
    assert not found, "\n".join(found)


LEADING_DIGITS = re.compile(r"\.\dg$")


def exponents(tree: ast.Module) -> Iterator[str]:
    """Values of f-strings that are shown with leading digits, so perhaps with an exponent."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.FormattedValue)
            and node.format_spec is not None
            and LEADING_DIGITS.search(ast.unparse(node.format_spec).strip("f'\""))
            and not _is_read_back(tree, node)
        ):
            yield f"{node.lineno}: {{{ast.unparse(node.value)}}}"


def test_no_number_is_shown_with_an_exponent() -> None:
    """`3.45e+03 rows/s`: `model.units.digits_text` writes `3,450`."""
    found = sources().exponents
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("source", "is_found"),
    [('f"{rate:.3g} rows/s"', True), ('f"{rate:.3f}"', False), ('float(f"{rate:.3g}")', False)],
)
def test_the_rule_of_exponents_finds_them(source: str, is_found: bool) -> None:
    assert bool(list(exponents(ast.parse(source)))) is is_found


def _is_read_back(tree: ast.Module, value: ast.FormattedValue) -> bool:
    """Whether it is `float(f"{…}")`: a number made shorter, which nobody reads."""
    return any(
        isinstance(node, ast.Call)
        and ast.unparse(node.func) == "float"
        and any(value is one for one in ast.walk(node))
        for node in ast.walk(tree)
    )


def documents() -> Iterator[Path]:
    yield from sorted(ROOT.glob("*.md"))
    for folder in (ROOT / "docs", PACKAGE):
        yield from sorted(one for one in folder.rglob("*") if one.suffix in {".md", ".toml"})


def test_words_are_spelt_as_in_britain() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {word}"
        for path in documents()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for word in AMERICAN.findall(re.sub(r"`[^`]*`", "", line))
    ]
    found += [
        f"{name}:{line}: {word}"
        for name, line, text in sources().texts
        if " " in text
        for word in AMERICAN.findall(text)
    ]
    assert not found, "\n".join(found)


NO_ENGLISH = re.compile(
    r"\b(?:[Ll]eav(?:e|es|ing)|[Ll]eft) (?:\S+ ){1,4}away\b|\bgone on with\b"
    r"|\b(?:is|are) well as (?:it is|they are)\b|\b(?:the|its|their) begins?\b"
    r"|\b(?:are|were) less of\b"
)
"""Turns of phrase that another language lends."""


def test_no_turn_of_phrase_is_lent() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line}"
        for path in documents()
        if path.name != "numbers.md"  # a record of what was measured, as it was written then
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if NO_ENGLISH.search(line)
    ]
    found += [
        f"{name}:{line}: {text}" for name, line, text in sources().texts if NO_ENGLISH.search(text)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "Leave `--quick` away, and", "a run that is gone on with", "It is well as it is.",
        "from the begin of a window", "their begins lie apart", "so there are less of them here",
    ],
)  # fmt: skip
def test_the_rule_of_phrases_finds_them(text: str) -> None:
    assert NO_ENGLISH.search(text)


SPACED_PERCENT = re.compile(r"[0-9}] %(?!\()")
QUERIES = {"store/run_file.py"}  # whose `LIKE '{} %'` is none


def test_a_per_cent_sign_stands_at_its_number() -> None:
    """`At 95 % at most 60% of such cuts` was one sentence."""
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line}"
        for path in documents()
        if path.name != "numbers.md"  # a record of what was measured, as it was written then
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if SPACED_PERCENT.search(line)
    ]
    found += [
        f"{name}:{line}: {text}"
        for name, line, text in sources().texts
        if name not in QUERIES and SPACED_PERCENT.search(text)
    ]
    assert not found, "\n".join(found)


RAW_PATH = re.compile(r"pgdyno (?:resume|report|run) \{(?:[a-z_]+\.)*(?:path|out|named|file)\}")


def test_a_path_stands_in_a_command_as_it_is_typed() -> None:
    """`pgdyno resume --out.sqlite` asked for an option, and a space made two words."""
    assert RAW_PATH.search("`pgdyno resume {file.path}`")
    found = [
        f"{path.relative_to(PACKAGE)}: {raw[0]}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.name != "first_plan.py"  # whose template is filled with what is typed
        for raw in RAW_PATH.finditer(path.read_text())
    ]
    assert not found, "\n".join(found)


FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def test_what_a_guide_has_people_type_stands_in_one_line() -> None:
    """A conninfo that was copied with the end of its line in it was refused."""
    guides = [path for path in documents() if path.parent.name == "guides"]
    assert guides
    found = [
        f"{path.name}: {code[0]}"
        for path in guides
        for paragraph in FENCED.sub("", path.read_text()).split("\n\n")
        for code in re.finditer(r"`[^`]+`", paragraph)
        if "\n" in code[0]
    ]
    assert not found, "\n".join(found)
