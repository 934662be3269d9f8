"""A write that fails is never passed over: a command is done and whole, or says why it is not.

By default two writes of each command fail, chosen by chance: one that the engine makes, once, and
one of all, with every write after it.  With ``MEMCTL_LONG_TESTS=1`` each write fails once for want
of space and once with an error of the disk, every write fails from each one on, and the process is
killed at each; after some of these, chosen by chance, the command is run again.
``MEMCTL_SWEEP_EVERY=3`` takes every third write, each way of failing beginning at another one.
Each test goes on to the end, and prints how many writes it swept, how these ended and what was not
as it must be.  The seed is printed with a failure, and ``MEMCTL_SEED`` sets it.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
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
    "session end",
    "session import",
    "tier promote",
    "skill add",
    "upgrade from 1",
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
EVERY = int(os.environ.get("MEMCTL_SWEEP_EVERY", "1"))
"""Of how many writes one is taken, in the long form."""
RUN_AGAIN = 0.05
"""After which share of the cases the command is run again, in the long form."""


@dataclass(frozen=True)
class Sweep:
    """A command, the home before it, and its writes when none fails."""

    failing: FailingCommands
    ready: Path
    trial: Trial
    calls: tuple[str, ...]


@dataclass(frozen=True)
class Tally:
    """How the cases of a sweep ended."""

    ends: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    @contextmanager
    def case(self, what: str) -> Iterator[None]:
        """Have the sweep go on after a case that fails."""
        try:
            yield
        except Exception:  # noqa: BLE001 - all of them are told of in the end
            self.wrong.append(f"{what}\n{traceback.format_exc()}")
            print(f"WRONG {self.wrong[-1]}")

    def close(self, what: str) -> None:
        """Print what there was, and fail if a case did."""
        print(f"SWEPT {what}: {dict(self.ends)}, wrong: {len(self.wrong)}")
        assert not self.wrong, "\n\n".join(self.wrong)


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
    tally = Tally()
    for number in range([*FAULTS].index(faults) % EVERY, len(sweep.calls), EVERY):
        with tally.case(f"{number}: {sweep.calls[number]}"):
            outcome = outcome_of(sweep, FAULTS[faults](number))
            require_done_or_refused(sweep.trial, outcome)
            require_sometimes_all_well(sweep.trial, dice)
            tally.ends["refused" if outcome.code == 1 else "done"] += 1
    tally.close(f"{name}: {faults}")


@pytest.mark.skipif(not IS_LONG, reason="takes an hour")
@pytest.mark.parametrize("name", SWEPT_WHOLE)
def test_a_command_that_is_killed_at_any_write_is_done_or_has_not_begun(
    sweep: Sweep, tmp_path: Path, dice: random.Random, name: str
) -> None:
    home, trial, tally = sweep.trial.home, sweep.trial, Tally()
    put(sweep.ready, home)
    for image, call in sweep.failing.images(home, trial.words, tmp_path / "images", EVERY):
        with tally.case(f"{image.name}: {call}"):
            shutil.rmtree(home)
            image.rename(home)
            require_done_or_refused(trial, KILL)
            require_sometimes_all_well(trial, dice)
            tally.ends["whole"] += 1
    fault = Fault(dice.randrange(len(sweep.calls)), "killed")
    with tally.case(str(fault)):
        require_done_or_refused(trial, outcome_of(sweep, fault))
    shutil.rmtree(tmp_path / "images")  # they take gigabytes together
    tally.close(f"{name}: killed")


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


@pytest.mark.parametrize("name", ["upgrade from 1"])
def test_a_ledger_of_an_older_version_that_the_disk_does_not_take_says_why(sweep: Sweep) -> None:
    synced = next(n for n, call in enumerate(sweep.calls) if call.startswith("fsync "))
    outcome = outcome_of(sweep, Fault(synced, "from then on"))
    require_done_or_refused(sweep.trial, outcome)
    assert "cannot be brought up to date: " in outcome.error
    assert "space is left" in outcome.error


@pytest.mark.parametrize("name", ["session end"])
def test_a_conversation_that_has_ended_but_for_its_summary_can_be_ended_again(
    sweep: Sweep,
) -> None:
    calls = enumerate(sweep.calls)
    rows = [n for n, call in calls if call.startswith("fsync ") and "/memories.lance/data/" in call]
    outcome = outcome_of(sweep, Fault(rows[-1]))
    require_done_or_refused(sweep.trial, outcome)
    assert outcome.code == 1
    assert "has ended" not in outcome.error
    sweep.trial.require_all_well()


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
