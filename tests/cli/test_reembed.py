"""Changing the embedder of a knowledge base: there, back, interrupted, and meanwhile."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from damaged import lose_copies_of_manifests, manifests
from fake_endpoint import DIMENSION, FakeEndpoint
from waiting import PATIENCE, wait_for

from memctl.models import BUILTIN_EMBEDDER

from .conftest import Run

FACTS = [f"Number {n} of the harbour is berth {n * 7 % 101} by the {n}th crane." for n in range(40)]
IN_FLIGHT = 4 * 64
"""Texts that may be sent twice: calls at the same time, and texts in each."""
QUESTION = "which berth has the crane of the harbour?"


@pytest.fixture
def remote(memctl: Run, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch) -> FakeEndpoint:
    """An endpoint for vectors, beside a knowledge base that has those of the built-in model."""
    fill(memctl, *FACTS)
    for name, value in endpoint.settings(embed="e").items():
        monkeypatch.setenv(name, value)
    return endpoint


def fill(memctl: Run, *texts: str) -> None:
    lines = "".join(f'{{"text": "{text}"}}\n' for text in texts)
    assert memctl("ingest", "--jsonl", "-", stdin=lines).code == 0


def pinned(tmp_path: Path) -> tuple[str, int]:
    settings = tomllib.loads((tmp_path / "home/kb/default/kb.toml").read_text())
    return settings["embedder"], settings["dimension"]


def hits(memctl: Run, mode: str = "vector") -> Any:
    found = memctl("query", "--mode", mode, QUESTION, "-n", "50", "--no-answer", "-o", "json")
    assert found.code == 0, found.err
    return [(hit["memory_id"], hit["score"]) for hit in found.json["hits"]]


def embedded(endpoint: FakeEndpoint) -> list[str]:
    """Every text that was sent to be embedded, probes aside."""
    sent = [asked.body["input"] for asked in endpoint.asked]
    return [text for texts in sent for text in texts if text not in ("dimension", QUESTION)]


def shelves(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "home/kb/default/vectors").glob("*/shelf.json"))


def test_there_and_back_finds_the_same_as_before_and_asks_no_model(
    memctl: Run, remote: FakeEndpoint, tmp_path: Path
) -> None:
    before = hits(memctl)
    changed = memctl("kb", "reembed", "default", "--embedder", "endpoint/e", "-o", "json")
    assert changed.json["embedded"] == changed.json["memories"] >= len(FACTS)
    assert pinned(tmp_path) == ("endpoint/e", DIMENSION)
    there = hits(memctl)
    assert there != before
    assert hits(memctl, "hybrid")
    remote.fail(503, times=-1)
    asked = len(embedded(remote))
    assert memctl("kb", "reembed", "default", "--back", "-o", "json").json["embedded"] == 0
    assert pinned(tmp_path) == (BUILTIN_EMBEDDER, 256)
    assert hits(memctl) == before
    assert memctl("kb", "reembed", "default", "--back").code == 0
    assert len(embedded(remote)) == asked
    remote.mend()
    assert hits(memctl) == there


def test_what_is_written_after_the_change_is_embedded_on_the_way_back(
    memctl: Run, remote: FakeEndpoint
) -> None:
    memctl("kb", "reembed", "default", "--embedder", "endpoint/e")
    fill(memctl, "The lighthouse is painted green.")
    back = memctl("kb", "reembed", "default", "--back", "-o", "json").json
    assert 0 < back["embedded"] < 10 < back["memories"]
    found = memctl("query", "--mode", "vector", "green lighthouse", "-o", "json").json
    assert found["hits"][0]["text"] == "The lighthouse is painted green."


def test_keywords_filters_and_upkeep_are_as_before(memctl: Run, remote: FakeEndpoint) -> None:
    before = hits(memctl, "keyword")
    memctl("kb", "reembed", "default", "--embedder", "endpoint/e")
    assert [id for id, _ in hits(memctl, "keyword")] == [id for id, _ in before]
    assert memctl("doctor").code == 0
    fill(memctl, *(f"Later {text}" for text in FACTS))
    assert memctl("kb", "reembed", "default", "--embedder", "builtin").code == 0
    assert memctl("doctor").code == 0
    assert len(hits(memctl)) == 50


def test_former_vectors_are_kept_until_they_are_dropped(
    memctl: Run, remote: FakeEndpoint, tmp_path: Path
) -> None:
    assert memctl("kb", "reembed", "default", "--back").code == 1
    memctl("kb", "reembed", "default", "--embedder", "endpoint/e")
    assert len(shelves(tmp_path)) == 1
    assert memctl("kb", "reembed", "default", "--drop-old").code == 0
    assert shelves(tmp_path) == []
    failed = memctl("kb", "reembed", "default", "--back")
    assert failed.code == 1
    assert "not kept any more" in failed.err
    assert memctl("kb", "reembed", "default", "--embedder", "builtin").code == 0


def test_an_endpoint_that_goes_down_half_way_leaves_everything_as_it_was(
    memctl: Run, remote: FakeEndpoint, tmp_path: Path
) -> None:
    fill(memctl, *(f"Again {text}" for text in FACTS * 5), *(f"{n} more" for n in range(400)))
    before = hits(memctl)
    remote.fail(503, times=-1, after=6)
    stopped = memctl("kb", "reembed", "default", "--embedder", "endpoint/e")
    assert stopped.code == 1
    assert pinned(tmp_path) == (BUILTIN_EMBEDDER, 256)
    assert hits(memctl) == before
    remote.mend()
    assert memctl("kb", "reembed", "default", "--embedder", "endpoint/e").code == 0
    sent = embedded(remote)
    assert len(sent) - len(set(sent)) <= IN_FLIGHT


def test_the_same_embedder_again_is_nothing_to_do(memctl: Run, remote: FakeEndpoint) -> None:
    said = memctl("kb", "reembed", "default", "--embedder", "builtin")
    assert said.code == 0
    assert "from builtin/wordllama-256 already" in said.err
    assert memctl("kb", "reembed", "default").code == 2


def test_another_model_under_the_same_name_is_changed_to(
    memctl: Run, remote: FakeEndpoint, tmp_path: Path
) -> None:
    memctl("kb", "reembed", "default", "--embedder", "endpoint/e")
    remote.dimension = 16
    assert memctl("query", "harbour").code == 1
    assert memctl("kb", "reembed", "default", "--embedder", "endpoint/e").code == 0
    assert pinned(tmp_path) == ("endpoint/e", 16)
    assert hits(memctl)


def started(tmp_path: Path, code: str, endpoint: FakeEndpoint) -> subprocess.Popen[bytes]:
    environment = os.environ | endpoint.settings(embed="e")
    environment["MEMCTL_HOME"] = str(tmp_path / "home")
    return subprocess.Popen([sys.executable, "-c", code], env=environment, stderr=subprocess.PIPE)


REEMBED = "run(['kb', 'reembed', 'default', '--embedder', 'endpoint/e'])"
PLAIN = f"from memctl.cli.main import run; {REEMBED}"
KILLED_BEFORE_KB_TOML = f"""
import os, signal
import memctl.kb_settings as kb_settings
from memctl.cli.main import run
kb_settings.save_settings = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
{REEMBED}
"""
KILLED_BEFORE_HEAD = f"""
import os, signal
from memctl.store.ledger.ledger import Ledger
from memctl.store.tables.transaction import Transaction
from memctl.cli.main import run
replace = Transaction.replace_vectors
def replaced(*given):
    replace(*given)
    Ledger.set_head = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
