"""Columns of numbers to bytes and back."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import numpy.typing as npt


def pack(column: npt.NDArray[Any]) -> bytes:
    """A column of 8-byte numbers as compressed little-endian bytes."""
    return zlib.compress(column.astype(column.dtype.newbyteorder("<")).tobytes(), 6)


def unpack_int(blob: bytes) -> npt.NDArray[np.int64]:
    """The column of integers that `pack` wrote."""
    return np.frombuffer(zlib.decompress(blob), dtype="<i8").astype(np.int64)


def unpack_float(blob: bytes) -> npt.NDArray[np.float64]:
    """The column of floats that `pack` wrote."""
    return np.frombuffer(zlib.decompress(blob), dtype="<f8").astype(np.float64)
