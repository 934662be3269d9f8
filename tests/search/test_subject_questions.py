"""What something is or does: told by what is about it, not by all that has its name."""

from __future__ import annotations

import time

import pytest

from memctl.search.answering.extractive_answer import extract_answer
from memctl.search.query.subject_questions import (
    names_another,
    names_opposite,
    numbered_things,
    option_of_value,
    subject_question,
)

from .conftest import MemoryOf, Shelf


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("What is Typer?", "**Typer** is a library for building command lines."),
        ("what's HTTPX", "HTTPX is a fully featured HTTP client."),
        ("What is the meaning of life?", None),
        ("What is a fixture?", "A fixture is what a test needs."),
        ("What are fixtures?", "Fixtures are the things that a test needs."),
        ("What is ASGI?", "ASGI (Asynchronous Server Gateway Interface) is the successor of WSGI."),
        ("What does ETL mean?", "ETL stands for the three steps of loading."),
        ("What is Kestrel?", "Kestrel: the new warehouse."),
        ("What is Kestrel?", "Kestrel: CRM"),
        ("What is Kestrel Build?", "Kestrel Build is our contractor."),
        ("What is Kestrel?", "We moved into a building called Kestrel."),
        ("Was ist Kestrel?", "Kestrel ist unser neues Lager."),
        ("Qu'est-ce que Kestrel ?", "Kestrel est notre nouvel entrepôt."),
        ("¿Qué es Kestrel?", "Kestrel es el almacén nuevo."),
        ("What is pytest-xdist?", "pytest_xdist is a plugin of pytest."),
        ("What is DHAT?", "DHAT is primarily a tool for looking at the heap."),
        ("What does Otter do?", "Otter is a web server."),
        ("What is IDLE?", "IDLE is Python's environment for learning it."),
        ("What is a redzone?", "Such blocks are called redzones."),
        ("What is wanna-build?", "The wanna-build system is used as a build distribution system."),
        ("What is a refspec?", 'A "refspec" is used by fetch to map refs.'),
        ("What does NMU stand for?", "Such uploads are called Non-Maintainer Uploads (NMU)."),
        (
            "What does FTBFS mean?",
            "If a bug mentions FTBFS, this means Fails to build from source.",
        ),
        ("What is the WAL?", 'A "Write-Ahead Log" (hereafter referred to as "WAL") is kept.'),
        ("What does HTML stand for?", "HTML stands for HyperText Markup Language."),
        ("What does --mathlib do?", "-l, --mathlib: Define the standard library."),
        ("What does --depth do?", "--depth <n> [default: 3], -d: How deep it goes."),
        ("What does --quiet do?", "--quiet=<yes|no> [default: no]: Says nothing."),
    ],
)
def test_a_sentence_that_defines_is_known(question: str, sentence: str | None) -> None:
    asked = subject_question(question)
    if sentence is None:
        assert asked is None
    else:
        assert asked is not None
        assert asked.is_answered_by(sentence) is True


@pytest.mark.parametrize("text", ["a " * 9_000, "AAAAAAA " + "a to " * 4_000])
def test_many_words_of_the_same_initial_take_no_time(text: str) -> None:
    asked = subject_question("What does AAAAAAA stand for?")
    assert asked is not None
    began = time.process_time()
    asked.is_answered_by(text)
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("question", "option"),
    [
        ("What is the default of work_mem?", "work_mem"),
        ("what does --depth default to, and what is its default?", "--depth"),
        ("What is the maximum of gc.auto?", "gc.auto"),
        ("What is work_mem?", ""),
        ("What is the default timeout in settings.json?", ""),
        ("Is the default of a_b that of c_d?", ""),
        ("What is the default colour?", ""),
    ],
)
def test_an_option_whose_value_is_asked_for_is_known(question: str, option: str) -> None:
    assert option_of_value(question) == option


