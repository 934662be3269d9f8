"""The web page: every view, as people see it and as JSON, and what it changes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
import pytest
from httpx import Response
from serving import URL, Serve, listening, serving
from starlette.testclient import TestClient
from typer.testing import CliRunner
from web_home import PAGES, THINGS, TITLE, fill

from memctl.cli.main import all_commands, run
from memctl.config import load_config
from memctl.home import Home
from memctl.server.web import overview_pages
from memctl.upkeep.runner import Upkeep

JSON = {"Accept": "application/json"}
HTML = {"Accept": "text/html"}
NOTE = """---
title: Agreements
date: 2026-04-03
---

We decided that [[Mara]] keeps the spare keys. The van has to be returned to Quayside Estates by
20 April 2026.
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """A home with documents, a conversation and insights, served."""
    home: Path = tmp_path_factory.mktemp("web") / "home"
    with serving(home) as made:
        fill(made.home)
        yield made


@pytest.fixture(scope="module")
def browser(served: Serve) -> TestClient:
    """A browser that came by the login link."""
    return logged_in(served)


def logged_in(served: Serve) -> TestClient:
    client = served.browser()
    client.get(served().post("/v1/login").json()["path"])
    client.headers.update(HTML)
    return client


def post(browser: TestClient, path: str, **fields: Any) -> Response:
    """Send a form as a browser does, and follow where it leads."""
    return browser.post(path, data=fields, headers={"Origin": URL})


def take_in(served: Serve, folder: Path) -> None:
    """Have a note remembered, and consolidate."""
    file = folder / "note.md"
    file.write_text(NOTE, "utf-8")
    with served.home.open("default") as base:
        base.ingest([str(file)])
        base.consolidate()


def noted(served: Serve, text: str, title: str) -> str:
    """Have a text remembered, and return the id of its document."""
    with served.home.open("default") as base:
        id_ = base.ingest(text=text, title=title).outcomes[0].document_id
    assert id_ is not None
    return id_


def text_area(page: Response) -> str:
    """Return what a browser has in the text area of a page."""
    (found,) = re.findall(r"<textarea[^>]*>(.*?)</textarea>", page.text, re.DOTALL)
    return unescape(found).removeprefix("\n")


def first(browser: TestClient, path: str, **wanted: Any) -> dict[str, Any]:
    """Return the first row of a list that has some values."""
    rows = browser.get(path, headers=JSON).json()["rows"]
    return next(row for row in rows if all(row[key] == value for key, value in wanted.items()))


# --- every page -----------------------------------------------------------------------------------


