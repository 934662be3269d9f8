"""Understanding by a model from the command line: with it, without it, and while it is down."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import Asked, FakeEndpoint
from pytest_httpserver import HTTPServer
from waiting import PATIENCE

from memctl.ingest import ingest_pipeline, worker_pool
from memctl.ingest.worker_pool import WorkerPool

from .conftest import Run

FILES = 30


def answer(asked: Asked) -> dict[str, Any]:
    """What an obedient model makes of a note: its first line is a fact."""
    line = asked.data[-1].strip().splitlines()[0]
    fact = {
        "subject": "Zephyrine Works", "relation": "decided", "object": "something",
        "type": "decision", "quote": line, "why": "it was decided",
    }  # fmt: skip
    return {
        "gist": f"In short: {line}",
        "entities": [{"name": "Aurora", "type": "project"}],
        "topics": ["launch"],
        "importance": 0.8,
        "importance_reason": "a decision",
        "dates": [],
        "facts": [fact, {**fact, "quote": "Nobody ever wrote this sentence."}],
    }


def use(monkeypatch: pytest.MonkeyPatch, endpoint: FakeEndpoint, **more: str) -> None:
    for name, value in (endpoint.settings(understand="m") | more).items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def model(endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch) -> FakeEndpoint:
    """An endpoint that is configured and whose model does as it is told."""
    endpoint.on("DocumentReply", answer)
    use(monkeypatch, endpoint)
    return endpoint


def notes(folder: Path, count: int) -> Path:
    folder.mkdir()
    for n in range(count):
        (folder / f"note{n:02}.md").write_text(f"Note {n}: Aurora goes its way in step {n}.\n")
    return folder


def understood(endpoint: FakeEndpoint) -> int:
    """How many times a document, or a part of one, was sent to be understood."""
    return endpoint.count(shape="DocumentReply")


def methods(memctl: Run) -> list[str]:
    return [row["method"] for row in memctl("document", "list", "-n", "0").rows]


def test_the_model_is_told_what_is_known_of_a_document(
    memctl: Run, model: FakeEndpoint, tmp_path: Path
) -> None:
    record = {
        "text": "I chose blue for Aurora.", "speaker": "Ann", "session_id": "s1", "turn": 3,
        "created_at": "2026-05-12T09:30:00Z", "tags": ["work"],
    }  # fmt: skip
    model.on("DocumentReply", lambda asked: answer(asked) | {"gist": "", "facts": []})
    memctl("ingest", "--jsonl", "-", stdin=json.dumps(record))
    (tmp_path / "plan.md").write_text("---\ntags: [boat]\n---\nWe chose blue for Aurora.\n")
    memctl("ingest", "plan.md", "--session", "s2", "--tag", "urgent")
    turn, file = (json.loads(asked.data[0]) for asked in model.asked)
    assert turn == {
        "title": "", "date": "2026-05-12", "session": "s1", "tags": ["work"], "part": "1 of 1",
    }  # fmt: skip
    assert (file["file"], file["session"], file["tags"]) == (
        "plan.md",
        "s2",
        ["boat", "urgent"],
    )
    for row in memctl("document", "list").rows:
        memctl("document", "reprocess", row["id"])
    assert model.count() == 2, "what is read again is told in the same words, and known"


def test_documents_are_understood_by_the_model(
    memctl: Run, model: FakeEndpoint, tmp_path: Path
) -> None:
    (tmp_path / "a.md").write_text("We chose blue for Aurora.\n")
    result = memctl("ingest", "a.md", "-o", "json")
    assert result.code == 0, result.err
    (outcome,) = result.json["outcomes"]
    assert (outcome["dropped"], outcome["missing"]) == (1, [])
    assert result.json["dropped"] == 1
    assert "left out 1 fact that it does not say" in result.err
    (row,) = memctl("document", "list").rows
    assert row["method"] == "model/m/understand/2"
    view = memctl("document", "show", row["id"], "-o", "json").json
    document = view["document"]
    assert document["summary"] == "In short: We chose blue for Aurora."
    assert document["importance"] == pytest.approx(0.8)
    assert document["signals"] == {"model": pytest.approx(0.8)}
    assert document["metadata"]["importance_reason"] == "a decision"
    (decision,) = [m for m in view["memories"] if m["type"] == "decision"]
    assert decision["text"] == document["text"][decision["start"] : decision["end"]]
    assert decision["metadata"]["reason"] == "model: it was decided"
    assert decision["metadata"]["subject"] == "Zephyrine Works"
    (hit,) = memctl("query", "zephyrine", "--mode", "keyword", "-o", "json").json["hits"]
    assert hit["document_id"] == row["id"]  # found by a word that only the fact's subject has


def test_turns_of_a_chat_are_understood_too(
    memctl: Run, model: FakeEndpoint, tmp_path: Path
) -> None:
    turns = '{"text": "Aurora flies on Monday.", "session_id": "s", "turn": 3, "speaker": "Ann"}\n'
    assert memctl("ingest", "--jsonl", "-", stdin=turns).code == 0
    (decision,) = memctl("memory", "list", "--type", "decision").rows
    assert (decision["turn"], decision["speaker"], decision["session_id"]) == (3, "Ann", "s")


def test_the_second_ingest_of_the_same_files_asks_nothing(
    memctl: Run, model: FakeEndpoint, tmp_path: Path
) -> None:
    folder = notes(tmp_path / "notes", FILES)
    assert memctl("ingest", str(folder), "-o", "json").json["ingested"] == FILES
    assert understood(model) == FILES
    asked = model.count()
    assert memctl("ingest", str(folder), "-o", "json").json["skipped"] == FILES
    assert model.count() == asked
    for row in memctl("document", "list", "-n", "3").rows:
        memctl("document", "delete", row["id"], "--yes")
    assert memctl("ingest", str(folder), "-o", "json").json["ingested"] == 3
    assert understood(model) == FILES


def test_no_worker_processes_are_hired_to_wait_for_a_model(
    memctl: Run, model: FakeEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hired: list[WorkerPool] = []
    monkeypatch.setattr(WorkerPool, "_start_workers", lambda self, _settings: hired.append(self))
    monkeypatch.setattr(worker_pool, "processor_count", lambda: 2)
    monkeypatch.setattr(ingest_pipeline, "MANY_SOURCES", 1)
    folder = notes(tmp_path / "notes", 10)
    assert memctl("ingest", str(folder)).code == 0
    assert hired == []
    for name in model.settings(understand="m"):
        monkeypatch.delenv(name)
    assert memctl("ingest", str(folder), "-k", "default", "--namespace", "other").code == 0
    assert len(hired) == 1


@pytest.fixture
def mortal(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A server of its own that is killed for good after so many calls, and may be started again."""
    kept = socket.socket()
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if sys.platform == "linux":  # nobody else gets the port while nobody listens
        kept.bind(("localhost", 0))
    server = HTTPServer(port=kept.getsockname()[1], threaded=True)
    server.start()
    port = server.port
    dying, is_dead = threading.Event(), threading.Event()

    def kill() -> None:
        dying.wait()
        server.stop()
        is_dead.set()

    killer = threading.Thread(target=kill)
    killer.start()
    endpoint = FakeEndpoint(server)
    use(monkeypatch, endpoint)

    def live_for(calls: int) -> FakeEndpoint:
        def counted(asked: Asked) -> dict[str, Any]:
            if understood(endpoint) >= calls:
                dying.set()
                is_dead.wait(PATIENCE)
            return answer(asked)

        endpoint.on("DocumentReply", counted)
        return endpoint

    def again() -> FakeEndpoint:
        killer.join()
        revived = HTTPServer(port=port, threaded=True)
        revived.start()
        alive.append(revived)
        found = FakeEndpoint(revived)
        found.on("DocumentReply", answer)
        return found

    alive: list[HTTPServer] = []
    yield live_for, again
    dying.set()
    killer.join()
    for each in alive:
        each.clear()
        each.stop()
    kept.close()


