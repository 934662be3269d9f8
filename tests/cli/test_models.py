"""memctl models and memctl stats --cost: who does what, whether it answers, and what it cost."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
import termios
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from fake_endpoint import FakeEndpoint
from waiting import PATIENCE

import memctl as api

from .conftest import Run

TASKS = ["understand", "consolidate", "answer", "embed", "rerank", "transcribe", "image"]
PICTURE = {"description": "A navy square.", "text": ""}


def use(endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch, **models: str) -> None:
    """Configure the endpoint, by the environment."""
    for name, value in endpoint.settings(**models).items():
        monkeypatch.setenv(name, value)


def test_without_an_endpoint_everything_is_built_in_and_there_is_nothing_to_test(
    memctl: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    rows = memctl("models", "list").rows
    assert [row["task"] for row in rows] == TASKS
    assert all(row["builtin"] and not row["has_key"] and row["without"] for row in rows)
    result = memctl("models", "test")
    assert (result.code, result.out) == (0, "")
    assert "no model is configured" in result.err


def test_the_list_says_where_a_model_is_and_that_there_is_a_key_but_not_which(
    memctl: Run, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(endpoint, monkeypatch, understand="m", embed="e")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    monkeypatch.setenv("MEMCTL_MODELS_EMBED_URL", "http://127.0.0.1:9/v1")
    for format_ in ("json", "ndjson", "csv", "table"):
        assert "secret" not in memctl("models", "list", "-o", format_).out
    found = {row["task"]: row for row in memctl("models", "list").rows}
    assert (found["understand"]["model"], found["understand"]["url"]) == ("m", endpoint.url)
    assert found["embed"]["url"] == "http://127.0.0.1:9/v1"
    assert found["understand"]["has_key"]
    assert found["answer"]["builtin"]
    table = memctl("models", "list", "-o", "table").out
    assert f"understand: {endpoint.url}, with a key" in table
    assert "embed: http://127.0.0.1:9/v1, without a key" in table
    assert "built in: quotes from what was found" in table
    assert endpoint.count() == 0


def key_of(memctl: Run, task: str) -> bool:
    """Say whether a key would be sent for a task."""
    return bool({row["task"]: row["has_key"] for row in memctl("models", "list").rows}[task])


def test_the_common_key_goes_to_its_own_host_alone(
    memctl: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-common")
    monkeypatch.setenv("MEMCTL_ENDPOINT_BASE_URL", "https://models.example/v1")
    for task in ("RERANK", "EMBED", "ANSWER", "IMAGE"):
        monkeypatch.setenv(f"MEMCTL_MODELS_{task}", "m")
    monkeypatch.setenv("MEMCTL_MODELS_RERANK_URL", "https://elsewhere.example/v1")
    monkeypatch.setenv("MEMCTL_MODELS_EMBED_URL", "https://models.example:8443/other")
    monkeypatch.setenv("MEMCTL_MODELS_IMAGE_URL", "http://models.example/v1")
    keys = {task: key_of(memctl, task) for task in ("answer", "embed", "rerank", "image")}
    assert keys == {"answer": True, "embed": True, "rerank": False, "image": False}
    monkeypatch.setenv("MEMCTL_ENDPOINT_BASE_URL", "")
    assert not key_of(memctl, "rerank")


def test_a_task_sends_the_key_that_is_its_own(
    memctl: Run, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use(endpoint, monkeypatch, understand="m", answer="m", rerank="r")
    endpoint.on("Ready", {"ready": True})
    (tmp_path / "key").write_text("sk-of-the-file\n")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-common")
    monkeypatch.setenv("ANSWERING", "sk-answering")
    monkeypatch.setenv("MEMCTL_MODELS_ANSWER_KEY", "ANSWERING")
    monkeypatch.setenv("MEMCTL_MODELS_RERANK_KEY", str(tmp_path / "key"))
    sent = []
    for task in ("understand", "answer", "rerank"):
        assert memctl("models", "test", task).code == 0
        sent.append(endpoint.asked[-1].headers["Authorization"])
    assert sent == ["Bearer sk-common", "Bearer sk-answering", "Bearer sk-of-the-file"]
    (tmp_path / "key").unlink()
    assert "models.rerank_key: cannot read" in memctl("models", "test", "rerank", "-o", "table").out


@pytest.mark.parametrize(
    "key", ["sk-one\nsk-two", "sk-é", "key: sk-one"], ids=["lines", "no ASCII", "words"]
)
def test_what_is_no_key_is_refused_without_being_shown(
    memctl: Run, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, key: str
) -> None:
    use(endpoint, monkeypatch, understand="m")
    file = tmp_path / "key"
    file.write_text(key, encoding="utf-8")
    monkeypatch.setenv("MEMCTL_ENDPOINT_API_KEY_FILE", str(file))
    by_file = memctl("models", "test", "-o", "table")
    monkeypatch.setenv("MEMCTL_ENDPOINT_API_KEY_FILE", "")
    monkeypatch.setenv("OPENAI_API_KEY", key)
    by_variable = memctl("models", "test", "-o", "table")
    for result in (by_file, by_variable):
        said = result.out + result.err
        assert result.code == 1
        assert "holds more than a key" in said
        assert "sk-" not in said
    assert endpoint.count() == 0


def test_a_key_is_sent_without_what_an_editor_put_around_it(
    memctl: Run, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use(endpoint, monkeypatch, understand="m")
    endpoint.on("Ready", {"ready": True})
    file = tmp_path / "key"
    file.write_bytes(b"\xef\xbb\xbfsk-one\r\n")
    monkeypatch.setenv("MEMCTL_ENDPOINT_API_KEY_FILE", str(file))
    assert memctl("models", "test").code == 0
    assert endpoint.asked[0].headers["Authorization"] == "Bearer sk-one"


@pytest.mark.parametrize(
    "url", ["localhost:11434/v1", "ftp://localhost/v1", "http://[::1", "http://localhost:x/v1"]
)
def test_what_is_no_address_of_an_endpoint_is_named_before_anything_is_done(
    memctl: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, url: str
) -> None:
    monkeypatch.setenv("MEMCTL_MODELS_UNDERSTAND", "m")
    monkeypatch.setenv("MEMCTL_ENDPOINT_BASE_URL", url)
    (tmp_path / "note.txt").write_text("The lease starts on Monday.")
    ingested = memctl("ingest", str(tmp_path / "note.txt"))
    assert ingested.code == 2
    assert f"endpoint.base_url is no address of an endpoint: '{url}'" in ingested.err
    assert "http://localhost:11434/v1" in ingested.err
    problem = {row["task"]: row for row in memctl("models", "list").rows}["understand"]["problem"]
    assert "endpoint.base_url is no address" in problem


def test_a_password_in_an_address_is_refused_and_not_shown(
    memctl: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_MODELS_ANSWER", "m")
    monkeypatch.setenv("MEMCTL_MODELS_ANSWER_URL", "http://me:hunter2@localhost:1/v1")
    listed, tested = memctl("models", "list"), memctl("models", "test", "-o", "table")
    assert "models.answer_url holds a user name" in listed.out
    assert "models.answer_url holds a user name" in tested.out
    assert "hunter2" not in listed.out + listed.err + tested.out + tested.err


def test_a_model_without_an_endpoint_is_a_problem_that_the_list_names(
    memctl: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_MODELS_ANSWER", "m")
    found = {row["task"]: row for row in memctl("models", "list").rows}
    assert "there is no endpoint" in found["answer"]["problem"]
    assert "base_url" in found["answer"]["hint"]
    assert memctl("models", "test").code == 1


def test_each_model_that_is_configured_is_asked_once(
    memctl: Run, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.on("Ready", {"ready": True})
    endpoint.on("Picture", PICTURE)
    use(endpoint, monkeypatch, **dict.fromkeys(TASKS, "m"))
    result = memctl("models", "test")
    assert result.code == 0, result.out
    assert [row["task"] for row in result.rows] == TASKS
    assert all(row["ok"] and row["seconds"] > 0 for row in result.rows)
    tokens = {row["task"]: row["input_tokens"] for row in result.rows}
    assert tokens["understand"] > 0
    assert tokens["embed"] > 0
    assert endpoint.count() == len(TASKS)
    shapes = [asked.body["response_format"] for asked in endpoint.asked if asked.shape]
    # What servers ask of a schema that they are to hold a model to.
    assert all(not shape["json_schema"]["schema"]["additionalProperties"] for shape in shapes)
    [asked] = memctl("models", "test", "embed").rows
    assert asked["task"] == "embed"


def test_a_model_that_does_not_do_its_task_is_told_with_a_hint(
    memctl: Run, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.on("Ready", {"ready": True})
    endpoint.fail(401, path="/embeddings", times=-1)
    use(endpoint, monkeypatch, understand="m", embed="e")
    result = memctl("models", "test")
    assert result.code == 1
    good, bad = result.rows
    assert good["ok"]
    assert not bad["ok"]
    assert "answered 401" in bad["error"]
    assert "check the key" in bad["hint"]
    assert "no good reply for embed" in result.err
    assert memctl("models", "test", "understand").code == 0
    assert memctl("models", "test", "poetry").code == 2


def test_a_trial_is_one_call_however_many_retries_are_configured(
    memctl: Run, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.fail(503, times=-1)
    use(endpoint, monkeypatch, understand="m")
    monkeypatch.setenv("MEMCTL_ENDPOINT_RETRIES", "5")
    assert memctl("models", "test").code == 1
    assert endpoint.count() == 1


def test_what_is_wrong_with_several_models_is_told_once_below_them(
    memctl: Run, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.fail(401, times=-1)
    use(endpoint, monkeypatch, understand="m", answer="m", embed="e")
    output = memctl("models", "test", "-o", "table").out
    assert output.count("answered 401") == 1
    assert f"understand, answer, embed: {endpoint.url} answered 401" in output
    assert "\n  hint: check the key" in output


@pytest.mark.parametrize("command", [("models", "list"), ("stats", "--cost"), ("models", "test")])
def test_tables_of_models_fit_a_terminal_of_80_columns(
    memctl: Run, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    used(memctl)
    endpoint.on("Ready", {"ready": True})
    use(endpoint, monkeypatch, understand="gpt-5-mini", answer="a-model-with-a-rather-long-name")
    shown = on_a_terminal(80, *command)
    assert "…" not in shown
    assert all(len(line.rstrip()) <= 80 for line in shown.splitlines())
    assert "understand" in shown
    assert ("1,000" if "--cost" in command else "gpt-5-mini") in shown


def on_a_terminal(columns: int, *arguments: str) -> str:
    """What a command shows on a terminal, without colours."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (40, columns))
    command = [sys.executable, "-m", "memctl", *arguments]
    environment = {**os.environ, "NO_COLOR": "1"}
    process = subprocess.Popen(command, stdout=slave, stderr=slave, env=environment)
    os.close(slave)
    shown = b""
    with suppress(OSError):  # how Linux says that the other side is closed
        while piece := os.read(master, 65_536):
            shown += piece
    os.close(master)
    process.wait(PATIENCE)
    return re.sub(r"\x1b\[[\d;?]*[a-zA-Z]|\r", "", shown.decode())