@pytest.mark.parametrize(
    ("question", "sentence", "expected"),
    [
        ("What is DuckDB?", "Keywords: DuckDB,Database,SQL", False),
        ("What is the WAL?", "WAL mode permits simultaneous readers and writers.", False),
        ("What is the PIN?", "PIN: 4711", None),
        ("What does CREATE INDEX do?", "CREATE INDEX title_idx ON films (title);", False),
        ("What does CREATE INDEX do?", "CREATE INDEX makes searches fast.", None),
        ("What is HR?", "He ran HR for years.", False),
        ("What does NMU stand for?", "An NMU is an upload.", False),
        ("What is DuckDB?", "DuckDB is extensible by other parties.", False),
        ("What is HTTPX?", "HTTPX2 is the default client.", False),
        ("What is watchdog?", "Requires-Dist: watchdog>=4.0.0", False),
        ("What is Typer?", "Use a slimmed-down Typer called typer-slim.", False),
        ("What is lunch?", "Lunch is at noon.", None),
        ("What is Massif?", "By default this file is called massif.out.<pid>.", False),
        ("What is Memcheck?", "Memcheck:Leak", False),
        ("What is Redis?", "Redis is probably the reason for it.", False),
        ("What is a target?", "This is a directory named target.", False),
        ("What does Memcheck do?", "Memcheck is the default tool.", None),
        ("What does Vault do?", "Vault = done", False),
        ("What does --squash do?", "--squash and --rebase conflict: pass one.", None),
        ("What does --squash do?", "--squash was removed in 3.0: use --merge.", None),
        ("What does --speed=4 do?", "The option --speed=4 grows the rope.", False),
        ("What does --speed=4 do?", "If --speed=4 is given, the rope is taken in.", None),
        ("What does --quiet do?", "--quiet=<yes|no> [default: no]", None),
        ("What does the --quiet option do?", "Use --quietly instead.", False),
        ("What is rent?", "Rent: 450 a month", None),
        ("What are workspaces?", '"workspaces": [', False),
        ("What is a scope in npm?", "This includes the scope for others.", False),
        ("What is npx?", "npx -- <pkg>[@<version>] [args...]", False),
        ("What does npm ci do?", "This command runs `npm ci` and then `npm test`.", False),
        ("What does npm ci do?", "`npm ci` will exit with an error.", None),
        ("How does Otter work?", "We asked about Otter.", False),
        ("What is the purpose of lifecycle?", "The cycle has a purpose.", False),
        ("What is Otter used for?", "Otter lifts what is heavy.", None),
        ("What is Heron used for?", "We use Heron for the newsletters.", None),
        ("What does Anna do?", "My sister Anna works as a nurse.", None),
        ("What does Anna do?", "Ask Anna for the key.", False),
        ("What is Kestrel?", "Ask about Kestrel.", False),
    ],
)
def test_others_that_have_the_name_do_not_define(
    question: str, sentence: str, expected: bool | None
) -> None:
    asked = subject_question(question)
    assert asked is not None
    assert asked.is_answered_by(sentence) is expected


def test_a_text_about_it_may_tell_without_its_name() -> None:
    asked = subject_question("What does npm ci do?")
    assert asked is not None
    assert asked.is_answered_by("This installs what is locked.", ("npm-ci", "Use")) is None
    assert asked.is_answered_by("This installs what is locked.", ("npm-ci-test", "Use")) is False
    named = "npm ci is the one for servers."
    assert asked.is_answered_by("It installs what is locked.", before=named) is None
    assert asked.is_answered_by("It installs what is locked.", before="Use npm ci there.") is False


@pytest.mark.parametrize("unit", [" --a-b-c", ",AA", " <a> ", "-", " [a", "=a,b "])
def test_a_long_line_of_options_is_read_at_once(unit: str) -> None:
    asked = subject_question("What does --speed do?")
    assert asked is not None
    assert asked.is_answered_by(f"--speed{unit * 5_000}") in (None, False)


def test_what_stands_first_under_an_option_says_what_it_does() -> None:
    asked = subject_question("What does --speed=4 do?")
    assert asked is not None
    titles = "Winch", "8. Winch > 8.1. Options > -s <n>, --speed=<n>"
    first = "-s <n>, --speed=<n>"
    assert asked.is_answered_by("Sets how fast it is.", titles, first) is True
    assert asked.is_answered_by("Too fast breaks it.", titles, "Sets how fast it is.") is None
    assert asked.is_answered_by("It breaks with --speed=9.", titles, "Not --speed=9.") is None
    assert asked.is_answered_by("Sets how fast it is.", ("Winch", "-r"), "-r") is False
    named = subject_question("What does winch do?")
    assert named is not None
    assert named.is_answered_by("Take in a rope.", ("winch", "winch"), "winch") is True
    assert named.is_answered_by("Take in a rope.", ("winch", ""), "") is None


def test_a_heading_that_holds_a_value_can_be_the_answer(shelf: Shelf, memory_of: MemoryOf) -> None:
    option = "--callers=<number> [default: 12]"
    text = f"{option}\n\nSpecifies the number of entries that are shown in a trace."
    shelf.put([memory_of("option", text, heading=f"Winch > Options > {option}", title="Winch")])
    given = extract_answer(shelf.searcher().search("What is the default value of --callers?"))
    assert given.found
    assert given.citations[0].quote == option


def test_a_definition_ranks_before_memories_about_the_subject(
    shelf: Shelf, memory_of: MemoryOf
) -> None:
    words = [
        "file",
        "options",
        "client",
        "viewer",
        "commands",
        "format",
        "output",
        "heap",
        "graph",
        "memory",
        "tool",
    ]
    about = [memory_of(each, f"Massif {each}. Use Massif for Massif's {each}.") for each in words]
    text = "The tool was written long ago. Massif is a heap profiler that measures what is used."
    shelf.put([*about, memory_of("defines", text)])
    hits = shelf.searcher().search("What is Massif?").hits
    assert hits[0].memory_id == "m_defines"
    assert "definition" in hits[0].legs


