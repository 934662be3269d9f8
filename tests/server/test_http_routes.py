"""Each route of the HTTP server, against what the command line says of the same home."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from serving import Serve, serving
from starlette.testclient import TestClient

from memctl.cli.main import run
from memctl.forget import Selection
from memctl.server.http_endpoints import ARROW

INBOX = Path(__file__).parents[2] / "sample_inbox"
KB = "/v1/kbs/notes"


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """A home with the sample inbox, and what serves it."""
    with serving(tmp_path_factory.mktemp("routes") / "home") as made:
        made.home.create("notes")
        with made.home.open("notes") as base:
            base.ingest([INBOX])
            base.consolidate()
        yield made


@pytest.fixture
def client(serve: Serve) -> TestClient:
    """A client that has the token."""
    return serve()


@pytest.fixture
def command(serve: Serve) -> Any:
    """Runs a command on the same home, and returns its JSON."""

    def run_command(*words: str) -> Any:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = run(["--home", str(serve.home.config.home), *words, "-o", "json"])
        assert code == 0, err.getvalue()
        return json.loads(out.getvalue())

    return run_command


def without(value: Any, *keys: str) -> Any:
    """A value without what differs from one call to the next."""
    if isinstance(value, dict):
        return {k: without(v, *keys) for k, v in value.items() if k not in keys}
    return [without(each, *keys) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/v1/kbs", "kb list"),
        (f"{KB}/memories?limit=7", "memory list -k notes -n 7"),
        (f"{KB}/memories?types=decision", "memory list -k notes --type decision"),
        (f"{KB}/memories?sort=importance&desc&offset=3&limit=4",
         "memory list -k notes --sort importance --desc --offset 3 -n 4"),
        (f"{KB}/insights", "insight list -k notes"),
        (f"{KB}/documents", "document list -k notes"),
        (f"{KB}/documents?source=*.md", "document list -k notes --source *.md"),
        (f"{KB}/jobs", "job list -k notes"),
        ("/v1/sessions", "session list -k notes"),
        (f"{KB}/pools", "pool list -k notes"),
    ],
)  # fmt: skip
def test_a_listing_has_the_rows_of_the_command(
    client: TestClient, command: Any, path: str, words: str
) -> None:
    reply = client.get(path)
    assert reply.status_code == 200, reply.text
    page = reply.json()
    assert page["items"] == command(*words.split())
    assert page["total"] >= len(page["items"])
    assert page["next"] is None or page["next"] < page["total"]


@pytest.mark.parametrize(
    ("path", "words"),
    [(KB, "kb show notes"), (f"{KB}/graph", "graph show -k notes"), ("/v1/stats", "stats")],
)
def test_an_item_is_shown_as_the_command_shows_it(
    client: TestClient, command: Any, path: str, words: str
) -> None:
    found, printed = client.get(path).json(), command(*words.split())
    changing = ("disk_bytes", "queries", "query_seconds")
    assert without(found, *changing) == without(printed, *changing)


def test_a_memory_and_a_document_are_shown_as_the_commands_show_them(
    client: TestClient, command: Any
) -> None:
    memory = client.get(f"{KB}/insights").json()["items"][0]["id"]
    document = client.get(f"{KB}/documents").json()["items"][0]["id"]
    changing = ("relevance", "access_count", "last_accessed_at")  # to show it is an access
    found = client.get(f"{KB}/memories/{memory}").json()
    assert without(found, *changing) == without(command("memory", "show", memory), *changing)
    history = client.get(f"{KB}/memories/{memory}/history").json()["items"]
    assert history == command("memory", "history", memory)
    shown = client.get(f"{KB}/documents/{document}")
    assert shown.json() == command("document", "show", document)
    assert shown.headers["etag"]
    for path in ("memories/m_000000000000", "documents/d_000000000000", "memories/x"):
        assert client.get(f"{KB}/{path}").status_code == 404


def test_a_question_is_answered_as_the_command_answers_it(client: TestClient, command: Any) -> None:
    question = "When is the launch?"
    printed = command("query", question, "-k", "notes")
    found = client.post("/v1/query", json={"question": question, "kbs": ["notes"]}).json()
    changing = ("seconds", "query_id")
    assert without(found, *changing) == without(printed, *changing)
    assert found["query_id"]
    context = client.post("/v1/context", json={"question": question, "budget": 300}).json()
    assert context["text"] == command("context", question, "--budget", "300")["text"]
    standing = {"standing": True, "headings": "plain", "budget": 300}
    first, again = (client.post("/v1/context", json=standing).json() for _ in range(2))
    words = ("--standing", "--headings", "plain", "--budget", "300")
    assert first == again == command("context", *words)
    assert first["tokens"] <= 300
    assert client.post("/v1/context", json={**standing, "headings": "loud"}).status_code == 422
    judged = client.post("/v1/feedback", json={"query_id": found["query_id"], "verdict": "good"})
    assert judged.json()["verdict"] == "good"
    assert client.post("/v1/query", json={"question": "?!"}).status_code == 422
    assert client.post("/v1/query", json={}).status_code == 422


def test_a_question_is_noted_with_the_conversation_that_its_header_names(
    client: TestClient, command: Any
) -> None:
    asked = {"question": "When is the launch?", "kbs": ["notes"]}
    headers = {"X-Memctl-Session": "monday"}
    for path in ("query", "context"):
        id_ = client.post(f"/v1/{path}", json=asked, headers=headers).json()["query_id"]
        statement = f"select session_id from queries where query_id = '{id_}'"
        assert command("sql", statement, "-k", "notes") == [{"session_id": "monday"}]


def test_an_answer_is_streamed_as_events(client: TestClient) -> None:
    asked = {"question": "What is the total of the fit-out budget?", "stream": True}
    reply = client.post("/v1/query", json=asked)
    assert reply.headers["content-type"].startswith("text/event-stream")
    events = [part.split("\n") for part in reply.text.strip().split("\n\n")]
    name, data = events[-1]
    assert name == "event: result"
    result = json.loads(data.removeprefix("data: "))
    assert result["answer"]["citations"]

    failed = client.post("/v1/query", json={**asked, "kbs": ["nowhere"]}).text
    assert "event: error" in failed
    assert '"code": 10' in failed


def test_rows_come_as_an_arrow_stream_where_that_is_accepted(
    client: TestClient, command: Any
) -> None:
    for path, words in (("memories", "memory"), ("documents", "document")):
        reply = client.get(f"{KB}/{path}?limit=5", headers={"Accept": ARROW})
        assert reply.headers["content-type"] == ARROW
        table = pa.ipc.open_stream(reply.content).read_all()
        printed = command(words, "list", "-k", "notes", "-n", "5")
        assert table["id"].to_pylist() == [row["id"] for row in printed]
        assert int(reply.headers["x-total-count"]) >= 5
    kbs = client.get("/v1/kbs", headers={"Accept": ARROW})
    assert pa.ipc.open_stream(kbs.content).read_all()["name"].to_pylist() == ["notes"]

    question = "When is the launch?"
    asked = {"question": question, "limit": 3, "answer": False}
    hits = client.post("/v1/query", json=asked, headers={"Accept": ARROW})
    assert hits.headers["content-type"] == ARROW
    printed = command("query", question, "-k", "notes", "-n", "3", "--no-answer")["hits"]
    ids = pa.ipc.open_stream(hits.content).read_all()["memory_id"].to_pylist()
    assert ids == [hit["memory_id"] for hit in printed]


def test_hits_that_are_none_have_their_columns_as_an_arrow_stream(client: TestClient) -> None:
    asked = {"question": "When is the launch?", "namespaces": ["nobody"]}
    reply = client.post("/v1/query", json=asked, headers={"Accept": ARROW})
    table = pa.ipc.open_stream(reply.content).read_all()
    assert table.num_rows == 0
    assert table.schema.field("memory_id").type == pa.string()
    assert table.schema.field("score").type == pa.float64()
    some = client.post(
        "/v1/query", json={"question": "When is the launch?"}, headers={"Accept": ARROW}
    )
    assert pa.ipc.open_stream(some.content).read_all().schema.equals(table.schema)
    sessions = client.get("/v1/sessions", headers={"Accept": ARROW})
    assert {"kb", "session_id", "status"} <= set(pa.ipc.open_stream(sessions.content).schema.names)


def test_numbers_that_json_has_not_are_refused(client: TestClient) -> None:
    body = '{"text": "The harbour office is in Lisbon.", "metadata": {"size": NaN}}'
    for path in ("memories", "ingest"):
        refused = client.post(
            f"{KB}/{path}", content=body, headers={"content-type": "application/json"}
        )
        assert refused.status_code == 422
        assert "NaN" in refused.json()["error"]["message"]


def test_an_option_of_another_mode_is_refused(client: TestClient) -> None:
    for option in ({"hops": 2}, {"communities": 3}, {"rounds": 2}):
        refused = client.post("/v1/query", json={"question": "When is the launch?", **option})
        assert refused.status_code == 400
        assert "mode" in refused.json()["error"]["message"]
    refused = client.post("/v1/context", json={"question": "When is the launch?", "hops": 2})
    assert refused.status_code == 400
    asked = {"question": "When is the launch?", "hops": 2, "mode": "graph"}
    assert client.post("/v1/query", json=asked).status_code == 200


def test_the_graph_is_asked_as_the_commands_ask_it(client: TestClient, command: Any) -> None:
    best = client.get(f"{KB}/graph").json()["best_connected"]
    one, other = best[0]["name"], best[1]["name"]
    near = client.get(f"{KB}/graph/neighbors", params={"name": one}).json()["items"]
    assert near == command("graph", "neighbors", one)
    part = client.get(f"{KB}/graph/neighbors", params={"name": one.split()[-1].lower()}).json()
    assert (part["name"], part["id"], part["items"]) == (one, best[0]["id"], near)
    steps = client.get(f"{KB}/graph/path", params={"name": one, "other": other}).json()["items"]
    assert steps == command("graph", "path", one, other)
    found = client.get(f"{KB}/graph/search", params={"q": one}).json()["items"]
    assert found == command("graph", "search", one)
    for kind in (best[0]["type"], "nothing"):
        typed = client.get(f"{KB}/graph/search", params={"q": one, "type": kind}).json()["items"]
        assert typed == command("graph", "search", one, "--type", kind)
        assert bool(typed) == (kind != "nothing")


def test_sql_is_read_only_and_bounded(client: TestClient, command: Any) -> None:
    statement = "select type, count(*) as n from memories group by type order by type"
    found = client.post("/v1/sql", json={"statement": statement})
    assert found.json()["items"] == command("sql", statement)
    assert client.post("/v1/sql", json={"statement": "drop table memories"}).status_code == 400
    assert client.post("/v1/sql", json={"statement": " "}).status_code == 422


def test_a_server_that_waits_keeps_nothing_on_disk_that_is_forgotten(
    serve: Serve, client: TestClient
) -> None:
    client.post("/v1/kbs", json={"name": "pier"})
    code = "quince-4711-harbour"
    made = client.post("/v1/kbs/pier/memories", json={"text": f"The code is {code}."}).json()
    asked = {"question": "what is the code?", "kbs": ["pier"]}
    assert code in client.post("/v1/query", json=asked).json()["answer"]["text"]
    with serve.home.open("pier") as base:
        assert base.forget(Selection(memories=(made["id"],))).left == ()
    assert client.post("/v1/query", json=asked).json()["hits"] == []
    client.delete("/v1/kbs/pier?yes=true")


def test_a_page_says_where_the_next_one_begins(client: TestClient) -> None:
    seen, offset = [], 0
    while offset is not None:
        page = client.get(f"{KB}/memories", params={"limit": 40, "offset": offset}).json()
        seen += [row["id"] for row in page["items"]]
        offset = page["next"]
    assert len(seen) == len(set(seen)) == page["total"]
    for wrong in ("limit=501", "limit=0", "limit=x", "offset=-1", "nothing=1", "limit=1&limit=2"):
        assert client.get(f"{KB}/memories?{wrong}").status_code == 422


def test_a_number_that_cannot_be_stored_is_refused(client: TestClient) -> None:
    id_ = client.post("/v1/sessions", json={"kbs": ["notes"]}).json()["session_id"]
    large = 10**20
    for method, path, body in (
        ("GET", f"/v1/sessions/{id_}?last={large}&kbs=notes", None),
        ("POST", f"/v1/sessions/{id_}/messages", {"content": "late", "turn": large}),
        ("GET", f"/api/kb/always-on/notes/memories?offset={large}", None),
        ("GET", f"/api/kb/always-on/notes/insights?offset={large}", None),
        ("GET", f"{KB}/skills/none/files/SKILL.md?version={large}", None),
    ):
        reply = client.request(method, path, json=body)
        assert (reply.status_code, str(large) in reply.text) == (422, True), path


@pytest.mark.parametrize("place", ["ingest", "memories"])
def test_arguments_in_the_address_of_a_write_are_refused(client: TestClient, place: str) -> None:
    before = client.get(f"{KB}/memories").json()["total"]
    refused = client.post(f"{KB}/{place}?dry_run=true", json={"text": "The crane is yellow."})
    assert refused.status_code == 422
    assert "dry_run" in refused.json()["error"]["message"]
    assert client.get(f"{KB}/memories").json()["total"] == before


def test_kb_in_the_address_is_refused_with_a_hint_where_the_body_takes_kbs(
    client: TestClient,
) -> None:
    refused = client.post("/v1/sessions?kb=notes", json={})
    assert refused.status_code == 422
    assert refused.json()["error"]["hint"] == 'put {"kbs": ["NAME"]} into the body'


def test_a_memory_is_added_changed_and_deleted(client: TestClient) -> None:
    stated = {"text": "The lift is broken.", "tags": ["lift"]}
    more = {"source": "api", "confidence": 0.5, "metadata": {"floor": 3}}
    made = client.post(f"{KB}/memories", json=stated | more)
    assert made.status_code == 201
    assert {key: made.json()[key] for key in more} == more
    learning = {"type": "learning", "metadata": {"outcome": "banana"}}
    refused = client.post(f"{KB}/memories", json=stated | learning)
    assert refused.status_code == 400
    assert "cannot be 'banana'" in refused.text
    id_ = made.json()["id"]
    shown = client.get(f"{KB}/memories/{id_}")
    etag = shown.headers["etag"]
    changed = {"text": "The lift works again."}
    stale = client.patch(f"{KB}/memories/{id_}", json=changed, headers={"If-Match": '"other"'})
    assert stale.status_code == 412
    edited = client.patch(f"{KB}/memories/{id_}", json=changed, headers={"If-Match": etag})
    assert edited.json()["version"] == 2
    for method in ("PATCH", "DELETE"):  # there is a newer version
        body = {"json": changed} if method == "PATCH" else {}
        late = client.request(method, f"{KB}/memories/{id_}", headers={"If-Match": etag}, **body)
        assert late.status_code == 412
    assert client.patch(f"{KB}/memories/{id_}", json={}).status_code == 400
    history = client.get(f"{KB}/memories/{id_}/history").json()["items"]
    assert [row["text"] for row in history] == ["The lift is broken.", "The lift works again."]
    assert client.delete(f"{KB}/memories/{id_}").json()["deleted"] == 2
    assert client.get(f"{KB}/memories/{id_}").status_code == 404


def test_a_knowledge_base_is_made_changed_and_removed(client: TestClient) -> None:
    made = client.post("/v1/kbs", json={"name": "scratch", "chunk_size": 500, "always_on": False})
    assert (made.status_code, made.json()["chunk_size"]) == (201, 500)
    assert client.post("/v1/kbs", json={"name": "scratch"}).status_code == 400
    changed = client.patch("/v1/kbs/scratch", json={"description": "tried", "status": "paused"})
    assert changed.json()["description"] == "tried"
    assert changed.json()["status"] == "paused"
    assert client.patch("/v1/kbs/scratch", json={"chunk_size": 5}).status_code == 422
    client.post("/v1/kbs/scratch/memories", json={"text": "A try."})
    assert client.delete("/v1/kbs/scratch").status_code == 400
    assert client.delete("/v1/kbs/scratch?yes=true").json() == {"deleted": "scratch"}
    assert client.get("/v1/kbs/scratch").status_code == 404


def test_who_hides_a_knowledge_base_is_told_who_still_sees_it(
    serve: Serve, client: TestClient
) -> None:
    client.post("/v1/kbs", json={"name": "letters"})
    open_ = client.patch("/v1/kbs/letters", json={"description": "old ones"})
    assert "note" not in open_.json()
    hidden = client.patch("/v1/kbs/letters", json={"private": True})
    assert hidden.json()["private"] is True
    assert "-k letters" in hidden.json()["note"]
    assert "this one has it no more" in hidden.json()["note"]
    assert client.get("/v1/kbs/letters").status_code == 404
    named = serve(kbs=("letters",)).patch("/v1/kbs/letters", json={"private": True})
    assert "so does this one" in named.json()["note"]
    made = client.post("/v1/kbs", json={"name": "dreams", "private": True})
    assert "-k dreams" in made.json()["note"]


def test_a_conversation_is_carried_on(client: TestClient) -> None:
    started = client.post("/v1/sessions", json={"id": "standup", "kbs": ["notes"]})
    assert started.status_code == 201
    said = client.post(
        "/v1/sessions/standup/messages",
        json={"content": "remember: the gate closes at nine", "kbs": ["notes"]},
    )
    assert said.status_code == 201
    assert said.json()["success"] is True
    before = {"content": "So it does.", "sender": "agent", "at": "2026-05-12T09:00:00+02:00"}
    told = client.post("/v1/sessions/standup/messages", json=before)
    assert told.json()["at"] == "2026-05-12T07:00:00Z"
    wrong = client.post("/v1/sessions/standup/messages", json=before | {"at": "soon"})
    assert wrong.status_code in (400, 422)
    ahead = client.post("/v1/sessions/standup/messages", json=before | {"at": "2099-01-05"})
    assert (ahead.status_code, "leave out" in ahead.text) == (422, True)
    shown = client.get("/v1/sessions/standup").json()
    assert [turn["content"] for turn in shown["turns"]] == [
        "remember: the gate closes at nine",
        "So it does.",
    ]
    ended = client.post("/v1/sessions/standup/end", json={"kbs": ["notes"]})
    assert ended.json()["status"] != "open"
    assert client.get("/v1/sessions/none").status_code == 404


def test_a_value_of_a_pool_is_written_for_the_version_that_was_read(client: TestClient) -> None:
    pool = client.post(f"{KB}/pools", json={"pool_id": "ops"}).json()["pool_id"]
    place = f"{KB}/pools/{pool}/values/mood"
    written = client.put(place, json={"value": "calm"})
    assert written.headers["etag"] == '"1"'
    read = client.get(place)
    assert (read.json()["value"], read.headers["etag"]) == ("calm", '"1"')
    headers = {"If-Match": '"1"'}
    assert client.put(place, json={"value": "busy"}, headers=headers).status_code == 200
    late = client.put(place, json={"value": "late"}, headers=headers)
    assert late.status_code == 412
    assert client.put(place, json={"value": 1}, headers={"If-Match": "x"}).status_code == 412
    assert client.get(place).json()["value"] == "busy"
    assert client.delete(place, headers={"If-Match": '"2"'}).status_code == 200
    assert client.get(place).status_code == 404
    assert len(client.get(f"{KB}/pools/{pool}/history").json()["items"]) == 3

    events = client.get("/v1/events?after=0&stream=false&kbs=notes").json()
    assert [each["key"] for each in events["items"]] == ["mood"] * 3
    rest = client.get(f"/v1/events?after={events['last']}&stream=false&kbs=notes").json()
    assert rest["items"] == []
    assert client.get("/v1/events?stream=no").status_code == 422
    as_json = {"Accept": "application/json"}
    assert client.get("/v1/events?stream=", headers=as_json).status_code == 200


def test_what_is_done_with_files_and_memories_is_sent_as_events(
    serve: Serve, client: TestClient, tmp_path: Path
) -> None:
    def events(cursor: str, **headers: str) -> dict[str, Any]:
        where = {"cursor": cursor, "stream": "false", "kbs": "notes"}
        found: dict[str, Any] = client.get("/v1/events", params=where, headers=headers).json()
        return found

    start = client.get("/v1/events?stream=false&kbs=notes").json()
    assert start["items"] == []
    good, bad = tmp_path / "tide.md", tmp_path / "broken.pdf"
    good.write_text("The tide is high at nine.")
    bad.write_bytes(b"%PDF-1.4 broken")
    with serve.home.open("notes") as base:
        base.ingest([good, bad])
        base.consolidate()
    found = events(start["cursor"])
    files = {Path(row["source"]).name: row["event"] for row in found["items"] if "source" in row}
    assert files == {"tide.md": "ingested", "broken.pdf": "failed"}
    jobs = [row for row in found["items"] if "job" in row]
    assert "consolidated" in [row["event"] for row in jobs]
    assert all(row["kb"] == "notes" and row["at"] for row in found["items"])
    assert events(found["cursor"])["items"] == []
    assert events(start["cursor"], **{"X-Memctl-User": "ann"})["items"] == []
    assert client.get("/v1/events?cursor=x&stream=false").status_code == 422


def test_values_of_tiers_are_kept_by_key(client: TestClient) -> None:
    place = f"{KB}/tiers/plan"
    headers = {"X-Memctl-Session": "s1", "X-Memctl-Agent": "helper"}
    made = client.put(place, json={"value": {"step": 1}, "tier": "working"}, headers=headers)
    assert made.json()["tier"] == "working"
    assert client.get(place, headers=headers).json()["value"] == {"step": 1}
    assert client.get(place, headers={"X-Memctl-Session": "s2"}).status_code == 404
    assert client.delete(f"{place}?tier=working", headers=headers).json() == {"removed": True}
    assert client.get(f"{KB}/tiers").json()


def test_users_see_only_what_is_theirs(client: TestClient) -> None:
    for user in ("ann", "bob"):
        made = client.post(
            f"{KB}/memories", json={"text": f"{user} likes tea"}, headers={"X-Memctl-User": user}
        )
        assert made.status_code == 201, made.text
    id_ = made.json()["id"]
    as_ann = {"X-Memctl-User": "ann"}
    listed = client.get(f"{KB}/memories?limit=500", headers=as_ann).json()["items"]
    assert "bob likes tea" not in [row["text"] for row in listed]
    assert "ann likes tea" in [row["text"] for row in listed]
    assert client.get(f"{KB}/memories/{id_}", headers=as_ann).status_code == 404
    other = {"question": "who likes tea?", "namespaces": ["user:bob:conversations"]}
    assert client.post("/v1/query", json=other, headers=as_ann).status_code == 403
    odd = client.get(f"{KB}/memories", headers={"X-Memctl-User": "a:b"})
    assert odd.status_code == 400
