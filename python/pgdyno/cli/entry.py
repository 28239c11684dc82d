"""Where a command begins: Ctrl-C is heard while the command line is still imported."""

from __future__ import annotations

import sys


def main() -> None:
    """Import the command line, and run it."""
    try:
        from pgdyno.cli import app  # noqa: PLC0415  most of the first second
    except KeyboardInterrupt:
        # What prints errors may be what was not imported yet; a traceback would look like a defect.
        sys.stderr.write("error: stopped\nhint: Nothing was begun yet.\n")
        sys.exit(130)
    app.main()