@pytest.mark.parametrize(
    "question",
    [
        "What is the door code?", "What is my policy number?", "What is on the floor?",
        "What was nicked out of the van in November?", "What is causing the patch upstairs?",
        "What is Anna's phone number?", "what is wifi password", "What is WiFi password?",
        "What did Ann do?", "What do we do?", "What is Kuba's last name?",
        "Who is Ada?", "What is the registration of the Fabia?", "What did Ann say?",
    ],
)  # fmt: skip
def test_a_description_of_one_thing_asks_for_no_definition(question: str) -> None:
    assert subject_question(question) is None


def test_a_memory_that_only_mentions_the_subject_is_not_the_answer(
    shelf: Shelf, memory_of: MemoryOf
) -> None:
    shelf.put(
        [
            memory_of("uses", "The gantry crane was moved by Otter in May."),
            memory_of("label", "Keywords: Otter, cranes, lifting"),
            memory_of("other", "The pier is closed on Sundays."),
        ]
    )
    unsure = extract_answer(shelf.searcher().search("What is Otter?"))
    assert not unsure.found
    shelf.put([memory_of("defines", "Otter is a contractor for heavy lifting from Hull.")])
    given = extract_answer(shelf.searcher().search("What is Otter?"))
    assert given.found
    assert given.citations[0].quote == "Otter is a contractor for heavy lifting from Hull."


@pytest.mark.parametrize(
    ("question", "text", "is_there"),
    [
        ("who serviced van 3", "Van 44 was serviced on 3 May", False),
        ("who serviced van 3", "Vans 3 and 44 were serviced", True),
        ("is floor 2 carpeted", "Floors 1 to 3 have carpets", True),
        ("is floor 4 carpeted", "Floors 1 to 3 have carpets", False),
        ("what is room B12", "Room number A12 is the archive", False),
        ("what is room 12", "The archive has 12 shelves", None),
    ],
)
def test_a_text_has_a_numbered_thing_or_another_or_none(
    question: str, text: str, is_there: bool | None
) -> None:
    (thing,) = numbered_things(question)
    assert thing.is_in(text) is is_there


def test_a_date_is_no_numbered_thing() -> None:
    assert numbered_things("who visited 3 May 2026") == ()


@pytest.mark.parametrize(
    ("question", "text", "is_other"),
    [
        ("phone number of Marek Bereza", "Phone number of Tomasz Bereza: 642", True),
        ("When does Anna Berg start?", "Anna Holt starts on 3 March", True),
        ("When does Anna Berg's course start?", "Anna Holt's course starts on 3 March", True),
        ("When does Anna Berg start?", "Anna Holt helps until Anna Berg starts", False),
        ("When does Anna Berg start?", "Anna starts on 3 March", False),
        ("When does Anna Berg start?", "Anna B. starts on 3 March", False),
        ("When does Anna Berg start?", "Ask Berg when she starts", False),
        ("Does Anna start?", "Anna Holt starts on 3 March", False),
    ],
)
def test_a_full_name_is_not_that_of_somebody_who_shares_half_of_it(
    question: str, text: str, is_other: bool
) -> None:
    assert names_another(question, text) is is_other


@pytest.mark.parametrize(
    ("question", "text", "is_opposite"),
    [
        ("What is the import permit number?", "Our export permit is number 417", True),
        ("What is the import permit number?", "The permit is for import and export", False),
        ("What is the permit number?", "Our export permit is number 417", False),
        ("What is the value of the left lens?", "The right lens has -1.5", True),
        ("What is the value of the left lens?", "Lens | Right: -1.5", True),
        ("What is the value of the left lens?", "Right lens -1.5, left lens -2", False),
        ("How much paint is left?", "All right, there are 3 litres in the shed", False),
        ("Where is the switch for the outside light?", "It is inside the shed", False),
        ("Who milks in the evening?", "In the morning, Ida milks the goats", True),
        ("Which pump is the new one?", "The old pump is a Hydra 3", True),
        ("What is the gross wage?", "Net wage: 1,900 euros", True),
        ("What is the budget of the kiosk?", "The kiosk cost 5,200 euros", True),
        ("What is the budget of the kiosk?", "The kiosk cost 200 more than budgeted", False),
        ("When did we sell the mare?", "We bought the mare on 4 May", True),
        ("What did Ben buy?", "We sold the mare to Ben", False),
        ("When was the crate received?", "The crate was sent on 4 May", True),
        ("When did we receive the crate?", "The crate was sent to us on 4 May", False),
        ("When did we buy the mare?", "The mare was sold to us by Mr Hall", False),
        ("When did we buy the mare?", "The mare was sold by Mr Hall in 2019", False),
        ("When did we buy the mare?", "The mare was sold by us in 2019", True),
    ],
)
def test_the_opposite_of_what_is_asked_about_is_another_thing(
    question: str, text: str, is_opposite: bool
) -> None:
    assert names_opposite(question, text) is is_opposite
