"""What somebody mounted in a folder of ours stays, whoever's folder it was: it is not emptied.

Mounts are those of a namespace of their own, which ends with the process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tally import survived
from tests.waiting import DEADLINE_S

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
NOBODY = 65534
REMOVED = {
    "removed": "folder.remove_folder('ours')",
    "cleared": "folder.into('ours').clear()",
    "left": "folder.disappear('ours')",
    "removed from above": "folder.clear()",
}
SCRIPT = """
import subprocess, sys
from pathlib import Path
from pgdyno.folders import Folder
from pgdyno.model.errors import TargetError
above, precious, way = sys.argv[1:]
place = Path(above, "ours", "deep")
subprocess.run(["mount", "--bind", precious, place], check=True)
with Folder.hold(Path(above)) as folder:
    try:
        eval(way)
    except TargetError as error:
        print(f"{error}\\n{error.hint}")
"""
POINTS = """
import subprocess, sys
from pathlib import Path
from pgdyno.access import mount_points
subprocess.run(["mount", "-t", "tmpfs", "so urce", sys.argv[1]], check=True)
print((Path(sys.argv[1]), "so urce") in mount_points())
"""


def in_namespace(script: str, *words: str) -> str:
    """What a script prints that may mount what it likes."""
    done = subprocess.run(
        ["unshare", "--mount", sys.executable, "-c", script, *words],
        capture_output=True, text=True, timeout=DEADLINE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("way", REMOVED)
@pytest.mark.parametrize("owner", [0, NOBODY], ids=["root", "another"])
def test_what_is_mounted_in_a_folder_of_ours_is_not_removed(
    tmp_path: Path, way: str, owner: int
) -> None:
    above, precious = tmp_path / "above", tmp_path / "precious"
    for path in (above / "ours" / "deep", precious):
        path.mkdir(parents=True)
    (precious / "file").write_text("kept")
    for path in (above / "ours", above / "ours" / "deep", precious, precious / "file"):
        os.chown(path, owner, -1)

    told = in_namespace(SCRIPT, str(above), str(precious), REMOVED[way])

    place = above / "ours" / "deep"
    assert f"{place} is a mount in a folder that is to be removed" in told
    assert f"umount {place}" in told
    assert (precious / "file").read_text() == "kept"
    survived("strangers' mounts in folders of ours")


@pytest.mark.parametrize("name", ["a b", "Übung", "back\\slash", "two\nlines", "\x1b[2J"])
def test_mounts_are_found_whatever_they_are_called(tmp_path: Path, name: str) -> None:
    place = tmp_path / name
    place.mkdir()
    assert in_namespace(POINTS, str(place)) == "True\n"
