"""The flame graph in a real browser: by mouse, by keyboard, on a phone, and between two stages."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page

from pgdyno.analysis.run import analyse
from pgdyno.report import html
from pgdyno.store import RunFile
from tests.browser.opening import Theme, assert_fits, opened
from tests.data.miniature import write_miniature
from tests.data.profiled import LACK, add_profiles

pytestmark = [pytest.mark.browser, pytest.mark.document]
INKED = """it => {
  const { data } = it.getContext('2d').getImageData(0, 0, it.width, it.height);
  const colours = new Set();
  for (let at = 0; at < data.length; at += 4)
    if (data[at + 3] === 255) colours.add((data[at] << 16) + (data[at + 1] << 8) + data[at + 2]);
  return colours.size;
}"""


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("profiled")
    path = add_profiles(write_miniature(folder / "run.sqlite"), lacks=(LACK,))
    page = folder / "run.html"
    with RunFile.read(path) as run:
        page.write_text(html.render(analyse(run)), encoding="utf-8")
    return page


def shown(page: Page, name: str = "cpu") -> Locator:
    figure = page.locator(f".flame[data-flame={name}]")
    figure.scroll_into_view_if_needed()
    page.wait_for_function(
        "name => document.querySelector(`[data-flame=${name}] canvas`).dataset.frames > 0", arg=name
    )
    return figure


def test_it_is_drawn_when_it_comes_into_view(browser: Browser, profiled: Path) -> None:
    with opened(browser, profiled) as (page, noise):
        canvas = page.locator(".flame[data-flame=cpu] canvas")
        assert canvas.get_attribute("data-frames") is None
        assert "µs of CPU a transaction in initdb" in shown(page).inner_text()
        assert canvas.evaluate(INKED) > 10
        assert noise == []


def test_keys_choose_enlarge_and_go_back(browser: Browser, profiled: Path) -> None:
    with opened(browser, profiled) as (page, noise):
        figure = shown(page)
        told, canvas = figure.locator(".flame-told"), figure.locator("canvas")
        before = int(canvas.get_attribute("data-frames") or 0)
        canvas.focus()
        assert told.inner_text().startswith("sessions (backends): ")
        page.keyboard.press("ArrowDown")
        assert told.inner_text().startswith("_start (postgres): ")
        page.keyboard.press("ArrowUp")
        page.keyboard.press("ArrowRight")
        assert not told.inner_text().startswith("sessions (backends): ")
        page.keyboard.press("Enter")
        assert int(canvas.get_attribute("data-frames") or 0) < before
        whole = figure.get_by_role("button", name="Whole graph")
        assert whole.is_enabled()
        page.keyboard.press("Escape")
        assert int(canvas.get_attribute("data-frames") or 0) == before
        assert whole.is_disabled()
        assert noise == []


def test_a_search_says_how_much_is_called_so(browser: Browser, profiled: Path) -> None:
    with opened(browser, profiled) as (page, _):
        figure = shown(page)
        found = figure.locator(".flame-found")
        figure.get_by_label("Search").fill("XLOG")
        assert "of initdb, together" in found.inner_text()
        figure.get_by_label("Search").fill("no such thing")
        assert found.inner_text() == "Nothing in initdb is called so."
        figure.get_by_label("Search").fill("")
        assert found.inner_text() == ""


def test_two_stages_are_compared_with_intervals(browser: Browser, profiled: Path) -> None:
    with opened(browser, profiled) as (page, noise):
        figure = shown(page)
        figure.get_by_label("Stage").select_option(label="tuned")
        figure.get_by_label("Compared with").select_option(label="initdb")
        figure.locator("canvas").focus()
        told = figure.locator(".flame-told").inner_text()
        assert told.startswith("sessions (backends): ")
        assert "against initdb, between -" in told
        assert told.endswith(": less.")
        assert noise == []


@pytest.mark.parametrize("width", [390, 1280, 1920])
def test_it_fits_and_is_drawn_at_every_width(
    browser: Browser, profiled: Path, tmp_path: Path, width: int
) -> None:
    theme: Theme = "dark" if width == 1280 else "light"
    with opened(browser, profiled, (width, 900), theme) as (page, noise):
        figure = shown(page)
        if width == 1920:
            figure.get_by_label("Stage").select_option(label="async-commit")
            figure.get_by_label("Compared with").select_option(label="initdb")
        shown(page, "waiting")
        page.locator("#profile").screenshot(path=tmp_path / f"{width}.png")
        canvas = figure.locator("canvas")
        box = canvas.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        canvas.click(position={"x": box["width"] / 4, "y": 30})  # the second row: what a role runs
        assert figure.get_by_role("button", name="Whole graph").is_enabled()
        assert_fits(page, width)
        assert noise == []


def test_a_report_without_profiles_has_nothing_of_it(report: Path) -> None:
    text = report.read_text(encoding="utf-8")
    assert 'id="flames"' not in text
    assert "flame" not in text.partition("</style>")[0].rpartition("<style>")[2]
