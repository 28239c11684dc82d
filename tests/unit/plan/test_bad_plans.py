"""Plans that must be refused, each with the words of the refusal in its head.

# expect: text that the error must hold        # absent: text that it must not hold
# server: 15 (default 18)                      # facts: running (default installed)
# set: a --set option                          # options: quick aa
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.model.errors import PlanError
from pgdyno.plan import read_plan
from pgdyno.plan.resolve.plan import resolve
from tests.data.servers import HOST, installed, running

FOLDER = Path(__file__).parents[2] / "data" / "plans" / "bad"
PLANS = sorted(FOLDER.glob("*.toml"))
KEYS = {"expect", "absent", "server", "facts", "set", "options"}


def head(path: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {key: [] for key in KEYS}
    for line in path.read_text().splitlines():
        if not line.startswith("# "):
            break
        key, _, value = line.removeprefix("# ").partition(": ")
        found[key].append(value)
    return found


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_a_bad_plan_is_refused(path: Path) -> None:
    said = head(path)
    major = int((said["server"] or ["18"])[0])
    server = running(major) if said["facts"] else installed(major)
    options = " ".join(said["options"]).split()

    with pytest.raises(PlanError) as caught:
        resolve(read_plan(path, said["set"], "quick" in options, "aa" in options), server, HOST)

    error = caught.value
    assert said["expect"], "a bad plan says what it expects"
    for text in said["expect"]:
        assert text in error.fact
    for text in said["absent"]:
        assert text not in error.fact
    assert error.fact.startswith(str(path))
    assert not error.fact.endswith(".")
    assert error.hint is not None
    assert error.hint.endswith("Nothing was touched.")
    assert "secret" not in error.fact + error.hint


def test_there_are_enough_of_them() -> None:
    assert len(PLANS) >= 40
