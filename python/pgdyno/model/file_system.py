"""File systems, by the kernel's names of their types."""

from __future__ import annotations

IN_MEMORY = ("tmpfs", "ramfs", "devtmpfs")
"""Those whose files are kept in memory: what lies there takes no disk, and outlives no crash."""
