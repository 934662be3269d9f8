"""Files wait in the inbox while the model that is to understand them cannot be had."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fake_endpoint import Asked, FakeEndpoint
from waiting import wait_for
from watched import Daemon, Place

from memctl.config import load_config
from memctl.home import Home
from memctl.records import Filters
from memctl.watch import scheduled_jobs
from memctl.watch.reporter import WatchEvent
from memctl.watch.watch_status import watch_status

REPLY = {
    "gist": "A note.",
    "entities": [],
    "topics": [],
    "importance": 0.5,
    "importance_reason": "ordinary",
    "dates": [],
    "facts": [],
}


@pytest.fixture
def modelled(place: Place, endpoint: FakeEndpoint) -> Place:
    """The place, with a model at the endpoint that understands documents."""
    endpoint.on("DocumentReply", REPLY)
    settings = {"home": str(place.home.config.home)}
    variables = endpoint.settings(understand="m") | {"MEMCTL_ENDPOINT_CONCURRENCY": "1"}
    return replace(place, home=Home(load_config(settings, variables)))


def drop(place: Place, count: int) -> list[str]:
    names = [f"note{n}.txt" for n in range(count)]
    for name in names:
        place.drop(name, f"This is what {name} says.")
    return names


def of_kind(events: list[WatchEvent], kind: str) -> list[WatchEvent]:
    return [event for event in events if event.kind == kind]


def test_with_the_endpoint_down_files_go_back_and_are_taken_when_it_is_up(
    modelled: Place, endpoint: FakeEndpoint
) -> None:
    names = drop(modelled, 3)
    endpoint.fail(503, times=-1)
    events = modelled.drain()
    (waiting,) = of_kind(events, "waiting")
    assert "answered 503" in waiting.message
    assert modelled.tree(modelled.layout.inbox) == names
    for folder in (modelled.layout.failed, modelled.layout.processing):
        assert modelled.tree(folder) == []
    with modelled.open() as base:
        status = watch_status(base)
    assert (status.backlog, status.failed) == (3, 0)
    assert "answered 503" in status.last_error
    endpoint.mend()
    assert len(of_kind(modelled.drain(), "ingested")) == 3
    assert modelled.tree(modelled.layout.processed) == names


def test_work_done_before_the_endpoint_went_down_is_kept(
    modelled: Place, endpoint: FakeEndpoint
) -> None:
    names = drop(modelled, 6)

    def dies(asked: Asked) -> dict[str, object]:
        if endpoint.count() == 4:
            endpoint.fail(500, times=-1)
        return REPLY

    endpoint.on("DocumentReply", dies)
    events = modelled.drain()
    done = modelled.tree(modelled.layout.processed)
    assert 0 < len(done) == len(of_kind(events, "ingested")) < 6
    assert sorted([*done, *modelled.tree(modelled.layout.inbox)]) == names
    assert modelled.tree(modelled.layout.failed) == []
    asked = endpoint.count()
    endpoint.mend()
    modelled.drain()
    assert modelled.tree(modelled.layout.processed) == names
    assert endpoint.count() - asked == 2  # four had been replied to, whatever became of them


def test_a_daemon_tries_again_until_the_endpoint_is_back_and_says_so_once(
    modelled: Place, endpoint: FakeEndpoint
) -> None:
    names = drop(modelled, 2)
    endpoint.fail(503, times=2)
    with Daemon(modelled, retry_seconds=0.3):
        wait_for(lambda: modelled.tree(modelled.layout.processed) == names)
    assert [len(of_kind(modelled.events, kind)) for kind in ("waiting", "resumed")] == [1, 1]


def test_files_of_an_inbox_that_keeps_them_wait_where_they_are(
    modelled: Place, endpoint: FakeEndpoint, tmp_path: Path
) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "a.md").write_text("Aurora flies on Monday.")
    modelled.keep(vault)
    endpoint.fail(503, times=-1)
    assert len(of_kind(modelled.drain(), "waiting")) == 1
    assert modelled.rows("documents", "id") == []
    endpoint.mend()
    assert len(of_kind(modelled.drain(), "ingested")) == 1
    assert modelled.tree(vault) == ["a.md"]


def stating(asked: Asked) -> dict[str, object]:
    """A reply whose only fact is the first line of the text."""
    said = asked.data[-1].strip().splitlines()[0]
    fact = {
        "subject": "Aurora", "relation": "flies on", "object": said, "type": "fact",
        "quote": said, "why": "when",
    }  # fmt: skip
    return REPLY | {"entities": [{"name": "Aurora", "type": "project"}], "facts": [fact]}


UPDATE = {"verdicts": [{"new": 1, "known": 1, "verdict": "update", "why": "another day"}]}


def current_facts(place: Place) -> list[str]:
    rows = place.rows("memories", "type", "text", "valid_to")
    return [row["text"] for row in rows if row["type"] == "fact" and row["valid_to"] is None]


def test_facts_that_could_not_be_compared_are_in_the_next_round(
    modelled: Place, endpoint: FakeEndpoint
) -> None:
    endpoint.on("DocumentReply", stating)
    endpoint.on("ComparisonReply", UPDATE)
    modelled.drop("a.txt", "Aurora flies on Monday.")
    assert of_kind(modelled.drain(), "compared") == []
    endpoint.fail(503, after=1, times=-1)
    modelled.drop("b.txt", "Aurora flies on Tuesday.")
    events = modelled.drain()
    assert len(of_kind(events, "ingested")) == 1
    assert of_kind(events, "compared") == of_kind(events, "waiting") == []
    assert len(current_facts(modelled)) == 2
    endpoint.mend()
    (compared,) = of_kind(modelled.drain(), "compared")
    assert (compared.message, compared.detail["updated"]) == ("1 updated", 1)
    assert current_facts(modelled) == ["Aurora flies on Tuesday."]


def test_a_daemon_compares_facts_when_the_endpoint_is_back(
    modelled: Place, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduled_jobs, "FIRST_COMPARE_SECONDS", 0.2)
    endpoint.on("DocumentReply", stating)
    endpoint.on("ComparisonReply", UPDATE)
    modelled.drop("a.txt", "Aurora flies on Monday.")
    modelled.drain()
    endpoint.fail(503, after=1, times=2)
    modelled.drop("b.txt", "Aurora flies on Tuesday.")
    with Daemon(modelled):
        wait_for(lambda: len(of_kind(modelled.events, "compared")) == 1)
    assert current_facts(modelled) == ["Aurora flies on Tuesday."]
    assert endpoint.count(shape="ComparisonReply") == 3


def test_a_file_of_a_vault_that_goes_lets_what_it_had_ended_hold_again(
    modelled: Place, endpoint: FakeEndpoint, tmp_path: Path
) -> None:
    endpoint.on("DocumentReply", stating)
    endpoint.on("ComparisonReply", UPDATE)
    vault = tmp_path / "vault"
    vault.mkdir()
    modelled.keep(vault)
    (vault / "a.md").write_text("Aurora flies on Monday.")
    modelled.drain()
    (vault / "b.md").write_text("Aurora flies on Tuesday.")
    modelled.drain()
    assert current_facts(modelled) == ["Aurora flies on Tuesday."]
    before = datetime.now(UTC)
    (vault / "b.md").unlink()
    modelled.drain()
    assert current_facts(modelled) == ["Aurora flies on Monday."]
    with modelled.open() as base:
        then = base.memories.list(Filters(types=("fact",), as_of=before))["text"].to_pylist()
    assert then == ["Aurora flies on Tuesday."]
