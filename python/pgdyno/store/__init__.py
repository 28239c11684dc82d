"""The run file: one SQLite file per plan execution, append only, written trial by trial."""

from pgdyno.store.run_file import RunFile

__all__ = ["RunFile"]
