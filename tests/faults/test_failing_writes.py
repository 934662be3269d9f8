"""A write that fails is never passed over: a command is done and whole, or says why it is not.

By default two writes of each command fail, chosen by chance: one that the engine makes, once, and
one of all, with every write after it.  With ``MEMCTL_LONG_TESTS=1`` each write fails once for want
of space and once with an error of the disk, every write fails from each one on, and the process is
killed at each; after some of these, chosen by chance, the command is run again.  Each test prints
how many writes it swept and how these ended.  The seed is printed with a failure, and
``MEMCTL_SEED`` sets it.
"""

from __future__ import annotations

import errno
import random
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
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


FAULTS: dict[str, Callable[[int], Fault]] = {
    "each lacks space": lambda number: Fault(number),
    "each meets an error": lambda number: Fault(number, error=errno.EIO),
    "all lack space from one on": lambda number: Fault(number, "from then on"),
}
KILL = Outcome(-signal.SIGKILL, (), "")
SWEPT_WHOLE = [*ACTS] if IS_LONG else []
RUN_AGAIN = 0.05
"""After which share of the cases the command is run again, in the long form."""


@dataclass(frozen=True)
class Sweep:
    """A command, the home before it, and its writes when none fails."""

    failing: FailingCommands
    ready: Path
    trial: Trial
    calls: tuple[str, ...]


