"""Whatever a file does to the library that reads it, that file fails and all else goes on."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from waiting import wait_for

from memctl.config import LimitSettings
from memctl.errors import OverLimit, UnreadableSource
from memctl.readers import Readers, read
from memctl.readers import isolation as processes
from memctl.readers.file_kinds import FILE_KINDS
from memctl.readers.isolation import ReaderCrash, clear_scratch
from memctl.readers.reader_process import InvalidMessage, check_text, decode_answer

if TYPE_CHECKING:
    from cli.conftest import Run
    from conftest import TakeOver

    from memctl.records import SourceText

SAMPLE = Path(__file__).parents[2] / "sample_inbox"
PDF = SAMPLE / "fit-out budget.pdf"
YAML = SAMPLE / "wholesale customers.yaml"
FOREVER = "while True: pass"
SLEEPS = "import time; time.sleep(1000)"
GREEDY = "held = [bytearray(50_000_000) for _ in range(1000)]"
AT_ONCE = "held = bytes(1_000_000_000)  # of which nothing is resident before it is written to"
SHARED = """\
import mmap, time
held = mmap.mmap(-1, 400_000_000)
for place in range(0, len(held), 4096):
    held[place] = 1
time.sleep(1000)
"""
CRASH = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
LEAVE = "import os; os._exit(0)"

SAYING = """\
import os, time
def say(line):
    for descriptor in range(3, 20):
        try:
            os.write(descriptor, line + b"\\n")
        except OSError:
            pass
    time.sleep(1000)
