"""What the server's own views tell, by the names under which samplers say that it is missing.

A report that shows a view names beside it what of it could not be read.
"""

from __future__ import annotations

IO = "I/O by process, object and context"
DATA_TIMES = "times of data I/O"
WAL_TIMES = "times of WAL I/O"
AIO = "reads and writes under way"
SLRU = "caches of transaction states"
BUFFERS = "buffer cache"
TABLES = "tables and indexes"
OTHER_DATABASES = "tables of other databases"
STANDBYS = "standbys"
PROGRESS = "progress of commands"
PROGRESS_OF_OTHERS = "progress of others"
OLDEST_TRANSACTION = "oldest transaction"
SESSION_TIMES = "sessions and their time"
STATE_TIMES = "times of sessions by their state"
PARALLEL_WORKERS = "parallel workers that were wanted and launched"

SERVER_VIEWS = (
    IO, DATA_TIMES, WAL_TIMES, AIO, SLRU, BUFFERS, TABLES, OTHER_DATABASES, STANDBYS, PROGRESS,
    PROGRESS_OF_OTHERS, OLDEST_TRANSACTION, SESSION_TIMES, STATE_TIMES, PARALLEL_WORKERS,
)  # fmt: skip
