"""A knowledge base has models, an endpoint and a budget of its own, and sends nothing elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import FakeEndpoint

OTHER = "http://localhost:9/v1"


@pytest.fixture
def notes(memctl: Any, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The command line, with an endpoint that the settings of the program name."""
    monkeypatch.setenv("MEMCTL_ENDPOINT_BASE_URL", endpoint.url)
    monkeypatch.setenv("MEMCTL_ENDPOINT_RETRIES", "0")
    if "notes" not in memctl("kb", "list").out:
        memctl("kb", "create", "notes")
        memctl("ingest", "--text", "Aurora ships on 3 July.", "-k", "notes")
    return memctl


def shown(notes: Any) -> dict[str, Any]:
    rows = notes("config", "show", "--origin", "-k", "notes", "-o", "ndjson").rows
    return {row["key"]: row for row in rows}


def test_what_a_knowledge_base_sets_is_shown_with_its_origin(notes: Any) -> None:
    done = notes("kb", "set", "notes", "--model", "answer=own", "--budget", "daily_tokens=50000")
    assert done.code == 0
    found = shown(notes)
    assert found["models.answer"]["value"] == "own"
    assert found["models.answer"]["origin"].endswith("kb.toml")
    assert found["budget.daily_tokens"]["value"] == 50_000
    assert found["budget.daily_cost"]["origin"] == "default"
    assert notes("config", "show", "-o", "ndjson").out.count("kb.toml") == 0
    assert notes("kb", "show", "notes", "-o", "json").json["budget"] == {"daily_tokens": 50_000}
    reset = ("--budget", "daily_tokens=default", "--model", "answer=default")
    assert notes("kb", "set", "notes", *reset).code == 0
    assert shown(notes)["budget.daily_tokens"]["value"] == 0


def test_its_own_model_answers_within_its_own_budget(notes: Any, endpoint: FakeEndpoint) -> None:
    said = {"text": "Aurora ships on 3 July.", "memories": [1]}
    endpoint.on("AnswerReply", {"not_in_memory": False, "sentences": [said]})
    notes("kb", "set", "notes", "--model", "answer=own")
    found = notes("query", "when does Aurora ship?", "-k", "notes", "-o", "json").json
    assert found["answer"]["method"].startswith("model/own/")
    notes("kb", "set", "notes", "--budget", "daily_tokens=1")
    found = notes("query", "when will Aurora be shipped?", "-k", "notes", "-o", "json").json
    assert not found["answer"]["method"].startswith("model/")
    notes("kb", "set", "notes", "--budget", "daily_tokens=default", "--model", "answer=default")


def test_an_endpoint_that_the_settings_do_not_name_is_refused_and_never_used(
    notes: Any, folder: Path, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert notes("kb", "set", "notes", "--endpoint", OTHER).code == 2
    assert notes("kb", "set", "notes", "--endpoint", "no address").code == 2
    path = folder / "home" / "kb" / "notes" / "kb.toml"  # as a folder from elsewhere has it
    path.write_text(f'{path.read_text()}\n[endpoint]\nbase_url = "{OTHER}"\n')
    done = notes("query", "when does Aurora ship?", "-k", "notes", "-o", "json")
    assert done.code == 0
    assert "not used" in done.err
    assert shown(notes)["endpoint.base_url"]["value"] == endpoint.url
    monkeypatch.setenv("MEMCTL_ENDPOINT_ALLOWED", f'["{OTHER}"]')
    assert shown(notes)["endpoint.base_url"]["value"] == OTHER
    assert shown(notes)["endpoint.api_key_env"]["value"] == "OPENAI_API_KEY"  # on the same host
    monkeypatch.setenv("MEMCTL_ENDPOINT_BASE_URL", "http://192.0.2.1/v1")
    assert shown(notes)["endpoint.api_key_env"]["value"] == ""
    assert notes("kb", "set", "notes", "--endpoint", "default").code == 0
    assert "[endpoint]" not in path.read_text()


@pytest.mark.parametrize(
    "lines", ['[endpoint]\napi_key_env = "HOME"', "[budget]\ndaily_tokens = -1", "budget = 3"]
)
def test_a_forbidden_setting_is_named(notes: Any, folder: Path, lines: str) -> None:
    path = folder / "home" / "kb" / "notes" / "kb.toml"
    before = path.read_text()
    where = f"{before}\n{lines}\n" if lines.startswith("[") else f"{lines}\n{before}"
    path.write_text(where)
    done = notes("query", "Aurora", "-k", "notes")
    path.write_text(before)
    assert done.code == 2
    assert "kb.toml" in done.err
