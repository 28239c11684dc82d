"""Files of a cluster, opened for the core: none that another user could have linked there for root.

The core is given descriptors, and opens nothing by name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from pgdyno.folders import Folder
from pgdyno.model.errors import TargetError
from pgdyno.pages.segment_names import is_history, is_segment

CONTROL = "pg_control"
_TEXT_BYTES_MAX = 1 << 20


def segments_in(folder: Folder, hint: str) -> Sequence[str]:
    """Names of the segments of WAL in a folder.

    Raises:
        TargetError: There is none.
    """
    segments = [name for name in folder.names() if is_segment(name)]
    if not segments:
        raise TargetError(
            f"folder {folder.path} holds no WAL: no file has a name of 24 hexadecimal digits", hint
        )
    return segments


def histories_in(folder: Folder) -> Mapping[str, str]:
    """Texts of the history files in a folder of WAL, by name."""
    return {name: text_of(folder, name) for name in folder.names() if is_history(name)}


@contextmanager
def held(folder: Folder, name: str) -> Iterator[int]:
    """A file's descriptor, for a while.

    Raises:
        TargetError: See `Folder.open_given`.
    """
    handle = folder.open_given(name)
    try:
        yield handle
    finally:
        os.close(handle)


def text_of(folder: Folder, name: str) -> str:
    """The text of a small file.

    Raises:
        TargetError: It is long, or see `Folder.open_given`.
    """
    with os.fdopen(folder.open_given(name), "rb") as file:
        data = file.read(_TEXT_BYTES_MAX + 1)
    if len(data) > _TEXT_BYTES_MAX:
        raise TargetError(f"{folder.path / name} is longer than {_TEXT_BYTES_MAX} bytes")
    return data.decode(errors="replace")
