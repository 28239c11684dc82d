"""The report of an hour of six stages: small enough to send, and read before all of it is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from pgdyno.report import html
from tests.browser.opening import DRAWN, IN_SIGHT, LOADED_MS, WIDE, context_of, opened
from tests.data.an_hour import ROUNDS, SIGNALS, STAGES, an_hour
from tests.tally import count

pytestmark = [pytest.mark.browser, pytest.mark.document]
BYTES_MAX = 10_000_000
FLAMES_DRAWN = """() => [...document.querySelectorAll('.flame canvas')]
  .filter(it => it.dataset.frames > 0).length === 2"""
WITHIN = "() => [...document.querySelectorAll('.plot')].map(it => !!it.querySelector('.main-svg'))"


@pytest.fixture(scope="module")
def hour(tmp_path_factory: pytest.TempPathFactory) -> Path:
    page = tmp_path_factory.mktemp("hour") / "hour.html"
    page.write_text(html.render(an_hour(page.parent)), encoding="utf-8")
    return page


def test_it_is_small_and_every_chart_is_drawn(browser: Browser, hour: Path) -> None:
    assert hour.stat().st_size < BYTES_MAX
    with opened(browser, hour) as (page, noise):
        for flame in page.locator(".flame").all():
            flame.scroll_into_view_if_needed()
        page.wait_for_function(FLAMES_DRAWN)
        drawn = page.evaluate(WITHIN)
        assert len(drawn) > STAGES * (2 * ROUNDS + SIGNALS + 1)
        assert all(drawn)
        assert noise == []


@contextmanager
def just_opened(browser: Browser) -> Iterator[Page]:
    width, height = WIDE
    context = context_of(browser, viewport={"width": width, "height": height}, offline=True)
    try:
        yield context.new_page()
    finally:
        context.close()


def test_it_can_be_read_before_a_chart_is_drawn(browser: Browser, hour: Path) -> None:
    with just_opened(browser) as page:
        # Looked at as soon as the page has loaded, before its first pause.
        page.add_init_script(
            "addEventListener('load', () => { window.first ="
            f" [({WITHIN})().filter(Boolean).length, typeof Plotly];"
            " for (const plot of document.querySelectorAll('.plot'))"
            " plot.dispatchEvent(new PointerEvent('pointermove')); })"
        )
        failed: list[str] = []
        page.on("pageerror", lambda error: failed.append(str(error)))
        page.goto(hour.as_uri())
        page.wait_for_function(DRAWN)
        assert page.evaluate("() => window.first") == [0, "undefined"]
        # Told, not judged: beside other tests all seconds are theirs. `benches/opening.py` judges.
        loaded_s = page.evaluate(LOADED_MS) / 1e3
        count("openings of an hour's report", "in less than 2 s" if loaded_s < 2 else "slower")
        assert failed == [], "pointed at before it is drawn"


def test_what_is_in_sight_is_drawn_before_what_is_not(browser: Browser, hour: Path) -> None:
    with just_opened(browser) as page:
        page.goto(f"{hour.as_uri()}#latency")
        page.wait_for_function(IN_SIGHT)
        drawn = page.evaluate(WITHIN)
        assert 0 < sum(drawn) < 0.3 * len(drawn)
        page.evaluate("() => scrollTo(0, 0)")
        page.wait_for_function(DRAWN)
        assert all(page.evaluate(WITHIN))
