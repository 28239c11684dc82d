"""Columns of numbers to bytes and back, and how much a file's bytes may become in memory."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

UNPACKED_BYTES_MAX = 256 << 20
"""Of one value of a run file; a day of looks each second is less than a megabyte."""


def pack(column: npt.NDArray[Any]) -> bytes:
    """A column of 8-byte numbers as compressed little-endian bytes."""
    return zlib.compress(column.astype(column.dtype.newbyteorder("<")).tobytes(), 6)


def inflate(packed: bytes) -> bytes:
    """What was compressed; a small file that would fill the memory is refused.

    Raises:
        ValueError: It is cut short, or becomes longer than any value of a run file is.
        zlib.error: It was not compressed so.
    """
    unpacker = zlib.decompressobj()
    content = unpacker.decompress(packed, UNPACKED_BYTES_MAX)
    if not unpacker.eof:
        raise ValueError(f"a value is cut short, or longer than {UNPACKED_BYTES_MAX} bytes")
    return content


def unpack_int(blob: bytes) -> npt.NDArray[np.int64]:
    """The column of integers that `pack` wrote."""
    return np.frombuffer(inflate(blob), dtype="<i8").astype(np.int64)


def unpack_float(blob: bytes) -> npt.NDArray[np.float64]:
    """The column of floats that `pack` wrote."""
    return np.frombuffer(inflate(blob), dtype="<f8").astype(np.float64)