Transaction.replace_vectors = replaced
{REEMBED}
"""


def held(tmp_path: Path, endpoint: FakeEndpoint) -> subprocess.Popen[bytes]:
    """Start a change that has put the vectors of 256 texts and more aside, and waits for others."""
    endpoint.hold(after=6)  # for the dimension, for what came first, and for four times 64 texts
    process = started(tmp_path, PLAIN, endpoint)

    def has_some() -> bool:
        assert process.poll() is None, process.communicate()
        states = [json.loads(path.read_text()) for path in shelves(tmp_path)]
        return any(each["rows"] >= 256 for each in states if each["embedder"] == "endpoint/e")

    wait_for(has_some)
    return process


def test_killed_half_way_it_goes_on_where_it_was(
    memctl: Run, remote: FakeEndpoint, tmp_path: Path
) -> None:
    fill(memctl, *(f"{n} is what crane {n} lifts" for n in range(800)))
    before = hits(memctl)
    process = held(tmp_path, remote)
    assert hits(memctl) == before
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    process.communicate()
    remote.go_on()
    assert pinned(tmp_path) == (BUILTIN_EMBEDDER, 256)
    assert hits(memctl) == before
    changed = memctl("kb", "reembed", "default", "--embedder", "endpoint/e", "-o", "json").json
    assert changed["embedded"] <= changed["memories"] - 256
    sent = embedded(remote)
    assert len(sent) - len(set(sent)) <= IN_FLIGHT
    assert len(hits(memctl)) == 50


def test_what_is_written_meanwhile_is_not_missed(
    memctl: Run, remote: FakeEndpoint, tmp_path: Path
) -> None:
    fill(memctl, *(f"{n} is what crane {n} lifts" for n in range(800)))
    process = held(tmp_path, remote)
    fill(memctl, "The lighthouse is painted green.")
    assert pinned(tmp_path) == (BUILTIN_EMBEDDER, 256)
    remote.go_on()
    assert process.wait(PATIENCE) == 0, process.communicate()
    process.communicate()
    assert pinned(tmp_path) == ("endpoint/e", DIMENSION)
    found = memctl("query", "--mode", "vector", "painted lighthouse", "-o", "json").json
    assert found["hits"][0]["text"] == "The lighthouse is painted green."


@pytest.mark.parametrize("code", [KILLED_BEFORE_HEAD, KILLED_BEFORE_KB_TOML])
def test_killed_at_the_switch_it_is_wholly_before_or_wholly_after_it(
    memctl: Run, remote: FakeEndpoint, tmp_path: Path, code: str
) -> None:
    before = hits(memctl)
    process = started(tmp_path, code, remote)
    assert process.wait(PATIENCE) == -signal.SIGKILL, process.communicate()
    process.communicate()
    is_after = code == KILLED_BEFORE_KB_TOML
    assert (hits(memctl) == before) is not is_after
    assert pinned(tmp_path) == (("endpoint/e", DIMENSION) if is_after else (BUILTIN_EMBEDDER, 256))
    fill(memctl, "The lighthouse is painted green.")
    assert memctl("kb", "reembed", "default", "--embedder", "endpoint/e").code == 0
    assert pinned(tmp_path) == ("endpoint/e", DIMENSION)
    assert memctl("doctor").code == 0


# --- damage and repair ---------------------------------------------------------------------------


def test_a_lost_ledger_is_made_anew_with_the_vectors_that_are_there(
    memctl: Run, remote: FakeEndpoint, tmp_path: Path
) -> None:
    assert memctl("kb", "reembed", "default", "--embedder", "endpoint/e").code == 0
    there = hits(memctl)
    (tmp_path / "home/kb/default/ledger.sqlite").write_bytes(b"junk")
    assert memctl("doctor", "--repair").code == 0
    assert hits(memctl) == there
    fill(memctl, "The lighthouse is painted green.")
    assert memctl("doctor").code == 0


def test_after_a_repair_that_went_back_behind_the_change_it_can_be_made_again(
    memctl: Run, remote: FakeEndpoint, tmp_path: Path
) -> None:
    before = hits(memctl)
    assert memctl("kb", "reembed", "default", "--embedder", "endpoint/e").code == 0
    there = hits(memctl)
    folder = tmp_path / "home/kb/default"
    lose_copies_of_manifests(folder)
    manifests(folder, "memories")[0].write_bytes(b"")
    repaired = memctl("doctor", "--repair")
    assert repaired.code == 3, repaired.err
    assert f"from before the change, from {BUILTIN_EMBEDDER}" in repaired.out
    refused = memctl("query", QUESTION)
    assert refused.code == 2
    assert f"its vectors are from {BUILTIN_EMBEDDER} with 256" in refused.err
    again = memctl("kb", "reembed", "default", "--embedder", "endpoint/e", "-o", "json")
    assert again.json["embedded"] == again.json["memories"]
    assert hits(memctl) == there
    assert memctl("kb", "reembed", "default", "--back").code == 0
    assert hits(memctl) == before
