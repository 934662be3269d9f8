"""Who may read what: folders and files, private knowledge bases, secrets in texts."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fake_endpoint import FakeEndpoint

from memctl.config import endpoint_key, load_config
from memctl.models.endpoint import is_loopback
from memctl.models.providers import without_remote_models

if TYPE_CHECKING:
    from cli.conftest import Run

REMOTE = "http://models.example.org/v1"
SECRET = "sk-proj-" + "a1B2c3D4e5F6g7H8i9J0"


# --- the disk ------------------------------------------------------------------------------------


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_nobody_else_may_read_what_a_command_writes(umask: int, tmp_path: Path) -> None:
    home = tmp_path / "homes" / "home"
    environ = {**os.environ, "MEMCTL_HOME": str(home)}
    words = ["ingest", "--text", "The ferry leaves at nine."]
    for arguments in (words, ["consolidate"], ["config", "init"]):
        subprocess.run(
            [sys.executable, "-m", "memctl", *arguments],
            env=environ,
            umask=umask,
            check=True,
            capture_output=True,
        )
    seen = [home, *home.rglob("*")]
    assert len(seen) > 20
    open_to_others = [path for path in seen if stat.S_IMODE(path.stat().st_mode) & 0o077]
    assert open_to_others == []


def test_a_key_that_others_may_read_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    key = tmp_path / "key"
    key.write_text("sk-never-shown")
    key.chmod(0o600)
    settings = {"MEMCTL_ENDPOINT_BASE_URL": REMOTE, "MEMCTL_ENDPOINT_API_KEY_FILE": str(key)}
    config = load_config(environ=settings | {"MEMCTL_HOME": str(tmp_path)})
    assert endpoint_key(config, "answer", REMOTE) == "sk-never-shown"
    assert caplog.text == ""
    key.chmod(0o640)
    assert endpoint_key(config, "answer", REMOTE) == "sk-never-shown"
    assert f"others on this machine can read {key}: chmod 600 {key}" in caplog.text
    assert "sk-never-shown" not in caplog.text


# --- private -------------------------------------------------------------------------------------


@pytest.fixture
def diary(memctl: Run, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A private knowledge base, and one that is not, with a model that answers."""
    for name, value in endpoint.settings(answer="m").items():
        monkeypatch.setenv(name, value)
    said = [{"text": "It was the surgeon.", "memories": [1]}]
    endpoint.on("AnswerReply", {"not_in_memory": False, "sentences": said})
    memctl("kb", "create", "diary", "--private")
    memctl("ingest", "-k", "diary", "--text", "Ann met the surgeon on 3 May 2026.")
    memctl("ingest", "--text", "The surgeon of the ship was called Maturin.")
    return memctl


def hits(done: Any) -> list[str]:
    return [hit["kb"] for hit in done.json["hits"]]


def test_a_private_knowledge_base_is_read_only_where_it_is_named(diary: Run) -> None:
    ask = ("query", "Who met the surgeon?", "-o", "json", "--no-answer")
    assert set(hits(diary(*ask))) == {"default"}
    assert set(hits(diary(*ask, "-k", "diary"))) == {"diary"}
    assert set(hits(diary(*ask, "-k", "diary", "-k", "default"))) == {"diary", "default"}
    count = "select count(*) as n from documents"
    assert diary("sql", count).rows == [{"n": 1}]
    diary("kb", "delete", "default", "--yes")
    alone = diary(*ask)
    assert alone.code == 10
    assert "-k diary" in alone.err


@pytest.mark.parametrize("together", [[], ["-k", "default"]], ids=["alone", "with another"])
def test_a_private_knowledge_base_is_not_sent_to_another_machine(
    diary: Run, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch, together: list[str]
) -> None:
    monkeypatch.setenv("MEMCTL_MODELS_RERANK", "r")
    monkeypatch.setattr("memctl.models.endpoint._LOOPBACK", ("elsewhere",))
    asked = ("query", "Who met the surgeon?", "-o", "json", "-k", "diary", *together)
    assert diary(*asked).json["answer"]["method"] == "extractive/2"
    diary("ingest", "-k", "diary", "--text", "Another secret.")
    assert endpoint.asked == []
    diary("kb", "set", "diary", "--may-send")
    diary(*asked)
    assert endpoint.asked