"""
ANSWERS = {
    "a pickle": "import pickle; say(pickle.dumps(print))",
    "no JSON": "say(b'{{{')",
    "deep JSON": "say(b'[' * 100_000)",
    "a list": "say(b'[1]')",
    "nothing known": "say(b'{\"done\": true}')",
    "another error": 'say(b\'{"refused": ["SystemExit", "a", "b"]}\')',
    "a fault of numbers": "say(b'{\"fault\": [1, 2]}')",
    "an odd system error": 'say(b\'{"system": ["x", "y"]}\')',
    "text that is none": "say(b'{\"text\": 3}')",
    "a number too long": "say(b'{\"text\": ' + b'9' * 10_000 + b'}')",
}
FINE: dict[str, object] = {
    "text": "abc", "media_type": "", "reader": "", "segments": [], "title": "", "authors": [],
    "created_at": None, "tags": [], "links": [], "metadata": {}, "missing": [], "part": 0,
    "unit": None,
}  # fmt: skip
FIELDS: dict[str, dict[str, object]] = {
    "a segment elsewhere": {"segments": [{"start": 0, "end": 99}]},
    "a segment without an end": {"segments": [{"start": 0}]},
    "a segment that is a list": {"segments": [[0, 1]]},
    "a segment of no kind": {"segments": [{"start": 0, "end": 1, "kind": "virus"}]},
    "a segment to be kept": {
        "segments": [{"start": 0, "end": 1, "kept": {"text": "a", "type": "b", "phrase": "c"}}]
    },
    "a page that is no number": {"segments": [{"start": 0, "end": 1, "page": True}]},
    "a page before the first": {"segments": [{"start": 0, "end": 1, "page": -1}]},
    "a time that is none": {"segments": [{"start": 0, "end": 1, "time_start": float("nan")}]},
    "a turn at no time": {"segments": [{"start": 0, "end": 1, "said_at": "2024-01-01T00:00:00"}]},
    "a date that is none": {"created_at": "soon"},
    "a unit without a key": {"unit": {"sha256": "", "problem": "", "hint": "", "size": 0}},
    "a date before all time": {"created_at": "0001-01-01T00:00:00+14:00"},
    "a date without a time": {"created_at": "2024-01-01"},
    "a date without a zone": {"created_at": "2024-01-01T00:00:00"},
    "a lone surrogate": {"title": "\ud800"},
    "one in the metadata": {"metadata": {"a": [{"b": "\ud800"}]}},
    "a huge part": {"part": 10**30},
    "tags that are a text": {"tags": "abc"},
}


@pytest.mark.parametrize(
    "path", sorted(filter(Path.is_file, SAMPLE.iterdir())), ids=lambda p: p.name
)
def test_a_process_apart_reads_what_this_one_reads(path: Path, apart: Readers) -> None:
    assert outcome(lambda: list(apart.read(path))) == outcome(lambda: list(read(path)))


@pytest.fixture(scope="module")
def apart() -> Readers:
    return Readers()


def test_half_characters_that_a_page_names_are_replaced(tmp_path: Path, apart: Readers) -> None:
    page = tmp_path / "page.html"
    about = '{"author": "Ann \\ud800 Lee", "datePublished": "2024-05-01"}'
    head = f'<title>Crane</title><script type="application/ld+json">{about}</script>'
    page.write_text(f"<html><head>{head}</head><body><p>The crane is sold.</p></body></html>")
    (source,) = apart.read(page)
    assert source.authors == ("Ann ? Lee",)


def outcome(reading: Callable[[], object]) -> object:
    try:
        return reading()
    except UnreadableSource as error:
        return type(error), error.message, error.hint


@pytest.mark.parametrize(
    ("code", "limits", "message", "hint"),
    [
        (FOREVER, {"processor_seconds": 1}, "1 seconds of processor time", "processor_seconds"),
        (SLEEPS, {"seconds": 2.0}, "was not read within 2 seconds", "limits.seconds"),
        (GREEDY, {"memory_mb": 300}, "needs more than 300 MB", "limits.memory_mb"),
        (AT_ONCE, {"memory_mb": 300}, "needs more than 300 MB", "limits.memory_mb"),
        (SHARED, {"memory_mb": 300}, "needs more than 300 MB", "limits.memory_mb"),
    ],
    ids=["processor", "clock", "memory", "memory at once", "shared memory"],
)
def test_a_file_that_takes_more_than_it_may_fails_and_the_next_is_read(
    code: str, limits: dict[str, float], message: str, hint: str, taken_over: TakeOver
) -> None:
    readers = Readers(LimitSettings(**limits))  # type: ignore[arg-type]
    with pytest.raises(OverLimit) as caught:
        list(readers.read(taken_over(code)))
    assert message in caught.value.message
    assert caught.value.message.startswith("letter.docx ")
    assert hint in caught.value.hint
    readers.limits = LimitSettings()  # the next may be slow where the machine is
    assert list(readers.read(YAML)) == list(read(YAML))
    readers.close()


def test_a_bigger_file_gets_more_time(taken_over: TakeOver) -> None:
    path = taken_over("import time; time.sleep(1.5); raise ValueError('reached')")
    with path.open("ab") as file:
        file.truncate(300_000_000)
    readers = Readers(LimitSettings(seconds=1.0))
    with pytest.raises(Exception, match="reached"):
        list(readers.read(path))
    readers.close()


def test_a_file_that_gives_too_much_text_fails(tmp_path: Path) -> None:
    path = tmp_path / "endless.html"
    path.write_text("<p>" + "words and words " * 100_000 + "</p>")
    readers = Readers(LimitSettings(text_mb=1))
    with pytest.raises(OverLimit, match="more than 1 million characters"):
        list(readers.read(path))
    assert list(readers.read(PDF)) == list(read(PDF))
    readers.close()


@pytest.mark.parametrize("code", [CRASH, LEAVE], ids=["crash", "leave"])
def test_a_file_that_ends_its_process_fails_and_the_next_is_read(
    code: str, taken_over: TakeOver
) -> None:
    readers = Readers()
    with pytest.raises(UnreadableSource, match=r"letter\.docx: reading it ended the process"):
        list(readers.read(taken_over(code)))
    assert list(readers.read(PDF)) == list(read(PDF))
    readers.close()


@pytest.mark.parametrize("code", ANSWERS.values(), ids=ANSWERS)
def test_nothing_is_believed_of_what_a_process_that_was_taken_over_says(
    code: str, taken_over: TakeOver
) -> None:
    readers = Readers()
    with pytest.raises(UnreadableSource, match="something that no reader says"):
        list(readers.read(taken_over(SAYING + code)))
    assert not readers._idle
    readers.close()


def test_a_line_without_end_is_not_read_to_its_end(
    taken_over: TakeOver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_MAX_LINE_LENGTH", 1 << 20)
    readers = Readers(LimitSettings(seconds=60))
    with pytest.raises(OverLimit, match="more than 1 MB in one piece"):
        list(readers.read(taken_over(SAYING + "say(b'9' * (4 << 20))")))
    readers.close()


@pytest.mark.parametrize("changed", FIELDS.values(), ids=FIELDS)
def test_text_that_no_reader_makes_is_not_taken(changed: dict[str, object]) -> None:
    assert received(FINE).text == "abc"
    with pytest.raises(InvalidMessage):
        received(FINE | changed)


def test_a_process_says_nothing_of_a_document_but_what_readers_do() -> None:
    more = {"document_id": "a", "redacted": 3, "share": 0.5, "origin": {"file": "b"}}
    more |= {"asked": {"turn": 1, "text": "keep this"}, "reader": "pdf/3"}
    assert received(FINE | more) == received(FINE)


def received(fields: dict[str, object]) -> SourceText:
    answer = decode_answer(json.dumps({"text": fields}).encode())
    return check_text(answer.text, FILE_KINDS["text/html"])


def test_a_process_apart_has_no_keys_in_its_environment(
    taken_over: TakeOver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-never-seen")
    monkeypatch.setenv("MY_PASSWORD", "never-seen")
    readers = Readers()
    with pytest.raises(Exception, match="ValueError") as caught:
        list(readers.read(taken_over("import os; raise ValueError(sorted(os.environ.values()))")))
    assert os.environ["PATH"] in str(caught.value)
    assert "never-seen" not in str(caught.value)
    readers.close()


def test_one_process_serves_all_files_and_reading_can_be_broken_off(tmp_path: Path) -> None:
    apart = Readers()
    list(apart.read(PDF))
    (process,) = apart._idle
    list(apart.read(SAMPLE / "supplier choice.html"))
    assert apart._idle == [process]
    path = tmp_path / "long.html"
    path.write_text("<p>" + "words and words " * 100_000 + "</p>")
    broken_off = apart.read(path)
    next(broken_off)
    others = list(apart.read(PDF))  # while the other is still being read
    broken_off.close()
    assert others == list(read(PDF))
    apart.close()


# --- commands ------------------------------------------------------------------------------------


def test_an_ingest_goes_on_past_a_file_that_goes_over_a_cap(
    memctl: Run, taken_over: TakeOver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMCTL_LIMITS_MEMORY_MB", "300")
    bomb = taken_over(GREEDY)
    done = memctl("ingest", str(bomb), str(PDF), "-o", "json")
    assert done.code == 3
    assert (done.json["ingested"], done.json["failed"]) == (1, 1)
    (failed,) = [each for each in done.json["outcomes"] if each["outcome"] == "failed"]
    assert failed["error"] == "OverLimit"
    assert "letter.docx needs more than 300 MB" in failed["reason"]
    assert "limits.memory_mb" in failed["hint"]


def test_a_watched_inbox_puts_such_a_file_into_failed_with_the_reason(
    memctl: Run, taken_over: TakeOver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MEMCTL_LIMITS_PROCESSOR_SECONDS", "5")
    monkeypatch.setenv("MEMCTL_WATCH_SETTLE_SECONDS", "0")
    memctl("kb", "create", "default")
    inbox = tmp_path / "home" / "kb" / "default" / "inbox"
    shutil.move(taken_over(FOREVER), inbox)
    shutil.copy(PDF, inbox)
    assert memctl("watch", "--once").code == 0
    failed = inbox.parent / "failed"
    reason = json.loads((failed / "letter.docx.reason.json").read_text())
    assert "processor time" in reason["message"]
    assert reason["error"] == "OverLimit"
    assert (failed / "letter.docx").exists()
    assert (inbox.parent / "processed" / PDF.name).exists()


STARTING = """\
import os, subprocess
started = subprocess.Popen(["sleep", "1000"])
with open({noted!r}, "w") as file:
    file.write(f"{{os.getpid()}} {{started.pid}}")