def test_an_endpoint_killed_half_way_through_loses_nothing_and_all_is_done_when_it_is_back(
    memctl: Run,
    mortal: tuple[Callable[[int], FakeEndpoint], Callable[[], FakeEndpoint]],
    tmp_path: Path,
) -> None:
    live_for, again = mortal
    endpoint = live_for(FILES // 2)
    folder = notes(tmp_path / "notes", FILES)
    result = memctl("ingest", str(folder), "-o", "json")
    assert result.code == 1
    done = result.json
    assert 0 < done["ingested"] < FILES
    assert done["failed"] == 0
    assert "cannot be reached" in result.err or "is left alone" in result.err
    assert f"{done['ingested']} documents were ingested before" in result.err
    assert "hint: check that it is running" in result.err
    assert set(methods(memctl)) == {"model/m/understand/2"}
    assert len(methods(memctl)) == done["ingested"]
    revived = again()
    result = memctl("ingest", str(folder), "-o", "json")
    assert (result.code, result.json["ingested"]) == (0, FILES - done["ingested"])
    assert methods(memctl) == ["model/m/understand/2"] * FILES
    # Those that were under way when it died were asked about again, and no others.
    concurrency = 4
    assert FILES <= understood(endpoint) + understood(revived) <= FILES + concurrency


def test_of_a_source_in_many_parts_nothing_is_kept_until_all_of_it_is_understood(
    memctl: Run, model: FakeEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memctl.readers.data_files import table_rows

    monkeypatch.setattr(table_rows, "PART_CHARS", 2_000)
    rows = "".join(f"{n},step {n} of Aurora,done\n" for n in range(400))
    (tmp_path / "steps.csv").write_text(f"number,what,state\n{rows}")
    replied: list[Asked] = []

    def dies(asked: Asked) -> dict[str, Any]:
        replied.append(asked)
        if len(replied) == 3:
            model.fail(500, times=-1)
        return answer(asked)

    model.on("DocumentReply", dies)
    (tmp_path / "a.md").write_text("We chose blue for Aurora.\n")
    stopped = memctl("ingest", "a.md", "steps.csv", "-o", "json")
    assert (stopped.code, stopped.json["ingested"]) == (1, 1)
    assert len(methods(memctl)) == 1
    model.mend()
    model.on("DocumentReply", answer)
    before = understood(model)
    result = memctl("ingest", "a.md", "steps.csv", "-o", "json")
    assert (result.code, result.json["ingested"]) == (0, 1)
    parts = len(methods(memctl)) - 1
    assert parts > 4
    assert understood(model) - before == parts - 2


def test_a_model_that_is_down_from_the_start_fails_no_file(
    memctl: Run, model: FakeEndpoint, tmp_path: Path
) -> None:
    model.fail(500, times=-1)
    result = memctl("ingest", str(notes(tmp_path / "notes", 3)))
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("error: ")
    assert methods(memctl) == []


def test_a_spent_budget_stops_it_and_says_when_it_goes_on(
    memctl: Run, model: FakeEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_BUDGET_DAILY_TOKENS", "1")
    monkeypatch.setenv("MEMCTL_ENDPOINT_CONCURRENCY", "1")
    result = memctl("ingest", str(notes(tmp_path / "notes", 6)), "-o", "json")
    assert (result.code, model.count()) == (1, 1)
    assert "today's budget of 1 tokens is spent" in result.err
    assert "tomorrow" in result.err


def test_wrong_settings_stop_it_and_are_named(
    memctl: Run, model: FakeEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_MODELS_WHEN_UNAVAILABLE", "builtin")
    model.fail(401, times=-1)
    result = memctl("ingest", str(notes(tmp_path / "notes", 3)))
    assert result.code == 1
    assert "api_key" in result.err
    assert methods(memctl) == []


OUT_OF_ORDER = ("answered 500", "did not answer and is left alone")
"""Why an endpoint is not to be had; of several calls at once, either may be the first to say so."""


def test_what_was_understood_built_in_meanwhile_is_upgraded_later(
    memctl: Run, model: FakeEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_MODELS_WHEN_UNAVAILABLE", "builtin")
    model.fail(500, times=-1)
    result = memctl("ingest", str(notes(tmp_path / "notes", 5)), "-o", "json")
    assert (result.code, result.json["incomplete"]) == (0, 5)
    assert result.err.count("understanding the built-in way") == 1
    assert any(why in result.err for why in OUT_OF_ORDER)
    assert "note0" in result.err
    assert "no model understanding yet" in result.err
    assert set(methods(memctl)) == {"builtin/2"}
    assert len(memctl("document", "list", "--incomplete").rows) == 5
    in_vain = memctl("document", "reprocess", "--upgrade")
    assert (in_vain.code, in_vain.out) == (1, "")
    assert any(why in in_vain.err for why in OUT_OF_ORDER)
    model.mend()
    result = memctl("document", "reprocess", "--upgrade", "-o", "json")
    assert (result.code, result.json["ingested"]) == (0, 5)
    assert set(methods(memctl)) == {"model/m/understand/2"}
    assert memctl("document", "list", "--incomplete").rows == []
    asked = model.count()
    result = memctl("document", "reprocess", "--upgrade", "-o", "json")
    assert (result.json["outcomes"], model.count()) == ([], asked)


def test_a_document_of_which_the_model_makes_nonsense_is_understood_built_in_and_counted(
    memctl: Run, model: FakeEndpoint, tmp_path: Path
) -> None:
    model.on("DocumentReply", lambda asked: "hm" if "step 3" in asked.said else answer(asked))
    result = memctl("ingest", str(notes(tmp_path / "notes", 5)), "-o", "json")
    assert (result.code, result.json["ingested"], result.json["incomplete"]) == (0, 5, 1)
    assert "m twice replied with something else than was asked for" in result.err
    assert sorted(methods(memctl)) == ["builtin/2", *["model/m/understand/2"] * 4]
    (incomplete,) = memctl("document", "list", "--incomplete").rows
    assert incomplete["missing"] == ["model understanding"]
    model.on("DocumentReply", answer)
    before = understood(model)
    assert memctl("document", "reprocess", "--incomplete", "-o", "json").json["ingested"] == 1
    assert understood(model) == before + 1


def test_an_upgrade_is_resumed_and_leaves_what_people_edited(
    memctl: Run, endpoint: FakeEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = notes(tmp_path / "notes", 20)
    (folder / "own.md").write_text("We decided to paint Aurora blue.\n")
    assert memctl("ingest", str(folder)).code == 0
    rows = memctl("memory", "list", "--type", "decision", "-n", "0").rows
    (decision,) = (row for row in rows if "paint Aurora" in row["text"])
    edited = memctl("memory", "edit", decision["id"], "--text", "We decided on green.")
    assert edited.code == 0, edited.err
    use(monkeypatch, endpoint)

    replied: list[Asked] = []

    def dies(asked: Asked) -> dict[str, Any]:
        replied.append(asked)
        if len(replied) == 12:
            endpoint.fail(503, times=-1)
        return answer(asked)

    endpoint.on("DocumentReply", dies)
    stopped = memctl("document", "reprocess", "--upgrade", "-o", "json")
    assert stopped.code == 1
    assert 0 < stopped.json["ingested"] < 21
    endpoint.mend()
    endpoint.on("DocumentReply", answer)
    before = understood(endpoint)
    resumed = memctl("document", "reprocess", "--upgrade", "-o", "json")
    assert resumed.json["ingested"] == 21 - stopped.json["ingested"]
    assert understood(endpoint) - before == 21 - len(replied)
    assert set(methods(memctl)) == {"model/m/understand/2"}
    texts = [row["text"] for row in memctl("memory", "list", "--type", "decision", "-n", "0").rows]
    assert "We decided on green." in texts
    assert any("Note 7:" in text for text in texts)
    named = [(row["name"], row["type"]) for row in memctl("export", "entities").rows]
    assert named.count(("Aurora", "project")) == 1  # as only the model calls it


def evidence(memctl: Run) -> list[tuple[Any, ...]]:
    """Every passage with its places."""
    columns = (
        "id", "text", "start", "end", "heading", "page", "row", "time_start", "time_end",
        "speaker", "turn", "session_id", "created_at", "type", "title", "tags",
    )  # fmt: skip
    rows = [row for row in memctl("export", "memories").rows if row["level"] == "evidence"]
    return sorted(tuple(str(row[name]) for name in columns) for row in rows)


def test_what_has_no_file_any_more_is_upgraded_from_what_is_remembered(
    memctl: Run, endpoint: FakeEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memctl.readers.data_files import table_rows

    monkeypatch.setattr(table_rows, "PART_CHARS", 2_000)
    sentence = "We decided to paint Aurora blue, and to sail her to the island in June. "
    (tmp_path / "plan.md").write_text(
        f"---\ntags: [boat]\n---\n# Plan\n\n## Paint\n\n{sentence * 60}\n\n## Sail\n\n{sentence}\n"
    )
    (tmp_path / "talk.vtt").write_text(
        "WEBVTT\n\n00:01.000 --> 00:04.000\n<v Ann>We sail in June.\n\n"
        "00:05.000 --> 00:09.000\n<v Bob>And paint her blue before.\n"
    )
    rows = "".join(f"{n},step {n} of Aurora,done\n" for n in range(200))
    (tmp_path / "steps.csv").write_text(f"number,what,state\n{rows}")
    files = ("plan.md", "talk.vtt", "steps.csv")
    assert memctl("ingest", *files).code == 0
    assert memctl("ingest", "-", stdin="Aurora is a boat from 1936.").code == 0
    before = evidence(memctl)
    for name in files:
        (tmp_path / name).unlink()
    use(monkeypatch, endpoint)
    endpoint.on("DocumentReply", answer)
    result = memctl("document", "reprocess", "--upgrade", "-o", "json")
    assert (result.code, result.json["ingested"]) == (0, 4), result.err
    assert set(methods(memctl)) == {"model/m/understand/2"}
    assert evidence(memctl) == before
    assert any(row["level"] == "memory" for row in memctl("export", "memories").rows)
    assert memctl("document", "reprocess", "--upgrade", "-o", "json").json["ingested"] == 0


def test_what_a_model_understood_is_not_given_up_for_one_that_makes_nonsense(
    memctl: Run, model: FakeEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert memctl("ingest", str(notes(tmp_path / "notes", 3))).code == 0
    monkeypatch.setenv("MEMCTL_MODELS_UNDERSTAND", "other")
    model.on("DocumentReply", lambda asked: "hm" if "step 1" in asked.said else answer(asked))
    result = memctl("document", "reprocess", "--upgrade", "-o", "json")
    assert (result.code, result.json["ingested"], result.json["failed"]) == (3, 2, 1)
    assert "note01.md: the model makes nothing of it now" in result.err
    expected = ["model/m/understand/2", *["model/other/understand/2"] * 2]
    assert sorted(methods(memctl)) == expected
    assert memctl("document", "list", "--incomplete").rows == []
    rows = memctl("document", "list").rows
    assert all(row["summary"].startswith("In short: ") for row in rows)


def test_long_documents_are_bounded_and_estimated_so(
    memctl: Run, model: FakeEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memctl.readers.data_files import table_rows
    from memctl.understanding import sentence_reading

    monkeypatch.setattr(table_rows, "PART_CHARS", 40_000)
    monkeypatch.setattr(sentence_reading, "MAX_READ", 10)  # each of them takes its time
    monkeypatch.setenv("MEMCTL_MODELS_MOST_WINDOWS", "4")
    rows = "".join(f"{n},step {n} of Aurora goes well,done\n" for n in range(2_500))
    (tmp_path / "steps.csv").write_text(f"number,what,state\n{rows}")
    (tmp_path / "log.md").write_text("We sailed on to the next island.\n\n" * 2_000)
    estimate = memctl("ingest", "steps.csv", "log.md", "--dry-run", "-o", "json").json
    assert model.count() == 0
    task = next(item for item in estimate["estimates"] if item["task"] == "understand")
    assert memctl("ingest", "steps.csv", "log.md").code == 0
    assert task["calls"] == understood(model) < 15, "a table's text is longer than its file"
    (log,) = [row for row in memctl("document", "list").rows if row["title"] == "log"]
    assert log["missing"] == ["model understanding of all parts"]
    monkeypatch.setenv("MEMCTL_MODELS_MOST_WINDOWS", "50")
    assert memctl("document", "reprocess", "--incomplete").code == 0
    assert memctl("document", "list", "--incomplete").rows == []


def test_an_upgrade_without_a_model_says_what_to_set(memctl: Run, tmp_path: Path) -> None:
    assert memctl("ingest", str(notes(tmp_path / "notes", 1))).code == 0
    result = memctl("document", "reprocess", "--upgrade")
    assert result.code == 2
    assert "set understand of [models]" in result.err


def test_a_model_without_an_endpoint_says_what_to_set(
    memctl: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_MODELS_UNDERSTAND", "m")
    result = memctl("ingest", str(notes(tmp_path / "notes", 1)))
    assert result.code == 2
    assert "base_url" in result.err


def test_a_prompt_of_its_own_makes_its_documents_others(
    memctl: Run, model: FakeEndpoint, tmp_path: Path
) -> None:
    assert memctl("ingest", str(notes(tmp_path / "notes", 2))).code == 0
    own = tmp_path / "home/kb/default/prompts/understand.md"
    own.parent.mkdir()
    own.write_text("Be brief.")
    assert memctl("document", "reprocess", "--upgrade", "-o", "json").json["ingested"] == 2
    assert all(method.startswith("model/m/understand/own-") for method in methods(memctl))
    assert model.asked[-1].instructions == "Be brief."
