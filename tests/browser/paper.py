"""Printed pages, looked at as a reader does: how far each is filled, and what its last line is."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np

_DOTS_PER_INCH = 24
_MARGIN = 14 / 297  # of A4, above and below


@dataclass(frozen=True, slots=True)
class Sheet:
    """One printed page."""

    filled: float  # down to where something is printed, as a share of what can be
    last_line: str  # of its text, with single blanks


def sheets(pdf: Path) -> list[Sheet]:
    """The pages of a PDF, by poppler's pdftoppm and pdftotext."""
    stem = pdf.with_suffix("")
    dots = str(_DOTS_PER_INCH)
    subprocess.run(["pdftoppm", "-gray", "-r", dots, str(pdf), str(stem)], check=True)
    text = subprocess.run(
        ["pdftotext", "-layout", str(pdf), "-"], check=True, capture_output=True, text=True
    ).stdout
    pictures = sorted(pdf.parent.glob(f"{stem.name}-*.pgm"))
    # Each page ends with a form feed.
    return [
        Sheet(_filled(picture), _last_line(page))
        for picture, page in zip(pictures, text.split("\f")[:-1], strict=True)
    ]


def _filled(picture: Path) -> float:
    rows = np.flatnonzero((_grey(picture) < 250).any(axis=1))
    height = _grey(picture).shape[0]
    low = rows[-1] / height if rows.size else 0.0
    return float(max(0.0, low - _MARGIN) / (1 - 2 * _MARGIN))


def _grey(picture: Path) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """A binary PGM as rows of grey; a comment stands nowhere in what poppler writes."""
    head, size, _, body = picture.read_bytes().split(b"\n", 3)
    assert head == b"P5"
    width, height = map(int, size.split())
    return np.frombuffer(body, np.uint8).reshape(height, width)


def _last_line(page: str) -> str:
    lines = [" ".join(line.split()) for line in page.splitlines() if line.strip()]
    return lines[-1] if lines else ""
