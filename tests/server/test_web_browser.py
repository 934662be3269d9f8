"""The web page in a real browser over a real socket: seen, read out, used by keys, without scripts.

It needs Chromium, which ``.ci/run`` installs; axe-core, in ``axe/``, is what examines each page
(https://github.com/dequelabs/axe-core).
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from serving import listening, running
from waiting import wait_for
from web_home import PAGES, THINGS, fill

from memctl.config import load_config
from memctl.home import Home

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
AXE = (Path(__file__).parent / "axe" / "axe.min.js").read_text("utf-8")
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip
EXAMINE = """
async () => (await axe.run({resultTypes: ["violations"]})).violations
    .filter((each) => ["serious", "critical"].includes(each.impact))
    .map((each) => each.id + ": " + each.nodes.map((node) => node.html).join(" | "))
"""
QUESTION = "what is the code of the door?"


@pytest.fixture(scope="module")
def chromium() -> str:
    """The path of Chromium."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None and os.environ.get("CI"):
        pytest.fail("Chromium is missing: .ci/run installs it with apt-get install chromium")
    return path or pytest.skip("Chromium is not installed")


@pytest.fixture(scope="module")
def link(tmp_path_factory: pytest.TempPathFactory, chromium: str) -> Iterator[str]:
    """The login link of a server of a small home."""
    folder = tmp_path_factory.mktemp("browser") / "home"
    home = Home(load_config({"home": str(folder), "watch.settle_seconds": "0.1"}, {}))
    fill(home)
    with listening(home) as address:
        yield address.login


@pytest.fixture(scope="module")
def visit(chromium: str, link: str) -> Iterator[Visit]:
    """A browser that is logged in."""
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        yield Visit(browser, link)
        browser.close()


class Visit:
    """Opens pages of one server in one browser, and notes what goes wrong on them.

    Args:
        browser: Playwright's.
        link: The login link, which works once.
    """

    def __init__(self, browser: sync_api.Browser, link: str) -> None:
        self._browser = browser
        self.base = link.partition("/login")[0]
        self.problems: list[str] = []
        context = browser.new_context()
        context.new_page().goto(link)
        self._cookies = context.storage_state()["cookies"]
        context.close()

    def page(self, **options: object) -> sync_api.Page:
        """Return an empty page, for which everything from elsewhere is a problem."""
        context = self._browser.new_context(base_url=self.base, **options)
        context.add_cookies(self._cookies)
        page = context.new_page()
        page.on("console", lambda message: self._note(message.text, is_bad=message.type == "error"))
        page.on("pageerror", lambda error: self._note(str(error)))
        page.on(
            "request",
            lambda request: self._note(request.url, is_bad=not request.url.startswith(self.base)),
        )
        return page

    def stranger(self, base_url: str) -> sync_api.BrowserContext:
        """Return a browser that has been nowhere yet."""
        return self._browser.new_context(base_url=base_url)

    def _note(self, text: str, *, is_bad: bool = True) -> None:
        if is_bad:
            self.problems.append(text)


def test_every_page_can_be_read_by_everybody(visit: Visit) -> None:
    page = visit.page()
    details = [
        page.request.get(f"{path}?format=json").json()["rows"][0]["id"]
        for path in ("/memories", "/documents", "/insights")
    ]
    memory, document, insight = details
    documents = page.request.get("/documents?format=json").json()["rows"]
    named = next(each["id"] for each in documents if each["title"] == "Quayside Estates")
    found = {}
    links = page.request.get(f"/documents/{named}/links").text()
    offered = [unescape(each) for each in re.findall(r'href="([^"]+/link\?[^"]+)"', links)]
    assert offered
    for path in (
        *PAGES, *offered[:1], f"/memories/{memory}", f"/memories/{memory}/forget",
        f"/documents/{document}",
        f"/documents/{document}/links", f"/memories/{insight}", *THINGS,
        "/graph?name=Rui Santos", "/memories/m_000000000000",
    ):  # fmt: skip
        page.goto(path)
        page.evaluate(AXE)
        for width, scheme in ((360, "light"), (1280, "dark")):
            page.set_viewport_size({"width": width, "height": 800})
            page.emulate_media(color_scheme=scheme)
            if bad := page.evaluate(EXAMINE):
                found[path, scheme] = bad
            if page.evaluate("document.documentElement.scrollWidth") > width:
                found[path, scheme] = "wider than the window"
    assert found == {}
    visit.problems = [each for each in visit.problems if "404" not in each]  # the last page
    assert visit.problems == []
    page.context.close()


def test_a_question_is_asked_by_keys_and_its_source_opens_at_the_place(visit: Visit) -> None:
    page = visit.page()
    page.goto("/insights")
    page.keyboard.press("/")
    page.wait_for_url("**/")
    page.wait_for_selector("#question:focus")
    page.keyboard.type(QUESTION)
    assert page.input_value("#question") == QUESTION
    page.keyboard.press("Enter")
    page.wait_for_selector(".answer")
    page.evaluate(AXE)
    assert page.evaluate(EXAMINE) == []
    page.click(".sources a")
    page.wait_for_selector("mark#cited")
    assert "4711" in page.inner_text("mark#cited")
    page.goto("/memories")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    first = page.get_attribute(".item a.main >> nth=0", "href")
    assert page.evaluate("document.activeElement.getAttribute('href')") == first
    assert visit.problems == []
    page.context.close()


