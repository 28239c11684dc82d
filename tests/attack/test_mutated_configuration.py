"""A campaign of mutated configuration files for `lint`: findings, or a refusal that names them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest

from tests.attack.mutations import HOSTILE_TEXT, as_toml, other_values, spoiled
from tests.attack.outcome import Tally, command, listing, require_clean

ROOT = Path(__file__).parents[2]
FILES = [
    *(path for path in sorted((ROOT / "tests" / "data" / "lint").glob("*/*")) if path.is_file()),
    *sorted((ROOT / "plans").glob("*.toml")),
]
SEED = 13


def mutated(number: int) -> tuple[str, bytes]:
    """The name and the bytes of a case."""
    rng = np.random.default_rng([SEED, number])
    path = FILES[int(rng.integers(len(FILES)))]
    data = path.read_bytes()
    if path.suffix == ".toml" and rng.integers(2):
        return path.name, as_toml(other_values(tomllib.loads(data.decode()), rng, 3)[0])
    if rng.integers(4):
        return path.name, spoiled(data, rng)
    lines = data.decode().split("\n")
    at = int(rng.integers(len(lines)))
    text = HOSTILE_TEXT[int(rng.integers(len(HOSTILE_TEXT)))].replace("\n", " ")
    name, equals, _ = lines[at].partition("=")
    lines[at] = f"{name}{equals or ' '}{text}" if rng.integers(2) else f"{text}{equals or ' '}1"
    return path.name, "\n".join(lines).encode()


@pytest.mark.parametrize(
    ("first", "count"), [(0, 60), *(pytest.param(at, 120, marks=pytest.mark.long)
                                    for at in range(60, 420, 120))],
)  # fmt: skip
def test_a_mutated_configuration_is_judged_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: int, count: int
) -> None:
    monkeypatch.chdir(tmp_path)
    tally = Tally("mutated configuration files")
    for number in range(first, first + count):
        name, data = mutated(number)
        Path(name).write_bytes(data)
        before = listing(tmp_path)
        with tally.case(number, data, name):
            ended = command(monkeypatch, "lint", name, "--memory", "24", "--kernel", "6.1")
            found = ended.code == 1 and not ended.err and "in 1 file" in ended.out
            how = "accepted" if found else require_clean(ended, *([name] if ended.code else []))
            assert listing(tmp_path) == before
            tally.counts[how] += 1
    assert tally.counts["accepted"]
    tally.keep()
