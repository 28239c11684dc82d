"""The live page in a real browser: what it shows, what it asks for, and what happens to it.

Screenshots are kept in pytest's folder of the test, to be looked at.
"""

from __future__ import annotations

import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
from playwright.sync_api import Browser, Page, Request

from pgdyno.live.address import Address
from pgdyno.live.audience import Audience
from pgdyno.model.glance import Met
from pgdyno.model.progress import Noted, PhaseBegun
from tests.browser.conftest import FLAGS
from tests.browser.opening import OVERFLOWS, context_of
from tests.data.glances import glance
from tests.data.hostile import ENDS
from tests.data.miniature import CHARACTERS, write_miniature
from tests.data.played import Played

pytestmark = pytest.mark.browser
ANY = Address("127.0.0.1", 0)
WIDE = (1280, 900)
DRAWN = "() => document.querySelector('#timeline-plot polyline')"
RUNS = "() => document.querySelectorAll('#sessions-plot polygon').length === 3"
SECONDS = 25  # of the trial that runs
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
            if event == played.driving(trials + 1, SECONDS):
                break
        for second in range(1, SECONDS + 1):
            audience.glance(glance(second))
        audience(played.driving(trials + 1, SECONDS))
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


def page_of(audience: Audience) -> str:
    assert audience.page_url is not None
    return audience.page_url


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
            assert one.locator("#tails-plot .dot").count() == 2
            one.wait_for_function(RUNS)
            assert "70% busy" in text(one, "cpus-text")
            assert one.locator("#devices-now tbody tr").count() == 1
            assert "checkpoint" in one.locator("#events-now tbody tr").first.inner_text()
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
            assert text(one, "running-none") == "No load runs now."
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


@pytest.mark.wide
def test_a_trial_that_runs_is_shown_until_its_load_is_over(
    browser: Browser, played: Played
) -> None:
    with shown(played, 0) as audience, opened(browser, audience) as (page, noise):
        page.wait_for_function(RUNS)
        assert page.locator("#events-now tbody tr").count() == SECONDS + 1
        assert page.locator("#classes tbody tr").last.inner_text().split() == [
            "all",
            "active",
            "4.4",
        ]
        page.locator("#events-now .scroll").evaluate("it => { it.focus(); it.scrollTop = 40; }")
        audience.glance(replace(glance(SECONDS + 1), met=Met(10, ()), ended=(), counts={}))
        audience(played.driving(1, SECONDS + 1))
        page.wait_for_function("() => document.querySelector('#classes tbody') === null")
        assert page.locator("#events-now tbody tr").count() == SECONDS + 1, "the rest stays"
        reads_on = "it => it.scrollTop === 40 && it === document.activeElement"
        assert page.locator("#events-now .scroll").evaluate(reads_on)
        audience(PhaseBegun(played.trials[0], "check"))
        page.wait_for_function("() => document.querySelector('#running-some').hidden")
        assert noise == []


@contextmanager
def misled(browser: Browser) -> Iterator[Browser]:
    """A browser that is told this machine's address for a name of somebody else."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    flags = [*FLAGS, "--host-resolver-rules=MAP rebound.example 127.0.0.1"]
    found = browser.browser_type.launch(executable_path=path, args=flags)
    try:
        yield found
    finally:
        found.close()


ASKS = """async url => {
  const found = [];
  for (const mode of ["no-cors", "cors"]) {
    const told = (it) => it.type === "opaque" ? "opaque" : it.text();
    found.push(await fetch(url, { mode, credentials: "include" }).then(told, () => "refused"));
  }
  found.push(await new Promise(tell => {
    const stream = new EventSource(url + "events", { withCredentials: true });
    stream.onerror = () => { stream.close(); tell("refused"); };
    stream.addEventListener("head", it => tell(it.data));
  }));
  return found;
}"""


@pytest.mark.wide
def test_a_name_that_was_led_here_is_shown_nothing(browser: Browser, played: Played) -> None:
    with shown(played, 1) as audience, misled(browser) as other:
        url = urlsplit(page_of(audience))
        context = context_of(other)
        page = context.new_page()
        page.goto(page_of(audience))
        page.wait_for_function(DRAWN)
        place = urlsplit(page.url).path
        rebound = f"http://rebound.example:{url.port}"
        for path in (f"/?{url.query}", place, f"{place}events", f"{place}page.js"):
            found = page.goto(f"{rebound}{path}")
            assert found is not None
            assert found.status == 421
            assert played.plan.question not in page.content()
        assert page.evaluate(ASKS, f"{rebound}{place}")[1:] == [
            f"this is 127.0.0.1:{url.port}, and no other name of it is known here\n", "refused"
        ]  # fmt: skip
        assert [one["domain"] for one in context.cookies()] == ["127.0.0.1"]
        context.close()


@pytest.mark.wide
def test_a_page_of_another_origin_learns_nothing_with_the_cookie_of_its_viewer(
    browser: Browser, played: Played
) -> None:
    with shown(played, 1) as audience, shown_elsewhere() as elsewhere:
        context = context_of(browser)
        page = context.new_page()
        page.goto(page_of(audience))
        page.wait_for_function(DRAWN)
        mine = page.url
        statuses: list[int] = []
        page.goto(elsewhere)
        page.on("response", lambda one: statuses.append(one.status))
        assert page.evaluate(ASKS, mine) == ["refused", "refused", "refused"]
        assert page.evaluate(
            """url => new Promise(tell => {
                 const frame = document.createElement("iframe");
                 frame.onload = () => tell(frame.contentDocument === null);
                 frame.src = url;
                 document.body.append(frame);
               })""",
            mine,
        ), "nothing of it can be read"
        assert set(statuses) <= {403}
        context.close()


@contextmanager
def shown_elsewhere() -> Iterator[str]:
    """A page of somebody else on this machine, on a port of its own."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


class Elsewhere(BaseHTTPRequestHandler):
    """An empty page."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>elsewhere</title><body>")

    def log_message(self, *_: object) -> None:
        """Nothing is said."""


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
