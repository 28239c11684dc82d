r"""How long does a report take to open, and how large is it?

    python -m benches.opening                      # an hour of six stages, made up, all sampled
    python -m benches.opening runs/x.html --n 10   # a report that is there

Method. Headless chromium, a new profile each time, no network. Counted from asking for the page, by
the browser's own clock: until its text is painted, until it is loaded (the event `load`), until
every chart within one and a half screens of 1280 by 900 pixels is drawn, and until all charts are.
One opening beforehand is not counted, so that the file and the browser are in memory. Printed are
median, least and most.

Limits. The made-up hour is the largest page that the report makes of one: as many points, marks,
signals and functions as it draws at most.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright
from tests.browser.conftest import FLAGS
from tests.browser.opening import DRAWN, LOADED_MS, WIDE, context_of
from tests.data.an_hour import an_hour

from pgdyno.report import html

UNTIL = {
    "its text is painted": "performance.getEntriesByName('first-contentful-paint')[0].startTime",
    "it is loaded": LOADED_MS,
    "what is in sight is drawn": "performance.getEntriesByName('in sight')[0].startTime",
    "all is drawn": "performance.now()",
}


def opening_s(browser: Browser, report: Path) -> list[float]:
    """Seconds until each of UNTIL."""
    width, height = WIDE
    context = context_of(browser, viewport={"width": width, "height": height}, offline=True)
    try:
        page = context.new_page()
        page.goto(report.as_uri(), wait_until="load")
        page.wait_for_function(DRAWN)
        found: list[float] = page.evaluate(f"() => [{', '.join(UNTIL.values())}]")
        return [one / 1e3 for one in found]
    finally:
        context.close()


def measure(report: Path, times: int) -> None:
    """Open it so many times and print what that took."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        opening_s(browser, report)
        taken = [opening_s(browser, report) for _ in range(times)]
        print(f"{report.name}: {report.stat().st_size / 1e6:.2f} MB, chromium {browser.version}")
        browser.close()
    for what, seconds in zip(UNTIL, zip(*taken, strict=True), strict=True):
        middle, least, most = statistics.median(seconds), min(seconds), max(seconds)
        print(f"until {what}: {middle:.2f} s ({least:.2f} to {most:.2f}), n = {times}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("report", type=Path, nargs="?", help="HTML; else a made-up hour")
    parser.add_argument("--n", type=int, default=10, help="times that it is opened")
    wanted = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        report = wanted.report
        if report is None:
            report = Path(folder) / "hour.html"
            report.write_text(html.render(an_hour(report.parent)), encoding="utf-8")
        measure(report, wanted.n)
    return 0


if __name__ == "__main__":
    sys.exit(main())
