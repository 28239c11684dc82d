"""A headless browser: Debian's chromium, driven through Playwright, with a profile of its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from pgdyno.analysis.facts import Facts
from pgdyno.analysis.run import analyse
from pgdyno.report import html
from pgdyno.report.charts import charts
from pgdyno.store import RunFile
from tests.data.miniature import write_miniature

FLAGS = (
    "--no-sandbox",  # tests may run as root, where chromium has no sandbox
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    assert found is not None, "no chromium: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    """What was found in a made-up run."""
    with RunFile.read(write_miniature(tmp_path_factory.mktemp("run") / "run.sqlite")) as run:
        return analyse(run)


@pytest.fixture(scope="session")
def report(facts: Facts, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its page, as a file."""
    page = tmp_path_factory.mktemp("report") / "run.html"
    page.write_text(html.render(facts), encoding="utf-8")
    return page


@pytest.fixture(scope="session")
def panels(facts: Facts) -> int:
    """How many drawings its charts have in all."""
    return sum(len(chart.panels(facts)) for chart in charts().values())
