"""Root works in folders that the server's user can change, and follows none of that user's links.

At every step of a fixture and of a trial the user swaps files and folders for links to a witness.
Whatever becomes of the trial: the witness keeps its content, owner and mode, nothing appears beside
it, and the next trial runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgdyno.model.errors import PgdynoError
from pgdyno.model.fixture_shape import FixtureShape
from pgdyno.model.run import Fixture
from pgdyno.shell import postgres_user
from pgdyno.target.binaries import find_binaries
from pgdyno.target.home import remove_folder
from pgdyno.target.own_target import OwnTarget
from tests.attack.planting import Planter
from tests.cluster.conftest import TARGETS, settings_of
from tests.reachable import reachable_folder

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(os.geteuid() != 0, reason="it is about root"),
]
IDENT = "0123456789abcdef"
STEPS_MAX = 2000


class Ground:
    """A home, a folder of a stage that belongs to the server's user, and a witness."""

    def __init__(self, folder: Path) -> None:
        self.user = postgres_user()
        self.home = folder / "home"
        self.stage = folder / "stage"
        self.stage.mkdir()
        os.chown(self.stage, self.user.uid, self.user.gid)
        self.witness = folder / "secret" / "witness"
        self.witness.parent.mkdir(mode=0o700)
        self.witness.write_text("root's own\n" * 10)
        self.witness.chmod(0o640)
        self.planter = Planter(self.user, (self.home / "work", self.stage), self.witness)
        self._before = self._seen()

    def _seen(self) -> list[tuple[Any, ...]]:
        return [
            (one, facts.st_mode, facts.st_uid, facts.st_gid, facts.st_size, facts.st_mtime_ns)
            for one in (self.witness.parent, *self.witness.parent.rglob("*"))
            for facts in [one.lstat()]
        ]

    def assert_untouched(self, step: int) -> None:
        assert self._seen() == self._before, f"at step {step}"
        assert self.witness.read_text() == "root's own\n" * 10, f"at step {step}"

    def target(self) -> OwnTarget:
        plan = TARGETS["embedded-18"]
        binaries = find_binaries(plan, self.user)
        facts = settings_of("embedded-18", binaries)
        return OwnTarget(
            plan, binaries, facts, self.user, self.home, 1 << 30, None, [str(self.stage)]
        )

    def fixture(self) -> None:
        """Make one, empty."""
        target = self.target()
        try:
            target.begin_fixture(IDENT)
            target.keep_fixture(Fixture(IDENT, FixtureShape(), 0, None, (), "", reused=False))
        finally:
            target.close()

    def trial(self) -> None:
        """One in the stage's folder, to its end."""
        target = self.target()
        try:
            target.restore(IDENT, folder=str(self.stage))
            target.apply(())
            assert target.log_text()
            target.stop()
        finally:
            target.close()

    def clear(self) -> None:
        """Remove what the user left in the stage's folder: a refusal leaves it to its owner."""
        for path in sorted(self.stage.rglob("*"), reverse=True):
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            else:
                path.unlink()


@pytest.fixture
def ground() -> Iterator[Ground]:
    for folder in reachable_folder("links"):
        found = Ground(folder)
        found.fixture()
        yield found


def attack(ground: Ground, act: Callable[[], None], stride: int) -> int:
    """Plant at every `stride`th step of something; returns how many attacks there were."""
    with ground.planter.at(STEPS_MAX):
        act()
    assert ground.planter.planted == 0
    steps = ground.planter.steps
    assert steps > 50
    attacks = 0
    for step in range(0, steps, stride):
        with ground.planter.at(step), suppress(PgdynoError, psycopg.Error):
            act()
        ground.assert_untouched(step)
        attacks += 1
        ground.clear()
    assert ground.planter.planted > attacks, "there was too little to attack"
    act()
    ground.trial()
    return attacks


@pytest.mark.parametrize(
    "stride", [pytest.param(1, marks=pytest.mark.long, id="all"), pytest.param(23, id="some")]
)
@pytest.mark.wide
def test_links_in_the_way_of_a_trial(ground: Ground, stride: int) -> None:
    assert attack(ground, ground.trial, stride) > 4


@pytest.mark.long
def test_links_in_the_way_of_a_fixture(ground: Ground) -> None:
    def anew() -> None:
        remove_folder(ground.home / "fixtures" / IDENT)
        ground.fixture()

    ground.planter.below = (ground.home, ground.stage)
    assert attack(ground, anew, 1) > 2
