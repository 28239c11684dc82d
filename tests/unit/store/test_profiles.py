"""Profiles in a run file: kept whole, small, and refused where they are not what was written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pgdyno.model.errors import StoreError
from pgdyno.model.profile import Profile, Stacks
from pgdyno.store import RunFile
from pgdyno.store.profiles import profile_of, put_profile
from tests.data.miniature import write_miniature
from tests.data.profiled import made_up


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_miniature(tmp_path / "run.sqlite", rounds=1, invalid=())


def profile() -> Profile:
    return made_up("tuned", np.random.default_rng(1))


def test_a_profile_comes_back_as_it_was(path: Path) -> None:
    with RunFile.append(path) as run:
        put_profile(run, profile(), 2)
        assert profile_of(run, 1) is None
        assert profile_of(run, 2) == profile()
        assert len(run.logs(2)["profile"]) < 10_000


@pytest.mark.parametrize(
    "wrong",
    [
        {"parents": (0,), "names": (0,), "seconds": ((),)},  # its own parent
        {"parents": (-1,), "names": (9,), "seconds": ((),)},
        {"parents": (-1,), "names": (), "seconds": ((),)},
        {"parents": (-1,), "names": (0,), "seconds": (((1, 1),),)},
        {"parents": (-1,), "names": (0,), "seconds": (((0, -1),),)},
        {"parents": (-1,), "names": (0,), "seconds": ()},
        {"hz": 0.0},
    ],
)
def test_what_points_nowhere_is_refused(path: Path, wrong: dict[str, Any]) -> None:
    sound = Stacks(99.0, (("backend", ""),), (-1,), (0,), (((0, 1),),))
    whole = replace(profile(), seconds=1, transactions=(1.0,), cpu=sound, waiting=None)
    with RunFile.append(path) as run:
        put_profile(run, whole, 1)
        assert profile_of(run, 1) == whole
        put_profile(run, replace(whole, cpu=replace(sound, **wrong)), 2)
        with pytest.raises(StoreError, match="is damaged: profile of trial 2"):
            profile_of(run, 2)


@pytest.mark.parametrize("text", ["", "no base 85 \x00", "cmVzdA==", "c-jR"])
def test_what_is_no_profile_is_refused(path: Path, text: str) -> None:
    with RunFile.append(path) as run:
        run.put_log("profile", text, 1)
        with pytest.raises(StoreError, match="is damaged"):
            profile_of(run, 1)
