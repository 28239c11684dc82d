"""An encoder of HDR histograms (V2, deflate, base64), written from the format's description.

Not the product's: run files of the tests are made without the Rust core, and what it reads back
is checked against the values that went in. Source: HdrHistogram, `AbstractHistogram.java`,
`encodeIntoByteBuffer` (cookie 0x1c849303) and `encodeIntoCompressedByteBuffer` (0x1c849304).
"""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
import numpy.typing as npt

DIGITS = 3
SUB_BUCKET_BITS = 11  # 2 * 10^3 values need 2048 sub-buckets
HIGHEST_NS = 3_600_000_000_000
WORD_SIZE = 0x10  # flag of both cookies: counts are variable length integers


def encode(values_ns: npt.NDArray[np.int64]) -> str:
    """The histogram of these values, each at least 1 ns."""
    indexes, counts = np.unique([_index(int(value)) for value in values_ns], return_counts=True)
    payload = bytearray()
    expected = 0
    for index, count in zip(indexes.tolist(), counts.tolist(), strict=True):
        if index > expected:
            payload += _zigzag(expected - index)  # a negative number skips so many zeros
        payload += _zigzag(count)
        expected = index + 1
    head = struct.pack(
        ">iiiiqqd", 0x1C849303 | WORD_SIZE, len(payload), 0, DIGITS, 1, HIGHEST_NS, 1.0
    )
    packed = zlib.compress(head + bytes(payload))
    return base64.b64encode(
        struct.pack(">ii", 0x1C849304 | WORD_SIZE, len(packed)) + packed
    ).decode()


def _index(value: int) -> int:
    """Position of a value in the array of counts."""
    half = SUB_BUCKET_BITS - 1
    bucket = (value | ((1 << SUB_BUCKET_BITS) - 1)).bit_length() - SUB_BUCKET_BITS
    return ((bucket + 1) << half) + (value >> bucket) - (1 << half)


def _zigzag(number: int) -> bytes:
    """A signed integer as ZigZag LEB128; shorter than 8 bytes for anything counted here."""
    rest = (number << 1) ^ (number >> 63)
    out = bytearray()
    while rest >= 0x80:
        out.append((rest & 0x7F) | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)
