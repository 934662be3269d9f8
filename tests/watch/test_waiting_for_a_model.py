"""Files wait in the inbox while the model that is to understand them cannot be had."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from fake_endpoint import Asked, FakeEndpoint

from memctl.config import load_config
from memctl.home import Home
from memctl.watch.report import WatchEvent
from memctl.watch.status import watch_status

from .conftest import Place

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


def test_what_was_done_before_the_endpoint_went_down_is_done(
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
    service = modelled.service(retry_seconds=0.3)
    thread = threading.Thread(target=service.run)
    thread.start()
    try:
        wait_for(lambda: modelled.tree(modelled.layout.processed) == names)
    finally:
        service.stop()
        thread.join(30)
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


def wait_for(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)
