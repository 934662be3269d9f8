"""What else is done with a knowledge base while a daemon watches it and has nothing to do."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from subprocess import Popen

import pytest
from waiting import PATIENCE, wait_for
from watched import Place, memctl


@pytest.fixture
def idle(place: Place) -> Iterator[Popen[str]]:
    """A real daemon that has taken two files in and waits for more."""
    with memctl(place, "watch", rescan="60") as daemon:
        assert daemon.stdout is not None
        daemon.stdout.readline()
        place.drop("a.txt", "Ann sails to Lisbon on Monday.")
        place.drop("b.txt", "Bo stays at home and paints the door.")
        wait_for(lambda: place.tree(place.layout.processed) == ["a.txt", "b.txt"])
        yield daemon
        daemon.send_signal(signal.SIGTERM)
        daemon.communicate(timeout=PATIENCE)
    assert daemon.returncode == 0


def run(place: Place, *arguments: str) -> str:
    """Run a command to its end, which is to be a good one; return what it printed."""
    with memctl(place, *arguments) as process:
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    return out


def sources(place: Place) -> list[str]:
    rows = place.rows("documents", "source", "status")
    return sorted(row["source"] for row in rows if row["status"] == "indexed")


@pytest.mark.usefixtures("idle")
def test_a_document_is_forgotten_whole_beside_an_idle_daemon(place: Place) -> None:
    (document,) = [
        row["id"] for row in place.rows("documents", "id", "source") if "b" in row["source"]
    ]
    out = run(place, "forget", "-k", "notes", "--document", document, "--yes", "-o", "json")
    assert json.loads(out)["left"] == []
    assert sources(place) == ["a.txt"]
    place.drop("c.txt", "Cleo arrives on Friday.")
    wait_for(lambda: "c.txt" in place.tree(place.layout.processed))
    assert place.damage() == []


@pytest.mark.usefixtures("idle")
def test_a_snapshot_is_restored_beside_an_idle_daemon_which_goes_on(place: Place) -> None:
    run(place, "snapshot", "create", "-k", "notes", "early")
    place.drop("c.txt", "Cleo arrives on Friday.")
    wait_for(lambda: "c.txt" in place.tree(place.layout.processed))
    run(place, "snapshot", "restore", "-k", "notes", "early", "--yes")
    assert sources(place) == ["a.txt", "b.txt"]
    place.drop("d.txt", "Dora leaves on Sunday.")
    wait_for(lambda: "d.txt" in place.tree(place.layout.processed))
    assert sources(place) == ["a.txt", "b.txt", "d.txt"]
    assert place.damage() == []


@pytest.mark.usefixtures("idle")
def test_a_consolidation_is_taken_back_while_a_daemon_takes_files_in(place: Place) -> None:
    place.drop("c.txt", "1 March 2026: The Huila Supremo from Colombia scores 86 points.")
    place.drop("d.txt", "8 April 2026: The Huila Supremo now scores 84 points.")
    wait_for(lambda: "d.txt" in place.tree(place.layout.processed))
    run(place, "consolidate", "-k", "notes")
    assert "insight" in {row["level"] for row in place.rows("memories", "level")}
    later = [f"later {number}.txt" for number in range(10)]
    for name in later:
        place.drop(name, f"Boat {name} is painted.")
    run(place, "job", "undo", "-k", "notes", "--yes")
    wait_for(lambda: set(later) <= set(place.tree(place.layout.processed)))
    assert sources(place) == sorted(["a.txt", "b.txt", "c.txt", "d.txt", *later])
    assert "insight" not in {row["level"] for row in place.rows("memories", "level")}
    assert place.rows("relations", "id") == []
    assert place.damage() == []


@pytest.mark.usefixtures("idle")
def test_a_table_is_repaired_beside_an_idle_daemon_which_goes_on(place: Place) -> None:
    data = place.layout.folder / "lance" / "memories.lance" / "data"
    newest = max(data.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    newest.write_bytes(b"")
    assert place.damage() != []
    run(place, "doctor", "-k", "notes", "--repair")
    assert place.damage() == []
    place.drop("c.txt", "Cleo arrives on Friday.")
    wait_for(lambda: "c.txt" in place.tree(place.layout.processed))
    assert sources(place) == ["a.txt", "b.txt", "c.txt"]
    assert place.damage() == []
