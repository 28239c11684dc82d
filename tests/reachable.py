"""Folders that any user can enter: servers run as another user than the tests of root."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.leftovers import SESSION


def reachable_folder(prefix: str) -> Iterator[Path]:
    """A folder that any user can enter; pytest's own are closed to others."""
    folder = Path(tempfile.mkdtemp(prefix=f"{prefix}-", dir=os.environ[SESSION]))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