def used(memctl: Run) -> None:
    """Have two knowledge bases, one of which has used a model."""
    from memctl.records import Usage

    assert memctl("kb", "create", "work").code == 0
    assert memctl("kb", "create", "home").code == 0
    with api.open("work") as base:
        for day, model in (("2026-05-12", "m"), ("2026-05-13", "m"), ("2026-05-13", "n")):
            base.store.ledger.usage.add(
                day, Usage("understand", model, 3, 1, 0, 1000, 200, 0.5, 2.0)
            )


def test_costs_are_told_by_knowledge_base_day_task_and_model(memctl: Run) -> None:
    used(memctl)
    rows = memctl("stats", "--cost").rows
    assert [(row["kb"], row["day"], row["model"]) for row in rows] == [
        ("work", "2026-05-13", "m"), ("work", "2026-05-13", "n"), ("work", "2026-05-12", "m"),
    ]  # fmt: skip
    assert (rows[0]["calls"], rows[0]["cached"], rows[0]["failed"]) == (3, 1, 0)
    assert (rows[0]["input_tokens"], rows[0]["output_tokens"], rows[0]["cost"]) == (1000, 200, 0.5)
    table = memctl("stats", "--cost", "-o", "table").out
    assert "total: 9 calls, 3 cached, 0 failed, 3,600 tokens, 1.50" in table
    arrow = pa.ipc.open_stream(io.BytesIO(memctl("stats", "--cost", "-o", "arrow").raw))
    assert arrow.read_all().num_rows == 3
    assert memctl("stats", "--cost", "-o", "csv").out.count("\n") == 4
    assert len(memctl("stats", "--cost", "-o", "json").json) == 3


def test_costs_of_what_is_asked_on_demand_or_archived_are_told_as_well(memctl: Run) -> None:
    used(memctl)
    assert memctl("kb", "set", "work", "--on-demand").code == 0
    assert len(memctl("stats", "--cost").rows) == 3
    assert memctl("kb", "archive", "work").code == 0
    assert len(memctl("stats", "--cost").rows) == 3
    assert memctl("stats", "--cost", "-k", "home").rows == []


def test_where_no_model_was_used_the_cost_is_nothing(memctl: Run) -> None:
    memctl("ingest", "--text", "The boat is green.")
    assert memctl("stats", "--cost").rows == []
    assert memctl("stats", "--cost", "-o", "table").out == "no model has been used\n"


def test_use_of_models_is_a_table_to_python_and_to_sql(memctl: Run) -> None:
    used(memctl)
    with api.open("work") as base:
        table = base.statistics.model_usage()
        assert table["calls"].to_pylist() == [3, 3, 3]
    question = "select day, sum(cost) as cost from model_usage group by day order by day"
    rows = memctl("sql", question, "-k", "work").rows
    assert rows == [{"day": "2026-05-12", "cost": 0.5}, {"day": "2026-05-13", "cost": 1.0}]
