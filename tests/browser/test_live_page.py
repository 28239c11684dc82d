"""The live page in a real browser: what it shows, what it asks for, and what happens to it.

Screenshots are kept in pytest's folder of the test, to be looked at.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
from playwright.sync_api import Browser, Page, Request

from pgdyno.live.address import Address
from pgdyno.live.audience import Audience
from pgdyno.model.progress import Noted
from tests.browser.opening import OVERFLOWS, context_of
from tests.data.hostile import ENDS
from tests.data.miniature import CHARACTERS, write_miniature
from tests.data.played import Played

pytestmark = pytest.mark.browser
ANY = Address("127.0.0.1", 0)
WIDE = (1280, 900)
DRAWN = "() => document.querySelector('#timeline-plot polyline')"
PWNED = "() => document.documentElement.dataset.pwned"


@pytest.fixture
def played(tmp_path: Path) -> Played:
    return Played(write_miniature(tmp_path / "whole.sqlite"), tmp_path / "run.sqlite")


@contextmanager
def shown(played: Played, trials: int) -> Iterator[Audience]:
    """A run after some trials, in the middle of the next."""
    with Audience(lambda _: None, ANY, None) as audience:
        audience(played.begin())
        for number in range(1, trials + 1):
            for event in played.trial(number):
                audience(event)
        for event in played.trial(trials + 1):
            audience(event)
            if event == played.driving(trials + 1, 25):
                break
        yield audience


@contextmanager
def opened(
    browser: Browser, audience: Audience, size: tuple[int, int] = WIDE
) -> Iterator[tuple[Page, list[str]]]:
    """The page, and all that it said, or asked for elsewhere."""
    assert audience.page_url is not None
    context = context_of(browser, viewport={"width": size[0], "height": size[1]})
    page = context.new_page()
    noise: list[str] = []
    host = urlsplit(audience.page_url).netloc
    page.on("console", lambda message: noise.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: noise.append(f"error: {error}"))

    def overhear(asked: Request) -> None:
        if urlsplit(asked.url).netloc != host:
            noise.append(f"asked: {asked.url}")

    page.on("request", overhear)
    page.goto(audience.page_url)
    try:
        yield page, noise
    finally:
        context.close()


def text(page: Page, ident: str) -> str:
    return page.locator(f"#{ident}").inner_text()


@pytest.mark.wide
def test_two_browsers_see_a_run_and_its_end_in_silence(
    browser: Browser, played: Played, tmp_path: Path
) -> None:
    with (
        shown(played, 4) as audience,
        opened(browser, audience) as (page, noise),
        opened(browser, audience, (390, 844)) as (phone, phone_noise),
    ):
        for one in (page, phone):
            one.wait_for_function(DRAWN)
            assert "token" not in one.url, "the address in the history opens nothing"
            assert text(one, "question") == played.plan.question
            assert text(one, "stage") == played.trials[4].stage
            assert "Trial 5 of 9" in text(one, "count")
            assert text(one, "rate-unit") == "tpmTotal"
            assert one.locator("#cards .card").count() == 3
            assert one.locator("#bar li").count() == 9
            assert one.locator("#ratios-plot .dot").count() == 2
            assert one.locator("#events tbody tr").count() > 0
            assert one.locator("#line-plot polyline").count() == 1
        for width in (320, 390, 768, 1280, 1920):
            page.set_viewport_size({"width": width, "height": 900})
            page.wait_for_function(f"() => innerWidth === {width}")
            page.screenshot(path=tmp_path / f"{width}.png", full_page=True)
            assert page.evaluate("() => document.documentElement.scrollWidth") <= width
            assert width < 390 or page.evaluate(OVERFLOWS) == []
        audience.close()
        for one in (page, phone):
            one.wait_for_function("() => !document.querySelector('#ended').hidden")
            assert "The run has ended." in text(one, "ended")
            assert text(one, "link") == "ended"
            assert one.locator("#cards .card").count() == 3, "what was found stays"
        page.screenshot(path=tmp_path / "ended.png", full_page=True)
        assert noise == phone_noise == []


LINK = "word => document.querySelector('#link').textContent.includes(word)"


@pytest.mark.document
def test_a_lost_connection_is_said_and_found_again(browser: Browser, played: Played) -> None:
    with shown(played, 1) as audience, opened(browser, audience) as (page, _):
        page.wait_for_function(DRAWN)
        (worker,) = (
            one for one in psutil.Process().children() if "pgdyno.live.worker" in one.cmdline()
        )
        worker.send_signal(signal.SIGKILL)
        page.wait_for_function(LINK, arg="lost")
        assert page.locator("#cards .card").count() == 3, "the last picture stays"

        again = Audience(lambda _: None, ANY, None)  # as if the way to the same one were open again
        again._wanted = replace(audience._wanted, page=audience._serving.page)
        with again:
            again(played.begin(done=1))
            again(Noted("after the break"))
            page.wait_for_function(LINK, arg="live")
            page.get_by_text("after the break").wait_for()
            assert page.locator("#cards .card").count() == 3


@pytest.mark.document
def test_names_that_mean_something_to_a_page_are_text(browser: Browser, tmp_path: Path) -> None:
    words = [ENDS["script"], ENDS["image"], ENDS["backwards"]]
    hostile = tuple(
        replace(one, stage=replace(one.stage, name=word, why=word))
        for one, word in zip(CHARACTERS, words, strict=True)
    )
    whole = write_miniature(tmp_path / "whole.sqlite", characters=hostile)
    played = Played(whole, tmp_path / "run.sqlite")
    with shown(played, 4) as audience, opened(browser, audience, (390, 844)) as (page, noise):
        page.wait_for_function(DRAWN)
        audience(Noted(ENDS["image"]))
        page.get_by_text(ENDS["image"]).last.wait_for()
        names = page.locator("#cards h3").all_inner_texts()
        assert [name.rpartition(" ")[0] for name in names][:2] == words[:2]
        assert "\\u202e" in names[2], "what turns the direction of writing is shown by its number"
        assert page.evaluate(PWNED) is None
        assert page.locator("main script, main img").count() == 0
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
        assert noise == []


@pytest.mark.document
def test_without_the_token_nothing_is_shown(browser: Browser, played: Played) -> None:
    with shown(played, 0) as audience:
        assert audience.page_url is not None
        context = context_of(browser)
        page = context.new_page()
        found = page.goto(audience.page_url.partition("?")[0])
        assert found is not None
        assert found.status == 403
        assert "with its token" in page.inner_text("body")
        assert context.cookies() == []
        context.close()