@pytest.fixture
def sweep(
    filled: Path,
    failing: FailingCommands,
    tmp_path: Path,
    endpoint: FakeEndpoint,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> Sweep:
    home, ready = filled / "home", tmp_path / "ready"
    monkeypatch.setenv("MEMCTL_HOME", str(home))
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
    return Sweep(failing, ready, trial, tuple(calls))


@pytest.mark.parametrize("name", SWEPT)
def test_a_command_of_which_some_writes_fail_is_done_and_whole_or_changes_nothing(
    sweep: Sweep, dice: random.Random
) -> None:
    numbers, calls = range(len(sweep.calls)), sweep.calls
    of_engine = [n for n in numbers if calls[n].startswith("write ") and ".lance/" in calls[n]]
    once = Fault(dice.choice(of_engine or numbers))
    from_then_on = Fault(dice.choice(numbers), "from then on")
    for fault in (once, from_then_on):
        outcome = outcome_of(sweep, fault)
        print(fault, calls[fault.number], outcome)
        require_done_or_refused(sweep.trial, outcome)


@pytest.mark.skipif(not IS_LONG, reason="takes hours")
@pytest.mark.parametrize("faults", FAULTS)
@pytest.mark.parametrize("name", SWEPT_WHOLE)
def test_a_command_of_which_any_write_fails_is_done_and_whole_or_changes_nothing(
    sweep: Sweep, dice: random.Random, faults: str, name: str
) -> None:
    ends: Counter[str] = Counter()
    for number, call in enumerate(sweep.calls):
        fault = FAULTS[faults](number)
        outcome = outcome_of(sweep, fault)
        print(fault, call, outcome)
        require_done_or_refused(sweep.trial, outcome)
        require_sometimes_all_well(sweep.trial, dice)
        ends["refused" if outcome.code == 1 else "done"] += 1
    print(f"{name}: {faults}: {len(sweep.calls)} writes, {dict(ends)}")


@pytest.mark.skipif(not IS_LONG, reason="takes an hour")
@pytest.mark.parametrize("name", SWEPT_WHOLE)
def test_a_command_that_is_killed_at_any_write_is_done_or_has_not_begun(
    sweep: Sweep, tmp_path: Path, dice: random.Random, name: str
) -> None:
    home, trial = sweep.trial.home, sweep.trial
    put(sweep.ready, home)
    images, calls = sweep.failing.images(home, trial.words, tmp_path / "images")
    for image, call in zip(images, calls, strict=True):
        print(image.name, call)
        shutil.rmtree(home)
        image.rename(home)
        require_done_or_refused(trial, KILL)
        require_sometimes_all_well(trial, dice)
    fault = Fault(dice.randrange(len(sweep.calls)), "killed")
    print(fault, sweep.calls[fault.number])
    require_done_or_refused(trial, outcome_of(sweep, fault))
    print(f"{name}: killed at each of {len(images)} writes")


@pytest.mark.parametrize("name", ["document delete"])
def test_a_list_of_deleted_rows_that_the_engine_could_not_write_is_the_fault_of_the_disk(
    sweep: Sweep,
) -> None:
    numbers = [number for number, call in enumerate(sweep.calls) if "/_deletions/" in call]
    for number in numbers[:2]:
        outcome = outcome_of(sweep, Fault(number, error=errno.EIO))
        require_done_or_refused(sweep.trial, outcome)
        assert "the disk did not take all of it" in outcome.error


@pytest.mark.parametrize(
    ("name", "call", "folder"),
    [("ingest", "fsync", "kb/notes/lance/"), ("kb reembed", "truncate", "kb/notes/vectors/")],
)
def test_a_file_that_the_disk_does_not_take_is_named(sweep: Sweep, call: str, folder: str) -> None:
    start = f"{call} {sweep.trial.home}/{folder}"
    number = next(n for n, each in enumerate(sweep.calls) if each.startswith(start))
    outcome = outcome_of(sweep, Fault(number, error=errno.EIO))
    require_done_or_refused(sweep.trial, outcome)
    assert f"error: {sweep.trial.home}/{folder}" in outcome.error
    assert "hint: check the disk for errors" in outcome.error


@pytest.mark.parametrize(("name", "nth"), [("forget a document", -1), ("doctor --repair", 0)])
def test_a_table_that_cannot_be_rewritten_is_the_fault_of_the_disk(sweep: Sweep, nth: int) -> None:
    calls = enumerate(sweep.calls)
    links = [n for n, call in calls if call.startswith("link ") and ".lance/" in call]
    outcome = outcome_of(sweep, Fault(links[nth]))
    require_done_or_refused(sweep.trial, outcome)
    assert f"error: cannot write {sweep.trial.home}/kb/notes/lance" in outcome.error
    assert "hint: check the disk's space and permissions" in outcome.error


@pytest.mark.parametrize("name", ["kb pause", "kb rename"])
def test_a_failed_fsync_after_the_rename_is_a_warning_and_no_failure(
    sweep: Sweep,
) -> None:
    renamed = max(n for n, call in enumerate(sweep.calls) if call.startswith("rename "))
    calls = enumerate(sweep.calls[renamed:], start=renamed)
    folder = next(n for n, call in calls if call.startswith("fsync "))
    outcome = outcome_of(sweep, Fault(folder, error=errno.EIO))
    require_done_or_refused(sweep.trial, outcome)
    assert outcome.code == 0
    assert "a power cut may bring back what was" in outcome.error


@pytest.mark.parametrize("name", ["consolidate"])
def test_a_commit_that_fails_when_it_may_be_in_the_log_takes_no_files_away(sweep: Sweep) -> None:
    """What the log has counts when it is read anew, though SQLite said that it failed."""
    calls = enumerate(sweep.calls)
    synced = [n for n, call in calls if call.startswith("fsync ") and call.endswith("-wal")]
    for number in synced:
        outcome = outcome_of(sweep, Fault(number, "from then on"))
        require_done_or_refused(sweep.trial, outcome)


@pytest.mark.parametrize("name", ["query --feedback"])
def test_a_judgement_that_the_ledger_does_not_take_is_not_half_noted(sweep: Sweep) -> None:
    calls = enumerate(sweep.calls)
    for number in [n for n, call in calls if call.startswith("fsync ") and call.endswith("-wal")]:
        for fault in (Fault(number, error=errno.EIO), Fault(number, "from then on")):
            require_done_or_refused(sweep.trial, outcome_of(sweep, fault))


def outcome_of(sweep: Sweep, fault: Fault) -> Outcome:
    put(sweep.ready, sweep.trial.home)
    return sweep.failing.run(sweep.trial.home, sweep.trial.words, fault)


def require_sometimes_all_well(trial: Trial, dice: random.Random) -> None:
    if dice.random() < RUN_AGAIN:
        trial.require_all_well()


def require_done_or_refused(trial: Trial, outcome: Outcome) -> None:
    is_done = outcome.code in (0, 3)
    if trial.act.is_of_damage and not is_done:  # what was damaged may be so still
        require_reason(outcome)
        return
    require_sound(trial.home)
    found = trial.state()
    if is_done:
        assert found == trial.after, "it says that it is done, and is not"
        return
    require_reason(outcome)
    is_open = "whether the change counts shows when it is opened again" in outcome.error
    if outcome.code == 1 and trial.act.is_one_step and not is_open:
        assert found == trial.before, f"it says that it failed: {outcome.error}"
    else:
        require_between(found, trial.before, trial.after, is_one_step=trial.act.is_one_step)


def require_reason(outcome: Outcome) -> None:
    """It was killed, or says what failed."""
    if outcome.code != -signal.SIGKILL:
        assert outcome.code == 1, outcome.error
        assert "error: " in outcome.error, outcome.error
        assert "unexpected" not in outcome.error, outcome.error
        assert "hint: " in outcome.error, outcome.error
