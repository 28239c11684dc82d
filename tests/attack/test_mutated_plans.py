"""A campaign of mutated plans: each ends in a dry run, or in a refusal that names the file.

So does a plan whose mix, script or setup was mutated. Every case is a function of its number; one
that fails prints its number and its text.
"""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path
from typing import Any
from unittest.mock import create_autospec

import numpy as np
import pytest

from pgdyno.api import planning
from pgdyno.model.calibration import Machine
from pgdyno.plan.schema.complaint import shown
from pgdyno.plan.schema.toml import toml_key
from tests.attack.mutations import (
    as_toml,
    hostile_value,
    huge_plan,
    other_values,
    single_table,
    spoiled,
)
from tests.attack.outcome import Ended, Tally, command, listing, require_clean
from tests.data.servers import HOST, installed

ROOT = Path(__file__).parents[2]
FOLDERS = (ROOT / "plans", ROOT / "tests" / "data" / "plans" / "good")
NAMED = sorted(
    path.relative_to(folder)
    for folder in FOLDERS
    for kind in ("mixes", "scripts", "files")
    for path in folder.glob(f"{kind}/*")
)
"""Files that these plans name."""
PLANS = sorted(
    path for folder in FOLDERS for path in folder.glob("*.toml") if path.stem not in ("running",)
)
CARRIED_OUT = [path for path in PLANS if path.stem != "builds"]
"""Without those that want what is not there, and are refused whatever stands in them."""
SEED = 11


