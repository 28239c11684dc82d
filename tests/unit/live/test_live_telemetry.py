"""Devices on the live page: each once, as far as it was sampled."""

from __future__ import annotations

from pgdyno.live.telemetry import devices

OF_DATA = {"disk.reads": 40.0, "disk.write_bytes": 8_000.0}
BOTH = {"device.vda.reads": 40.0, "device.vda.busy_s": 5.0, "device.vdb.reads": 2.0}


def test_the_device_of_the_data_is_not_shown_beside_itself() -> None:
    found = devices({**OF_DATA, **BOTH, "cpu.user_s": 3.0}, 10.0)
    assert [(one.name, one.reads_per_s) for one in found] == [("vda", 4.0), ("vdb", 0.2)]
    assert found[0].busy_share == 0.5
    assert found[1].busy_share is None


def test_it_is_shown_where_it_alone_was_sampled() -> None:
    (found,) = devices(OF_DATA, 10.0)
    assert (found.name, found.write_bytes_per_s) == ("data", 800.0)
    assert devices({"cpu.user_s": 3.0}, 10.0) == ()
