"""A server that was started for the tabs of a browser ends with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from serving import running

from memctl.config import load_config
from memctl.home import Home
from memctl.server.web.open_tabs import OpenTabs


class Seconds:
    """A clock that a test sets."""

    now = 5.0

    def __call__(self) -> float:
        return self.now


def test_tabs_are_closed_a_while_after_the_last_was_left() -> None:
    clock = Seconds()
    tabs = OpenTabs(clock)
    clock.now += 1000
    assert not tabs.are_closed_for(60)  # no browser has come yet
    tabs.show("one")
    tabs.show("two")
    tabs.leave("one")
    clock.now += 1000
    assert not tabs.are_closed_for(60)
    tabs.leave("two")
    tabs.leave("two")
    clock.now += 59
    tabs.leave("three")  # which was never shown
    assert not tabs.are_closed_for(60)
    clock.now += 1
    assert tabs.are_closed_for(60)


def test_going_from_page_to_page_is_no_end() -> None:
    clock = Seconds()
    tabs = OpenTabs(clock)
    tabs.show("one")
    tabs.leave("one")
    clock.now += 1
    tabs.show("two")
    clock.now += 1000
    assert not tabs.are_closed_for(60)


@pytest.fixture
def served_until_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[bool], tuple[list[int], bool]]:
    """Shows and leaves a page; gives the status codes and whether the server has ended by that."""

    def leave(ends_with_tabs: bool) -> tuple[list[int], bool]:
        monkeypatch.setattr("memctl.server.http_server._SECONDS_WITHOUT_TABS", 0.2)
        home = Home(load_config({"home": str(tmp_path / "home")}, {}))
        with running(home, ends_with_tabs=ends_with_tabs) as (address, server):
            origin = {"Origin": address.url}
            with httpx.Client(base_url=address.url, follow_redirects=True) as client:
                refused = client.post("/tabs/x/shown", headers=origin)
                client.get(address.login)
                foreign = client.post("/tabs/x/shown", headers={"Origin": "http://evil.example"})
                shown = client.post("/tabs/x/shown", json={}, headers=origin)
                left = client.post("/tabs/x/left", json={}, headers=origin)
            server.join(1.0 if not ends_with_tabs else 20.0)
            ended = not server.is_alive()
        return [each.status_code for each in (refused, foreign, shown, left)], ended

    return leave


def test_the_server_ends_when_its_last_tab_is_closed(
    served_until_left: Callable[[bool], tuple[list[int], bool]],
) -> None:
    assert served_until_left(True) == ([401, 403, 204, 204], True)


def test_a_server_that_was_started_to_serve_goes_on(
    served_until_left: Callable[[bool], tuple[list[int], bool]],
) -> None:
    assert served_until_left(False) == ([401, 403, 204, 204], False)
