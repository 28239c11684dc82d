"""The house rules that no linter knows: sizes, names, and who may call the Rust core.

Files are read and parsed once for all rules, so these tests stay together.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.waiting import DEADLINE_S

pytestmark = pytest.mark.xdist_group("tidy")
ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "pgdyno"
FOLDERS = ("python", "tests", "benches", "crates", "docs", "plans", ".ci")
TEXT = {".py", ".pyi", ".rs", ".toml", ".md", ".css", ".js", ".j2", ".html", ".sh"}
LINES_MAX = 500
COLUMNS_MAX = 100
FUNCTION_LINES_MAX = 70
README_LINES_MAX = 120
BANNED_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
CORE_CALLERS = {"catalog", "disk", "drive", "loader", "pages", "store", "workload"}


def files(*suffixes: str) -> Iterator[Path]:
    """Files of the project that people wrote; what tools write is left out."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            generated = "__snapshots__" in path.parts or "__pycache__" in path.parts
            if path.is_file() and path.suffix in suffixes and not generated:
                yield path


@dataclass(frozen=True, slots=True)
class Module:
    """What the rules need of a file in Python; its tree would fill a small machine's memory."""

    path: Path
    opens: bool  # with what it is
    functions_lines: tuple[tuple[str, int], ...]
    imports: tuple[str, ...]
    short_waits: tuple[int, ...]  # their lines
    goes_on_unmarked: tuple[str, ...]
    raw_errors: tuple[int, ...]  # their lines


@cache
def modules() -> tuple[Module, ...]:
    """All of Python that people wrote."""
    found = tuple(_module(path, path.read_text()) for path in files(".py"))
    assert found
    return found


def _module(path: Path, text: str) -> Module:
    tree = ast.parse(text)
    of_tests = path.is_relative_to(ROOT / "tests")
    return Module(
        path,
        opens=bool(ast.get_docstring(tree)),
        functions_lines=tuple(
            (node.name, (node.end_lineno or node.lineno) - node.lineno + 1)
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ),
        imports=tuple(_imports(tree)),
        short_waits=tuple(_short_waits(tree)) if of_tests else (),
        goes_on_unmarked=tuple(_goes_on_unmarked(tree, text)) if of_tests else (),
        raw_errors=() if of_tests else tuple(_raw_errors(tree)),
    )


def test_files_are_short() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for path in files(".py", ".rs", ".pyi", ".c", ".h")
        if (lines := len(path.read_text().splitlines())) > LINES_MAX
    }

    assert long == {}


def test_lines_are_short() -> None:
    wide = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in files(".py", ".rs", ".pyi")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > COLUMNS_MAX
    ]

    assert wide == []


def test_functions_are_short() -> None:
    long = [
        f"{module.path.relative_to(ROOT)}:{name} {lines}"
        for module in modules()
        for name, lines in module.functions_lines
        if lines > FUNCTION_LINES_MAX
    ]

    assert long == []


def test_names_say_what_is_inside() -> None:
    vague = [path for path in files(".py", ".rs") if path.stem in BANNED_NAMES]

    assert vague == []


def test_only_six_layers_call_the_core_and_only_where_its_version_is_asked_for() -> None:
    callers, importers = set(), set()
    for module in modules():
        if not module.path.is_relative_to(PACKAGE):
            continue
        path = module.path.relative_to(PACKAGE)
        if any(f"{name}.".startswith("pgdyno.core.") for name in module.imports):
            callers.add(path.parts[0])
        if any(name.startswith("pgdyno._core") for name in module.imports):
            importers.add(path.as_posix())

    assert callers <= CORE_CALLERS
    assert importers == {"core.py"}


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_json_of_others_is_read_where_any_depth_of_it_is_an_error() -> None:
    ours = {"api", "catalog", "disk", "drive", "guard", "intervention", "loader", "model",
            "pages", "report"}  # fmt: skip
    found = [
        path.relative_to(PACKAGE)
        for path in PACKAGE.rglob("*.py")
        if "json.load" in path.read_text() and path.relative_to(PACKAGE).parts[0] not in ours
    ]
    assert not found, f"{found} reads what a file or a program says: `record_json.json_value`"


def test_what_the_system_says_is_worded_before_people_read_it() -> None:
    raw = [
        f"{module.path.relative_to(ROOT)}:{line}"
        for module in modules()
        for line in module.raw_errors
    ]
    assert raw == [], "by `reason` or `told` of model/system_errors, without Python's [Errno 2]"