class Tags(HTMLParser):
    """Notes the tags of a page, and what of it could act."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.acting: list[str] = []
        self.addresses: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        given = dict(attrs)
        self.tags.append(tag)
        self.acting += [name for name in given if name.startswith("on") or name == "style"]
        if tag == "style" or (tag == "script" and not given.get("src")):
            self.acting.append(tag)
        self.addresses += [str(given[name]) for name in ("src", "href", "action") if name in given]


def check(page: Response) -> Tags:
    """Check what holds of every page, and return its tags."""
    assert page.status_code == 200, page.text
    policy = page.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert page.headers["cache-control"] == "no-store"
    found = Tags(page.text)
    assert found.acting == []
    assert all(
        each.startswith(("/", "#", "?")) and not each.startswith("//") for each in found.addresses
    )
    assert found.tags.count("main") == found.tags.count("h1") == 1
    assert "<script>alert" not in page.text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", page.text)
    return found


@pytest.mark.parametrize("path", [*PAGES, *THINGS])
def test_a_page_has_nothing_that_acts_and_nothing_from_elsewhere(
    browser: TestClient, path: str
) -> None:
    page = browser.get(path)
    check(page)
    assert "<img" not in page.text


@pytest.mark.parametrize("path", [*PAGES, *THINGS])
def test_every_page_is_json_too(browser: TestClient, path: str) -> None:
    found = browser.get(path, headers=JSON)
    assert found.headers["content-type"] == "application/json"
    assert isinstance(found.json(), dict)
    mark = "&" if "?" in path else "?"
    assert browser.get(f"{path}{mark}format=json").json().keys() == found.json().keys()


def test_a_pool_shows_who_may_use_it_and_what_they_share(browser: TestClient) -> None:
    listed = first(browser, "/pools")
    assert (listed["kb"], listed["pool_id"], listed["version"]) == ("default", "ops", 2)
    state = browser.get("/pools/ops", headers=JSON).json()
    assert state["data"]["agent_bulletin"] == {"market": {"regime": "risk_off"}}
    assert state["pool"]["access_control"]["write"] == ["helper"]
    assert [each["version"] for each in state["history"]] == [2, 1]
    shown = browser.get("/pools/ops").text
    for words in ("&lt;b&gt;calm&lt;/b&gt; \\u202e", "risk_off", "helper"):
        assert words in shown
    assert browser.get("/pools/none").status_code == 404


def test_skills_are_listed_found_and_shown_with_what_is_proposed(browser: TestClient) -> None:
    def names(address: str) -> list[str]:
        return [each["name"] for each in browser.get(address, headers=JSON).json()["rows"]]

    assert names("/skills") == ["Painting doors", "Painting walls"]
    assert names("/skills?status=active") == names("/skills?q=paint a door") == ["Painting doors"]
    assert browser.get("/skills?status=lost").status_code == 400
    drafts = browser.get("/skills?status=draft", headers=JSON).json()
    assert [each["name"] for each in drafts["rows"]] == ["Painting walls"]
    assert [each["status"] for each in drafts["proposals"]] == ["submitted"]
    assert "Oiling hinges" in browser.get("/skills?status=draft").text
    skill = browser.get("/skills/painting-doors", headers=JSON).json()
    assert skill["text"].endswith("Sand first. <script>alert(3)</script>\n")
    assert skill["details"]["versions"][0]["is_active"] is True
    assert "Sand first. &lt;script&gt;" in browser.get("/skills/painting-doors?version=1").text
    assert browser.get("/skills/painting-doors?version=9").status_code == 404
    assert browser.get("/skills/none").status_code == 404


def test_every_link_of_every_page_leads_somewhere(browser: TestClient) -> None:
    met: set[str] = set()
    waiting = list(PAGES)
    while waiting:
        path = waiting.pop()
        if path in met:
            continue
        met.add(path)
        page = browser.get(path)
        assert page.status_code == 200, path
        if page.headers["content-type"].startswith("text/html"):
            found = Tags(page.text).addresses if len(met) < 150 else []
            waiting += [
                each.partition("#")[0] for each in found
                if each.startswith("/") and "/forget" not in each and "logout" not in each
                and not each.endswith(("/ask", "/feedback", "/edit", "/reprocess", "/archive"))
                and not each.startswith(("/inbox/", "/upkeep/consolidate", "/settings/models"))
            ]  # fmt: skip
    assert len(met) > 40


def test_the_address_of_a_form_leads_to_its_page(browser: TestClient) -> None:
    memory = first(browser, "/memories")["id"]
    for path, page in (
        ("/ask", "/"), ("/feedback", "/"), ("/upkeep/consolidate?kb=default", "/upkeep?kb=default"),
        (f"/memories/{memory}/edit", f"/memories/{memory}"),
    ):  # fmt: skip
        found = browser.get(path)
        check(found)
        assert str(found.url) == URL + page
    assert browser.get("/ask", headers=JSON).status_code == 405


def test_nothing_is_shown_without_the_login(served: Serve) -> None:
    stranger = served.browser()
    for path in PAGES:
        page = stranger.get(path, headers=HTML)
        assert page.status_code == 401
        assert "memctl open" in page.text
    assert stranger.get("/static/style.css").status_code == 200
    assert stranger.get("/static/../pages.py").status_code in (401, 404)
    assert stranger.get("/login?code=old", headers=HTML).status_code == 403


def test_a_form_of_another_page_changes_nothing(served: Serve) -> None:
    browser = logged_in(served)
    for origin in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {}):
        refused = browser.post("/memories/new", data={"text": "An evil memory."}, headers=origin)
        assert refused.status_code == 403
    found = browser.get("/memories?level=all", headers=JSON).text
    assert "evil" not in found


def test_a_private_knowledge_base_is_not_there_unless_it_is_served(browser: TestClient) -> None:
    for path in ("/memories?kb=diary&level=all", "/documents?kb=diary", "/inbox?kb=diary"):
        assert browser.get(path).status_code == 404
    everything = "".join(browser.get(path).text for path in PAGES)
    assert "diary" not in everything
    assert "flower pot" not in everything


def test_a_page_that_is_not_there_says_so(browser: TestClient) -> None:
    for path in ("/memories/m_000000000000", "/documents/d_000000000000", "/sessions/none"):
        page = browser.get(path)
        assert page.status_code == 404
        assert "there is no" in page.text
    assert browser.get("/memories?offset=-1").status_code == 400
    nowhere = browser.get("/nowhere")
    assert nowhere.status_code == 404
    assert "<h1>Not found</h1>" in nowhere.text


def test_the_command_gives_a_link_into_the_server_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(load_config({"home": str(tmp_path / "home")}, {}))
    monkeypatch.setenv("MEMCTL_HOME", str(tmp_path / "home"))
    with listening(home) as address:
        done = CliRunner().invoke(all_commands(), ["open", "--print"])
        assert done.exit_code == 0, done.output
        assert done.stdout.startswith(f"{address.url}/login?code=")
        with httpx.Client(follow_redirects=True, headers=HTML) as client:
            assert "What would you like to know?" in client.get(done.stdout.strip()).text
        opened: list[str] = []
        monkeypatch.setattr("webbrowser.open", lambda link: opened.append(link) or True)
        assert CliRunner().invoke(all_commands(), ["open"]).exit_code == 0
    assert [link.partition("?")[0] for link in opened] == [f"{address.url}/login"]


def test_no_link_is_given_into_a_server_that_does_not_serve_what_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = Home(load_config({"home": str(tmp_path / "home")}, {}))
    home.create("default")
    home.create("diary", private=True)

    def open_page(*names: str) -> int:
        return run(["--home", str(home.config.home), "open", "--print", *names])

    with listening(home) as address:
        assert open_page("-k", "diary") == 2
        output = capsys.readouterr()
        assert output.out == ""
        assert "does not serve 'diary'" in output.err
        assert f"stop it (process {address.pid})" in output.err
        assert open_page("-k", "nowhere") == 10
        assert capsys.readouterr().out == ""
        assert open_page("-k", "default") == open_page() == 0
    with listening(home, kbs=("diary",)):
        assert open_page("-k", "diary") == open_page() == 0
        assert open_page("-k", "default") == 2


# --- changing a document --------------------------------------------------------------------------


def test_a_document_is_edited_and_the_change_taken_back(served: Serve, browser: TestClient) -> None:
    id_ = noted(served, "\nThe shed is <b>green</b>.\n\n  Its door sticks.\n", "Shed")
    page = browser.get(f"/documents/{id_}")
    check(page)
    assert text_area(page) == "\nThe shed is <b>green</b>.\n\n  Its door sticks.\n"
    text = text_area(page).replace("green", "red").replace("\n", "\r\n")  # as browsers send it
    edited = post(browser, f"/documents/{id_}/edit", kb="default", text=text)
    check(edited)
    assert "A new version was written" in edited.text
    assert "Take the change back" in edited.text
    new = edited.url.path.rpartition("/")[2]
    assert text_area(edited) == text.replace("\r\n", "\n")
    old = browser.get(f"/documents/{id_}")
    assert "there is a newer version" in old.text
    assert "<textarea" not in old.text
    back = post(browser, f"/documents/{new}/edit", kb="default", restore=id_)
    assert "as it was before" in back.text
    assert "<b>green</b>" in text_area(back)
    assert "Take the change back" not in back.text
    assert "Take the change back" not in browser.get(f"/documents/{new}?former={new}").text
    assert post(browser, f"/documents/{new}/edit", kb="default", text=" ").status_code == 409
    empty = post(browser, f"{back.url.path}/edit", kb="default", text=" ")
    assert empty.status_code == 400


def test_a_late_change_of_a_document_is_shown_beside_what_holds_now(
    served: Serve, browser: TestClient
) -> None:
    id_ = noted(served, "The fence is white.", "Fence")
    post(browser, f"/documents/{id_}/edit", kb="default", text="The fence is blue.")
    late = post(browser, f"/documents/{id_}/edit", kb="default", text="The fence is <i>black</i>.")
    assert late.status_code == 409
    assert "The fence is blue." in late.text
    assert text_area(late) == "The fence is <i>black</i>."
    as_json = {"text": "The fence is black.", "kb": "default"}
    reply = browser.post(f"/documents/{id_}/edit", json=as_json, headers={**JSON, "Origin": URL})
    assert reply.status_code == 409
    assert reply.json()["text"] == "The fence is blue."
    (again,) = re.findall(r'action="(/documents/[^"]+/edit)"', late.text)
    over = post(browser, again, kb="default", text=text_area(late))
    assert text_area(over) == "The fence is <i>black</i>."


def test_a_mention_becomes_a_link_on_the_page(served: Serve, browser: TestClient) -> None:
    target = noted(served, "It opens at nine.", "Boat House")
    source = noted(served, "Boat House keys hang in the hall.", "Keys")
    links = browser.get(f"/documents/{target}/links")
    check(links)
    (asked,) = re.findall(r'href="([^"]+/link\?[^"]+)"', links.text)
    preview = browser.get(unescape(asked))
    check(preview)
    assert "<bdi>[[Boat House]] keys hang in the hall.</bdi>" in preview.text
    assert browser.get(f"/documents/{source}").status_code == 200
    (action,) = re.findall(r'method="post" action="([^"]+)"', preview.text)
    made = post(browser, unescape(action))
    assert "It is a link now." in made.text
    assert text_area(made) == "[[Boat House]] keys hang in the hall."
    assert post(browser, unescape(action)).status_code == 409, "it is one already"
    new = made.url.path.rpartition("/")[2]
    back = post(browser, f"/documents/{new}/edit", kb="default", restore=source)
    assert text_area(back) == "Boat House keys hang in the hall."


def test_no_link_is_offered_in_a_document_that_cannot_be_changed(
    served: Serve, browser: TestClient, tmp_path: Path
) -> None:
    target = noted(served, "It is painted in May.", "Fog Signal")
    with served.home.open("default") as base:
        table = tmp_path / "jobs.csv"
        table.write_text("what,who\nFog Signal,Rui\n")
        assert base.ingest(table).ingested == 1
    links = browser.get(f"/documents/{target}/links")
    assert "Named without a link in" in links.text
    assert "Make it a link" not in links.text


# --- asking ---------------------------------------------------------------------------------------


def test_an_answer_cites_the_characters_of_a_document(browser: TestClient) -> None:
    page = post(browser, "/ask", question="what is the code of the door?")
    check(page)
    assert "4711" in page.text
    link = re.search(r'href="(/documents/[^"]*start=(\d+)[^"]*end=(\d+)[^"#]*)#cited"', page.text)
    assert link is not None
    document = browser.get(unescape(link[1]))
    cited = re.search(r'<mark id="cited">(.*?)</mark>', document.text, re.DOTALL)
    assert cited is not None
    text = browser.get(unescape(link[1]), headers=JSON).json()["document"]["text"]
    shown = unescape(re.sub("<.*?>", "", cited[1])).replace("\\x07", "\x07")
    assert text[int(link[2]) : int(link[3])].startswith(shown)


def test_an_answer_is_the_json_of_the_command_line(served: Serve, browser: TestClient) -> None:
    asked = {"question": "what is the rent of the Harbour Street workshop?"}
    given = browser.post("/ask", data=asked, headers={**JSON, "Origin": URL}).json()
    with served.home.open("default") as base:
        expected = base.query(asked["question"])
    assert given["answer"]["text"] == expected.answer.text
    assert [hit["memory_id"] for hit in given["hits"]] == [hit.memory_id for hit in expected.hits]


def test_the_page_says_when_memory_has_no_answer(browser: TestClient) -> None:
    page = post(browser, "/ask", question="who won the chess championship in Reykjavik?")
    assert "Not sure" in page.text or "Not in memory" in page.text


def test_an_answer_can_be_judged(served: Serve, browser: TestClient) -> None:
    page = post(browser, "/ask", question="what is the code of the door?")
    query_id = re.search(r'name="query_id" value="([^"]+)"', page.text)
    assert query_id is not None
    done = post(browser, "/feedback", query_id=query_id[1], verdict="good")
    assert "noted with the question" in done.text
    with served.home.open("default") as base:
        assert base.statistics.queries().good >= 1


def test_a_question_without_words_is_refused(browser: TestClient) -> None:
    assert post(browser, "/ask", question=" ?! ").status_code == 400


# --- memories -------------------------------------------------------------------------------------


def test_a_memory_is_added_edited_and_forgotten(served: Serve, browser: TestClient) -> None:
    page = post(browser, "/memories/new", text="The lift is\r\nout of order.", tags="#lift house")
    check(page)
    added = first(browser, "/memories", text="The lift is\nout of order.")
    assert added["tags"] == ["lift", "house"]
    path = f"/memories/{added['id']}"
    unchanged = post(
        browser, f"{path}/edit", text=added["text"], type=added["type"], tags="lift house"
    )
    assert unchanged.status_code == 400
    page = post(
        browser, f"{path}/edit", text="The lift works again.", tags="lift", importance="0.9"
    )
    assert "A new version was written" in page.text
    assert "out of order" in page.text
    edited = first(browser, "/memories", text="The lift works again.")
    assert (edited["tags"], edited["importance"], edited["version"]) == (["lift"], 0.9, 2)
    path = f"/memories/{edited['id']}"
    preview = browser.get(f"{path}/forget")
    check(preview)
    assert "Forget for good" in preview.text
    with served.home.open("default") as base:
        assert base.memories.get(edited["id"]).memory.text == "The lift works again."
    done = post(browser, f"{path}/forget", how="forget")
    assert "Forgotten for good" in done.text
    assert browser.get(path).status_code == 404


def test_a_memory_of_the_page_is_the_row_of_the_command_line(served: Serve) -> None:
    browser = logged_in(served)
    post(browser, "/memories/new", text="The kiln is fired on Mondays.")
    made = first(browser, "/memories", text="The kiln is fired on Mondays.")
    post(browser, f"/memories/{made['id']}/forget", how="delete")
    with served.home.open("default") as base:
        base.memories.add("The kiln is fired on Mondays.")
    again = first(browser, "/memories", text="The kiln is fired on Mondays.")
    changing = {"id", "created_at", "valid_from", "access_count", "last_accessed_at"}
    assert {key: made[key] for key in made if key not in changing} == {
        key: again[key] for key in again if key not in changing
    }


def test_memories_are_filtered_and_sorted(browser: TestClient) -> None:
    post(browser, "/memories/new", text="Blue is the colour.", type="preference", tags="paint")
    for query in ("type=preference", "tag=paint", "sort=importance", "since=2026-01-01"):
        assert any(
            row["text"] == "Blue is the colour."
            for row in browser.get(f"/memories?{query}", headers=JSON).json()["rows"]
        )
    assert browser.get("/memories?tag=none", headers=JSON).json()["total"] == 0
    rows = browser.get("/memories", headers=JSON).json()["rows"]
    least = sorted(row["importance"] for row in rows)[len(rows) // 2]
    kept = browser.get(f"/memories?importance={least}", headers=JSON).json()["rows"]
    important = {row["id"] for row in rows if row["importance"] >= least}
    assert {row["id"] for row in kept} == important
    assert 'name="importance"' in browser.get("/memories").text
    assert browser.get("/memories?importance=2").status_code == 400
    assert browser.get("/memories?sort=sideways").status_code == 400


def test_a_list_shows_statements_without_what_stands_beside_them(
    served: Serve, tmp_path: Path
) -> None:
    take_in(served, tmp_path)
    browser = logged_in(served)
    said = next(
        row for row in browser.get("/memories", headers=JSON).json()["rows"]
        if row["title"] == "Agreements" and row["type"] == "decision"
    )  # fmt: skip
    assert said["text"].startswith("Agreements (3 April 2026): ")
    for page in ("/memories", f"/documents/{said['document_id']}"):
        text = browser.get(page).text
        assert ">We decided that Mara keeps the spare keys" in text
        assert "Agreements (3 April 2026): " not in text


def test_a_passage_cannot_be_edited(browser: TestClient) -> None:
    passage = first(browser, "/memories?level=evidence")
    page = browser.get(f"/memories/{passage['id']}")
    assert "stays as its document has it" in page.text
    refused = post(browser, f"/memories/{passage['id']}/edit", text="Something else.")
    assert refused.status_code == 400


def test_lists_come_in_pages_of_fifty(served: Serve) -> None:
    with served.home.open("default") as base:
        base.ingest(text="\n\n".join(f"# Part {n}\n\nWe decided on plan {n}." for n in range(70)))
    browser = logged_in(served)
    page = browser.get("/memories?level=all", headers=JSON).json()
    assert len(page["rows"]) == 50
    assert page["next_offset"] == 50
    rest = browser.get("/memories?level=all&offset=50", headers=JSON).json()
    assert not {row["id"] for row in page["rows"]} & {row["id"] for row in rest["rows"]}
    assert 'rel="next"' in browser.get("/memories?level=all").text


# --- documents ------------------------------------------------------------------------------------


def test_a_document_with_a_script_in_it_does_nothing(browser: TestClient) -> None:
    document = first(browser, "/documents", title=TITLE)
    page = browser.get(f"/documents/{document['id']}")
    check(page)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page.text
    assert "\\x1b[31m\\u202egpj.exe" in page.text
    assert "The code of the \\x07door" in page.text


def test_statements_are_marked_where_they_stand(browser: TestClient) -> None:
    document = first(browser, "/documents", title=TITLE)
    page = browser.get(f"/documents/{document['id']}").text
    said = re.findall(r'<a class="said" href="/memories/(m_\w+)[^"]*">(.*?)</a>', page, re.DOTALL)
    assert any("paint the door green" in text for _, text in said)


def test_a_file_dropped_on_the_page_becomes_a_document_with_a_receipt(
    served: Serve, browser: TestClient
) -> None:
    files = [
        ("files", ("notes/../../stairs.txt", b"The stairs are swept on Fridays by Rui Santos."))
    ]
    page = browser.post("/inbox", files=files, headers={"Origin": URL})
    check(page)
    assert "Received" in page.text
    document = first(browser, "/documents", source="stairs.txt")
    shown = browser.get(f"/documents/{document['id']}")
    assert "How it came here" in shown.text
    with served.home.open("default") as base:
        (receipt,) = base.documents.provenance("stairs.txt")
    assert receipt.document_id == document["id"]
    assert receipt.path.endswith("inbox/stairs.txt")
    assert unescape(receipt.path) in unescape(shown.text)


def test_a_long_document_leads_from_part_to_part(
    served: Serve, browser: TestClient, tmp_path: Path
) -> None:
    long = tmp_path / "quay.txt"
    long.write_text("The quay is wet.\n" + " " * 999_970 + "\nThe quay is dry.\n")
    with served.home.open("default") as base:
        id_ = base.ingest([str(long)]).outcomes[0].document_id
    page = browser.get(f"/documents/{id_}").text
    assert "1 of 2" in page
    (there,) = re.findall(r'href="([^"]*)">next part<', page)
    page = browser.get(unescape(there)).text
    assert "The quay is dry." in page
    (back,) = re.findall(r'href="([^"]*)">previous part<', page)
    assert "The quay is wet." in browser.get(unescape(back)).text


def test_a_file_that_fails_can_be_tried_again(served: Serve, browser: TestClient) -> None:
    bad = [("files", ("broken.pdf", b"%PDF-1.7 and no more"))]
    page = browser.post("/inbox", files=bad, headers={"Origin": URL})
    check(page)
    assert "Try broken.pdf again" in page.text
    failed = served.home.layout("default").failed / "broken.pdf"
    failed.write_text("The boiler is serviced in October.")
    failed.rename(failed.with_name("boiler.txt"))
    page = post(browser, "/inbox/try-again", file="boiler.txt", kb="default")
    assert "Tried again" in page.text
    assert first(browser, "/documents", source="boiler.txt")
    assert (
        post(browser, "/inbox/try-again", file="../../config.toml", kb="default").status_code == 404
    )


def test_a_text_can_be_written_into_the_inbox(browser: TestClient) -> None:
    page = post(browser, "/inbox", text="The attic is dry.", title="Attic")
    assert "Received" in page.text
    assert first(browser, "/documents", title="Attic")


def test_nothing_sent_to_the_inbox_is_refused(browser: TestClient) -> None:
    assert post(browser, "/inbox", text=" ").status_code == 400
    hidden = [("files", (".bashrc", b"alias"))]
    refused = browser.post("/inbox", files=hidden, headers={"Origin": URL})
    assert refused.status_code == 400


def test_waiting_inbox_files_are_listed_and_ingested(served: Serve, browser: TestClient) -> None:
    (served.home.layout("default").inbox / "cellar.txt").write_text("The cellar is damp.")
    page = browser.get("/inbox?kb=default")
    assert "cellar.txt" in page.text
    post(browser, "/inbox/take-in", kb="default")
    assert first(browser, "/documents", source="cellar.txt")


def test_a_document_is_read_again_and_forgotten(browser: TestClient) -> None:
    files = [("files", ("attic.txt", b"The roof was mended in April by Brandstad Metal."))]
    browser.post("/inbox", files=files, headers={"Origin": URL})
    document = first(browser, "/documents", source="attic.txt")
    again = post(browser, f"/documents/{document['id']}/reprocess", kb="default")
    assert "Read again" in again.text
    preview = browser.get(f"/documents/{document['id']}/forget")
    check(preview)
    assert "What goes" in preview.text
    post(browser, f"/documents/{document['id']}/forget", how="forget", kb="default")
    assert browser.get(f"/documents/{document['id']}").status_code == 404


# --- what memories say together -------------------------------------------------------------------


def test_insights_show_what_they_rest_on(browser: TestClient) -> None:
    found = browser.get("/insights", headers=JSON).json()["rows"]
    assert found
    page = browser.get("/insights")
    assert f'href="/memories/{found[0]["source_ids"][0]}' in page.text


def test_insights_of_one_kind_are_found_behind_the_first_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(tmp_path / "home") as served:
        fill(served.home)
        due = datetime.now(UTC) - timedelta(days=5)
        with served.home.open("default") as base:
            said, day = due - timedelta(days=20), f"{due.day} {due:%B %Y}"
            text = f"We decided that the van has to be returned to Harrow Motors by {day}."
            file = tmp_path / f"{said:%Y-%m-%d} van.md"
            file.write_text(text, "utf-8")
            base.ingest([str(file)])
            base.consolidate()
        browser = logged_in(served)
        found = browser.get("/insights", headers=JSON).json()["rows"]
        kinds = {row["metadata"]["kind"] for row in found}
        assert len(kinds) > 1
        monkeypatch.setattr("memctl.server.web.overview_pages._INSIGHT_ROWS", 1)
        for kind in kinds:
            rows = browser.get(f"/insights?kind={kind}", headers=JSON).json()["rows"]
            assert [row["metadata"]["kind"] for row in rows] == [kind]


def test_a_consolidation_is_taken_back(browser: TestClient) -> None:
    job = next(
        job for job in browser.get("/upkeep", headers=JSON).json()["bases"][0]["jobs"]
        if job["can_be_undone"]
    )  # fmt: skip
    path = f"/upkeep/jobs/{job['id']}"
    check(browser.get(f"{path}?kb=default"))
    page = post(browser, path, kb="default", again="1")
    assert "Taken back" in page.text
    assert browser.get("/insights", headers=JSON).json()["rows"] == []
    post(browser, "/upkeep/consolidate", kb="default")
    assert browser.get("/insights", headers=JSON).json()["rows"]


def test_upkeep_says_when_each_job_runs(served: Serve, browser: TestClient) -> None:
    (state,) = browser.get("/upkeep", headers=JSON).json()["bases"]
    with served.home.open("default") as base:
        jobs = [each.job for each in Upkeep(base, served.home).statuses()]
    assert [each["job"] for each in state["schedules"]] == jobs
    page = browser.get("/upkeep")
    check(page)
    assert "Schedules" in page.text


def test_the_timeline_goes_by_day_and_back_in_time(browser: TestClient) -> None:
    page = browser.get("/timeline?by=known")
    check(page)
    assert browser.get("/timeline?by=known", headers=JSON).json()["rows"]
    before = browser.get("/timeline?as_of=2020-01-01", headers=JSON).json()
    assert before["rows"] == []
    assert browser.get("/timeline?by=known&until=2020-01-01", headers=JSON).json()["rows"] == []


def test_the_graph_says_the_same_as_its_list(browser: TestClient) -> None:
    found = browser.get("/graph?name=Rui Santos", headers=JSON).json()
    assert len(found["nodes"]) <= 200
    names = {node["name"] for node in found["nodes"]}
    assert {each["name"] for each in found["neighbours"]} == names - {"Rui Santos"}
    page = browser.get("/graph?name=Rui Santos")
    check(page)
    assert "Ann Lee" in page.text
    assert browser.get("/graph?name=santos", headers=JSON).json()["name"] == "Rui Santos"
    assert browser.get("/graph?q=santos", headers=JSON).json()["names"]
    assert "1 mentions" not in page.text + browser.get("/graph?q=santos&overview=1").text


def test_names_that_belong_together_have_one_colour(
    served: Serve, browser: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    circles = (("Uma Berg", "Nils Aune", "Tor Moen"), ("Lea Brun", "Max Ott", "Eva Kern"))
    with served.home.open("default") as base:
        for circle in circles:
            people = ", ".join(circle)
            for day in ("Monday", "Tuesday"):
                base.ingest(text=f"{people} and Jo Falk met on {day}.")
    found = browser.get("/graph?name=Jo Falk", headers=JSON).json()
    community = {node["name"]: node["community"] for node in found["nodes"]}
    assert community["Jo Falk"] == 0
    assert [{community[name] for name in circle} for circle in circles] in ([{1}, {2}], [{2}, {1}])
    page = browser.get("/graph?name=Jo Falk")
    check(page)
    assert page.text.count('data-community="2"') == 3
    monkeypatch.setattr(overview_pages, "_MAX_EDGES", 1)
    fewer = browser.get("/graph?name=Jo Falk", headers=JSON).json()
    assert (fewer["nodes"], len(fewer["edges"])) == (found["nodes"], 1)


def test_the_graph_is_narrowed_to_relations_of_one_type(browser: TestClient) -> None:
    post(browser, "/memories/new", text="Ann Lee works at Acme.", type="fact")
    found = browser.get("/graph?name=Ann Lee", headers=JSON).json()
    assert len(found["relations"]) > 1
    query = {"name": "Ann Lee", "relation": "works_at"}
    narrowed = browser.get("/graph", params=query, headers=JSON).json()
    assert [each["name"] for each in narrowed["neighbours"]] == ["Acme"]
    assert narrowed["relations"] == found["relations"]
    page = browser.get("/graph", params=query)
    check(page)
    assert '<option value="works_at" selected>' in page.text
    assert browser.get("/graph?name=Nobody at all").status_code == 404


def test_a_conversation_is_shown_and_archived(browser: TestClient) -> None:
    page = browser.get("/sessions/talk")
    check(page)
    assert "&lt;b&gt;tea&lt;/b&gt;" in page.text
    done = post(browser, "/sessions/talk/archive", kb="default")
    assert "Summarised and archived" in done.text
    assert browser.get("/sessions/talk", headers=JSON).json()["session"]["status"] == "archived"


# --- the rest -------------------------------------------------------------------------------------


def test_settings_show_no_key(served: Serve, browser: TestClient) -> None:
    page = browser.get("/settings")
    check(page)
    assert "watch.settle_seconds" in page.text
    assert served().headers["Authorization"].partition(" ")[2] not in page.text
    tested = post(browser, "/settings/models")
    assert "No model is configured" in tested.text


def test_a_server_that_only_reads_offers_no_change(served: Serve) -> None:
    client = served(read_only=True)
    page = client.get("/memories", headers=HTML)
    assert "only reads" in page.text
    assert "Add a memory" not in page.text
    refused = client.post("/memories/new", json={"text": "No."}, headers=HTML)
    assert refused.status_code == 403
    id_ = noted(served, "The barn is old.", "Barn")
    assert "The barn is old." in client.get(f"/documents/{id_}", headers=HTML).text
    assert "<textarea" not in client.get(f"/documents/{id_}", headers=HTML).text
    refused = client.post(f"/documents/{id_}/edit", json={"text": "No."}, headers=HTML)
    assert refused.status_code == 403


def test_an_empty_home_says_what_to_do_first(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as empty:
        browser = logged_in(empty)
        for path in PAGES:
            assert browser.get(path).status_code == 200, path
        assert "Nothing is remembered yet" in browser.get("/").text
        page = post(browser, "/memories/new", text="This is the first.")
        assert "Remembered" in page.text


def test_a_page_shows_what_links_to_it_what_names_it_and_what_is_like_it(
    served: Serve, browser: TestClient
) -> None:
    with served.home.open("default") as base:
        for title, text in (
            ("Slipway Rules", "The slipway is closed at low tide."),
            ("Harbour Log", "Read [[Slipway Rules]] and [[Tide Table]] first."),
            ("Tide Memo", "By the slipway rules the slipway is closed at low tide."),
        ):
            base.ingest(text=text, title=title)
        ids = {row["title"]: row["id"] for row in base.documents.list().to_pylist()}
    path = f"/documents/{ids['Slipway Rules']}/links"
    found = browser.get(path, headers=JSON).json()
    titles = {
        name: [row["title"] for row in found[name]]
        for name in ("backlinks", "unlinked_mentions", "related")
    }
    assert (titles["backlinks"], titles["unlinked_mentions"]) == (["Harbour Log"], ["Tide Memo"])
    assert "Tide Memo" in titles["related"]
    shown = browser.get(path).text
    assert "Linked from" in shown
    assert "Named without a link in" in shown
    log = browser.get(f"/documents/{ids['Harbour Log']}").text
    rules = ids["Slipway Rules"]
    assert f'<a href="/documents/{rules}?kb=default">[[Slipway Rules]]</a>' in log
    assert "[[Tide Table]]" in re.sub(r"<a .*?</a>", "", log), "it leads nowhere"
    out = browser.get(f"/documents/{ids['Harbour Log']}/links", headers=JSON).json()["links"]
    assert {row["name"]: row["status"] for row in out} == {
        "Slipway Rules": "resolved", "Tide Table": "missing",
    }  # fmt: skip


def test_every_link_of_the_piece_that_is_shown_leads_on(served: Serve, browser: TestClient) -> None:
    anchor = noted(served, "The anchor winch is oiled in spring.", "Anchor Winch")
    links = "\n".join(["[[Anchor Winch]] and [[Anchor Chain]]"] * 2_000)
    index = noted(served, links, "Winch Index")
    link = f'<a href="/documents/{anchor}?kb=default">[[Anchor Winch]]</a>'
    page = browser.get(f"/documents/{index}?from=20000").text
    assert page.count(link) == len(links[20_000:40_000].split("[[Anchor Winch]]")) - 1 > 500
