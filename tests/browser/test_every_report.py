"""Every kind of report fits every width and every sheet of paper, with all its labels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.opening import assert_fits, opened, resized
from tests.browser.paper import MARKED, sheets
from tests.data.pages import PAGES

pytestmark = [pytest.mark.browser, pytest.mark.document]
WIDTHS = (390, 768, 1024, 1280, 1920)
FILLED_MIN = 0.5  # of a sheet that others follow

# Texts of a chart that its drawing does not hold whole, and names that it leaves out.
LABELS = """() => [...document.querySelectorAll('.plot')].flatMap(plot => {
  const frame = plot.querySelector('.main-svg').getBoundingClientRect();
  const shown = [...plot.querySelectorAll('.xtick, .ytick, .xtitle, .ytitle, .annotation')]
    .filter(it => getComputedStyle(it).display !== 'none' && getComputedStyle(it).opacity !== '0')
    .filter(it => it.querySelector('text')?.style.opacity !== '0');
  const cut = shown.filter(it => {
    const box = it.getBoundingClientRect();
    return box.width && (box.left < frame.left - 1 || box.right > frame.right + 1
      || box.top < frame.top - 1 || box.bottom > frame.bottom + 1);
  }).map(it => `cut in ${plot.id}: ${it.textContent}`);
  // What plotly reads as markup, and blanks at the ends of lines, are not of the name.
  const bare = it => it.replace(/\\s/g, '');
  const spoken = it => bare(new DOMParser().parseFromString(it, 'text/html').body.textContent);
  const texts = new Set(shown.map(it => bare(it.textContent)));
  const left = ['xaxis', 'yaxis'].flatMap(axis => {
    const { type, ticktext, _categories } = plot._fullLayout[axis];
    return ticktext ?? (type === 'category' ? _categories : []);
  }).map(it => spoken(String(it)))
    .filter(it => !texts.has(it)).map(it => `left out of ${plot.id}: ${it}`);
  return [...cut, ...left];
})"""


@pytest.fixture(scope="module", params=PAGES)
def shown(
    request: pytest.FixtureRequest, browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Page, list[str]]]:
    """A page of each kind, opened once for all that is asked of it; and what it said."""
    folder = tmp_path_factory.mktemp(request.param)
    report = folder / "report.html"
    report.write_text(PAGES[request.param](folder), encoding="utf-8")
    with opened(browser, report, (WIDTHS[0], 900)) as page_and_noise:
        yield page_and_noise


def test_every_report_fits_every_width(shown: tuple[Page, list[str]]) -> None:
    page, noise = shown
    for width in WIDTHS:
        resized(page, width)
        assert_fits(page, width)
        assert page.evaluate(LABELS) == [], f"at {width} px"
    assert noise == []


def test_every_report_fits_paper(shown: tuple[Page, list[str]], tmp_path: Path) -> None:
    """No sheet is mostly blank, no heading stands alone, no table and no label is cut.

    The first one is printed alone, and ends with a whole sentence.
    """
    page, noise = shown
    pdf = tmp_path / "report.pdf"
    page.add_style_tag(content=MARKED)
    page.evaluate(
        f"() => addEventListener('beforeprint', () => {{ window.labels = ({LABELS})() }})"
    )
    page.pdf(path=pdf, format="A4", prefer_css_page_size=True)
    assert page.evaluate("() => window.labels") == []
    printed = sheets(pdf)
    assert printed
    *others, _ = [sheet.filled for sheet in printed]
    assert [filled for filled in others if filled < FILLED_MIN] == []
    assert [sheet.last_line for sheet in printed if sheet.ends_leading] == []
    assert [number for number, sheet in enumerate(printed, 1) if sheet.sticks_out] == []
    paragraphs = page.locator(":is(.answer, .precisely) p").all_text_contents()
    whole = ["".join(one.split()) for one in paragraphs]
    assert [one for one in whole if not any(one in sheet.text for sheet in printed)] == []
    assert noise == []
