"""Options of `pgdyno bench`: what does not fit is refused before a server is asked."""

from __future__ import annotations

import io
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from pgdyno.api import asked
from pgdyno.api.asked import Asked, workload_of
from pgdyno.cli import bench
from pgdyno.cli.bench_options import spelled, variables, weights
from pgdyno.live.run_progress import rates_text
from pgdyno.loader.consistency import Loaded
from pgdyno.model.connection import Connection
from pgdyno.model.errors import PlanError
from pgdyno.model.workload import Arrivals

CONNECTION = Connection("/nowhere", 1, "u", "bench")


def given(**changes: object) -> Asked:
    """What a command line asks for, with these options."""
    if isinstance(mix := changes.get("mix"), str):
        changes["mix"] = weights(mix)
    if isinstance(texts := changes.get("variables"), tuple):
        changes["variables"] = variables(texts)
    return Asked(**{"kind": "tpcc", "spelled": spelled} | changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "fact"),
    [
        ({"kind": "tpcb", "mix": "new_order=1"}, "--mix does not go with tpcb"),
        ({"kind": "script", "think": 1.0}, "--think does not go with script"),
        ({"file": Path("x.sql")}, "a file does not go with tpcc"),
        ({"kind": "mix", "files": ("x.sql",)}, "--file does not go with mix"),
        ({"kind": "tpcb", "variables": ("x=1",)}, "--define does not go with tpcb"),
        ({"kind": "tpcb", "scale": 3}, "--scale does not go with tpcb"),
        ({"kind": "mix"}, "mix needs a file"),
        ({"kind": "script"}, "script needs a file"),
        ({"poisson": True}, "--poisson needs --rate"),
        ({"rate": 0.0}, "--rate is 0, allowed are 0.001 to 10000000"),
        ({"connections": 0}, "--connections is 0, allowed are 1 to 100000"),
        ({"seed": -1}, "--seed is -1, allowed is 0 or more"),
        ({"rate": 5.0, "requests": 3}, "--requests does not go with --rate"),
        ({"rate": 5.0, "think": 1.0}, "--think does not go with --rate"),
        ({"bindir": Path("/bin")}, "--bindir needs --engine pgbench"),
        ({"terminals": 4}, "--terminals 4 are fewer than --connections 8"),
    ],
)
def test_options_that_do_not_fit_are_refused(changes: dict[str, object], fact: str) -> None:
    with pytest.raises(PlanError) as caught:
        given(**changes).refuse_strangers()
    assert caught.value.fact == fact


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A database that says of itself what the tests need, without a server."""
    monkeypatch.setattr(
        asked, "loaded_workload",
        lambda _: Loaded("tpcc", "spec", 3, 5, False, {"c_last": 9}),
    )  # fmt: skip
    monkeypatch.setattr(asked, "branches", lambda _: 7)


@pytest.mark.usefixtures("loaded")
def test_tpcc_is_driven_as_its_data_say() -> None:
    workload, c_load = workload_of(given(rate=100.0, poisson=True, mix="payment=1"), CONNECTION)

    assert workload.tpcc is not None
    assert (workload.tpcc.warehouses, c_load) == (3, {"c_last": 9})
    assert workload.arrivals == Arrivals("open", 100.0, "poisson")
    assert workload.tpcc.mix["payment"] == 1.0
    assert workload.tpcc.mix["new_order"] == 0.0
    assert workload.terminals == 8


@pytest.mark.usefixtures("loaded")
def test_requests_are_others_each_time_unless_a_seed_is_named() -> None:
    seeds = {workload_of(given(), CONNECTION)[0].seed for _ in range(4)}
    assert len(seeds) > 1
    assert workload_of(given(seed=7), CONNECTION)[0].seed == 7


@pytest.mark.usefixtures("loaded")
def test_benchmarksqls_terminals_wait_for_deliveries() -> None:
    text, _ = workload_of(given(), CONNECTION)
    its_own, _ = workload_of(given(rules="benchmarksql-5"), CONNECTION)
    deferred, _ = workload_of(given(rules="benchmarksql-5", delivery="deferred"), CONNECTION)

    found = [one.tpcc.delivery for one in (text, its_own, deferred) if one.tpcc is not None]
    assert found == ["deferred", "inline", "deferred"]


@pytest.mark.usefixtures("loaded")
@pytest.mark.parametrize("text", ["new_order", "new_order=x", "new_orders=1"])
def test_weights_that_are_not_understood_are_refused(text: str) -> None:
    with pytest.raises(PlanError, match="mix"):
        workload_of(given(mix=text), CONNECTION)


@pytest.mark.usefixtures("loaded")
def test_the_scale_is_that_of_the_data() -> None:
    tpcb, c_load = workload_of(given(kind="select-only"), CONNECTION)

    assert tpcb.pgbench is not None
    assert (tpcb.pgbench.scale, c_load, tpcb.headline) == (7, None, "tps")


@pytest.mark.usefixtures("loaded")
def test_pgbench_drives_if_it_can() -> None:
    wanted = given(kind="tpcb", engine="pgbench", rate=5.0, poisson=True)
    assert workload_of(wanted, CONNECTION)[0].engine == "pgbench"

    for changes, fact in (
        ({"kind": "tpcc"}, "kind: tpcc does not go with engine pgbench"),
        ({"face": "procedure"}, "face: procedure does not go with engine pgbench, which sends"),
        ({"poisson": False}, "arrivals: spacing even does not go with engine pgbench, whose rate"),
    ):
        with pytest.raises(PlanError) as caught:
            workload_of(replace(wanted, **changes), CONNECTION)
        assert caught.value.fact.startswith(fact)
        assert str(caught.value.hint).startswith("Allowed: ")


def test_a_database_without_branches_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked, "branches", lambda _: None)

    with pytest.raises(PlanError, match="has no branches") as caught:
        workload_of(given(kind="tpcb"), CONNECTION)
    assert "pgbench -i" in str(caught.value.hint)


@pytest.mark.usefixtures("loaded")
def test_scripts_have_weights_and_variables(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("SELECT 1;")
    asked = given(
        kind="script", file=tmp_path / "a.sql", files=(f"{tmp_path}/a.sql@5",), scale=2,
        variables=("n=3", "share=0.5", "word=x"),
    )  # fmt: skip

    workload, _ = workload_of(asked, CONNECTION)

    assert workload.script is not None
    assert [file.weight for file in workload.script.files] == [1.0, 5.0]
    assert workload.script.variables == {"n": 3, "share": 0.5, "word": "x"}
    assert workload.data.scale == 2


def test_a_mix_is_looked_at_before_it_is_driven(tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text("[transaction]\n")

    with pytest.raises(PlanError, match="unknown key, did you mean transactions"):
        workload_of(given(kind="mix", file=tmp_path / "m.toml"), CONNECTION)


def test_rates_are_those_that_people_ask_for() -> None:
    assert rates_text({"new_order": 5, "payment": 5}) == "600 tpmTotal and 300 NOPM"
    assert rates_text({"tpcb": 1200}) == "1,200 tps"


@pytest.mark.parametrize("args", [["tpch"], ["tpcc", "--face", "batch"], ["tpcc", "-c", "0"]])
def test_the_command_line_refuses_what_it_does_not_know(args: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pgdyno", "bench", *args], capture_output=True, check=False
    )

    assert done.returncode == 2


def test_a_table_without_room_is_two_and_breaks_no_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """At 80 columns it once had `committ` above `ed`."""
    heads = ("kind", "committed", "rolled back", "failed", "retries")
    row = ("a_longer_name_of_a_script.sql", "12,345", "0", "0", "0",
           "1.23 ms", "4.56 ms", "7.89 ms", "12.3 ms")  # fmt: skip

    def printed(columns: int) -> list[str]:
        text = io.StringIO()
        monkeypatch.setattr(bench, "stdout", Console(file=text, width=columns))
        bench._print_table(heads, [row], names=1)
        return text.getvalue().splitlines()

    assert len(printed(120)) == 2
    narrow = printed(80)
    assert len(narrow) == 4, "a head and a row of each"
    assert [name for name in (*heads, "p50", "max") if not any(name in one for one in narrow)] == []
    assert sum(row[0] in one for one in narrow) == 2, "a row is named twice"
