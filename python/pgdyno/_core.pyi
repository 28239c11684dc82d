"""Types of the Rust module. Calls are coarse (seconds), nothing calls back into Python.

Specs and results are JSON texts; `schema` tells the shape of each, `catalog.contract` reads it.
Only pages cross as they are, run after run: a repair may have as many runs as pages.
"""

from typing import final

__all__ = [
    "CoreError",
    "Drive",
    "Export",
    "Load",
    "NullServer",
    "PageJudge",
    "Recording",
    "Redo",
    "Wal",
    "close_record",
    "contract_version",
    "describe",
    "estimate_load",
    "hand_back",
    "histogram_count",
    "is_release",
    "make_disk",
    "merge_histograms",
    "merge_results",
    "quantiles",
    "record_span",
    "schema",
    "shapes",
    "take_stock",
    "time_edges_ns",
]

class CoreError(Exception):
    """A failure of the core. `args` are (kind, fact, hint), kind as in `model.errors`."""

@final
class Drive:
    """One driven window against a server."""

    def __new__(cls, spec_json: str, /) -> Drive: ...
    def start(self) -> None:
        """Connect, prepare, and begin the warm-up in threads of its own."""
    def poll(self) -> str:
        """Progress as JSON; cheap, asked about twice a second."""
    def begin(self, steady_ns: int, unix_ns: int, /) -> None:
        """Begin the warm-up at an instant of CLOCK_MONOTONIC, which is told by the calendar too."""
    def open(self, steady_ns: int | None = None, /) -> None:
        """End the warm-up then, or now, so that the window begins; its planned end stays."""
    def stop(self, steady_ns: int | None = None, /) -> None:
        """Begin the drain then, or now; `result` then holds what was measured so far."""
    def result(self) -> str:
        """Wait for the end and return the result as JSON."""

@final
class Load:
    """Fills a database: tables, COPY from several connections, indexes, vacuum."""

    def __new__(cls, spec_json: str, /) -> Load: ...
    def start(self) -> None: ...
    def poll(self) -> str: ...
    def stop(self) -> None:
        """Give up: the server rolls back what is under way."""
    def result(self) -> str: ...

@final
class Export:
    """Writes a workload's initial rows into CSV files."""

    def __new__(cls, spec_json: str, /) -> Export: ...
    def start(self) -> None: ...
    def poll(self) -> str: ...
    def stop(self) -> None:
        """Give up: the files written so far are removed."""
    def result(self) -> str: ...

@final
class NullServer:
    """Answers a workload's statements at once, with plausible rows and without a database."""

    def __new__(cls, spec_json: str, /) -> NullServer: ...
    def start(self) -> None:
        """Listen, and serve in threads of its own."""
    def poll(self) -> str:
        """What it has done so far, as JSON: `NullStatus`."""
    def stop(self) -> None:
        """Close all connections and remove the socket."""

@final
class PageJudge:
    """Judges pages of a copy, and makes them a crashed cluster's."""

    def __new__(cls, spec_json: str, /) -> PageJudge: ...
    def changes(
        self, path: str, handle: int, places: list[tuple[int, int, int]], sources: list[bytes], /
    ) -> list[list[tuple[int, bytes, bytes, list[str | None]]] | None]:
        """What changes of each run, given by its first block, place in the file and blocks.

        Pages that follow each other: the first one of the run, their bytes, the new ones, and the
        LSN of each new one, None of zeroes. None: of the run a page of the copy is not whole.
        """
    def unsound(self, path: str, first_block: int, source: bytes, /) -> list[int]:
        """Numbers of those pages of a copy whose checksum is wrong."""
    def differing(self, old: bytes, new: bytes, /) -> list[tuple[int, int]]:
        """The first of new pages that follow each other and differ, and how many."""

@final
class Recording:
    """A file system that passes through to a folder and writes down what is asked of it."""

    def __new__(cls, spec_json: str, /) -> Recording: ...
    def start(self) -> None:
        """Write down what lies there, and mount it; it is served in threads of its own."""
    def fail(self, fault_json: str, /) -> None:
        """From now on, for a while, calls fail or get no answer."""
    def cut(self) -> None:
        """The power goes, now: every call fails, and the record ends with this instant."""
    def stop(self) -> str:
        """Unmount it, end the record, and tell what became of it, as JSON: `Recorded`."""

@final
class Redo:
    """Says what redo of a crashed cluster needs; its files are opened by who calls."""

    def __new__(cls, spec_json: str, /) -> Redo: ...
    def begin(self) -> str:
        """What the cluster says of itself, and where its redo begins: `RedoBegin` as JSON."""
    def segments(self) -> list[str]:
        """Names of the segments from there on, in order."""
    def read(self, name: str, handle: int, /) -> bool:
        """Read the next segment from a descriptor; whether another one is wanted."""
    def result(self) -> str:
        """What redo needs, once the segments were read: `RedoNeeds` as JSON."""

@final
class Wal:
    """Says what a range of WAL was made of; its files are opened by who calls."""

    def __new__(cls, spec_json: str, /) -> Wal: ...
    def segments(self) -> list[str]:
        """Names of the segments that hold the range, in order."""
    def read(self, name: str, handle: int, /) -> str:
        """Read the next segment from a descriptor: `WalPart` as JSON."""
    def named(self) -> str:
        """What it names, as far as its segments were read: `WalNamed` as JSON."""
    def result(self) -> str:
        """What the range was made of, once its segments were read: `WalSummary` as JSON."""

def contract_version() -> int:
    """Version of everything that crosses."""

def shapes() -> list[str]:
    """Names of everything that crosses."""

def schema(name: str, /) -> str:
    """JSON Schema of something that crosses, as JSON; `KeyError` for another name."""

def describe(workload_json: str, /) -> str:
    """What a workload is (`Described` of `shapes`): statements, tables, conditions, deviations."""

def estimate_load(spec_json: str, /) -> str:
    """What a load would need (`LoadEstimate`): takes the spec of a `Load`."""

def take_stock(spec_json: str, /) -> str:
    """Begin a record that a preloaded library adds to (`RecordSpec`); returns a `Stocked`."""

def close_record(spec_json: str, /) -> str:
    """Number the files of such a record, and end it (`CloseSpec`); returns a `Recorded`."""

def make_disk(spec_json: str, /) -> str:
    """Make a disk that a power cut may leave, of a record (`MakeSpec`); returns a `Made`."""

def hand_back(spec_json: str, /) -> str:
    """Bring what was recorded itself to what such a disk is (`MakeSpec`); returns a `Made`."""

def record_span(folder: str, record: str, /) -> str:
    """Between which instants cuts are possible, as JSON: `RecordSpan`."""

def merge_histograms(histograms: list[str], /) -> str:
    """Add histograms (base64 of V2 deflate) of the same kind from several trials."""

def merge_results(workload_json: str, results: list[str], /) -> str:
    """Add the results of hosts that drove parts of one load: `RunResult` as JSON."""

def quantiles(histogram: str, shares: list[float], /) -> list[int]:
    """Values in ns at the given shares (0 to 1); 1.0 is the maximum."""

def histogram_count(histogram: str, /) -> int:
    """Number of recorded values."""

def time_edges_ns() -> list[int]:
    """Bounds of the columns that response times over time are counted in, in ns."""

def is_release() -> bool:
    """Whether the module was built with optimisation; a debug build refuses to measure."""
