"""The report in a real browser: it draws, fits, asks for nothing, and says nothing to the console.

Screenshots are kept in pytest's folder of the test, to be looked at.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from pgdyno.analysis.run import analyse
from pgdyno.analysis.storage import storage_facts
from pgdyno.report import html, storage
from pgdyno.report.charts import charts
from pgdyno.report.storage_charts import drawings
from pgdyno.store import RunFile
from tests.browser.opening import DRAWN, PHONE, UNFOLD, WIDE, Theme, assert_fits, opened, resized
from tests.data.miniature import write_miniature
from tests.data.probed import MEMORY, at_rates, floor, in_rounds, probed

pytestmark = pytest.mark.browser

MARKS = """() => [...document.querySelectorAll('.plot')].map(it =>
  it.querySelectorAll('.cartesianlayer :is(.point, .js-line, .errorbar, .hm image)').length)"""
CURSORS = """() => [...document.querySelectorAll('.cursor')].filter(it => !it.hidden).map(it => {
  const plot = it.previousElementSibling, axis = plot._fullLayout.xaxis;
  return axis.p2d(parseFloat(it.style.left) - plot.offsetLeft - axis._offset); })"""
BACKGROUND = "() => getComputedStyle(document.body).backgroundColor"
STROKES = "() => [...document.querySelectorAll('.js-line')].map(it => it.style.stroke)"


@pytest.mark.parametrize(
    ("size", "theme"),
    [
        (WIDE, "light"),
        pytest.param(PHONE, "dark", marks=pytest.mark.document),
        pytest.param(WIDE, "dark", marks=pytest.mark.long),
        pytest.param(PHONE, "light", marks=pytest.mark.long),
    ],
)
def test_draws_every_chart_in_silence(
    browser: Browser,
    report: Path,
    panels: int,
    tmp_path: Path,
    size: tuple[int, int],
    theme: Theme,
) -> None:
    with opened(browser, report, size, theme) as (page, noise):
        page.screenshot(path=tmp_path / f"{size[0]}-{theme}.png", full_page=True)
        marks = page.evaluate(MARKS)
        assert len(marks) == panels
        assert all(count > 0 for count in marks)
        assert noise == []


@pytest.mark.document
def test_one_cursor_stands_at_the_same_second_of_all_charts_over_time(
    browser: Browser, report: Path
) -> None:
    with opened(browser, report, WIDE, "light") as (page, noise):
        assert page.evaluate(CURSORS) == []
        plot = page.locator("#time .plot").first
        plot.scroll_into_view_if_needed()
        box = plot.bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        found = page.evaluate(CURSORS)
        assert len(found) > 9, "throughput of nine trials, sessions and signals"
        assert max(found) - min(found) < 0.1
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] - 30)
        assert page.evaluate(CURSORS) == []
        assert noise == []


@pytest.mark.document
@pytest.mark.parametrize("width", [390, 768, 1024, 1280, 1920])
def test_nothing_scrolls_sideways(browser: Browser, report: Path, width: int) -> None:
    """Neither the page nor a table in it, with everything unfolded."""
    with opened(browser, report, (width, 800)) as (page, _):
        assert_fits(page, width)


@pytest.mark.document
def test_a_narrow_page_does_not_scroll_sideways(browser: Browser, report: Path) -> None:
    with opened(browser, report, (320, 800)) as (page, _):
        page.evaluate(UNFOLD)
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 320


@pytest.mark.document
def test_rows_set_as_lists_say_what_each_value_is(browser: Browser, report: Path) -> None:
    with opened(browser, report, (390, 800)) as (page, _):
        cells = page.evaluate(
            """() => [...document.querySelectorAll('table.widest td')].map(it =>
                 [getComputedStyle(it, '::before').content, it.dataset.head])"""
        )
        assert cells
        # What a rule of CSS names and what it shows are told apart by browsers' versions.
        assert all(shown in (f'"{head}"', "attr(data-head)") for shown, head in cells)
        assert all(head for _, head in cells)
        rows = page.get_by_role("table").first.get_by_role("row")
        assert rows.count() == 3, "a list of its cells is still a row to who does not see it"


@pytest.mark.long
def test_charts_fit_their_panels(browser: Browser, report: Path) -> None:
    with opened(browser, report, PHONE) as (page, _):
        over = page.evaluate(
            """() => [...document.querySelectorAll('.plot')].map(it =>
                 it.querySelector('.main-svg').clientWidth - it.clientWidth)"""
        )
        assert max(over) <= 0


@pytest.mark.long
def test_light_and_dark_differ_in_page_and_charts(browser: Browser, report: Path) -> None:
    seen = {}
    for theme in ("light", "dark"):
        with opened(browser, report, theme=theme) as (page, _):
            seen[theme] = (page.evaluate(BACKGROUND), page.evaluate(STROKES))
    light, dark = seen["light"], seen["dark"]
    assert light[0] != dark[0]
    assert len(light[1]) == len(dark[1]) > 0
    assert all(a != b for a, b in zip(light[1], dark[1], strict=True))


@pytest.mark.document
def test_the_button_changes_the_theme_and_back(browser: Browser, report: Path) -> None:
    with opened(browser, report) as (page, noise):
        before = (page.evaluate(BACKGROUND), page.evaluate(STROKES))
        page.get_by_role("button", name="Dark theme").click()
        page.wait_for_function(DRAWN)
        during = (page.evaluate(BACKGROUND), page.evaluate(STROKES))
        page.get_by_role("button", name="Light theme").click()
        page.wait_for_function(DRAWN)
        assert during[0] != before[0]
        assert during[1] != before[1]
        assert (page.evaluate(BACKGROUND), page.evaluate(STROKES)) == before
        assert noise == []


@pytest.mark.long
def test_a_change_of_the_system_theme_is_followed(browser: Browser, report: Path) -> None:
    with opened(browser, report) as (page, _):
        before = page.evaluate(STROKES)
        page.emulate_media(color_scheme="dark")
        page.wait_for_function(f"before => ({STROKES})()[0] !== before", arg=before[0])


@pytest.mark.wide
def test_prints_in_light_colours_with_all_charts_and_details(
    browser: Browser, report: Path, tmp_path: Path
) -> None:
    with opened(browser, report, theme="dark") as (page, noise):
        page.evaluate(
            f"""() => {{
              addEventListener('beforeprint', () => {{ window.printed = {{
                strokes: ({STROKES})(), marks: ({MARKS})(),
                closed: document.querySelectorAll('details:not([open])').length,
                widest: Math.max(...[...document.querySelectorAll('.main-svg')]
                  .map(it => it.clientWidth)),
              }} }});
            }}"""
        )
        screen = page.evaluate(STROKES)
        pdf = page.pdf(path=tmp_path / "report.pdf", format="A4")
        printed = page.evaluate("() => window.printed")
        page.wait_for_function(DRAWN)
        assert pdf.startswith(b"%PDF-")
        assert len(pdf) > 50_000
        assert all(a != b for a, b in zip(printed["strokes"], screen, strict=True))
        assert all(count > 0 for count in printed["marks"])
        assert printed["closed"] == 0
        assert printed["widest"] <= 700, "wider than a sheet of paper"
        assert page.evaluate(STROKES) == screen, "the screen's theme comes back"
        assert noise == []


@pytest.mark.document
def test_a_run_without_numbers_has_a_page(browser: Browser, tmp_path: Path) -> None:
    path = write_miniature(tmp_path / "run.sqlite", planned=tuple(range(1, 10)), invalid=())
    report = tmp_path / "run.html"
    with RunFile.read(path) as run:
        report.write_text(html.render(analyse(run)), encoding="utf-8")
    with opened(browser, report, PHONE) as (page, noise):
        assert page.locator(".plot").count() == 0
        # Charts of samplers and of other tools stand in sections of their own, which are left out.
        with_sections = {"active_sessions", "signals", "process_cpu", "recovery", "imported"}
        empty = charts().keys() - with_sections
        assert page.get_by_text("no trial has data for this chart").count() == len(empty)
        assert noise == []


@pytest.mark.document
def test_reads_in_order_without_eyes(browser: Browser, report: Path, panels: int) -> None:
    with opened(browser, report) as (page, _):
        assert page.locator("h1").count() == 1
        levels = page.evaluate(
            "() => [...document.querySelectorAll('h1, h2, h3')].map(it => Number(it.tagName[1]))"
        )
        # A card's heading stands in the head of the page, before the first section.
        assert levels[0] == 1
        assert page.locator(".plot[role=img][aria-label]").count() == panels
        assert page.get_by_role("navigation", name="Contents").count() == 1
        assert page.get_by_role("table").first.get_by_role("columnheader").count() > 5
        targets = page.evaluate(
            """() => [...document.querySelectorAll('nav a')].every(it =>
                 document.getElementById(it.hash.slice(1)))"""
        )
        assert targets


@pytest.mark.document
def test_text_keeps_its_contrast(browser: Browser, report: Path) -> None:
    for theme in ("light", "dark"):
        with opened(browser, report, theme=theme) as (page, _):
            ratios = page.evaluate(CONTRAST)
            assert ratios
            assert min(ratios.values()) >= 4.5, ratios


CONTRAST = """() => {
  const probe = document.body.appendChild(document.createElement('i'));
  const light = (name) => {
    probe.style.color = `var(--${name})`;
    const parts = getComputedStyle(probe).color.match(/[\\d.]+/g).slice(0, 3).map(it => it / 255);
    const [r, g, b] = parts.map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const found = {};
  for (const text of ['ink', 'muted', 'accent', 'good', 'bad', 'warn'])
    for (const ground of ['page', 'raised'])
      found[`${text} on ${ground}`] = ratio(light(text), light(ground));
  return found;
}"""


@pytest.mark.document
@pytest.mark.parametrize("kind", ["once", "rounds"])
def test_the_page_of_storage_draws_every_chart_in_silence(
    browser: Browser, tmp_path: Path, kind: str
) -> None:
    """With long paths, warnings and verdicts; at every width nothing scrolls sideways."""
    report = tmp_path / "storage.html"
    paths = "/srv/postgresql/clusters/disk", "/mnt/cloud/volume-2"
    measured = probed(floor(paths[0]), floor(paths[1], MEMORY))
    if kind == "rounds":
        rates = (5000.0, 2500.0, 4000.0)
        measured = in_rounds(
            *(tuple(at_rates(path, rate, 3 * rate) for path in paths) for rate in rates)
        )
    found = storage_facts(measured)
    report.write_text(storage.render_html(found), encoding="utf-8")
    with opened(browser, report, (390, 900)) as (page, noise):
        marks = page.evaluate(MARKS)
        assert len(marks) == sum(len(drawing.panels) for drawing in drawings(found).values())
        assert all(count > 0 for count in marks)
        assert page.get_by_role("list", name="Warnings").count() == 1
        for width in (390, 768, 1024, 1280, 1920):
            resized(page, width)
            page.screenshot(path=tmp_path / f"{width}.png", full_page=True)
            assert_fits(page, width)
        assert noise == []
