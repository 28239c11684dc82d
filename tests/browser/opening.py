"""A report opened in a browser, and what a test asks of it there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Browser, BrowserContext, Page

Theme = Literal["light", "dark"]
WIDE, PHONE = (1280, 900), (375, 800)
PATIENCE_MS = 180_000  # of a busy machine: how fast a page opens is no matter of a test
DRAWN = "() => document.documentElement.dataset.drawn === 'all'"
LOADED_MS = "performance.getEntriesByType('navigation')[0].loadEventEnd"
IN_SIGHT = """() => [...document.querySelectorAll('.plot')]
  .filter(it => it.checkVisibility() && it.getBoundingClientRect().top < innerHeight
                && it.getBoundingClientRect().bottom > 0)
  .every(it => it.querySelector('.main-svg'))"""
UNFOLD = "() => document.querySelectorAll('details').forEach(it => { it.open = true })"
OVERFLOWS = """() => [...document.querySelectorAll('.scroll, pre')]
  .filter(it => it.scrollWidth > it.clientWidth)
  .map(it => [it.getAttribute('aria-label'), it.scrollWidth, it.clientWidth])"""
# What a box hides, or lets stick out of it: no scroll bar tells of that.
BEYOND = """() => [...document.querySelectorAll('main *')]
  .filter(it => !it.closest('.plot, caption, .spoken') && it.getClientRects().length)
  .filter(it => { const box = it.getBoundingClientRect();
    return box.width > 1 && (box.right > innerWidth + 1 || box.left < -1); })
  .map(it => [it.tagName, it.className, it.textContent.slice(0, 40)])"""

# Numbers in one line, and their units in the next; a browser may draw one line in several pieces.
TORN = """() => [...document.querySelectorAll('span.whole')]
  .filter(it => new Set([...it.getClientRects()].map(box => Math.round(box.top))).size > 1)
  .map(it => it.textContent)"""


def context_of(browser: Browser, **options: Any) -> BrowserContext:
    """A profile of its own, in which everything is waited for as long as a busy machine takes."""
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE_MS)
    return context


@contextmanager
def opened(
    browser: Browser, report: Path, size: tuple[int, int] = WIDE, theme: Theme = "light"
) -> Iterator[tuple[Page, list[str]]]:
    """The page, drawn, and everything it said or asked for besides itself."""
    width, height = size
    context = context_of(
        browser, viewport={"width": width, "height": height}, color_scheme=theme, offline=True
    )
    page = context.new_page()
    noise: list[str] = []
    page.on("console", lambda message: noise.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: noise.append(f"error: {error}"))
    page.on("request", lambda request: noise.append(f"request: {request.url}"))
    page.goto(report.as_uri())
    page.wait_for_function(DRAWN)
    noise.remove(f"request: {report.as_uri()}")
    try:
        yield page, noise
    finally:
        context.close()


def resized(page: Page, width: int) -> None:
    """Another width, with the charts drawn for it."""
    page.set_viewport_size({"width": width, "height": 900})
    page.wait_for_function(
        """() => [...document.querySelectorAll('.plot')].every(it =>
             Math.abs(it.querySelector('.main-svg').clientWidth - it.clientWidth) <= 1)"""
    )


def assert_fits(page: Page, width: int) -> None:
    """Nothing scrolls sideways or sticks out, with everything unfolded."""
    page.evaluate(UNFOLD)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    assert page.evaluate(OVERFLOWS) == []
    assert page.evaluate(BEYOND) == []
    assert page.evaluate(TORN) == []
