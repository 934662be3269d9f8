"""What is told of a file that takes long, while it does."""

from __future__ import annotations

from functools import partial

import pytest
from watched import SETTLE, Place

from memctl.ingest import batch_preparation
from memctl.ingest.batch_preparation import IngestLimits
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
    assert sum("memories so far" in message for _, message in said) >= 2
    assert {name for name, _ in said} == {"big.csv"}
    assert shown == [f"big.csv: {message}" for _, message in said]
    with big.open() as base:
        assert watch_status(base).working == ""
        assert not base.store.ledger.meta(WATCH_PROGRESS)


def test_progress_reported_by_a_killed_watcher_is_not_shown(place: Place) -> None:
    with place.open() as base:
        base.store.ledger.set_meta(WATCH_PROGRESS, "big.txt: 7 memories so far")
        with base.store.write():
            assert watch_status(base).working == "", "nobody watches"


def test_what_is_quick_to_read_is_not_kept_waiting_by_what_takes_long(place: Place) -> None:
    place.drop("a.html", f"<p>{'Long. ' * 30_000}</p>")
    place.drop("b.html", f"<p>{'Short. ' * 20_000}</p>")
    place.drop("c.txt", "Tea with Ann.")
    taken = [event.source for event in place.drain() if event.kind == "ingested"]
    assert taken == ["c.txt", "b.html", "a.html"]


def test_each_file_is_moved_and_reported_when_it_is_done_and_status_tells_what_is_in_hand(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_preparation, "READ_TOGETHER", 1)
    monkeypatch.setattr(batch_preparation, "IngestLimits", partial(IngestLimits, documents=1))
    monkeypatch.setattr(intake, "_STATUS_SECONDS", 0.0)
    for number in range(3):
        place.drop(f"{number}.txt", f"Note {number} on tea.")
    shown: list[tuple[str, int, int, str]] = []

    def listen(event: WatchEvent) -> None:
        if event.kind == "ingested":
            with place.open() as base:
                status = watch_status(base)
            shown.append((event.source, status.backlog, status.in_hand, status.working))

    options = WatchOptions(settle_seconds=SETTLE, rescan_seconds=0.2, once=True)
    WatchService(WatchedBases(place.home), options, listen).run()
    done = ["", "1 of 3 files done", "2 of 3 files done"]
    assert [each[:3] for each in shown] == [("0.txt", 2, 2), ("1.txt", 1, 1), ("2.txt", 0, 0)]
    assert [text[-len(end) :] for (*_, text), end in zip(shown, done, strict=True)][1:] == done[1:]


def test_no_progress_is_reported_for_a_quick_file(
    big: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "PROGRESS_SECONDS", 86_400.0)
    assert "working" not in {event.kind for event in big.drain()}