def _raw_errors(tree: ast.Module) -> Iterator[int]:
    """Where a text holds an error that may be the system's as Python writes it."""
    for one in ast.walk(tree):
        if not isinstance(one, ast.ExceptHandler) or one.name is None or one.type is None:
            continue
        if "OSError" in ast.unparse(one.type):
            for part in ast.walk(one):
                if isinstance(part, ast.FormattedValue) and ast.unparse(part.value) in (
                    one.name,
                    f"{one.name}.strerror",
                ):
                    yield part.lineno


def test_only_the_clock_reads_time_in_rust() -> None:
    readers = {
        str(path.relative_to(ROOT / "crates"))
        for path in files(".rs")
        if re.search(r"(Instant|SystemTime)::now\(", path.read_text())
    }

    assert readers <= {"drive/src/clock.rs"}


def test_every_rust_test_is_part_of_its_crates_binary() -> None:
    lost = []
    for tests in (ROOT / "crates").glob("*/tests"):
        main = (tests / "main.rs").read_text()
        parts = [path.stem for path in tests.iterdir() if path.name != "main.rs"]
        lost += [f"{tests}/{part}" for part in parts if f"\nmod {part};" not in main]

    assert lost == []


def test_only_core_knows_python() -> None:
    manifests = {
        path.parent.name
        for path in (ROOT / "crates").glob("*/Cargo.toml")
        if "pyo3" in path.read_text()
    }

    assert manifests == {"core"}


LOOSE_ENDS = [r"\bTODO\b", r"\bFIXME\b", r"/home/\w", re.escape(f"{ROOT}/")]


@pytest.mark.parametrize("word", LOOSE_ENDS)
def test_no_loose_ends(word: str) -> None:
    found = [
        str(path.relative_to(ROOT))
        for path in files(*TEXT)
        if path != Path(__file__) and re.search(word, path.read_text())
    ]

    assert found == []


def test_the_readme_fits_on_a_screen_or_two() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) < README_LINES_MAX


def test_every_module_opens_with_what_it_is() -> None:
    silent = [str(module.path.relative_to(ROOT)) for module in modules() if not module.opens]
    silent += [
        str(path.relative_to(ROOT))
        for path in files(".rs")
        if not path.read_text().startswith("//!")
    ]

    assert silent == []


GOES_ON = re.compile(r'pgdyno\.resume\(|pgdyno\(\s*"resume"|"-m", "pgdyno", "resume"')


def test_who_goes_on_with_a_run_needs_the_machine_as_it_was() -> None:
    """Other sessions' tests of the host change it meanwhile; then going on is refused, rightly."""
    unmarked = [
        f"{module.path.name}: {name}" for module in modules() for name in module.goes_on_unmarked
    ]
    assert unmarked == []


def _goes_on_unmarked(tree: ast.Module, text: str) -> Iterator[str]:
    """Tests that go on with a run, and are not marked so."""
    if not GOES_ON.search(text):
        return
    # Who changes the machine has it alone as well.
    marks = [ast.unparse(one) for one in tree.body if _sets_marks(one)]
    if any("same_machine" in one or "xdist_group('machine')" in one for one in marks):
        return
    for one in tree.body:
        if not isinstance(one, ast.FunctionDef) or not one.name.startswith("test_"):
            continue
        own = any("same_machine" in ast.unparse(mark) for mark in one.decorator_list)
        if not own and GOES_ON.search(ast.get_source_segment(text, one) or ""):
            yield one.name


def _sets_marks(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and ast.unparse(statement).startswith("pytestmark")


def test_a_test_waits_for_as_long_as_a_busy_machine_takes() -> None:
    """Only a defect may reach a deadline; one of a test's own is reached by a load of ten."""
    short = [
        f"{module.path.relative_to(ROOT)}:{line}"
        for module in modules()
        for line in module.short_waits
    ]
    assert short == []


def _short_waits(tree: ast.Module) -> Iterator[int]:
    for one in _patience(tree):
        if isinstance(one.value, int | float) and 1 <= one.value < DEADLINE_S:
            yield one.lineno


def _patience(tree: ast.Module) -> Iterator[ast.Constant]:
    """Numbers that say how long something is waited for."""
    for node in ast.walk(tree):
        found: list[ast.expr] = []
        if isinstance(node, ast.Call):
            found += [one.value for one in node.keywords if one.arg == "timeout"]
            if isinstance(node.func, ast.Attribute) and node.func.attr in ("wait", "communicate"):
                found += node.args[:1]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            found += [node.right] * (ast.unparse(node.left) == "time.monotonic()")
        yield from (one for one in found if isinstance(one, ast.Constant))
