"""Listings in pages and in any order."""

from __future__ import annotations

import pytest
from command_tree import commands

from .conftest import Run

LISTINGS = sorted(name for name in commands() if name.split()[-1] == "list")
OTHER_LISTINGS = (
    "audit", "document backlinks", "document links", "document mentions", "document related",
    "graph communities", "graph neighbors", "graph search", "links missing", "memory learnings",
    "pool history", "skill conflicts", "skill gaps", "skill health", "skill proposals",
    "skill suggest", "upkeep report",
)  # fmt: skip
OF_THE_PROGRAM = {"models list", "tool list", "work list"}
"""Short listings that are the same for everybody, and one that hands out work in its order."""


@pytest.mark.parametrize("name", [*sorted({*LISTINGS} - OF_THE_PROGRAM), *OTHER_LISTINGS])
def test_every_listing_has_pages_and_an_order(name: str) -> None:
    options = {option for each in commands()[name].params for option in each.opts}
    assert {"--limit", "--offset", "--sort", "--desc"} <= options


def test_pages_follow_each_other_and_say_what_is_left(memctl: Run) -> None:
    for name in ("b", "a", "c"):
        memctl("kb", "create", name)
    whole = [row["name"] for row in memctl("kb", "list").rows]
    pages = [memctl("kb", "list", "-n", "2", "--offset", str(at)) for at in (0, 2)]
    assert [row["name"] for page in pages for row in page.rows] == whole[:4]
    assert "only the first 2 are shown" in pages[0].err
    middle = memctl("kb", "list", "-n", "1", "--offset", "1")
    assert "rows 2 to 2 are shown; --offset 2 goes on" in middle.err


def test_rows_go_by_a_key_and_those_without_it_come_last(memctl: Run) -> None:
    for name, title in (("ida", "Ida Holm"), ("ann", ""), ("bo", "bo Berg")):
        memctl("user", "add", name, *(("--title", title) if title else ()))
    by_title = memctl("user", "list", "--sort", "title")
    assert [row["name"] for row in by_title.rows] == ["bo", "ida", "ann"]
    down = memctl("user", "list", "--sort", "title", "--desc", "-n", "1")
    assert [row["name"] for row in down.rows] == ["ida"]
    refused = memctl("user", "list", "--sort", "titel")
    assert (refused.code, "did you mean 'title'?" in refused.err) == (2, True)


def test_a_listing_of_several_knowledge_bases_goes_by_date(memctl: Run) -> None:
    for name in ("a", "b"):
        memctl("kb", "create", name)
    for name in ("a", "b", "a"):
        session = memctl("session", "start", "-k", name).out.strip()
        memctl("feedback", "add", session, "good", "-k", name)
        memctl("consolidate", "-k", name)
        memctl("snapshot", "create", f"s{session[-8:].lower()}", "-k", name)
    for listing in ("session list", "feedback list", "job list"):
        assert [row["kb"] for row in memctl(*listing.split()).rows] == ["a", "b", "a"], listing
    assert [row["kb"] for row in memctl("session", "list", "-n", "2").rows] == ["a", "b"]
    assert [row["kb"] for row in memctl("snapshot", "list").rows] == ["a", "b", "a"]


def test_learnings_of_several_knowledge_bases_go_by_importance(memctl: Run) -> None:
    for name, importance in (("a", "0.4"), ("b", "0.9")):
        memctl("kb", "create", name)
        text = f"retry uploads of {name} once"
        memctl(*f"memory add --type learning --importance {importance} -k {name}".split(), text)
    assert [row["kb"] for row in memctl("memory", "learnings").rows] == ["b", "a"]
    memctl("memory", "add", "boats leak at the uploads", "--type", "learning", "-k", "a")
    found = memctl("memory", "learnings", "retry uploads of b").rows
    assert [row["kb"] for row in found] == ["b", "a", "a"], "ordered across knowledge bases"
    (best,) = memctl("memory", "learnings", "retry uploads of b", "-n", "1").rows
    assert best["kb"] == "b"


def test_a_page_is_of_all_knowledge_bases_together(memctl: Run) -> None:
    for number, base in enumerate(("one", "two", "one", "two", "one")):
        if number < 2:
            memctl("kb", "create", base)
        day = f"2025-03-0{number + 1}"
        memctl("memory", "add", f"Tea number {number}.", "--date", day, "-k", base)
    both = ("-k", "one", "-k", "two", "-o", "json")

    def listed(*options: str) -> list[tuple[str, str]]:
        rows = memctl("memory", "list", *options, *both).json
        return [(row["kb"], row["text"][11]) for row in rows]

    newest = [("one", "4"), ("two", "3"), ("one", "2"), ("two", "1"), ("one", "0")]
    assert listed() == newest
    assert listed("-n", "2") == newest[:2]
    assert listed("-n", "2", "--offset", "2") == newest[2:4]
    assert listed("-n", "2", "--sort", "created") == newest[:-3:-1]
    assert len(set(listed("-n", "4", "--sort", "importance", "--desc")) & set(newest)) == 4
    cut = memctl("memory", "list", "-n", "3", *both)
    assert "only the first 3 are shown" in cut.err
