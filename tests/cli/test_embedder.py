"""Knowledge bases whose vectors are from a model behind an endpoint."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from fake_endpoint import DIMENSION, FakeEndpoint

from .conftest import Result, Run

FERRY = "The ferry to Lisbon leaves at nine from pier four."
GARDEN = "The tomatoes in the garden are ripe in August."


@pytest.fixture
def remote(memctl: Run, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch) -> FakeEndpoint:
    """An endpoint that the settings name for vectors."""
    for name, value in endpoint.settings(embed="e").items():
        monkeypatch.setenv(name, value)
    return endpoint


def pinned(tmp_path: Path, name: str = "default") -> tuple[str, int]:
    settings = tomllib.loads((tmp_path / "home/kb" / name / "kb.toml").read_text())
    return settings["embedder"], settings["dimension"]


def best(result: Result) -> str:
    return str(result.json["hits"][0]["text"])


def test_a_new_knowledge_base_has_the_vectors_of_the_endpoint(
    memctl: Run, remote: FakeEndpoint, tmp_path: Path
) -> None:
    assert memctl("ingest", "--text", FERRY).code == 0
    assert memctl("ingest", "--text", GARDEN).code == 0
    assert pinned(tmp_path) == ("endpoint/e", DIMENSION)
    found = memctl("query", "--mode", "vector", "ferry to Lisbon", "-o", "json")
    assert best(found) == FERRY
    found = memctl("query", "when does the ferry leave?", "-o", "json")
    assert found.json["answer"]["citations"]
    assert best(found) == FERRY


def test_an_answer_asks_the_endpoint_for_the_question_alone(
    memctl: Run, remote: FakeEndpoint
) -> None:
    memctl("ingest", "--text", FERRY)
    before = len(remote.asked)
    memctl("query", "when does the ferry leave?")
    assert [asked.body["input"] for asked in remote.asked[before:]] == [
        ["when does the ferry leave?"]
    ]


def test_the_embedder_can_be_chosen(memctl: Run, remote: FakeEndpoint, tmp_path: Path) -> None:
    assert memctl("kb", "create", "plain", "--embedder", "builtin").code == 0
    assert remote.asked == []
    assert memctl("kb", "create", "far", "--embedder", "endpoint/other").code == 0
    assert pinned(tmp_path, "plain") == ("builtin/wordllama-256", 256)
    assert pinned(tmp_path, "far") == ("endpoint/other", DIMENSION)
    wrong = memctl("kb", "create", "no", "--embedder", "magic/x")
    assert wrong.code == 2
    assert "builtin, endpoint/MODEL or onnx/FOLDER" in wrong.err


def test_a_knowledge_base_keeps_its_embedder_whatever_the_settings_name_later(
    memctl: Run, remote: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    memctl("ingest", "--text", FERRY)
    monkeypatch.setenv("MEMCTL_MODELS_EMBED", "another")
    memctl("ingest", "--text", GARDEN)
    assert {asked.body["model"] for asked in remote.asked} == {"e"}


def test_no_endpoint_is_an_error_that_names_the_setting_and_keywords_still_find(
    memctl: Run, remote: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    memctl("ingest", "--text", FERRY)
    monkeypatch.delenv("MEMCTL_ENDPOINT_BASE_URL")
    monkeypatch.delenv("MEMCTL_MODELS_EMBED")
    failed = memctl("query", "ferry")
    assert failed.code == 2
    assert "vectors are from endpoint/e, but there is no endpoint" in failed.err
    assert "base_url" in failed.err
    found = memctl("query", "--mode", "keyword", "when does the ferry leave?", "-o", "json")
    assert best(found) == FERRY
    assert found.json["answer"]["citations"]


@pytest.mark.parametrize("mode", ["hybrid", "graph", "agentic"])
def test_while_the_endpoint_is_down_a_question_is_answered_by_keyword(
    memctl: Run, remote: FakeEndpoint, mode: str
) -> None:
    memctl("ingest", "--text", FERRY)
    remote.fail(503, times=-1)
    found = memctl("query", "--mode", mode, "when does the ferry leave?", "-o", "json")
    assert found.code == 0
    assert best(found) == FERRY
    assert found.json["answer"]["citations"]
    assert "note: found by keyword alone: http" in found.err
    assert memctl("query", "--mode", "vector", "when does the ferry leave?").code == 1
    context = memctl("context", "when does the ferry leave?")
    assert FERRY in context.out
    assert "note: found by keyword alone" in context.err


def test_while_the_endpoint_is_down_nothing_is_ingested_and_nothing_has_failed(
    memctl: Run, remote: FakeEndpoint, tmp_path: Path
) -> None:
    memctl("kb", "create", "default")
    (tmp_path / "ferry.txt").write_text(FERRY)
    remote.fail(503, times=-1)
    stopped = memctl("ingest", "ferry.txt")
    assert stopped.code == 1
    assert "answered 503" in stopped.err
    assert memctl("document", "list").rows == []
    remote.mend()
    assert memctl("ingest", "ferry.txt", "-o", "json").json["ingested"] == 1


def test_while_the_endpoint_is_down_files_wait_in_their_inbox(
    memctl: Run, remote: FakeEndpoint, tmp_path: Path
) -> None:
    memctl("kb", "create", "default")
    base = tmp_path / "home/kb/default"
    (base / "inbox/ferry.txt").write_text(FERRY)
    remote.fail(503, times=-1)
    memctl("watch", "--once")
    assert list((base / "failed").iterdir()) == []
    remote.mend()
    assert memctl("watch", "--once").code == 0
    assert [path.name for path in (base / "processed").rglob("*.txt")] == ["ferry.txt"]


def test_another_model_under_the_same_name_is_reported(memctl: Run, remote: FakeEndpoint) -> None:
    memctl("ingest", "--text", FERRY)
    remote.dimension = 16
    for command in (["ingest", "--text", GARDEN], ["query", "ferry"]):
        failed = memctl(*command)
        assert failed.code == 1
        assert "vectors of length [16], not 32" in failed.err
        assert "memctl kb reembed default" in failed.err


def test_a_changed_kb_toml_is_reported(memctl: Run, remote: FakeEndpoint, tmp_path: Path) -> None:
    memctl("ingest", "--text", FERRY)
    settings = tmp_path / "home/kb/default/kb.toml"
    settings.write_text(settings.read_text().replace("endpoint/e", "endpoint/other"))
    failed = memctl("ingest", "--text", GARDEN)
    assert failed.code == 2
    assert "vectors are from endpoint/e with 32" in failed.err
    assert "memctl kb reembed default --embedder endpoint/other" in failed.err


# --- several embedders at once -------------------------------------------------------------------


@pytest.fixture
def mixed(memctl: Run, remote: FakeEndpoint) -> FakeEndpoint:
    """Two knowledge bases, ``far`` with the endpoint's vectors and ``near`` with built-in ones."""
    memctl("kb", "create", "far")
    memctl("kb", "create", "near", "--embedder", "builtin")
    for n in range(3):
        memctl("ingest", "-k", "far", "--text", f"Boat number {n} goes to the island {n}.")
        memctl("ingest", "-k", "near", "--text", f"Bed number {n} grows beans of kind {n}.")
    memctl("ingest", "-k", "far", "--text", FERRY)
    memctl("ingest", "-k", "near", "--text", GARDEN)
    return remote


