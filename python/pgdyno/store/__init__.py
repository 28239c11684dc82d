"""The run file: one SQLite file per plan execution, append only, written trial by trial."""

from pgdyno.store.runfile import RunFile

__all__ = ["RunFile"]
