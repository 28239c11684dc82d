"""The wheel alone: installed where there is no checkout and no compiler, it runs the demo."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from pgdyno.store.run_file import RunFile

pytestmark = [pytest.mark.cluster, pytest.mark.long]
ROOT = Path(__file__).parents[2]
COMPILERS = ("cc", "gcc", "c++", "clang", "cargo", "rustc", "maturin")


def run(*words: str | Path, cwd: Path, **more: str) -> str:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        list(map(str, words)), cwd=cwd, env=environment | more, capture_output=True, text=True,
        timeout=1800, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{words}: {done.stdout}\n{done.stderr}"
    return done.stdout


def without_compilers(folder: Path) -> str:
    """A PATH on which every compiler fails: also where this machine has one in /usr/bin."""
    folder.mkdir()
    for name in COMPILERS:
        (folder / name).write_text(f"#!/bin/sh\necho {name} was called >&2\nexit 1\n")
        (folder / name).chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


def test_a_wheel_needs_no_checkout_and_no_compiler(folder: Path, home_env: Path) -> None:
    run("make", "wheel", f"DIST={folder}", f"PYTHON={sys.executable}", cwd=ROOT)
    (wheel,) = folder.glob("*.whl")
    assert "-abi3-" in wheel.name
    with zipfile.ZipFile(wheel) as held:
        names = held.namelist()
    for needed in ("pgdyno/plans/demo.toml", "pgdyno/plans/mixes/transfers.toml",
                   "pgdyno/_core.abi3.so", "pgdyno/py.typed"):  # fmt: skip
        assert needed in names
    assert not any(name.startswith(("tests/", "plans/")) for name in names)
    run(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    bin_ = folder / "venv" / "bin"
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    path = without_compilers(folder / "stubs")
    assert subprocess.run(["cc"], env={"PATH": path}, check=False, capture_output=True).returncode
    run(bin_ / "pip", "install", "--quiet", wheel, cwd=folder, PATH=path)
    assert "tpcc-six-stages" in run(bin_ / "pgdyno", "plans", cwd=elsewhere, PATH=path)

    told = run(
        bin_ / "pgdyno", "demo", "--quick", "--out", "run.sqlite", cwd=elsewhere, PATH=path
    )  # fmt: skip

    assert "report   run.html" in told
    with RunFile.read(elsewhere / "run.sqlite") as file:
        assert file.finished()
        assert file.info().command.startswith("pgdyno run demo")
