"""HDR histograms of latencies that others measured, in the form in which the core writes its own.

Three significant digits up to an hour, as `crates/drive/src/measure/histogram.rs`. The core has no
call that takes values, because its own never leave it. Source: HdrHistogram,
`AbstractHistogram.java`, `encodeIntoByteBuffer` (cookie 0x1c849303) and
`encodeIntoCompressedByteBuffer` (0x1c849304).
"""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
import numpy.typing as npt

from pgdyno import core

SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999, "max": 1.0}
_DIGITS = 3
_SUB_BUCKET_BITS = 11  # 2 * 10^3 values need 2048 sub-buckets
_HIGHEST_NS = 3_600_000_000_000
_WORD_SIZE = 0x10  # flag of both cookies: counts are variable length integers


class Histogram:
    """Counts of latencies in ns; what takes longer than an hour is recorded as an hour."""

    def __init__(self) -> None:
        self._counts = np.zeros(_indexes(np.array([_HIGHEST_NS]))[0] + 1, dtype=np.int64)
        self._sum_ns = 0

    def add(self, values_ns: npt.NDArray[np.int64]) -> None:
        """Record values, 0 ns or more each."""
        values_ns = np.minimum(values_ns, _HIGHEST_NS)
        self._counts += np.bincount(_indexes(values_ns), minlength=self._counts.size)
        self._sum_ns += int(values_ns.sum())

    def encoded(self) -> str:
        """Base64 of V2 deflate."""
        payload = bytearray()
        expected = 0
        for index in np.flatnonzero(self._counts).tolist():
            if index > expected:
                payload += _zigzag(expected - index)  # a negative number skips so many zeros
            payload += _zigzag(int(self._counts[index]))
            expected = index + 1
        head = struct.pack(
            ">iiiiqqd", 0x1C849303 | _WORD_SIZE, len(payload), 0, _DIGITS, 1, _HIGHEST_NS, 1.0
        )
        packed = zlib.compress(head + bytes(payload))
        cookie = struct.pack(">ii", 0x1C849304 | _WORD_SIZE, len(packed))
        return base64.b64encode(cookie + packed).decode()

    def summary_ns(self) -> dict[str, int]:
        """Quantiles and mean in ns, as the driver's results have them; zeros of nothing."""
        values = core.quantiles(self.encoded(), list(SHARES.values()))
        mean_ns = self._sum_ns // max(1, int(self._counts.sum()))
        return dict(zip(SHARES, values, strict=True)) | {"mean": mean_ns}


def _indexes(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Positions of values in the array of counts."""
    half = _SUB_BUCKET_BITS - 1
    # The exponent of a float is the bit length of an integer: exact below 2^53.
    _, bits = np.frexp((values | ((1 << _SUB_BUCKET_BITS) - 1)).astype(np.float64))
    bucket = bits.astype(np.int64) - _SUB_BUCKET_BITS
    return np.asarray(((bucket + 1) << half) + (values >> bucket) - (1 << half), dtype=np.int64)


def _zigzag(number: int) -> bytes:
    """A signed integer as ZigZag LEB128; shorter than 8 bytes for anything counted here."""
    rest = (number << 1) ^ (number >> 63)
    out = bytearray()
    while rest >= 0x80:
        out.append((rest & 0x7F) | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)