@pytest.mark.parametrize("mode", ["hybrid", "vector", "keyword"])
def test_knowledge_bases_of_several_embedders_are_asked_together(
    memctl: Run, mixed: FakeEndpoint, mode: str
) -> None:
    for question, text, kb in (
        ("When does the ferry to Lisbon leave?", FERRY, "far"),
        ("When are the tomatoes in the garden ripe?", GARDEN, "near"),
    ):
        found = memctl("query", "-k", "far", "-k", "near", "--mode", mode, question, "-o", "json")
        assert (found.code, found.err) == (0, "")
        # By vectors alone the nearest of each knowledge base stand beside each other.
        first = found.json["hits"][: 2 if mode == "vector" else 1]
        assert (text, kb) in [(hit["text"], hit["kb"]) for hit in first]
        assert found.json["answer"]["citations"]
    assert FERRY in memctl("context", "-k", "far", "-k", "near", "ferry to Lisbon").out


def test_it_is_said_how_vectors_of_several_embedders_were_compared(
    memctl: Run, mixed: FakeEndpoint
) -> None:
    both = ("query", "-k", "far", "-k", "near", "--explain", "-o", "json", "ferry to Lisbon")
    explain = memctl(*both).json["explain"]
    assert explain["embedders"] == {"far": "endpoint/e", "near": "builtin/wordllama-256"}
    assert explain["vectors_compared"] == "within each embedder"
    alone = memctl("query", "-k", "far", "--explain", "-o", "json", "ferry to Lisbon")
    assert "embedders" not in alone.json["explain"]


def test_where_one_embedder_is_away_its_knowledge_base_alone_is_asked_by_keyword(
    memctl: Run, mixed: FakeEndpoint
) -> None:
    mixed.fail(503, times=-1)
    both = ("-k", "far", "-k", "near", "When does the ferry to Lisbon leave?")
    found = memctl("query", *both, "--explain", "-o", "json")
    assert found.code == 0
    assert best(found) == FERRY
    assert found.err.count("note: found by keyword alone in far: http") == 1
    assert found.json["explain"]["embedders"]["far"] is None
    assert "found by keyword alone in far" in memctl("context", *both).err
    assert memctl("query", "--mode", "vector", *both).code == 1


@pytest.mark.parametrize("why", ["no endpoint", "wrong key"])
def test_a_knowledge_base_whose_embedder_is_set_up_wrongly_does_not_silence_the_others(
    memctl: Run, mixed: FakeEndpoint, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    if why == "wrong key":
        mixed.fail(401, times=-1)
    else:
        monkeypatch.delenv("MEMCTL_ENDPOINT_BASE_URL")
    both = ("-k", "far", "-k", "near")
    for question, text in (("When does the ferry to Lisbon leave?", FERRY), ("tomatoes", GARDEN)):
        found = memctl("query", *both, question, "-o", "json")
        assert (found.code, best(found)) == (0, text)
        assert found.err.count("note: found by keyword alone in far: ") == 1
    assert memctl("query", "-k", "far", "ferry").code in (1, 2)
    assert memctl("query", "--mode", "vector", *both, "ferry").code in (1, 2)
