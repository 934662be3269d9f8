"""memctl query: answers with citations that hold, for people and for programs."""

from __future__ import annotations

import errno
import json
import os
import pty
import re
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest
import yaml

from memctl.search.answering.memory_need import has_own_subject, question_parts

from .conftest import Run

HIT_KEYS = {
    "rank", "score", "memory_id", "document_id", "external_id", "source", "title", "text",
    "start", "end", "level", "type", "created_at",
}  # fmt: skip


ANSI = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def notes(memctl: Run, tmp_path: Path) -> Run:
    """A home with two documents about one launch and one about nothing of the kind."""
    (tmp_path / "plan.md").write_text(
        "---\ndate: 2026-03-02\n---\n# Plan\n\nWe decided to launch Aurora on 12 May 2026.\n"
        "The budget of Aurora is 40,000 euros.\n"
    )
    (tmp_path / "garden.txt").write_text("Tomatoes want sun. Water them in the morning.\n")
    memctl("ingest", "plan.md", "--namespace", "work", "--tag", "launch")
    memctl("ingest", "garden.txt", "--namespace", "home")
    return memctl


def test_every_citation_of_an_answer_stands_where_it_says(notes: Run) -> None:
    answer = notes("query", "When is the launch of Aurora?", "-o", "json").json["answer"]
    assert answer["found"]
    assert "12 May 2026" in answer["text"]
    assert answer["citations"]
    for citation in answer["citations"]:
        assert f"[{citation['number']}]" in answer["text"]
        text = notes("document", "show", citation["document_id"], "--text").out
        assert text[citation["start"] : citation["end"]] == citation["quote"]


def test_a_question_with_a_description_is_answered_for_what_it_describes(
    memctl: Run, tmp_path: Path
) -> None:
    (tmp_path / "things.md").write_text(
        "The laptop that Dan lent me belongs to Acme Robotics.\n\n"
        "The serial number of the laptop is SN-4471.\n\n"
        "The VAT number of Acme Robotics is DE 99123.\n\n"
        "The dentist who pulled my tooth was recommended by Maria Lopez.\n\n"
        "Maria Lopez lives at 12 Rose Lane.\n"
    )
    memctl("ingest", "things.md")

    def answer(question: str) -> dict[str, Any]:
        found: dict[str, Any] = memctl("query", question, "-o", "json").json["answer"]
        return found

    given = answer("What is the serial number of the laptop that Dan lent me?")
    assert given["found"]
    assert "SN-4471" in given["text"]
    assert "DE 99123" not in given["text"]
    assert not answer("What is the address of the dentist who pulled my tooth?")["found"]


def test_a_result_has_the_promised_keys(notes: Run) -> None:
    result = notes("query", "the budget", "-o", "json").json
    assert {"question", "hits", "insights", "answer", "mode", "seconds"} <= result.keys()
    assert result["hits"][0].keys() >= HIT_KEYS
    assert result["hits"][0]["rank"] == 1


def test_a_question_need_not_be_quoted_and_may_come_from_standard_input(notes: Run) -> None:
    assert notes("query", "the", "budget").rows[0]["question"] == "the budget"
    assert notes("query", "-", stdin="the budget\n").rows[0]["question"] == "the budget"


@pytest.mark.parametrize(
    "before",
    [
        "Hi! I am writing to our neighbours and suppliers, in a friendly tone. ",
        "ERROR worker-2 TimeoutError: upstream pool exhausted after 2102 ms\n\n",
    ],
)
def test_a_question_is_answered_whatever_stands_before_it_in_the_message(
    memctl: Run, tmp_path: Path, before: str
) -> None:
    (tmp_path / "lease.txt").write_text("The lease for the workshop starts on 1 June 2026.")
    memctl("ingest", "lease.txt")
    message = f"{before}When does the lease for the workshop start?"
    assert memctl("query", "-", stdin=message).rows[0]["answer"]["found"] is True
    assert "1 June 2026" in memctl("context", "--auto", "-", stdin=message).out


