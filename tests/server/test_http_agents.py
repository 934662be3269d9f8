"""Pools, tiers and skills over HTTP, below a knowledge base and without one in the path."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import pytest
from serving import Serve, serving
from starlette.testclient import TestClient

from memctl.cli.main import run

SKILL = """---
name: Deploy to Kubernetes
description: Roll out a release to the cluster and check that it came up.
---

Ask for the release, then roll it out.
"""
TOP, BELOW = "/v1", "/v1/kbs/default"


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """A home with a skill in the usual knowledge base and none in another, served."""
    skill = tmp_path_factory.mktemp("skills") / "deploy"
    skill.mkdir()
    (skill / "SKILL.md").write_text(SKILL, "utf-8")
    (skill / "notes").mkdir()
    (skill / "notes" / "friday.md").write_text("Never on a Friday.", "utf-8")
    with serving(tmp_path_factory.mktemp("agents") / "home") as made:
        for name in ("default", "other"):
            made.home.create(name)
        with made.home.open("default") as base:
            base.skills.acting_as().add(skill)
        yield made


@pytest.fixture
def client(serve: Serve) -> TestClient:
    """A client that has the token."""
    return serve()


def command(serve: Serve, *words: str) -> Any:
    """Run a command on the same home, and return its JSON."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(["--home", str(serve.home.config.home), *words, "-o", "json"])
    assert code == 0, err.getvalue()
    return json.loads(out.getvalue())


@pytest.mark.parametrize("prefix", [TOP, BELOW])
def test_skills_are_listed_found_and_shown_as_the_commands_show_them(
    serve: Serve, client: TestClient, prefix: str
) -> None:
    listed = client.get(f"{prefix}/skills").json()
    assert listed["items"] == command(serve, "skill", "list")
    assert listed["total"] == 1
    assert client.get(f"{prefix}/skills?status=draft").json()["items"] == []
    assert client.get(f"{prefix}/skills?status=lost").status_code == 422
    asked = {"description": "deploy to kubernetes"}
    found = client.get(f"{prefix}/skills/search", params=asked).json()["items"]
    assert found == command(serve, "skill", "search", "deploy", "to", "kubernetes")
    slug = found[0]["slug"]
    assert client.get(f"{prefix}/skills/{slug}").json() == command(serve, "skill", "show", slug)
    context = client.get(f"{prefix}/skills/{slug}/context", params={"task": "release 4.2"})
    assert context.json() == command(serve, "skill", "context", slug, "--task", "release 4.2")
    file = client.get(f"{prefix}/skills/{slug}/files/notes/friday.md").json()
    assert file["content"] == "Never on a Friday."
    assert client.get(f"{prefix}/skills/{slug}/files/notes/monday.md").status_code == 404
    assert client.get(f"{prefix}/skills/none").status_code == 404


def test_a_use_of_a_skill_is_noted_and_one_that_is_missing_proposed(
    serve: Serve, client: TestClient
) -> None:
    slug = client.get("/v1/skills").json()["items"][0]["slug"]
    noted = client.post(f"/v1/skills/{slug}/outcomes", json={"success": True, "note": "Quick."})
    assert (noted.status_code, noted.json()["version"]) == (201, 1)
    assert client.get(f"/v1/skills/{slug}").json()["skill"]["uses"] == 1
    made = client.post("/v1/skills/proposals", json={"topic": "Check invoices"})
    assert (made.status_code, made.json()["status"]) == (201, "submitted")
    proposals = client.get("/v1/skills/proposals").json()["items"]
    assert proposals == command(serve, "skill", "proposals")
    assert [each["proposal_id"] for each in proposals] == [made.json()["proposal_id"]]
    assert client.post(f"/v1/skills/{slug}/outcomes", json={}).status_code == 422


