"""Printed pages, looked at as a reader does: how far each is filled, and what stands at its end."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

_Picture = npt.NDArray[np.uint8]  # rows of dots of red, green, blue
_DOTS_PER_INCH = 36
_MARGIN = 14 / 297  # of A4, above and below
_MARGIN_RIGHT = 14 / 210

# What must not stand last on a sheet, for it says what follows. In print its ink is magenta: by its
# text it could not be told from the labels of a chart, nor could a head of several lines be found.
LEADING = "h1, h2, h3, caption, figcaption, .keys, summary, thead, .panel-title"
MARKED = f""":is({LEADING}), :is({LEADING}) * {{
  color: #f0f !important; border-color: #f0f !important; background: none !important;
}}
.mark {{ visibility: hidden; }}"""


@dataclass(frozen=True, slots=True)
class Sheet:
    """One printed page."""

    filled: float  # down to where something is printed, as a share of what can be
    sticks_out: bool  # whether something is printed in the margin at the right
    ends_leading: bool  # whether what is printed last is marked
    last_line: str  # of its text, with single blanks
    text: str  # all of it, without blanks


def sheets(pdf: Path) -> list[Sheet]:
    """The pages of a PDF that was printed with `MARKED`, by poppler's pdftoppm and pdftotext."""
    stem = pdf.with_suffix("")
    dots = str(_DOTS_PER_INCH)
    subprocess.run(["pdftoppm", "-r", dots, str(pdf), str(stem)], check=True)
    text = subprocess.run(
        ["pdftotext", "-layout", str(pdf), "-"], check=True, capture_output=True, text=True
    ).stdout
    pictures = sorted(pdf.parent.glob(f"{stem.name}-*.ppm"))
    # Each page ends with a form feed.
    return [
        _sheet(_picture(picture), page)
        for picture, page in zip(pictures, text.split("\f")[:-1], strict=True)
    ]


def _sheet(picture: _Picture, text: str) -> Sheet:
    inked: npt.NDArray[np.bool_] = np.any(picture < 250, axis=2)
    rows = np.flatnonzero(np.any(inked, axis=1))
    height = picture.shape[0]
    low = rows[-1] / height if rows.size else 0.0
    red, green, blue = picture[:, :, 0], picture[:, :, 1], picture[:, :, 2]
    marked = inked & (red > 250) & (blue > 250) & (green < 250)
    ends_leading = bool(rows.size) and bool(marked[rows[-1]][inked[rows[-1]]].all())
    filled = max(0.0, low - _MARGIN) / (1 - 2 * _MARGIN)
    # Two dots of what is rounded, and of the soft edges of letters.
    right = round(picture.shape[1] * (1 - _MARGIN_RIGHT)) + 2
    sticks_out, bare = bool(inked[:, right:].any()), "".join(text.split())
    return Sheet(float(filled), sticks_out, ends_leading, _last_line(text), bare)


def _picture(path: Path) -> _Picture:
    """A binary PPM as rows of colours; a comment stands nowhere in what poppler writes."""
    head, size, _, body = path.read_bytes().split(b"\n", 3)
    assert head == b"P6"
    width, height = map(int, size.split())
    return np.frombuffer(body, np.uint8).reshape(height, width, 3)


def _last_line(page: str) -> str:
    lines = [" ".join(line.split()) for line in page.splitlines() if line.strip()]
    return lines[-1] if lines else ""
