"""Texts and files that are sent to be remembered, and the paths that other products have for it."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import Serve, listening, serving
from starlette.testclient import TestClient
from waiting import wait_for

from memctl.config import load_config
from memctl.home import Home
from memctl.server.http_access import load_token
from memctl.server.http_jobs import FOLDER

INBOX = Path(__file__).parents[2] / "sample_inbox"
KB = "/v1/kbs/default"
AGENT = "/agents/helper"
NOTE = "# Roof\n\nThe roof was mended by Ida Holm on 4 May 2026. It cost 1,200 euros."


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """A home with an empty knowledge base, and what serves it."""
    with serving(tmp_path_factory.mktemp("uploads") / "home") as made:
        made.home.create("default")
        made.home.create("diary", private=True)
        made.home.accounts.add_agent("helper")
        yield made


@pytest.fixture
def client(serve: Serve) -> TestClient:
    """A client that has the token."""
    return serve()


def spooled(serve: Serve) -> list[Path]:
    """What is left of uploads in the home."""
    return [
        path
        for entry in serve.home.entries()
        for path in (entry.folder / FOLDER).rglob("*")
        if path.is_file()
    ]


@pytest.mark.parametrize("path", ["memories", "ingest"])
def test_the_default_knowledge_base_is_made_when_it_is_first_written_to(
    path: str, tmp_path: Path
) -> None:
    said = {"text": "The door code is 4711."}
    with serving(tmp_path / "home") as fresh:
        assert fresh(read_only=True).post(f"{KB}/{path}", json=said).status_code in (403, 404)
        assert fresh().get(f"{KB}/memories").status_code == 404
        assert fresh().post(f"/v1/kbs/other/{path}", json=said).status_code == 404
        assert fresh().post(f"{KB}/{path}", json=said).is_success
        answer = fresh().post("/v1/query", json={"question": "What is the door code?"}).json()
    assert "4711" in answer["answer"]["text"]


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("ingest", {"json": {"text": "The door code is 4711.", "dry_run": True}}),
        ("ingest", {"data": {"dry_run": "true"}, "files": {"file": ("a.txt", b"A boat.")}}),
        (
            "ingest?dry_run=true&filename=a.txt",
            {"content": b"A boat.", "headers": {"content-type": "application/octet-stream"}},
        ),
    ],
)
def test_a_dry_run_makes_no_knowledge_base(path: str, sent: dict[str, Any], tmp_path: Path) -> None:
    home = tmp_path / "home"
    with serving(home) as fresh:
        assert fresh().post(f"{KB}/{path}", **sent).status_code == 404
        assert not (home / "kb").exists()
        assert fresh().get(f"{KB}/memories").status_code == 404
        sent = {key: value for key, value in sent.items() if key != "data"}
        if "json" in sent:
            sent["json"] = sent["json"] | {"dry_run": False}
        kept = fresh().post(f"{KB}/{path.replace('dry_run=true', 'dry_run=false')}", **sent)
    assert (kept.status_code, kept.json()["ingested"]) == (200, 1)


def test_an_operation_in_a_dry_run_makes_no_knowledge_base(tmp_path: Path) -> None:
    home, add = tmp_path / "home", "/v1/operations/add_document?kb=default"
    said = {"content": "The door code is 4711."}
    with serving(home) as fresh:
        assert fresh().post(add, json=said | {"dry_run": True}).status_code == 404
        assert not (home / "kb").exists()
        assert fresh().post(add, json=said).json()["outcome"] == "ingested"


def test_a_text_a_file_and_lines_are_remembered(serve: Serve, client: TestClient) -> None:
    text = client.post(f"{KB}/ingest", json={"text": "The boat is blue.", "tags": ["boat"]})
    assert (text.status_code, text.json()["ingested"]) == (200, 1)
    again = client.post(f"{KB}/ingest", json={"text": "The boat is blue."})
    assert again.json()["skipped"] == 1

    pdf = (INBOX / "fit-out budget.pdf").read_bytes()
    sent = client.post(
        f"{KB}/ingest",
        files={"file": ("C:\\new\\..\\budget.pdf", pdf)},
        data={"metadata": '{"year": 2026}', "tags": ["money"]},
    )
    outcome = sent.json()["outcomes"][0]
    assert outcome["source"] == "budget.pdf"
    document = client.get(f"{KB}/documents/{outcome['document_id']}").json()["document"]
    assert document["metadata"]["year"] == 2026
    assert document["media_type"] == "application/pdf"

    raw = client.post(
        f"{KB}/ingest?filename=roof.md&title=Roof",
        content=NOTE,
        headers={"Content-Type": "application/octet-stream"},
    )
    assert raw.json()["ingested"] == 1
    lines = [{"text": f"Line {n} of the log.", "id": f"l{n}"} for n in range(3)]
    sent = client.post(f"{KB}/ingest", json={"jsonl": "\n".join(map(json.dumps, lines))})
    assert sent.json()["ingested"] == 3
    assert spooled(serve) == []


def test_an_unreadable_upload_is_refused_and_leaves_nothing(
    serve: Serve, client: TestClient
) -> None:
    for body, status in (
        ({}, 400),
        ({"text": " "}, 400),
        ({"text": "x", "jsonl": "{}"}, 400),
        ({"path": "/etc/passwd"}, 422),
        ({"text": 5}, 422),
        ({"text": "x", "doc_type": "poem"}, 422),
    ):
        assert client.post(f"{KB}/ingest", json=body).status_code == status, body
    damaged = client.post(f"{KB}/ingest", files={"file": ("x.pdf", b"%PDF-1.4 broken")})
    assert damaged.status_code == 422
    assert damaged.json()["error"]["hint"]
    for kb in ("nowhere", "diary"):
        assert client.post(f"/v1/kbs/{kb}/ingest", json={"text": "x"}).status_code == 404
    small = serve(most_body_bytes=10_000)
    big = small.post(f"{KB}/ingest", files={"file": ("big.txt", b"x" * 20_000)})
    assert big.status_code == 413
    pieces = (b"x" * 1000 for _ in range(20))
    endless = small.post(
        f"{KB}/ingest", content=pieces, headers={"Content-Type": "application/octet-stream"}
    )
    assert endless.status_code == 413
    only_reads = serve(read_only=True)
    assert only_reads.post(f"{KB}/ingest", json={"text": "x"}).status_code == 403
    assert spooled(serve) == []


@pytest.mark.parametrize(
    ("kind", "query"), [("application/octet-stream", "?filename=half.md"), ("application/json", "")]
)
def test_an_upload_that_its_client_cuts_off_is_no_failure_of_the_server(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str, query: str
) -> None:
    home = Home(load_config({"home": str(tmp_path)}, {}))
    home.create("default")

    def left() -> list[Path]:
        """The folders of uploads."""
        return list(home.layout("default").folder.glob(f"{FOLDER}/*"))

    with listening(home) as address:
        host, port = address.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as client:
            head = f"POST {KB}/ingest{query} HTTP/1.1\r\nHost: {host}:{port}\r\n"
            head += f"Authorization: Bearer {load_token(address.token_file)}\r\n"
            head += f"Content-Type: {kind}\r\nContent-Length: 100000\r\n\r\n"
            client.sendall(f"{head}# The roof".encode())
            wait_for(left)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert not left()


def test_an_upload_becomes_a_job_that_can_be_watched(serve: Serve, client: TestClient) -> None:
    later = {"Prefer": "respond-async"}
    sent = client.post(f"{KB}/ingest", files={"file": ("roof2.md", b"# Two roofs")}, headers=later)
    assert sent.status_code == 202
    place = sent.headers["location"]
    assert place == f"/v1/jobs/{sent.json()['id']}"
    events = client.get(f"{place}/events").text
    assert "event: done" in events
    done = client.get(place).json()
    assert (done["state"], done["result"]["ingested"]) == ("done", 1)
    assert spooled(serve) == []

    broken = client.post(f"{KB}/ingest", files={"file": ("x.pdf", b"%PDF-1.4")}, headers=later)
    place = broken.headers["location"]
    wait_for(lambda: client.get(place).json()["state"] == "failed")
    assert client.get(place).json()["error"]["message"]
    assert spooled(serve), "what was accepted is kept"
    assert client.post(f"{place}/retry").status_code == 200
    wait_for(lambda: client.get(place).json()["state"] == "failed")
    client.delete(place)
    assert client.get(place).status_code == 404
    assert spooled(serve) == []

    consolidated = client.post(f"{KB}/consolidate", headers=later)
    events = client.get(f"{consolidated.headers['location']}/events").text
    assert "event: done" in events
    assert client.post(f"{KB}/consolidate", json={"dry_run": True}).json()["dry_run"] is True


def test_uploads_accepted_by_a_killed_server_are_ingested_at_the_next_start(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with serving(home) as first:
        first.home.create("default")
        half = first.home.layout("default").folder / FOLDER / "j_00000000000000aa" / "file"
        half.mkdir(parents=True)
        (half / "half.md").write_text("Half of a text.")
        whole = first.home.layout("default").folder / FOLDER / "j_00000000000000bb"
        (whole / "file").mkdir(parents=True)
        (whole / "file" / "whole.md").write_text("The well is deep.")
        request = {
            "kind": "ingest",
            "caller": {"user": None, "agent": None, "session": None, "kbs": ["default"]},
            "created_at": "2026-01-01T00:00:00+00:00",
            "arguments": {},
            "file": "whole.md",
        }
        (whole / "request.json").write_text(json.dumps(request))
    with serving(home) as second:
        client = second()
        place = "/v1/jobs/j_00000000000000bb"
        wait_for(lambda: client.get(place).json()["state"] == "done")
        titles = [row["source"] for row in client.get(f"{KB}/documents").json()["items"]]
        assert titles == ["whole.md"]
        assert spooled(second) == []


# --- documents of an agent ------------------------------------------------------------------------


def test_a_document_of_an_agent_is_sent_and_found_by_its_user_alone(client: TestClient) -> None:
    sent = client.post(
        f"{AGENT}/documents/",
        json={"content": NOTE, "doc_type": "markdown", "title": "Roof", "user_id": "ann"},
    )
    assert sent.status_code == 200, sent.text
    made = sent.json()
    assert made["title"] == "Roof"
    assert made["doc_type"] == "markdown"
    assert made["namespace"] == "user:ann:documents"
    as_ann = {"X-Memctl-User": "ann"}
    view = client.get(f"{KB}/documents/{made['document_id']}", headers=as_ann).json()
    passages = [row for row in view["memories"] if row["level"] == "evidence"]
    assert made["chunks_created"] == len(passages)
    metadata = view["document"]["metadata"]
    assert metadata["uploaded_by"] == "ann"
    assert metadata["upload_session"] == "default_session"
    assert metadata["upload_date"]

    again = client.post(
        f"{AGENT}/documents/", json={"content": NOTE, "title": "Roof", "user_id": "ann"}
    ).json()
    assert again["document_id"] == made["document_id"]
    assert again["outcome"] == "known"

    for path in (f"{AGENT}/documents/search", f"{AGENT}/search"):
        asked = {"query": "who mended the roof?", "user_id": "ann"}
        found = client.post(path, json=asked).json()
        assert found["query"] == asked["query"]
        assert found["total_results"] == len(found["results"]) > 0
        first = found["results"][0]
        assert first["document_id"] == made["document_id"]
        assert first["metadata"]["uploaded_by"] == "ann"
        assert 0.7 < first["score"] <= 1, "of one result as of many"
        away = client.post(path, json={**asked, "query": "capital of Mars"}).json()["results"]
        assert all(row["score"] < 0.7 for row in away)
        other = client.post(path, json={**asked, "user_id": "bob"}).json()
        assert other["total_results"] == 0
        assert client.post(path, json={**asked, "limit": 51}).status_code == 422
        named = {**asked, "user_id": "bob", "namespaces": ["user:ann:documents"]}
        assert client.post(path, json=named).status_code == 403
        typed = {**asked, "doc_types": ["pdf"]}
        assert client.post(path, json=typed).json()["total_results"] == 0

    listed = client.get(f"{AGENT}/documents?user_id=ann").json()
    assert [row["id"] for row in listed["items"]] == [made["document_id"]]
    place = f"{AGENT}/documents/{made['document_id']}"
    assert client.get(f"{place}?user_id=bob").status_code == 404
    assert client.get(f"{place}?user_id=ann").json()["document"]["title"] == "Roof"
    assert client.delete(f"{place}?user_id=bob").status_code == 404
    assert client.delete(f"{place}?user_id=ann").json()["deleted"] > 0
    assert client.get(f"{place}?user_id=ann").status_code == 404


def test_documents_of_an_agent_are_listed_from_all_bases_that_it_reads(
    serve: Serve, client: TestClient
) -> None:
    serve.home.create("aaa")
    place = f"{AGENT}/documents"
    first = client.post(place, json={"content": "The gate is green.", "user_id": "eva"}).json()
    with serve.home.acting_as(user="eva").open("aaa") as base:
        namespace = first["namespace"]
        base.ingest(text="The well is deep.", namespace=namespace)
    listed = client.get(place, params={"user_id": "eva"}).json()
    assert [row["kb"] for row in listed["items"]] == ["aaa", "default"]
    assert listed["items"][1]["id"] == first["document_id"]
    assert (listed["total"], listed["next"]) == (2, None)
    page = client.get(place, params={"user_id": "eva", "limit": 1, "offset": 1}).json()
    assert [row["id"] for row in page["items"]] == [first["document_id"]]
    one = listed["items"][0]["id"]
    assert client.delete(f"{place}/{one}", params={"user_id": "eva"}).json()["deleted"] > 0
    assert client.get(place, params={"user_id": "eva"}).json()["total"] == 1
    serve.home.delete("aaa")


def test_a_form_with_a_file_of_any_format_is_a_document_of_an_agent(
    serve: Serve, client: TestClient
) -> None:
    pdf = (INBOX / "fit-out budget.pdf").read_bytes()
    form = {"user_id": "cat", "session_id": "s1"}
    sent = client.post(f"{AGENT}/documents", files={"file": ("budget.pdf", pdf)}, data=form)
    assert sent.json()["title"] == "budget.pdf"
    assert sent.json()["doc_type"] == "pdf"
    assert sent.json()["namespace"] == "user:cat:documents"
    for wrong in (
        {"data": {"user_id": "cat"}, "files": {"nothing": b""}},
        {"data": {"content": "x"}, "files": {"file": ("x.txt", b"y")}},
    ):
        assert client.post(f"{AGENT}/documents", **wrong).status_code in (400, 422)
    assert client.post(f"{AGENT}/documents", json={}).status_code == 400
    assert spooled(serve) == []


def test_an_agent_without_a_knowledge_base_is_told_so(serve: Serve, client: TestClient) -> None:
    serve.home.accounts.add_agent("bare", b'agent_id = "bare"\nresources = ["memory"]\n')
    before = client.get(f"{KB}/documents").json()["total"]
    for agent in ("bare", "unknownagent"):
        top = f"/agents/{agent}"
        for refused in (
            client.post(f"{top}/documents", json={"content": "x"}),
            client.post(f"{top}/documents", files={"file": ("x.txt", b"x")}),
            client.post(f"{top}/documents/search", json={"query": "roof"}),
            client.post(f"{top}/search", json={"query": "roof"}),
            client.get(f"{top}/documents"),
            client.get(f"{top}/documents/d_000000000000"),
            client.delete(f"{top}/documents/d_000000000000"),
        ):
            assert refused.status_code == 400, refused.url
            assert repr(agent) in refused.json()["error"]["message"]
    assert client.get(f"{KB}/documents").json()["total"] == before
    assert spooled(serve) == []


# --- paths of other products ----------------------------------------------------------------------


def test_always_on_knowledge_bases_have_their_usual_paths(client: TestClient) -> None:
    top = "/api/kb/always-on"
    client.post("/v1/kbs", json={"name": "desk"})
    listed = {row["kb_name"]: row for row in client.get(top).json()}
    assert listed["desk"]["active"] is True
    assert listed["desk"]["interval_minutes"] == 60
    assert "diary" not in listed
    sent = client.post(f"{top}/ingest", json={"kb_name": "desk", "text": NOTE})
    assert sent.json()["ingested"] == 1
    assert client.post(f"{top}/consolidate", json={"kb_name": "desk"}).json()["kb"] == "desk"
    memories = client.get(f"{top}/desk/memories").json()
    first = memories["items"][0]
    own = {"id", "kb_name", "summary", "entities", "topics", "importance", "source"}
    assert own | {"is_consolidated", "created_at", "text"} <= first.keys()
    assert memories["total"] == len(memories["items"])
    assert client.get(f"{top}/desk/insights").json()["total"] >= 0
    assert client.delete(f"{top}/desk/memory/{first['id']}").json()["deleted"] >= 1
    assert client.post(f"{top}/desk/clear", json={}).status_code == 400
    assert client.post(f"{top}/desk/clear", json={"confirm": "des"}).status_code == 400
    cleared = client.post(f"{top}/desk/clear", json={"confirm": "desk"}).json()
    assert cleared["snapshot"]
    assert client.get(f"{top}/desk/memories").json()["total"] == 0
    assert client.get(f"{top}/nowhere/memories").status_code == 404


def test_a_rag_service_has_its_usual_paths(client: TestClient) -> None:
    top = "/api/v1/ai/rag"
    made = client.post(
        f"{top}/knowledge_bases",
        json={"name": "rag", "chunking_strategy": "semantic", "chunk_size": 400},
    )
    assert made.json()["success"] is True
    assert made.json()["data"]["chunk_strategy"] == "semantic"
    builtin = {"embedding_provider": "builtin", "embedding_model": "builtin"}
    made = client.post(f"{top}/knowledge_bases", json={"name": "plain", **builtin})
    assert made.json()["data"]["embedder"].startswith("builtin/")
    remote = {"name": "far", "embedding_provider": "openai", "embedding_model": "some-model"}
    refused = client.post(f"{top}/knowledge_bases", json=remote)
    assert "there is no endpoint to have some-model from" in refused.text
    unknown = client.post(f"{top}/knowledge_bases", json={**remote, "embedding_provider": "cohere"})
    assert "must be builtin, endpoint, onnx, openai, not" in unknown.text
    where = {"knowledge_base_id": "rag"}
    misplaced = client.post(f"{top}/documents", json={"content": NOTE, **where})
    assert misplaced.status_code == 422
    assert "?knowledge_base_id=NAME" in misplaced.json()["error"]["hint"]
    sent = client.post(f"{top}/documents", json={"content": NOTE}, params=where).json()
    id_ = sent["data"]["outcomes"][0]["document_id"]
    asked = {"query": "Who mended the roof?", "knowledge_base_ids": "rag", "top_k": 3}
    found = client.get(f"{top}/query", params=asked).json()["data"]
    assert "Ida Holm" in found["answer"]
    assert found["sources"]
    agentic = client.get(f"{top}/query", params={**asked, "mode": "agentic"}).json()["data"]
    assert agentic["rounds"][0]["query"] == asked["query"]
    assert agentic["total_results"] > 0
    both = {**asked, "knowledge_base_ids": "default,rag"}
    found = client.get(f"{top}/search", params=both).json()["data"]["results"]
    places = [place["kb"] for hit in found for place in (hit, *hit["also_in"])]
    assert "rag" in places
    hits = client.get(f"{top}/search", params={**asked, "mode": "keyword"}).json()["data"]
    assert hits["results"][0]["document_id"] == id_
    assert hits["total_results"] == len(hits["results"])
    assert hits["mode"] == "keyword"
    assert hits["query_id"].startswith("q_")
    far = {**asked, "query": "What is the capital of Mars?", "similarity_threshold": 0.7}
    for path in ("search", "query"):
        assert client.get(f"{top}/{path}", params=far).json()["data"]["total_results"] == 0
    once = {**asked, "query": far["query"], "mode": "agentic", "max_rounds": 1}
    assert len(client.get(f"{top}/query", params=once).json()["data"]["rounds"]) == 1
    for fusion in ("rrf", "weighted", "simple"):
        got = client.get(f"{top}/search", params={**asked, "fusion": fusion, "rerank": "false"})
        assert got.status_code == 200
    again = client.post(f"{top}/documents/{id_}/process", json={"knowledge_base_ids": ["rag"]})
    assert again.json()["success"] is True


def test_pages_are_followed_by_their_links(client: TestClient) -> None:
    texts = {
        "harbour.md": "# Harbour\n\nThe harbour office is run by Ida Holm.",
        "move.md": "# Move\n\nWe move to the [[Harbour]] in May, see [[Lease]].",
        "news.md": "# News\n\nThe Harbour opens again on 4 June.",
    }
    client.post("/v1/kbs", json={"name": "wiki"})
    for name, text in texts.items():
        sent = client.post("/v1/kbs/wiki/ingest", files={"file": (name, text.encode())})
        assert sent.status_code == 200
    rows = client.get("/v1/kbs/wiki/documents").json()["items"]
    ids = {row["title"]: row["id"] for row in rows}
    top = f"/v1/kbs/wiki/documents/{ids['Harbour']}"
    wiki = f"/api/v1/admin/pages/{ids['Harbour']}"
    for here, there, other in (
        ("backlinks", "backlinks", "Move"),
        ("mentions", "unlinked_mentions", "News"),
    ):
        found = client.get(f"{top}/{here}").json()["items"]
        assert [row["title"] for row in found] == [other]
        wrapped = client.get(f"{wiki}/{there}").json()
        assert wrapped["success"] is True
        assert found[0] in wrapped["data"].pop(there), "among those of all knowledge bases"
        assert wrapped["data"] == {}
    assert client.get(f"{top}/related?limit=1").json()["total"] == 1
    assert client.get(f"{wiki}/related_pages?limit=1").json()["data"].keys() == {"related_pages"}
    assert client.get(f"{wiki}/related_pages?limit=51").status_code == 422
    move = f"/api/v1/admin/pages/{ids['Move']}"
    assert client.post(f"{move}/extract_links", json={"force": True}).json()["data"]["total"] == 2
    made = client.post(f"{move}/generate_embedding").json()["data"]
    assert made["generated"] is False
    assert made["passages"] > 0
    made = client.post("/api/v1/admin/pages/Move/generate_embedding", json={"force": True})
    assert made.json()["data"]["report"]["documents"] == 1
    missing = client.get("/v1/kbs/wiki/links/missing").json()["items"]
    assert "Lease" in str(missing)
    assert client.get("/v1/kbs/wiki/links").json()["documents"] == 3
