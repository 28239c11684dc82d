"""The report of an hour of six stages: small enough to send, and read before all of it is drawn."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from pgdyno.report import html
from tests.browser.opening import DRAWN, WIDE, context_of, opened
from tests.data.an_hour import ROUNDS, SIGNALS, STAGES, an_hour

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


def test_it_can_be_read_while_what_is_out_of_sight_is_drawn(browser: Browser, hour: Path) -> None:
    width, height = WIDE
    context = context_of(browser, viewport={"width": width, "height": height}, offline=True)
    try:
        page = context.new_page()
        # Looked at as soon as the page has loaded, before its first pause.
        page.add_init_script(
            "addEventListener('DOMContentLoaded', () => { window.first ="
            f" ({WITHIN})().filter(Boolean).length;"
            " for (const plot of document.querySelectorAll('.plot'))"
            " plot.dispatchEvent(new PointerEvent('pointermove')); })"
        )
        failed: list[str] = []
        page.on("pageerror", lambda error: failed.append(str(error)))
        page.goto(hour.as_uri())
        first = page.evaluate("() => window.first")
        page.wait_for_function(DRAWN)
        assert first < 12, "what is in sight, and no more"
        assert failed == [], "pointed at before it is drawn"
    finally:
        context.close()
