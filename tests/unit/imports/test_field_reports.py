"""The four field reports, imported from their own printed output: what is wrong is found alone."""

from __future__ import annotations

import pytest

from pgdyno.imports.simultaneous import simultaneous
from tests.data.imported import imported, warned

STAGES = {
    # tpmTOTAL and tpmC of four clients, as the reports add them up (tuning, section 1.1)
    2: (453058.64, 181276.58), 3: (482383.01, 192863.77), 4: (577805.81, 231195.27),
    5: (599257.69, 239598.50), 6: (606466.31, 242640.82),
}  # fmt: skip


@pytest.mark.parametrize("name", ["field-benchmarksql-9.5.txt", "field-six-stages.txt"])
def test_four_clients_are_added_up_by_the_importer_only(name: str) -> None:
    results = imported(name)
    groups = simultaneous(results)

    assert len(results) == 21
    assert [len(group.places) for group in groups] == [4] * 5
    for group, (every, orders) in zip(groups, STAGES.values(), strict=True):
        assert group.sums["tpmTOTAL"] == pytest.approx(every)
        assert group.sums["tpmC"] == pytest.approx(orders)
        assert "added by the importer" in group.said


@pytest.mark.parametrize("name", ["field-benchmarksql-9.5.txt", "field-six-stages.txt"])
def test_e1_the_total_is_not_tpmc(name: str) -> None:
    for one in imported(name):
        found = warned(one, "T1")
        assert found.outcome == "fires"
        assert "are 0.40" in str(found.fact) or "are 0.399" in str(found.fact)
    assert "0.400 of all" in str(warned(imported(name)[0], "T1").fact)


def test_e2_mix_and_e7_duration_are_found_with_the_properties() -> None:
    (one,) = imported("field-benchmarksql-9.5-properties.txt")

    assert one.conditions["new_order_percent"] == 40
    assert warned(one, "T1").outcome == "silent"  # the share is that of its own mix
    assert warned(one, "E2").outcome == "fires"
    assert warned(one, "E7").outcome == "fires"
    assert warned(one, "T2").outcome == "fires"  # neither keying nor thinking


def test_e6_every_configuration_ran_once_as_far_as_anybody_told() -> None:
    (one,) = imported("field-benchmarksql-9.5-properties.txt")
    assert warned(one, "E6").outcome == "fires"

    pages = imported("field-full-page-writes.txt")
    assert [round(x.value("tps") or 0, 2) for x in pages] == [10072.85, 13070.05]
    assert all(warned(x, "E6").outcome == "unknown" for x in pages)


def test_e8_fio_ran_half_as_long_as_its_script_asked_for() -> None:
    results = imported("field-storage-fio.txt")

    assert [round(one.told[0].value, -3) for one in results[:4]] == [131e3, 153e3, 134e3, 151e3]
    assert len(results) == 8
    for one in results:
        found = warned(one, "E7")
        assert found.outcome == "fires"
        assert "60 s were asked for, and it ran 30.0" in str(found.fact)
    (ours,) = imported("fio-3-text.txt")
    assert warned(ours, "E7").outcome == "silent"


def test_e10_a_loading_time_is_copied_and_e11_clients_differ() -> None:
    names = [
        f"field-storage-{where}.txt"
        for where in ("local-ssd", "essd-8", "essd-1", "essd-104-cores", "essd-32-cores")
    ]
    results = imported(*names)
    copied = [x for x in results if warned(x, "E10").outcome == "fires"]
    differ = [x for x in results if warned(x, "E11").outcome == "fires"]

    assert [x.said("time of loading") for x in copied] == [1058.21, 1058.21]
    assert {x.source.file for x in differ} == set(names)
    assert "32 and 52" in str(warned(differ[0], "E11").fact)


@pytest.mark.parametrize("name", ["field-benchmarksql-9.5.txt", "field-six-stages.txt"])
def test_e3_the_first_stage_has_one_client_and_the_others_four(name: str) -> None:
    first, *others = (str(warned(one, "E11").fact) for one in imported(name))

    assert "1 client of the tool ran alone, beside results of 4" in first
    assert all("4 clients of the tool ran together, beside results of 1" in one for one in others)


def test_e9_the_measured_figures_stand_where_they_were_measured() -> None:
    # The report's own summary has these three rotated.
    found = {}
    for where in ("local-ssd", "essd-8", "essd-1"):
        for one in imported(f"field-storage-{where}.txt"):
            kind = str(one.conditions.get("transaction_type"))
            if one.conditions.get("scale") == 10000 and "TPC-B" in kind:
                found[where] = int(one.said("tps including connecting") or 0)

    assert found == {"local-ssd": 25595, "essd-8": 28627, "essd-1": 31545}


def test_no_settings_of_the_server_are_told_by_any_of_them() -> None:
    for name in ("field-six-stages.txt", "field-full-page-writes.txt"):
        assert all("settings of the server" in one.unknown for one in imported(name))