@pytest.fixture
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what plans name, and a server and a machine that need not be asked."""
    for folder in FOLDERS:
        shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    answers = {
        "server_facts": installed(18),
        "build_facts": installed(18),
        "local_facts": HOST,
        "builds_there": (),
        "fixture_bytes": None,
        "this_machine": Machine("cpu", 2, "6.1"),
    }
    for name, answer in answers.items():
        # Asked with other arguments than the real one takes, a stand-in fails as that would.
        stand_in = create_autospec(getattr(planning, name), return_value=answer)
        monkeypatch.setattr(planning, name, stand_in)
    return tmp_path


def mutated(number: int) -> tuple[bytes, list[str]]:
    """The plan of a case, and the keys that it touches where it is still TOML."""
    rng = np.random.default_rng([SEED, number])
    plan = PLANS[int(rng.integers(len(PLANS)))].read_bytes()
    way = int(rng.integers(20))
    if way < 12:
        times = 1 if way < 9 else int(rng.integers(2, 6))
        document, touched = other_values(tomllib.loads(plan.decode()), rng, times)
        return as_toml(document), touched if times == 1 else []
    if way < 18:
        return spoiled(plan, rng), []
    return (huge_plan if way == 18 else single_table)(plan, rng), []


@pytest.mark.parametrize(
    ("first", "count"),
    [(0, 150), *(pytest.param(at, 250, marks=pytest.mark.long) for at in range(150, 1650, 250))],
)
def test_a_mutated_plan_is_carried_out_or_refused(
    at_home: Path, monkeypatch: pytest.MonkeyPatch, first: int, count: int
) -> None:
    tally = Tally("mutated plans")
    plan = at_home / "attacked.toml"
    for number in range(first, first + count):
        text, touched = mutated(number)
        plan.write_bytes(text)
        with tally.case(number, text, *touched):
            before = listing(at_home)
            ended = command(monkeypatch, "run", "attacked.toml", "--dry-run")
            how = require_clean(ended, *(["attacked.toml"] if ended.code else []))
            assert listing(at_home) == before, "a dry run changed something"
            tally.counts[how] += 1
    assert tally.counts["refused"] > count / 4
    tally.keep()


def as_shown(value: Any) -> set[str]:
    """How a value may be named: as TOML, or as the text that a setting becomes; cut where long."""
    setting = ("on" if value else "off") if isinstance(value, bool) else str(value)
    texts = {shown(value), shown(setting), shown(f"{value:g}") if isinstance(value, float) else ""}
    cut = {text.removesuffix("...") for text in texts - {""}}
    return cut | {text.strip('"') for text in cut if text.strip('"')}  # as a path is


def is_toml(text: bytes) -> bool:
    try:
        return bool(tomllib.loads(text.decode()))
    except tomllib.TOMLDecodeError:
        return False


def names_in(value: Any) -> set[str]:
    """The keys in a value, as they are named."""
    if isinstance(value, dict):
        return {name for key, one in value.items() for name in (toml_key(key), *names_in(one))}
    return {name for one in value for name in names_in(one)} if isinstance(value, list) else set()


def require_named(ended: Ended, place: tuple[Any, ...], value: Any) -> None:
    """A refusal names the key and the value; of one that is no scalar, a key in it may do."""
    keys = {toml_key(next(key for key in reversed(place) if isinstance(key, str)))}
    if isinstance(value, dict | list):
        keys |= names_in(value)
    else:
        assert any(has(ended.err, one) for one in as_shown(value)), f"no {value!r}: {ended.err}"
    assert any(has(ended.err, key) for key in keys), f"none of {keys}: {ended.err}"


def has(text: str, words: str) -> bool:
    """Whether these words stand there, not within others."""
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text) is not None


@pytest.mark.parametrize(
    ("first", "count"), [(0, 40), pytest.param(40, 460, marks=pytest.mark.long)]
)
def test_a_refused_value_is_named_with_its_file_and_key(
    at_home: Path, monkeypatch: pytest.MonkeyPatch, first: int, count: int
) -> None:
    tally = Tally("hostile values in plans")
    plan = at_home / "attacked.toml"
    for number in range(first, first + count):
        rng = np.random.default_rng([SEED, 2, number])
        original = CARRIED_OUT[int(rng.integers(len(CARRIED_OUT)))]
        document, place, value = hostile_value(tomllib.loads(original.read_text()), rng)
        text = as_toml(document)
        plan.write_bytes(text)
        with tally.case(number, text, original.stem, str(place), repr(value)):
            ended = command(monkeypatch, "run", "attacked.toml", "--dry-run")
            how = require_clean(ended, *(["attacked.toml"] if ended.code else []))
            if how == "refused" and is_toml(text):
                require_named(ended, place, value)
            tally.counts[how] += 1
    assert tally.counts["refused"] > count / 2
    tally.keep()


def around(path: Path) -> bytes:
    """A plan of the file, of the kind that it is."""
    kind = "mix" if path.suffix == ".toml" else "script"
    return f"""
name = "around"
question = "Is the file refused by name?"
[workload]
kind = "{kind}"
file = "{path}"
[[stage]]
name = "one"
why = "The only one."
""".encode()


@pytest.mark.parametrize(
    ("first", "count"), [(0, 50), pytest.param(50, 450, marks=pytest.mark.long)]
)
def test_a_mutated_mix_or_script_is_carried_out_or_refused(
    at_home: Path, monkeypatch: pytest.MonkeyPatch, first: int, count: int
) -> None:
    tally = Tally("mutated mixes and scripts")
    for number in range(first, first + count):
        rng = np.random.default_rng([SEED, 1, number])
        path = NAMED[int(rng.integers(len(NAMED)))]
        before = (at_home / path).read_bytes()
        if path.suffix == ".toml" and rng.integers(3):
            text = as_toml(other_values(tomllib.loads(before.decode()), rng)[0])
        else:
            text = spoiled(before, rng)
        (at_home / path).write_bytes(text)
        (at_home / "attacked.toml").write_bytes(around(path))
        with tally.case(number, text, str(path)):
            ended = command(monkeypatch, "run", "attacked.toml", "--dry-run")
            named = ["attacked.toml", path.name] if ended.code else []
            tally.counts[require_clean(ended, *named, given=text)] += 1
        (at_home / path).write_bytes(before)
    assert tally.counts["refused"]
    tally.keep()