def test_a_memory_is_written_edited_and_deleted_with_the_mouse(visit: Visit) -> None:
    page = visit.page()
    page.goto("/memories/new")
    page.fill("#text", "The gutter was cleaned.")
    page.click("text=Remember in default")
    page.wait_for_selector(".notice")
    page.keyboard.press("e")
    page.fill("#text", "The gutter was cleaned twice.")
    page.click("text=Write a new version")
    page.wait_for_selector("text=version 2")
    page.click("text=Delete or forget")
    page.click("button:text-is('Delete')")
    page.wait_for_selector("text=Deleted.")
    assert visit.problems == []
    page.context.close()


def test_a_mention_becomes_a_link_and_a_document_is_edited_without_scripts(visit: Visit) -> None:
    page = visit.page(java_script_enabled=False, viewport={"width": 360, "height": 800})
    for title, text in (("Tool Shed", "It is locked."), ("Tour", "The Tool Shed comes last.")):
        page.goto("/inbox")
        page.click("summary:has-text('Or write a text')")
        page.fill("textarea[name=text]", text)
        page.fill("[name=title]", title)
        page.click("button:text-is('Take it in')")
    page.goto("/documents")
    page.click("a.main:has-text('Tool Shed')")
    page.click("text=Links and related documents")
    page.click("text=Make it a link")
    assert "[[Tool Shed]] comes last." in page.inner_text("main")
    page.click("button:text-is('Make it a link')")
    assert "It is a link now." in page.inner_text(".notice")
    page.click("summary:text-is('Edit')")
    page.fill("#text", "The [[Tool Shed]] comes first.")
    page.click("text=Write a new version")
    assert "comes first" in page.inner_text(".text")
    page.click("text=Take the change back")
    assert "comes last" in page.inner_text(".text")
    page.context.close()


def test_a_file_is_dropped_into_the_inbox(visit: Visit) -> None:
    page = visit.page()
    page.goto("/inbox")
    page.evaluate("""() => {
        const files = new DataTransfer();
        files.items.add(new File(["The shutters are blue."], "shutters.txt"));
        const drop = new DragEvent("drop", {dataTransfer: files, bubbles: true, cancelable: true});
        document.querySelector("[data-drop]").dispatchEvent(drop);
    }""")
    page.wait_for_selector(".notice")
    page.goto("/documents")
    assert "shutters.txt" in page.inner_text("#list")
    assert visit.problems == []
    page.context.close()


def test_the_graph_is_drawn_and_a_filter_narrows_a_list(visit: Visit) -> None:
    page = visit.page()

    def come_late(route: sync_api.Route) -> None:
        page.wait_for_timeout(500)
        route.continue_()

    page.route("**/cytoscape.min.js", come_late)
    page.goto("/graph?name=Rui Santos")
    page.wait_for_selector("#graph.is-drawn canvas")
    page.goto("/memories")
    page.click("summary:has-text('Filter and sort')")
    page.fill("[name=tag]", "nothing-has-this-tag")
    page.press("[name=tag]", "Tab")
    page.wait_for_selector("text=No memories here")
    assert visit.problems == []
    page.context.close()


def test_without_scripts_everything_is_there(visit: Visit) -> None:
    page = visit.page(java_script_enabled=False)
    page.goto("/")
    page.fill("#question", QUESTION)
    page.click(".ask button.primary")
    assert "4711" in page.inner_text(".answer")
    page.click("button[name=verdict] >> nth=0")
    assert "noted with the question" in page.inner_text(".notice")
    page.goto("/graph?name=Rui Santos")
    assert "Ann Lee" in page.inner_text(".picture")
    page.goto("/inbox")
    page.set_input_files(
        "#files", {"name": "tiles.txt", "mimeType": "text/plain", "buffer": b"The tiles came."}
    )
    page.click("text=Take them in")
    page.goto("/documents")
    assert "tiles.txt" in page.inner_text("#list")
    page.context.close()


def test_a_server_that_was_started_for_tabs_ends_with_the_last(
    visit: Visit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memctl.server.http_server._SECONDS_WITHOUT_TABS", 1.0)
    home = Home(load_config({"home": str(tmp_path / "home")}, {}))
    home.create("default")
    with running(home, ends_with_tabs=True) as (address, server):
        context = visit.stranger(address.url)
        first, second = context.new_page(), context.new_page()
        first.goto(address.login)
        second.goto("/insights")
        second.goto("/memories")
        first.close()
        second.wait_for_timeout(1500)
        second.goto("/documents")
        assert server.is_alive()
        second.close()
        wait_for(lambda: not server.is_alive())
        context.close()
