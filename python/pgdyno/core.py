"""The Rust core, once it is known to speak the same contract as this Python.

Nothing else imports `pgdyno._core`. Whatever is taken from here is preceded by one comparison of
versions, so that a core of other sources is an error that says so, wherever it is met first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pgdyno import _core
from pgdyno._core import CoreError
from pgdyno.model.errors import DriveError

if TYPE_CHECKING:
    from pgdyno._core import (
        Drive,
        Export,
        Load,
        NullServer,
        PageJudge,
        Recording,
        Redo,
        Wal,
        close_record,
        describe,
        estimate_load,
        hand_back,
        histogram_count,
        is_release,
        make_disk,
        merge_histograms,
        merge_results,
        quantiles,
        record_span,
        schema,
        shapes,
        take_stock,
        time_edges_ns,
    )

__all__ = [
    "VERSION", "CoreError", "Drive", "Export", "Load", "NullServer", "PageJudge", "Recording",
    "Redo", "Wal", "close_record", "describe", "estimate_load", "fact_and_hint", "hand_back",
    "histogram_count", "is_release", "make_disk", "merge_histograms", "merge_results", "quantiles",
    "record_span", "require_version", "require_written", "schema", "shapes", "take_stock",
    "time_edges_ns",
]  # fmt: skip

VERSION = 17
"""Of the contract, as this Python knows it."""
_REBUILD = "Build both from the same sources: `make build`."


def __getattr__(name: str) -> Any:  # noqa: ANN401  whatever the name stands for
    if name.startswith("__"):
        raise AttributeError(f"the core has no {name}")
    require_version()
    return getattr(_core, name)


def require_version() -> None:
    """Refuse a core that was built from other sources.

    Raises:
        DriveError: It speaks another version of the contract.
    """
    version = _core.contract_version() if hasattr(_core, "contract_version") else 0
    if version != VERSION:
        raise DriveError(
            f"the Rust core speaks version {version} of its contract with Python, this pgdyno"
            f" speaks version {VERSION}",
            _REBUILD,
        )


def require_written(what: str, version: object, known: int) -> None:
    """Refuse what a core of other sources wrote.

    Args:
        what: Its name, e.g. "the driver's result".
        version: That it carries.
        known: That is read here.

    Raises:
        DriveError: They differ.
    """
    if version != known:
        raise DriveError(f"{what} has version {version}, this pgdyno reads {known}", _REBUILD)


def fact_and_hint(error: CoreError) -> tuple[str, str | None]:
    """What a failure of the core says."""
    _kind, fact, hint = error.args
    return fact, hint
