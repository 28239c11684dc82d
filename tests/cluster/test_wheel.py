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
WITHOUT_COMPILERS = "/usr/bin:/bin"


def run(*words: str | Path, cwd: Path, **more: str) -> str:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        list(map(str, words)), cwd=cwd, env=environment | more, capture_output=True, text=True,
        timeout=1800, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{words}: {done.stdout}\n{done.stderr}"
    return done.stdout


def test_a_wheel_needs_no_checkout_and_no_compiler(folder: Path, home_env: Path) -> None:
    run("make", "wheel", f"DIST={folder}", f"PYTHON={sys.executable}", cwd=ROOT)
    (wheel,) = folder.glob("*.whl")
    assert "-abi3-" in wheel.name
    with zipfile.ZipFile(wheel) as held:
        names = held.namelist()
    for needed in ("pgdyno/plans/demo.toml", "pgdyno/plans/mixes/transfers.toml",
                   "pgdyno/_core.abi3.so"):  # fmt: skip
        assert needed in names
    assert not any(name.startswith(("tests/", "plans/")) for name in names)
    run(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    bin_ = folder / "venv" / "bin"
    run(bin_ / "pip", "install", "--quiet", wheel, cwd=folder)
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    assert "tpcc-six-stages" in run(bin_ / "pgdyno", "plans", cwd=elsewhere, PATH=WITHOUT_COMPILERS)

    told = run(
        bin_ / "pgdyno", "demo", "--quick", "--out", "run.sqlite",
        cwd=elsewhere, PATH=WITHOUT_COMPILERS,
    )  # fmt: skip

    assert "report   run.html" in told
    with RunFile.read(elsewhere / "run.sqlite") as file:
        assert file.finished()
        assert file.info().command.startswith("pgdyno run demo")
