"""A write that fails is never passed over: a command is done and whole, or says why it is not.

By default two writes of each command fail, chosen by chance: one that the engine makes, once, and
one of all, with every write after it.  With ``MEMCTL_LONG_TESTS=1`` each write fails once for want
of space and once with an error of the disk, every write fails from each one on, and the process is
killed at each.  The seed is printed with a failure, and ``MEMCTL_SEED`` sets it.
"""

from __future__ import annotations

import errno
import random
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from failing import FailingCommands, Fault, Outcome
from fake_endpoint import FakeEndpoint
from faults.acts import ACTS, Command, Trial, made_ready, put, require_between, require_sound, serve
from long_form import IS_LONG

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None,
    reason="needs Linux and a compiler, for a library that makes writes fail",
)

SWEPT = (
    "ingest",
    "memory edit",
    "memory delete",
    "document delete",
    "consolidate",
    "job undo",
    "forget a document",
    "import",
    "doctor --rebuild",
    "kb reembed",
    "snapshot create",
    "snapshot restore",
)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_ready(tmp_path_factory.mktemp("failing"))


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FailingCommands]:
    commands = FailingCommands(tmp_path_factory.mktemp("library"))
    yield commands
    commands.close()


@pytest.mark.parametrize("name", [*ACTS] if IS_LONG else SWEPT)
def test_a_command_of_which_writes_fail_is_done_and_whole_or_says_why_and_changes_nothing(
    filled: Path,
    failing: FailingCommands,
    tmp_path: Path,
    endpoint: FakeEndpoint,
    monkeypatch: pytest.MonkeyPatch,
    dice: random.Random,
    name: str,
) -> None:
    home, ready = filled / "home", tmp_path / "ready"
    monkeypatch.setenv("MEMCTL_HOME", str(home))
    monkeypatch.setenv("MEMCTL_WATCH_SETTLE_SECONDS", "0")
    put(filled / "filled", home)
    serve(name, endpoint, monkeypatch)
    calls: list[str] = []

    def run(words: Command) -> None:
        shutil.copytree(home, ready)
        outcome = failing.run(home, words)
        assert outcome.code in (0, 3), outcome.error
        calls.extend(outcome.calls)

    trial = Trial.of(ACTS[name], home, run)
    assert calls
    for fault in chosen(calls, dice):
        print(name, fault, calls[fault.number])
        put(ready, home)
        require_done_or_refused(trial, failing.run(home, trial.words, fault), fault)


def chosen(calls: list[str], dice: random.Random) -> Iterator[Fault]:
    numbers = range(len(calls))
    if IS_LONG:
        yield from (Fault(number) for number in numbers)
        yield from (Fault(number, error=errno.EIO) for number in numbers)
        yield from (Fault(number, "from then on") for number in numbers)
        yield from (Fault(number, "killed") for number in numbers)
        return
    of_engine = [n for n in numbers if calls[n].startswith("write ") and ".lance/" in calls[n]]
    yield Fault(dice.choice(of_engine or numbers))
    yield Fault(dice.choice(numbers), "from then on")


def require_done_or_refused(trial: Trial, outcome: Outcome, fault: Fault) -> None:
    if not trial.act.is_of_damage:
        require_sound(trial.home)
    found = trial.state()
    if fault.how == "killed" and outcome.code < 0:
        if not trial.act.is_of_damage:
            require_between(found, trial.before, trial.after, is_one_step=trial.act.is_one_step)
    elif outcome.code in (0, 3):
        assert found == trial.after, "it says that it is done, and is not"
    else:
        assert outcome.code == 1, outcome.error
        assert "error: " in outcome.error, outcome.error
        assert "unexpected" not in outcome.error, outcome.error
        if trial.act.is_one_step:
            assert found == trial.before, f"it says that it failed: {outcome.error}"
        elif not trial.act.is_of_damage:
            require_between(found, trial.before, trial.after, is_one_step=False)