def test_a_question_whose_subject_stands_before_it_is_searched_for_with_it(
    memctl: Run, tmp_path: Path
) -> None:
    (tmp_path / "lease.txt").write_text("The lease for the workshop starts on 1 June 2026.")
    (tmp_path / "party.txt").write_text("Ann: when does it start? Bob: the party will start late.")
    memctl("ingest", "lease.txt", "party.txt")
    message = "Yesterday somebody asked me for the lease of our new workshop. When does it start?"
    assert memctl("query", "-", stdin=message).rows[0]["hits"][0]["source"].endswith("lease.txt")


@pytest.mark.parametrize(
    ("question", "own"),
    [
        ("When does the lease for the workshop start?", True),
        ("What did Anna Weber say when she called Bob?", True),
        ("¿Cuál es el precio del taller?", True),
        ("Quando comincia il contratto per l'officina?", True),
        ("When does it start?", False),
        ("How much did the painter charge for his work?", False),
        ("And in Porto?", False),
        ("Can you help me?", False),
        ("Wann hat sie die Werkstatt gekauft?", False),
        ("Où habite-t-il avec sa femme ?", False),
        ("他什么时候去北京出差？", False),
    ],
)
def test_a_question_has_its_own_subject_unless_it_refers_back(question: str, own: bool) -> None:
    assert has_own_subject(question) is own


def test_a_word_that_ends_in_another_is_not_known_by_that(memctl: Run) -> None:
    for said in ("My phone number changed in May.", "The cat weighs 4.6 kg."):
        memctl("memory", "add", said)
    for question in ("xylophone", "Where is the wildcat?"):
        assert memctl("query", question).rows[0]["answer"]["found"] is False


def test_what_is_not_known_is_said_plainly_and_can_be_an_exit_code(notes: Run) -> None:
    result = notes("query", "Who won the chess championship?", "-o", "json")
    assert result.code == 0
    assert not result.json["answer"]["found"]
    nothing = notes("query", "the budget", "--namespace", "nowhere", "--exit-code")
    assert nothing.code == 4
    assert notes("query", "the budget", "--exit-code").code == 0


def test_what_may_be_the_answer_is_named_as_the_closest_and_is_no_answer_yet(notes: Run) -> None:
    question = ("query", "Who may spend money on Aurora?")
    given = notes(*question, "-o", "json").json["answer"]
    closest = given["text"].partition(" [1]")[0]
    assert closest.startswith("Unsure. Closest in memory: ")
    assert closest.endswith("The budget of Aurora is 40,000 euros.")
    assert (given["found"], given["unsure"]) == (False, True)
    assert given["citations"][0]["quote"].endswith("The budget of Aurora is 40,000 euros.")
    table = notes(*question, "-o", "table", "--exit-code")
    assert table.out.startswith(closest)
    assert "plan.md" in table.out
    assert table.code == 4
    assert "no sure answer" in table.err
    (statistics,) = notes("stats", "--queries", "-o", "json").json
    assert statistics["unanswered"][0]["question"] == question[1]


def test_filters_limit_what_is_found(notes: Run) -> None:
    def sources(*options: str) -> set[str]:
        hits = notes("query", "the budget and the tomatoes", "--no-answer", *options).rows[0][
            "hits"
        ]
        return {Path(hit["source"]).name for hit in hits}

    assert sources() == {"plan.md", "garden.txt"}
    assert sources("--namespace", "home") == {"garden.txt"}
    assert sources("--tag", "#launch") == {"plan.md"}
    assert sources("--source", "*.txt") == {"garden.txt"}
    assert sources("--until", "2026-03-03") == {"plan.md"}
    assert sources("--since", "2026-03-03") == {"garden.txt"}
    assert sources("--where", "namespace = 'work'") == {"plan.md"}
    assert sources("-n", "1") <= {"plan.md", "garden.txt"}