def test_the_watcher_tells_no_words_of_a_private_knowledge_base(
    diary: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MEMCTL_WATCH_SETTLE_SECONDS", "0.1")
    for name in ("diary", "default"):
        inbox = tmp_path / "home/kb" / name / "inbox"
        (inbox / f"{name}.md").write_text(f"# Plan of {name}\n\nThe words of {name} are xyzzy.")
    ingested = {e["kb"]: e for e in diary("watch", "--once").rows if e["kind"] == "ingested"}
    assert "xyzzy" in str(ingested["default"])
    assert "xyzzy" not in str(ingested["diary"])
    assert "Plan of" not in str(ingested["diary"])


def test_a_private_knowledge_base_may_ask_a_model_on_this_machine_and_keeps_no_reply(
    diary: Run, endpoint: FakeEndpoint
) -> None:
    for _ in range(2):
        diary("query", "Who met the surgeon?", "-k", "diary")
    private = len(endpoint.asked)
    diary("query", "Who was the surgeon of the ship?")
    once = len(endpoint.asked)
    diary("query", "Who was the surgeon of the ship?")
    assert private >= 2
    assert len(endpoint.asked) == once, "what is not private is asked for once"


def test_making_something_private_drops_cached_model_replies(
    diary: Run, endpoint: FakeEndpoint, tmp_path: Path
) -> None:
    diary("query", "Who was the surgeon of the ship?")
    before = len(endpoint.asked)
    diary("kb", "set", "default", "--private")
    diary("kb", "set", "default", "--not-private")
    diary("query", "Who was the surgeon of the ship?")
    assert len(endpoint.asked) > before


def test_only_models_on_this_machine_are_left_of_settings_that_are_confined() -> None:
    variables = {
        "MEMCTL_ENDPOINT_BASE_URL": REMOTE,
        "MEMCTL_MODELS_ANSWER": "far",
        "MEMCTL_MODELS_UNDERSTAND": "near",
        "MEMCTL_MODELS_UNDERSTAND_URL": "http://localhost:11434/v1",
        "MEMCTL_MODELS_RERANK": "onnx//models/small",
    }
    left = without_remote_models(load_config(environ=variables))
    assert left.endpoint.base_url == ""
    assert (left.models.answer, left.models.understand) == ("", "near")
    assert left.models.rerank == "onnx//models/small"


@pytest.mark.parametrize(
    ("url", "is_one"),
    [
        ("http://localhost:1234/v1", True),
        ("http://127.0.0.1/v1", True),
        ("http://[::1]:8000/v1", True),
        ("http://localhost.example.org/v1", False),
        ("http://127.0.0.1.example.org/v1", False),
        ("http://127.0.0.1@example.org/v1", False),
        (REMOTE, False),
    ],
)
def test_an_address_is_on_this_machine_by_its_name_alone(url: str, is_one: bool) -> None:
    assert is_loopback(url) is is_one


# --- secrets -------------------------------------------------------------------------------------


def test_secrets_are_redacted_before_anything_is_stored_or_sent(
    memctl: Run, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in endpoint.settings(understand="m").items():
        monkeypatch.setenv(name, value)
    page = tmp_path / "setup.md"
    page.write_text(f"# Set-up\n\nThe key is {SECRET} for now.\n\n## Ferry\n\nIt leaves at nine.\n")
    memctl("kb", "create", "default", "--redact")
    assert memctl("ingest", str(page)).code == 0
    memctl("memory", "add", f"remember the key {SECRET}")
    assert endpoint.asked
    assert all(SECRET not in str(asked.body) for asked in endpoint.asked)
    held = b"".join(p.read_bytes() for p in (tmp_path / "home").rglob("*") if p.is_file())
    assert SECRET.encode() not in held
    assert page.read_text().count(SECRET) == 1, "the file itself stays as it is"


def test_secrets_in_headings_are_redacted(memctl: Run, tmp_path: Path) -> None:
    page = tmp_path / "setup.md"
    page.write_text(f"# Set-up\n\n## key {SECRET}\n\nThe ferry leaves at nine.\n")
    memctl("kb", "create", "default", "--redact")
    assert memctl("ingest", str(page)).code == 0
    assert SECRET not in memctl("export", "memories").out
    assert "Set-up > key [redacted]" in memctl("context", "When does the ferry leave?").out
    held = b"".join(p.read_bytes() for p in (tmp_path / "home").rglob("*") if p.is_file())
    assert SECRET.encode() not in held


def test_what_is_said_of_a_text_loses_its_secrets_and_ids_stay_one_of_a_kind(
    memctl: Run, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in endpoint.settings(understand="m").items():
        monkeypatch.setenv(name, value)
    memctl("kb", "create", "default", "--redact")
    lines = [
        {
            "text": f"The ferry leaves at {hour}.", "id": f"ferry {secret}", "title": secret,
            "source": f"https://ann:{secret}@example.org/f", "session_id": secret,
            "speaker": secret, "tags": ["ferry", secret], "metadata": {secret: [{secret: secret}]},
            secret: "is here",
        }
        for hour, secret in (("nine", SECRET), ("ten", f"{SECRET}{SECRET[-4:]}"))
    ]  # fmt: skip
    stream = "\n".join(map(json.dumps, lines))
    for counts in ((2, 0), (0, 2)):
        done = memctl("ingest", "--jsonl", "-", "-o", "json", stdin=stream).json
        assert (done["ingested"], done["skipped"]) == counts
    stated = memctl("memory", "add", "Tea.", "--tag", SECRET, "--session", SECRET).rows[0]
    memctl("memory", "edit", stated["id"], "--tag", f"key {SECRET}")
    documents = memctl("document", "list").rows
    said = memctl("memory", "list", "--level", "evidence").rows
    assert len({row["external_id"] for row in said}) == 2
    assert len({row["session_id"] for row in documents}) == 2
    assert {row["source"] for row in documents} == {"https://ann:[redacted]@example.org/f"}
    assert documents[0]["tags"] == ["ferry", "[redacted]"]
    assert memctl("document", "reprocess", documents[0]["id"]).code == 0
    assert memctl("export", "all", "--to", str(tmp_path / "all.memctl")).code == 0
    held = b"".join(p.read_bytes() for p in (tmp_path / "home").rglob("*") if p.is_file())
    assert SECRET.encode() not in held
    assert all(SECRET not in str(asked.body) for asked in endpoint.asked)


def test_what_stands_below_a_key_for_secrets_goes_by_its_name(memctl: Run) -> None:
    memctl("kb", "create", "default", "--redact")
    said = {
        "tokens": ["harb0urKeyNine"], "password": 47119022,
        "db": {"secret": {"value": "harb0urKeyTen"}, "value": "port 9"}, "berths": [3, 4.5, True],
    }  # fmt: skip
    line = json.dumps({"text": "The ferry leaves at nine.", "metadata": said})
    assert memctl("ingest", "--jsonl", "-", stdin=line).code == 0
    (row,) = memctl("document", "list").rows
    kept = memctl("document", "show", row["id"], "-o", "json").json["document"]["metadata"]
    assert {key: kept[key] for key in said} == {
        "tokens": ["[redacted]"], "password": "[redacted]",
        "db": {"secret": {"value": "[redacted]"}, "value": "port 9"}, "berths": [3, 4.5, True],
    }  # fmt: skip


def test_a_secret_in_the_name_of_a_file_is_in_no_table_and_the_file_is_found_by_it(
    memctl: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_WATCH_SETTLE_SECONDS", "0")
    memctl("kb", "create", "default", "--redact")
    base = tmp_path / "home/kb/default"
    (base / f"inbox/{SECRET}.md").write_text(
        f"---\nauthor: Ann {SECRET}\n{SECRET}: here\n---\nThe ferry leaves at nine.\n"
    )
    assert memctl("watch", "--once").code == 0
    held = b"".join(p.read_bytes() for p in (base / "lance").rglob("*") if p.is_file())
    assert SECRET.encode() not in held
    (row,) = memctl("document", "list").rows
    assert row["source"] == "[redacted].md"
    (receipt,) = memctl("why", f"{SECRET}.md", "-o", "json").json
    assert (receipt["document_id"], receipt["is_there"]) == (row["id"], True)
    assert memctl("document", "reprocess", row["id"]).code == 0
    done = memctl("forget", "--document", row["id"], "--yes", "-o", "json").json
    assert (len(done["files"]), done["left"]) == (1, [])
    held = b"".join(p.read_bytes() for p in base.rglob("*") if p.is_file())
    assert SECRET.encode() not in held


def test_citations_of_a_redacted_document_hold(memctl: Run, tmp_path: Path) -> None:
    page = tmp_path / "setup.md"
    page.write_text(f"# Set-up\n\nThe key is {SECRET} for now.\n\n## Ferry\n\nIt leaves at nine.\n")
    memctl("kb", "create", "default", "--redact")
    memctl("ingest", str(page))
    (document,) = memctl("document", "list").rows
    text = memctl("document", "show", document["id"], "-o", "json").json["document"]["text"]
    assert "The key is [redacted] for now." in text
    passages = memctl("memory", "list", "--level", "evidence").rows
    assert {text[row["start"] : row["end"]] for row in passages} == {
        row["text"] for row in passages
    }
    assert any("It leaves at nine." in row["text"] for row in passages)


def test_why_a_file_cannot_be_read_is_told_without_the_secret_that_stands_there(
    memctl: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_WATCH_SETTLE_SECONDS", "0")
    memctl("kb", "create", "default", "--redact")
    kb = tmp_path / "home/kb/default"
    (kb / "inbox/aliases.yaml").write_text(f"key: *{SECRET}")
    outputs = [memctl("watch", "--once")]
    line = json.dumps({"text": "The ferry leaves at nine.", "created_at": SECRET})
    outputs += [memctl("ingest", "--jsonl", "-", stdin=line), memctl("why", "aliases.yaml")]
    outputs += [memctl("status", "-o", "json")]
    said = "".join(each.out + each.err for each in outputs)
    assert "its alias *[redacted] refers to" in said
    assert "is no date" in said
    assert SECRET not in said
    reason = (kb / "failed/aliases.yaml.reason.json").read_text()
    assert "[redacted]" in reason
    assert SECRET not in reason
    assert all(SECRET.encode() not in path.read_bytes() for path in kb.glob("ledger.sqlite*"))


def test_nothing_is_redacted_unless_it_is_asked_for(memctl: Run) -> None:
    memctl("ingest", "--text", f"The key is {SECRET} for now.")
    assert SECRET in memctl("query", "What is the key?", "-o", "json").out


def test_a_private_knowledge_base_says_that_a_model_is_on_another_machine(
    diary: Run, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_MODELS_UNDERSTAND", "m")
    monkeypatch.setattr("memctl.models.endpoint._LOOPBACK", ("elsewhere",))
    asked = len(endpoint.asked)
    for words in (
        ["kb", "reembed", "diary", "--embedder", "endpoint/e"],
        ["document", "reprocess", "--upgrade", "-k", "diary"],
    ):
        done = diary(*words)
        assert done.code == 2
        assert "private" in done.err
        assert "memctl kb set diary --may-send" in done.err
    assert len(endpoint.asked) == asked


def test_without_any_model_a_private_knowledge_base_does_not_blame_that_it_is_private(
    memctl: Run,
) -> None:
    memctl("kb", "create", "diary", "--private")
    for words in (
        ["kb", "reembed", "diary", "--embedder", "endpoint/e"],
        ["document", "reprocess", "--upgrade", "-k", "diary"],
    ):
        done = memctl(*words)
        assert done.code == 2
        assert "private" not in done.err
