"""Records to JSON and back, and columns of numbers to bytes and back; strict both ways."""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")


def to_json(record: DataclassInstance) -> str:
    """JSON of a dataclass record."""
    return json.dumps(asdict(record), ensure_ascii=False, separators=(",", ":"))


def from_json(kind: type[T], text: str) -> T:
    """The record of this kind that `to_json` wrote; validates types on the way."""
    return TypeAdapter(kind).validate_json(text)


def pack(column: npt.NDArray[np.generic]) -> bytes:
    """A column of 8-byte numbers as compressed little-endian bytes."""
    return zlib.compress(column.astype(column.dtype.newbyteorder("<")).tobytes(), 6)


def unpack_int(blob: bytes) -> npt.NDArray[np.int64]:
    """The column of integers that `pack` wrote."""
    return np.frombuffer(zlib.decompress(blob), dtype="<i8").astype(np.int64)


def unpack_float(blob: bytes) -> npt.NDArray[np.float64]:
    """The column of floats that `pack` wrote."""
    return np.frombuffer(zlib.decompress(blob), dtype="<f8").astype(np.float64)