def test_hits_after_the_first_can_be_shown(notes: Run) -> None:
    asked = ("query", "Aurora budget, and the tomatoes?", "-o", "json")
    every = notes(*asked).json
    later = notes(*asked, "--offset", "1", "-n", "1").json
    assert [hit["memory_id"] for hit in later["hits"]] == [every["hits"][1]["memory_id"]]
    assert later["hits"][0]["rank"] == 2
    assert later["answer"]["text"] == every["answer"]["text"]
    assert notes(*asked, "--offset", "100").json["hits"] == []


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "vector"])
def test_each_mode_finds_and_explains_itself(notes: Run, mode: str) -> None:
    result = notes("query", "budget of Aurora", "--mode", mode, "--explain", "-o", "json").json
    assert result["mode"] == mode
    assert result["explain"]
    assert ("keyword" in result["hits"][0]["legs"]) == (mode != "vector")


def test_a_wrong_mode_an_empty_question_and_none_are_usage_errors(
    notes: Run, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    for words in (
        ["x", "--mode", "psychic"], ["  "], [], ["x", "--batch", "y"], ["x", "-n", "0"],
        ["--batch", "nothing.jsonl"], ["--batch", "folder"], ["x", "--where", "1=1) --"],
    ):  # fmt: skip
        result = notes("query", *words)
        assert result.code == 2, words
        assert result.err.startswith("error: ")
        assert "hint: " in result.err


def test_a_batch_gives_one_object_a_line_in_order(notes: Run, tmp_path: Path) -> None:
    questions = [
        {"id": 7, "question": "the budget"},
        {"id": "b", "question": "tomatoes", "namespace": "work"},
        {"id": "c", "question": "tomatoes"},
    ]
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, questions)))
    rows = notes("query", "--batch", "q.jsonl", "-o", "ndjson", "--no-answer").rows
    assert [row["id"] for row in rows] == ["7", "b", "c"]
    assert all(Path(hit["source"]).name == "plan.md" for hit in rows[1]["hits"])
    assert Path(rows[2]["hits"][0]["source"]).name == "garden.txt"
    lines = "\n".join(map(json.dumps, questions))
    assert len(notes("query", "--batch", "-", "-o", "json", stdin=lines).json) == 3


def test_a_batch_may_come_through_a_pipe_with_a_name(notes: Run, tmp_path: Path) -> None:
    pipe = tmp_path / "questions"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=('{"question": "Rome?"}\n',))
    writer.daemon = True
    writer.start()
    assert len(notes("query", "--batch", "questions", "-o", "ndjson").rows) == 1
    writer.join()


def test_a_bad_line_of_a_batch_is_told_and_the_others_are_answered(notes: Run) -> None:
    lines = '{"id": "a", "question": "budget"}\nbroken\n[1]\n{"id": "b"}\n'
    result = notes("query", "--batch", "-", stdin=lines)
    assert result.code == 3
    assert [row["id"] for row in result.rows] == ["a"]
    for number in (2, 3, 4):
        assert f"line {number}: " in result.err


def test_for_people_the_answer_comes_with_its_places(notes: Run) -> None:
    out = notes("query", "When is the launch of Aurora?", "-o", "table").out
    assert "12 May 2026. [1]" in out
    assert "[1] Plan, plan.md, characters " in out


def test_names_that_begin_alike_are_told_apart_by_their_ends(memctl: Run, tmp_path: Path) -> None:
    for week in (12, 13):
        file = tmp_path / f"{'status-report-of-the-harbour-' * 3}week-{week}.txt"
        file.write_text(f"In week {week} the crane of the harbour was painted.")
        memctl("ingest", file.name)
    for command in (("query", "Who painted the crane?", "--no-answer"), ("document", "list")):
        out = memctl(*command, "-o", "table").out
        assert "status-report-of-the-har" in out
        assert "week-12.txt" in out
        assert "week-13.txt" in out


