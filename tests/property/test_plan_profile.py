"""The profile `tuned` contradicts nothing, whatever the machine and whatever the stage adds."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pgdyno.catalog import profile
from pgdyno.model.settings import HostFacts
from pgdyno.plan.estimate.needs import huge_pages_needed
from pgdyno.plan.resolve.contradictions import contradictions
from pgdyno.plan.resolve.profile import size_profile
from pgdyno.plan.resolve.stages import stage_rung
from pgdyno.plan.settings.configured import Configured
from pgdyno.plan.settings.values import canonical
from tests.data.servers import HOST, installed

GIB = 1 << 30
HOSTS = st.builds(
    replace,
    st.just(HOST),
    memory_bytes=st.integers(GIB // 4, 4096 * GIB),
    free_disk_bytes=st.integers(0, 100_000 * GIB),
    huge_pages_free=st.one_of(st.integers(0, 10_000), st.integers(0, 3_000_000)),
    huge_page_bytes=st.sampled_from([2 << 20, GIB]),
)
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "shared_buffers": st.sampled_from(["128MB", "3GB", "40GB"]),
        "wal_buffers": st.sampled_from(["-1", "16MB", "1GB"]),
        "max_wal_size": st.sampled_from(["32MB", "500MB", "10GB"]),
        "max_connections": st.sampled_from(["100", "5000"]),
    },
)


@given(st.sampled_from([15, 18]), HOSTS, SETTINGS, SETTINGS)
def test_the_profile_contradicts_nothing(
    major: int, host: HostFacts, own: dict[str, str], before: dict[str, str]
) -> None:
    server = installed(major)

    settings, _ = size_profile(profile("tuned"), own, before, server, host)

    sized = {one.name: one.value for one in settings}
    config = Configured(server, {**before, **sized, **own})
    assert not sized.keys() & own.keys()
    assert list(contradictions(config, 8, host, ())) == []
    assert stage_rung(config)[0] == profile("tuned").rung
    for name, value in sized.items():
        canonical(server.knobs[name], value)
    fits = huge_pages_needed(config, host) <= host.huge_pages_free
    assert sized["huge_pages"] == ("on" if fits else "off")