def test_pools_and_tiers_need_no_knowledge_base_in_the_path(client: TestClient) -> None:
    assert client.post("/v1/pools", json={"pool_id": "ops"}).status_code == 201
    written = client.put("/v1/pools/ops/values/mood", json={"value": "calm"})
    assert written.headers["etag"] == '"1"'
    assert client.get(f"{BELOW}/pools/ops/values/mood").json()["value"] == "calm"
    assert [each["pool_id"] for each in client.get("/v1/pools").json()["items"]] == ["ops"]
    late = client.put("/v1/pools/ops/values/mood", json={"value": 1}, headers={"If-Match": '"7"'})
    assert late.status_code == 412
    assert len(client.get("/v1/pools/ops/history").json()["items"]) == 1
    counted = client.get("/v1/pools/ops/stats").json()
    assert (counted["entries"], counted["version"]) == (1, 1)
    assert client.delete("/v1/pools/ops", headers={"X-Memctl-Agent": "guest"}).status_code == 403
    assert client.delete("/v1/pools/ops").json() == {"pool_id": "ops"}
    assert client.get("/v1/pools/ops").status_code == 404

    session = {"X-Memctl-Session": "s1"}
    client.put("/v1/tiers/plan", json={"value": 3, "tier": "working"}, headers=session)
    assert client.get(f"{BELOW}/tiers/plan", headers=session).json()["value"] == 3
    assert client.get("/v1/tiers").json() == client.get(f"{BELOW}/tiers").json()
    assert client.delete("/v1/tiers/plan", headers=session).json() == {"removed": True}


def test_the_address_says_of_which_knowledge_base(client: TestClient) -> None:
    assert client.get("/v1/skills?kb=other").json()["items"] == []
    made = client.post("/v1/pools?kb=other", json={"pool_id": "elsewhere"})
    assert made.status_code == 201
    assert client.get("/v1/pools/elsewhere").status_code == 404
    assert client.get("/v1/pools/elsewhere?kb=other").status_code == 200
    assert client.get("/v1/pools?kb=nowhere").status_code == 404
    assert client.get("/v1/pools?kb=default&kb=other").status_code == 422
    assert client.get(f"{BELOW}/pools?kb=other").status_code == 422


def test_what_an_agent_keeps_to_itself_is_there_for_no_other_client(client: TestClient) -> None:
    own, other = {"X-Memctl-Agent": "keeper"}, {"X-Memctl-Agent": "guest"}
    given = {"text": "The Zanzibar key lies under the mat.", "private": True}
    refused = client.post(f"{BELOW}/memories", json=given)
    assert refused.status_code == 400
    assert "X-Memctl-Agent" in refused.json()["error"]["hint"]
    made = client.post(f"{BELOW}/memories", json=given, headers=own)
    assert made.json()["namespace"] == "agent:keeper:private"
    path = f"{BELOW}/memories/{made.json()['id']}"
    assert client.get(path, headers=own).status_code == 200
    assert client.get(path, headers=other).status_code == 404
    asked = {"question": "Where is the Zanzibar key?"}
    for headers, count in ((own, 1), (other, 0), ({}, 0)):
        hits = client.post("/v1/query", json=asked, headers=headers).json()["hits"]
        assert sum(hit["memory_id"] == made.json()["id"] for hit in hits) == count
        listed = client.get(f"{BELOW}/memories", headers=headers).json()["items"]
        assert sum("Zanzibar" in each["text"] for each in listed) == count
        found = client.get(f"{BELOW}/graph/search?q=Zanzibar", headers=headers).json()["items"]
        assert bool(found) == bool(count)
    named = {**asked, "namespaces": ["agent:keeper:private"]}
    assert client.post("/v1/query", json=named, headers=other).status_code == 403


def test_an_agent_reaches_only_the_skills_that_its_tools_allow(
    serve: Serve, client: TestClient
) -> None:
    settings = b'agent_id = "reader"\nallowed_regular_tools = ["list_skills"]\n'
    serve.home.accounts.add_agent("reader", settings)
    reader = {"X-Memctl-Agent": "reader"}
    assert client.get("/v1/skills", headers=reader).status_code == 200
    topic = {"topic": "Check invoices"}
    assert client.post("/v1/skills/proposals", json=topic, headers=reader).status_code == 403


def test_a_tier_takes_over_http_what_its_tool_takes(client: TestClient) -> None:
    typed = {"value": "Bob", "tier": "long_term", "memory_type": "reflection"}
    refused = client.put("/v1/tiers/name", json=typed)
    assert refused.status_code == 400
    assert "only a short-term entry" in refused.text
    lasting = {"value": "Bob", "tier": "working", "ttl": 0}
    assert client.put("/v1/tiers/name", json=lasting).json()["expires_at"] is None
    assert client.put("/v1/tiers/name", json={**lasting, "tier": "short_term"}).status_code == 400