def on_a_terminal(*arguments: str) -> list[str]:
    """Return the lines that a command prints on a terminal of forty columns, without colours."""
    master, terminal = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "memctl", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        env=os.environ | {"COLUMNS": "40", "TERM": "xterm"},
    ) as process:
        os.close(terminal)
        with os.fdopen(master, "rb") as screen:
            shown = b"".join(printed(screen))
    assert process.returncode == 0
    return [ANSI.sub("", line).rstrip() for line in shown.decode().splitlines()]


def printed(screen: IO[bytes]) -> Iterator[bytes]:
    """Yield what is printed until the last process lets go of the terminal."""
    try:
        while chunk := os.read(screen.fileno(), 65_536):
            yield chunk
    except OSError as error:  # how Linux says that nobody has the other end open
        if error.errno != errno.EIO:
            raise


def test_on_a_terminal_a_long_place_goes_on_below_its_beginning(notes: Run) -> None:
    lines = on_a_terminal("query", "When is the launch of Aurora?", "-n", "1")
    for place in ("  1. Plan, plan.md,", "  [1] Plan, plan.md,"):
        [at] = [at for at, line in enumerate(lines) if line.startswith(place)]
        indent = place.index("Plan")
        assert lines[at + 1][:indent].isspace()
        assert not lines[at + 1][indent].isspace()


def test_several_knowledge_bases_are_asked_at_once(notes: Run) -> None:
    notes("kb", "create", "second")
    notes("ingest", "--text", "The budget of Borealis is 7 euros.", "-k", "second")
    hits = notes("query", "the budget", "-k", "default", "-k", "second", "--no-answer").rows[0][
        "hits"
    ]
    assert {hit["kb"] for hit in hits} == {"default", "second"}
    assert {hit["kb"] for hit in notes("query", "budget").rows[0]["hits"]} == {"default", "second"}
    hits = notes("query", "the budget", "-k", "second").rows[0]["hits"]
    assert {hit["kb"] for hit in hits} == {"second"}


def test_for_people_what_several_knowledge_bases_have_says_of_which_it_is(memctl: Run) -> None:
    for kb in ("home", "work"):
        memctl("kb", "create", kb)
        memctl("ingest", "--text", "The launch of Aurora is on 12 May 2026.", "-k", kb)
        memctl("ingest", "--text", "The launch of Aurora is on 19 June 2026.", "-k", kb)
        memctl("consolidate", "-k", kb)
    both = memctl("query", "when is the launch of Aurora?", "-o", "table").out
    assert [f" of {kb}: memctl insight show" in both for kb in ("home", "work")] == [True, True]
    assert all(f". {kb}: " in both or f"also in {kb}: " in both for kb in ("home", "work"))
    alone = memctl("query", "when is the launch of Aurora?", "-k", "work", "-o", "table").out
    assert "memctl insight show" in alone
    assert "work" not in alone


def test_questions_are_logged_and_can_be_looked_up(notes: Run) -> None:
    notes("query", "the budget")
    (row,) = notes("sql", "select question, mode, hits from queries").rows
    assert (row["question"], row["mode"]) == ("the budget", "hybrid")