"""


@pytest.mark.parametrize("code", [CRASH, LEAVE, "raise ValueError"], ids=["crash", "leave", "done"])
def test_no_program_is_left_that_a_reader_has_started(
    code: str, taken_over: TakeOver, tmp_path: Path
) -> None:
    noted, readers = tmp_path / "pids", Readers()
    with suppress(UnreadableSource, ReaderCrash):
        list(readers.read(taken_over(STARTING.format(noted=str(noted)) + code)))
    readers.close()
    _, program = map(int, noted.read_text().split())
    wait_for(lambda: not is_alive(program))


@pytest.mark.parametrize("state", ["idle", "busy"])
def test_no_process_is_left_when_the_one_that_reads_is_killed(
    state: str, taken_over: TakeOver, tmp_path: Path
) -> None:
    noted = tmp_path / "pids"
    ending = SLEEPS if state == "busy" else "started.kill(); raise ValueError"
    path = taken_over(STARTING.format(noted=str(noted)) + ending)
    asking = (
        f"import sys, time; sys.path[:] = {sys.path!r}\n"
        "from contextlib import suppress; from pathlib import Path\n"
        "from memctl.readers import Readers\n"
        "readers = Readers()\n"
        f"with suppress(Exception): list(readers.read(Path({str(path)!r})))\n"
        "print('read', flush=True); time.sleep(1000)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", asking], stdout=subprocess.PIPE)
    if state == "idle":
        assert parent.stdout is not None
        parent.stdout.readline()
    wait_for(lambda: noted.exists() and noted.read_text())
    reader, program = map(int, noted.read_text().split())
    assert is_alive(reader)
    parent.kill()
    parent.communicate()
    wait_for(lambda: not is_alive(reader) and not is_alive(program))


UNPACKS = """
import os, pathlib, tempfile, time
folder = pathlib.Path(tempfile.mkdtemp(prefix="memctl-"))
(folder / "letter.txt").write_text("the secret")
pathlib.Path({noted!r}).write_text(str(folder / "letter.txt"))
"""


def test_what_a_killed_process_had_unpacked_is_removed(
    taken_over: TakeOver, tmp_path: Path
) -> None:
    noted = tmp_path / "unpacked"
    path = taken_over(UNPACKS.format(noted=str(noted)) + "os.kill(os.getpid(), 9)\n")
    with closing(Readers()) as readers, pytest.raises(UnreadableSource):
        list(readers.read(path))
    assert noted.read_text()
    assert not Path(noted.read_text()).exists()


def test_what_was_unpacked_goes_though_the_one_that_reads_was_killed_as_well(
    taken_over: TakeOver, tmp_path: Path
) -> None:
    noted = tmp_path / "unpacked"
    path = taken_over(UNPACKS.format(noted=str(noted)) + SLEEPS)
    asking = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        "from pathlib import Path; from memctl.readers import Readers\n"
        f"list(Readers().read(Path({str(path)!r})))\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", asking])
    wait_for(lambda: noted.exists() and noted.read_text())
    clear_scratch()
    assert Path(noted.read_text()).exists(), "it is in use"
    parent.kill()
    parent.communicate()
    clear_scratch()
    assert not Path(noted.read_text()).exists()


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which isolated processes get theirs."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_what_was_unpacked_is_found_again_if_its_removal_is_cut_off(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    scratch = processes._new_scratch()
    assert scratch is not None
    for number in range(5):
        (scratch.folder / f"{number}").mkdir()
        (scratch.folder / f"{number}" / "letter.txt").write_text("the secret")
    with monkeypatch.context() as patch:
        patch.setattr(processes.shutil, "rmtree", kill)
        with pytest.raises(KeyboardInterrupt):
            processes._remove_scratch(scratch)
    os.close(scratch.descriptor)  # as the end of its owner does
    clear_scratch()
    assert list(temporary.iterdir()) == []


def test_a_folder_that_cannot_be_marked_does_not_stay(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> tuple[Path, int]:
        raise OSError(errno.ENOSPC, "no space left", str(path))

    monkeypatch.setattr(processes, "new_temporary", refuse)
    assert processes._new_scratch() is None
    assert list(temporary.iterdir()) == []


def test_a_folder_that_a_kill_left_without_a_mark_is_removed_when_it_is_old(
    temporary: Path,
) -> None:
    for name in ("memctl-reader-old", "memctl-reader-new", "another"):
        (temporary / name).mkdir()
        (temporary / name / "letter.txt").write_text("the secret")
    for name in ("memctl-reader-old", "another"):
        os.utime(temporary / name, (0, 0))
    clear_scratch()
    assert sorted(path.name for path in temporary.iterdir()) == ["another", "memctl-reader-new"]


def is_alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
