"""A core of other sources is refused where it is called, in its processes, in what it wrote."""

from __future__ import annotations

import io
import json
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from pgdyno import _core, core
from pgdyno.catalog import contract
from pgdyno.drive import driver, null_server, worker
from pgdyno.loader.copy import estimate, load
from pgdyno.loader.export import export
from pgdyno.loader.reports import REPORT_VERSION, read_report
from pgdyno.model.connection import Connection
from pgdyno.model.errors import DriveError
from pgdyno.model.loading import ExportReport, LoadEstimate, LoadReport
from pgdyno.store.histogram import merged_quantiles, recorded
from pgdyno.workload.describe import describe
from tests.data.workloads import tpcc

CONNECTION = Connection("/nowhere", 5432, "u", "bench")
SAID = rf"speaks version {core.VERSION} of its contract .* version {core.VERSION + 1}"
VERIFIED = (("sslmode", "verify-ca"), ("sslrootcert", "/nowhere.crt"))
USES: dict[str, Callable[[Path], object]] = {
    "schema": lambda _: contract.schema("DriveSpec"),
    "shapes": lambda _: contract.shapes(),
    "measure": lambda _: contract.require_release(),
    "describe": lambda _: describe(tpcc(7919)),  # none that another test has asked for
    "load": lambda _: load(CONNECTION, tpcc(2)),
    "estimate": lambda _: estimate(CONNECTION, tpcc(2)),
    "export": lambda folder: export(folder / "files", tpcc(2)),
    "report": lambda _: merged_quantiles([], [0.5]),
    "recorded": lambda _: recorded(""),
}


@pytest.fixture
def other_core(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _core.contract_version() == core.VERSION
    contract.schema.cache_clear()
    monkeypatch.setattr(core, "VERSION", core.VERSION + 1)


def test_words_of_the_operating_system_come_without_its_number() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        verified = Connection("127.0.0.1", port, "u", "bench", parameters=VERIFIED)
        for one in (CONNECTION, verified):
            with pytest.raises(DriveError, match=r"/nowhere.*: No such file or directory$"):
                estimate(one, tpcc(2))


@pytest.mark.usefixtures("other_core")
@pytest.mark.parametrize("use", USES)
def test_a_core_of_other_sources_is_refused_before_it_is_used(use: str, tmp_path: Path) -> None:
    with pytest.raises(DriveError, match=SAID) as caught:
        USES[use](tmp_path)

    assert "make build" in (caught.value.hint or "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("other_core")
@pytest.mark.parametrize(
    ("process", "order"), [(worker, "{}"), (null_server, json.dumps({"spec": {}, "cpus": None}))]
)
def test_a_process_of_other_sources_says_so_to_who_started_it(
    process: ModuleType, order: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr("sys.argv", ["process"])
    monkeypatch.setattr("sys.stdin", io.StringIO(order + "\n"))
    for call in ("signal", "pthread_sigmask"):  # those of this process stay as they are
        monkeypatch.setattr(signal, call, lambda *_: None)

    assert process.main() == 1
    error = json.loads(capsys.readouterr().out)["error"]
    assert "of its contract" in error["fact"]
    assert "make build" in error["hint"]


@pytest.mark.parametrize("kind", [LoadReport, LoadEstimate, ExportReport])
def test_reports_of_another_version_are_refused_as_results_are(
    kind: type[LoadReport | LoadEstimate | ExportReport],
) -> None:
    newer = json.dumps({"version": REPORT_VERSION + 1, "what": "a later one may hold"})

    with pytest.raises(DriveError, match=f"has version {REPORT_VERSION + 1}, this pgdyno reads"):
        read_report(kind, newer)
    with pytest.raises(DriveError, match="the driver's result has version 99"):
        driver.parse_result({"version": 99})


def test_reports_of_the_version_that_is_written_are_read() -> None:
    text = json.dumps({"version": REPORT_VERSION, "workload": {}, "files": [], "seconds": 1.5})

    assert read_report(ExportReport, text).seconds == 1.5


def test_what_the_core_does_not_have_is_no_attribute() -> None:
    with pytest.raises(AttributeError):
        _ = core.nothing_of_that_name