def test_a_ledger_that_somebody_else_keeps_busy_does_not_stop_a_query(
    notes: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memctl.store.ledger.ledger.BUSY_SECONDS", 0.1)
    ledger = sqlite3.connect(tmp_path / "home/kb/default/ledger.sqlite", isolation_level=None)
    ledger.execute("BEGIN IMMEDIATE")
    try:
        result = notes("query", "the budget", "-o", "json")
    finally:
        ledger.close()
    assert result.code == 0
    assert result.json["hits"]


def test_context_is_text_within_its_budget_with_sources(notes: Run) -> None:
    text = notes("context", "the budget of Aurora", "--budget", "200").out
    assert "40,000 euros" in text
    assert "[1]" in text
    found = notes("context", "the", "budget", "--budget", "40", "-o", "json").json
    assert found["tokens"] <= found["budget"] == 40
    assert notes("context", " ").code == 2


@pytest.mark.parametrize(
    "asked", [("the budget", "--namespace", "nowhere"), ("Who won the chess championship?",)]
)
def test_context_of_nothing_is_empty_and_says_so(notes: Run, asked: tuple[str, ...]) -> None:
    result = notes("context", *asked)
    assert (result.code, result.out) == (0, "")
    assert result.err == "note: nothing in memory has to do with that\n"
    assert notes("context", *asked, "--exit-code").code == 4
    empty = notes("context", *asked, "-o", "json").json
    assert (empty["text"], empty["tokens"], empty["citations"]) == ("", 0, [])
    assert notes("context", "the budget of Aurora", "--exit-code").code == 0


def test_hits_that_are_only_near_are_not_found_where_an_answer_was_asked_for(notes: Run) -> None:
    question = ("query", "Who won the chess championship?", "--exit-code")
    assert notes(*question).code == 4
    assert notes("query", "When is the launch of Aurora?", "--exit-code").code == 0
    assert notes("query", "tomatoes", "--exit-code", "--no-answer").code == 0


def test_a_question_without_a_letter_or_digit_is_refused(notes: Run) -> None:
    result = notes("query", "???")
    assert result.code == 2
    assert result.err.startswith("error: the question has no words")
    assert notes("query", "番茄").code == 0


def test_until_a_day_that_is_not_after_since_is_refused_with_the_next_day(notes: Run) -> None:
    result = notes("query", "budget", "--since", "2026-05-12", "--until", "2026-05-12")
    assert result.code == 2
    assert "--until is exclusive" in result.err
    assert "--until 2026-05-13" in result.err


@pytest.mark.parametrize("verb", [("query", "budget"), ("context", "budget"), ("memory", "list")])
def test_a_type_that_no_memory_has_is_refused_with_the_nearest(
    notes: Run, verb: tuple[str, ...]
) -> None:
    result = notes(*verb, "--type", "decison")
    assert (result.code, result.out) == (2, "")
    assert "no memory is of the type 'decison'" in result.err
    assert "hint: did you mean --type decision? types are passage, turn," in result.err
    assert " quoted," in result.err
    assert notes("memory", "add", "The lift is out of order.", "--type", "decison").code == 0
    assert notes(*verb, "--type", "decison").code == 0


SERVER = """title: Web server
server:
  host: atlas.example
  ports: [80, 443]
  workers: 8
  tls:
    renewal: every 90 days
database:
  port: 5433
pets:
  - name: Biscuit
    breed: Beagle
  - name: Momo
    breed: Siamese
"""


@pytest.mark.parametrize("suffix", ["yaml", "json"])
@pytest.mark.parametrize(
    ("question", "quote", "text"),
    [
        ("what ports does the server use", "ports: 80, 443", "server > ports: 80, 443 [1]"),
        ("How many workers does the server have?", "workers: 8", "server > workers: 8 [1]"),
        ("What is the port of the database?", "port: 5433", "database > port: 5433 [1]"),
        (
            "When is the renewal of the TLS of the server?",
            "renewal: every 90 days",
            "server > tls > renewal: every 90 days [1]",
        ),
        ("What breed is Momo?", "name: Momo; breed: Siamese", "name: Momo; breed: Siamese [1]"),
    ],
)
def test_a_value_of_data_is_told_with_the_keys_above_it_and_cited_exactly(
    memctl: Run, tmp_path: Path, suffix: str, question: str, quote: str, text: str
) -> None:
    written = SERVER if suffix == "yaml" else json.dumps(yaml.safe_load(SERVER))
    (tmp_path / f"server.{suffix}").write_text(written)
    memctl("ingest", f"server.{suffix}")
    answer = memctl("query", question, "-o", "json").json["answer"]
    citation = answer["citations"][0]
    assert answer["text"].removeprefix("Unsure. Closest in memory: ").startswith(text)
    assert citation["quote"] == quote
    document = memctl("document", "show", citation["document_id"], "--text").out
    assert document[citation["start"] : citation["end"]] == quote


def test_an_expression_finds_what_it_says_and_explain_tells_how_it_was_read(notes: Run) -> None:
    def sources(expression: str) -> list[str]:
        hits = notes("query", "--no-answer", "--", expression).rows[0]["hits"]
        return [Path(hit["source"]).name for hit in hits]

    assert sources('"budget of aurora"') == ["plan.md"]
    assert sources('"aurora budget"') == []
    assert sources("-tomatoes aurora") == ["plan.md"]
    shown = notes("query", "aurroa~ +budg*", "--explain", "-o", "table").out
    assert "aurroa~: aurora" in shown
    assert "required: budg*" in shown
    broken = notes("query", "(aurora AND")
    assert "taken as plain words" in broken.err
    assert broken.rows[0]["hits"]
    assert notes("query", "--", "-aurora").code == 2


@pytest.mark.parametrize(
    "message",
    ["thanks, that works!", "Write a haiku about the budget of Aurora", "ok", "run it again",
     "can you please fix the budget of Aurora?", "how do I sort the notes?"],
)  # fmt: skip
def test_automatic_context_is_silent_for_talk_and_orders(notes: Run, message: str) -> None:
    result = notes("context", "--auto", message)
    assert (result.code, result.out, result.err) == (0, "", "")
    assert notes("context", "--auto", message, "--exit-code").code == 4


@pytest.mark.parametrize(
    "message",
    ["What is the budget of Aurora?", "what did we decide about Aurora?",
     "Remind me of the budget of Aurora"],
)  # fmt: skip
def test_automatic_context_is_there_where_memory_is_asked_for(notes: Run, message: str) -> None:
    assert "Aurora" in notes("context", "--auto", message).out
    context = notes("context", "--auto", message, "-o", "json").json
    assert context["why"].startswith(("relevance 0.", "refers to"))


def test_automatic_context_of_a_message_that_memory_knows_nothing_about_is_empty(
    notes: Run,
) -> None:
    asked = "what did we say about zebras in Antarctica?"
    context = notes("context", "--auto", asked, "-o", "json").json
    assert (context["text"], context["why"]) == ("", "refers to what was before: 'what did we'")


def test_the_fusion_can_be_chosen_on_the_command_line_and_in_the_settings(
    notes: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def used(*options: str) -> str:
        asked = ("query", "the budget", "--explain", "--no-answer", "-o", "json")
        fusion: str = notes(*asked, *options).json["explain"]["fusion"]
        return fusion

    def is_by(leg: str) -> bool:
        asked = ("query", "the budget", "--no-answer", "--level", "evidence")  # without clues
        hits = notes(*asked).rows[0]["hits"]
        return all(hit["score"] == pytest.approx(hit["legs"][f"{leg}_normalised"]) for hit in hits)

    notes("ingest", "--text", "Seeds are paid for out of what is left, a small budget.")
    assert used() == "zscore"
    assert used("--fusion", "rrf") == "rrf"
    assert notes("query", "the budget", "--fusion", "borda").code == 2
    monkeypatch.setenv("MEMCTL_QUERY_FUSION", "weighted")
    monkeypatch.setenv("MEMCTL_QUERY_KEYWORD_WEIGHT", "0")
    assert used() == "weighted"
    assert is_by("vector")
    assert not is_by("keyword")
    monkeypatch.setenv("MEMCTL_QUERY_KEYWORD_WEIGHT", "1")
    assert is_by("keyword")


def test_how_many_are_shown_does_not_change_the_answer(memctl: Run) -> None:
    for day, start in (("2026-03-24", "1 June"), ("2026-05-12", "15 June")):
        text = f"The lease of the workshop starts on {start} 2026."
        line = json.dumps({"text": text, "created_at": f"{day}T00:00:00Z"})
        memctl("ingest", "--jsonl", "-", stdin=f"{line}\n".encode())
    question = "When does the lease of the workshop start?"
    one, all_ = (memctl("query", question, "-n", n, "-o", "json").json for n in ("1", "10"))
    assert (len(one["hits"]), len(all_["hits"])) == (1, 2)
    assert one["answer"] == all_["answer"]
    assert "15 June" in one["answer"]["text"]


KILN = "# Kiln\n\nThe kiln was rewired by Orla Finch.\n\nThe kiln has a capacity of 120 litres.\n"
BOAT = "# Boat\n\nHalvard Rigging replaced the forestay in May. The bill came to 640 euros.\n"


@pytest.mark.parametrize(
    ("question", "said", "found"),
    [
        (
            "What is the capacity of the kiln and who rewired it?",
            ["120 litres. [1]", "Orla Finch. [2]"],
            True,
        ),
        (
            "Who rewired the kiln and when does its insurance end?",
            ["Orla Finch. [1]", "Not in memory: when does its insurance end?"],
            False,
        ),
        (
            "Who replaced the forestay and what did it cost?",
            ["in May. [1] Unsure: what did it cost? Closest in memory: ", "640 euros. [2]"],
            False,
        ),
    ],
)
def test_each_part_of_a_question_is_answered_or_said_to_be_unknown(
    memctl: Run, tmp_path: Path, question: str, said: list[str], *, found: bool
) -> None:
    (tmp_path / "kiln.md").write_text(KILN)
    (tmp_path / "boat.md").write_text(BOAT)
    memctl("ingest", "kiln.md", "boat.md")
    answer = memctl("query", question, "-o", "json").json["answer"]
    assert [text for text in said if text not in answer["text"]] == []
    assert answer["found"] is found
    assert answer["unsure"] is not found
    assert [cited["number"] for cited in answer["citations"]] == [
        *range(1, len(answer["citations"]) + 1)
    ]


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("Leo fixed the roof in May 2024.", "Who fixed the roof and when?"),
        ("Leo fixed the roof in May 2024.", "When was the roof fixed and who fixed it?"),
        (
            "The flight to Rome leaves at 7:45 from gate B12.",
            "When does the flight to Rome leave and from which gate?",
        ),
        (
            "The launch is on 3 March 2027. Ruth decided it. The budget is 40000 euros.",
            "When is the launch, who decided it and what is the budget?",
        ),
    ],
)
def test_a_sentence_that_answers_all_parts_of_a_question_is_given_once(
    memctl: Run, text: str, question: str
) -> None:
    memctl("ingest", "--text", text)
    answer = memctl("query", question, "-o", "json").json["answer"]
    assert (answer["found"], answer["text"]) == (True, f"{text} [1]")


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        (
            "Who rewired the kiln and what did it cost?",
            "Who rewired the kiln? what did the kiln cost?",
        ),
        (
            "What is the width of the loom and who oils it?",
            "What is the width of the loom? who oils the loom?",
        ),
        (
            "When and where did the choir sing?",
            "When did the choir sing? where did the choir sing?",
        ),
        ("When does Ida move, and to where?", "When does Ida move? to where does Ida move?"),
        (
            "The loom: who oils it and how often?",
            "The loom, who oils it? The loom, how often oils it?",
        ),
        ("Who fixed the loom and what is his number?", "Who fixed the loom? "),
        ("Who rents the barn and the field?", ""),
        ("When is the launch, who decided it and what is the budget?", ""),
        ("What is the difference between the loom and what Ida has?", ""),
    ],
)
def test_the_parts_of_a_question_are_asked_by_what_they_are_about(
    question: str, parts: str
) -> None:
    assert " ".join(each.alone for each in question_parts(question)) == parts
