"""Who gets into the HTTP server, and who is kept out of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from serving import TOKEN, Serve

from memctl.errors import ConfigError, UsageError
from memctl.server.http_access import AccessRules, checked_origin, load_token

QUESTION = {"question": "what is the door code?"}
ANSWER = "/v1/operations/answer"


def test_only_the_health_is_told_without_the_token(serve: Serve) -> None:
    client = serve(token=None)
    assert client.get("/health").json()["status"] == "ok"
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"}):
        for path in ("/", "/v1/kbs", "/v1/none", "/openapi.json", "/mcp", "/api/kb/always-on"):
            refused = client.get(path, headers=headers)
            assert refused.status_code == 401
            assert refused.json()["error"]["hint"]
        assert client.post(ANSWER, json=QUESTION, headers=headers).status_code == 401


def test_a_page_of_another_host_or_origin_is_refused_even_with_the_token(serve: Serve) -> None:
    client = serve()
    for headers in (
        {"Host": "evil.example"},
        {"Host": "evil.example:8420"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": ""},
        {"Host": "192.0.2.7"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
    ):
        assert client.post(ANSWER, json=QUESTION, headers=headers).status_code == 403
        assert client.get("/health", headers=headers).status_code == 403
    for host in ("localhost:8420", "127.0.0.1", "[::1]:8420"):
        own = {"Host": host, "Origin": f"http://{host}"}
        assert client.post(ANSWER, json=QUESTION, headers=own).status_code == 200


def test_an_origin_that_was_allowed_is_let_in(serve: Serve) -> None:
    client = serve(allow_origins=("https://page.example",))
    headers = {"Origin": "https://page.example", "Access-Control-Request-Method": "POST"}
    asked = client.options(ANSWER, headers=headers)
    assert asked.headers["access-control-allow-origin"] == "https://page.example"
    found = client.post(ANSWER, json=QUESTION, headers={"Origin": "https://page.example"})
    assert found.headers["access-control-allow-origin"] == "https://page.example"
    other = client.post(ANSWER, json=QUESTION, headers={"Origin": "https://other.example"})
    assert other.status_code == 403
    assert "access-control-allow-origin" not in other.headers


def test_a_body_that_a_form_of_a_page_could_send_is_refused(serve: Serve) -> None:
    client = serve()
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        body = json.dumps(QUESTION)
        refused = client.post(ANSWER, content=body, headers={"Content-Type": kind})
        assert refused.status_code == 415


def test_a_login_link_works_once_and_its_cookie_is_of_this_site_alone(serve: Serve) -> None:
    path = serve().post("/v1/login").json()["path"]
    browser = serve.browser()
    assert browser.head(path).status_code == 200, "a look ahead does not use it up"
    opened = browser.get(path, follow_redirects=False)
    assert opened.status_code == 303
    cookie = opened.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert browser.get("/v1/kbs").status_code != 401

    assert serve.browser().get(path).status_code == 403
    assert serve.browser().get("/v1/kbs").status_code == 401
    assert serve.browser().get("/login?code=guess").status_code == 403

    no_origin = browser.post(ANSWER, json=QUESTION)
    assert no_origin.status_code == 403
    own = {"Origin": "http://127.0.0.1"}
    assert browser.post(ANSWER, json=QUESTION, headers=own).status_code == 200


def test_a_body_that_is_too_big_is_refused_whether_or_not_it_says_so(serve: Serve) -> None:
    client = serve(most_body_bytes=1000)
    big = json.dumps({"question": "x" * 2000})
    headers = {"Content-Type": "application/json"}
    assert client.post(ANSWER, content=big, headers=headers).status_code == 413
    pieces = (big[at : at + 100].encode() for at in range(0, len(big), 100))
    refused = client.post(ANSWER, content=pieces, headers=headers)
    assert refused.status_code == 413
    assert refused.json()["error"]["message"]


def test_a_private_knowledge_base_is_not_there_unless_it_was_named(serve: Serve) -> None:
    answered = f"{ANSWER}?kb=diary"
    secret = {"question": "where is the key?"}
    guessed = serve().post(answered, json=secret)
    none = serve().post(f"{ANSWER}?kb=nowhere", json=secret)
    assert guessed.status_code == none.status_code == 404
    assert guessed.text.replace("diary", "nowhere") == none.text
    assert "pot" not in serve().post(ANSWER, json=secret).text

    named = serve(kbs=("diary",))
    assert "pot" in named.post(answered, json=secret).json()["answer"]
    assert named.post(f"{ANSWER}?kb=default", json=QUESTION).status_code == 404


@pytest.mark.parametrize("path", ["/v1/kbs", "/api/v1/ai/rag/knowledge_bases"])
def test_a_knowledge_base_that_would_not_be_served_is_not_made(serve: Serve, path: str) -> None:
    refused = serve(kbs=("diary",)).post(path, json={"name": "letters"})
    assert refused.status_code == 403
    assert "does not serve 'letters'" in refused.text


def test_what_changes_something_is_refused_by_a_server_that_only_reads(serve: Serve) -> None:
    client = serve(read_only=True)
    refused = client.post("/v1/operations/remember", json={"text": "The boat is red."})
    assert refused.status_code == 403
    assert client.post(ANSWER, json=QUESTION).status_code == 200
    file = {"path": "/memories/boat.md", "file_text": "The boat is red."}
    made = serve().post("/v1/memory", json={"command": "create", **file})
    assert made.status_code == 200
    for place in ("/v1/memory", "/v1/operations/memory"):
        viewed = client.post(place, json={"command": "view", "path": "/memories/boat.md"})
        assert (viewed.status_code, "boat is red" in viewed.text) == (200, True)
        for command in ("create", "delete"):
            changed = client.post(place, json={"command": command, **file})
            assert changed.status_code == 403


@pytest.mark.parametrize(
    "given",
    ["banana", "*", "null", "", "ftp://a.example", "https://", "https://a.example/notes",
     "https://ann@a.example", "https://a.example:port", "a.example", "https://a b.example"],
)  # fmt: skip
def test_an_invalid_origin_is_refused_before_the_server_starts(given: str) -> None:
    with pytest.raises(UsageError, match="no origin") as refused:
        AccessRules(TOKEN, allow_origins=(checked_origin(given),))
    assert "https://" in refused.value.hint


def test_an_origin_is_as_browsers_send_it() -> None:
    assert checked_origin("HTTPS://Notes.Example/") == "https://notes.example"
    assert checked_origin("http://localhost:5173") == "http://localhost:5173"
    assert checked_origin("https://a.example:443") == "https://a.example"


def test_errors_have_the_hint_and_the_code_of_the_command_line(serve: Serve) -> None:
    client = serve()
    unknown = client.post("/v1/operations/anser", json={})
    assert unknown.status_code == 404
    assert unknown.json()["error"]["hint"] == "did you mean 'answer'?"
    wrong = client.post(ANSWER, json={"q": "x"})
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (422, 2)
    no_json = client.post(ANSWER, content="{", headers={"Content-Type": "application/json"})
    assert (no_json.status_code, no_json.json()["error"]["code"]) == (400, 2)
    assert client.post(ANSWER, json=[]).status_code == 422
    assert client.get("/v1/none").json()["error"]["message"] == "Not Found"
    no_kb = client.post(f"{ANSWER}?kb=nowhere", json=QUESTION)
    assert (no_kb.status_code, no_kb.json()["error"]["code"]) == (404, 10)


def test_a_token_is_made_for_its_owner_alone_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "serve" / "token"
    token = load_token(path)
    assert len(token) >= 32
    assert path.stat().st_mode & 0o777 == 0o600
    assert load_token(path) == token
    path.chmod(0o640)
    with pytest.raises(ConfigError, match="open to others"):
        load_token(path)
    path.chmod(0o600)
    path.write_text("short")
    with pytest.raises(ConfigError, match="32 characters"):
        load_token(path)
