"""What is told of a file that takes long, while it does."""

from __future__ import annotations

import pytest
from watched import SETTLE, Place

from memctl.readers import pieces
from memctl.readers.data_files import table_rows
from memctl.schema.table_names import WATCH_PROGRESS
from memctl.watch import intake
from memctl.watch.kb_watcher import WatchOptions
from memctl.watch.reporter import WatchEvent
from memctl.watch.service import WatchedBases, WatchService
from memctl.watch.watch_status import watch_status

pytestmark = pytest.mark.usefixtures("quick_reading")


@pytest.fixture
def big(place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A place with a file in its inbox that is taken in in several parts."""
    for module in (pieces, table_rows):
        monkeypatch.setattr(module, "PART_CHARS", 20_000)
    lines = (f"{number},crane {number} at berth {number % 7}\n" for number in range(2_000))
    place.drop("big.csv", "number,what\n" + "".join(lines))
    return place


def test_progress_of_a_big_file_is_reported_and_shown_by_status_until_it_is_done(
    big: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "PROGRESS_SECONDS", 0.0)
    shown: list[str] = []

    def listen(event: WatchEvent) -> None:
        big.events.append(event)
        if event.kind == "working":
            with big.open() as base:
                shown.append(watch_status(base).working)

    options = WatchOptions(settle_seconds=SETTLE, rescan_seconds=0.2, once=True)
    WatchService(WatchedBases(big.home), options, listen).run()
    said = [(event.source, event.message) for event in big.events if event.kind == "working"]
    assert len(said) >= 2
    assert {name for name, _ in said} == {"big.csv"}
    assert all("memories so far" in message for _, message in said)
    assert shown == [f"big.csv: {message}" for _, message in said]
    with big.open() as base:
        assert watch_status(base).working == ""
        assert not base.store.ledger.meta(WATCH_PROGRESS)


def test_progress_reported_by_a_killed_watcher_is_not_shown(place: Place) -> None:
    with place.open() as base:
        base.store.ledger.set_meta(WATCH_PROGRESS, "big.txt: 7 memories so far")
        with base.store.write():
            assert watch_status(base).working == "", "nobody watches"


def test_no_progress_is_reported_for_a_quick_file(
    big: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "PROGRESS_SECONDS", 86_400.0)
    assert "working" not in {event.kind for event in big.drain()}
